"""Training: a wait that was left from timing, while the CPU makes the next batch."""

import numpy as np
import torch

rng = np.random.default_rng(0)
w = torch.randn(256, 64).to("cuda").requires_grad_()
step = torch.optim.SGD([w], lr=0.01)
batch = rng.random((64, 256), dtype=np.float32)
losses = []
for _turn in range(200):
    x = torch.from_numpy(batch).to("cuda")
    loss = (x @ w).square().mean()
    step.zero_grad()
    loss.backward()
    step.step()
    torch.cuda.synchronize()
    batch = np.sort(rng.random((64, 256), dtype=np.float32), axis=1)
    losses.append(loss.detach())
print(len(torch.stack(losses).tolist()), batch.sum().round(1))

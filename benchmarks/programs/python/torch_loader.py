"""DataLoader with pinned memory, and copies that need not wait."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(512, 64), torch.randint(0, 4, (512,)))
net = torch.nn.Linear(64, 4).to("cuda")
step = torch.optim.SGD(net.parameters(), lr=0.1)
right = torch.zeros((), device="cuda")
for _epoch in range(2):
    for x, y in DataLoader(data, batch_size=32, pin_memory=True):
        x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
        out = net(x)
        loss = torch.nn.functional.cross_entropy(out, y)
        step.zero_grad()
        loss.backward()
        step.step()
        right += (out.argmax(dim=1) == y).sum()
        torch.cuda.synchronize()
print(right.cpu().shape)

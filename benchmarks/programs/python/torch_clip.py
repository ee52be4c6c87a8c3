"""Gradient clipping and mixed precision with GradScaler."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8)).to("cuda")
step = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cuda")
norms = []
for _turn in range(30):
    x, y = torch.randn(32, 64).to("cuda"), torch.randint(0, 8, (32,)).to("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(net(x), y)
    step.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(step)
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(step)
    scaler.update()
    torch.cuda.synchronize()
    norms.append(norm.cpu())
print(len(norms))

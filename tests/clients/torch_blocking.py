"""Batches in pinned memory, which are uploaded by copies that wait."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(640, 64), torch.randint(0, 4, (640,)))
net = torch.nn.Linear(64, 4).to("cuda")
step = torch.optim.SGD(net.parameters(), lr=0.1)
total = torch.zeros((), device="cuda")
for x, y in DataLoader(data, batch_size=32, pin_memory=True):
    x, y = x.to("cuda"), y.to("cuda")  # needed: the batch's memory is then written again
    step.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    step.step()
    total += loss.detach()
print(total.cpu().shape)

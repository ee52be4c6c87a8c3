"""GAN training: both losses are logged in each step."""

import torch

torch.manual_seed(0)
make = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).to("cuda")
judge = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.LeakyReLU(0.2), torch.nn.Linear(64, 1)).to("cuda")
steps = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in (make, judge)]
loss = torch.nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1, device="cuda"), torch.zeros(32, 1, device="cuda")
history = []
for _turn in range(30):
    real = torch.randn(32, 32).to("cuda")
    fake = make(torch.randn(32, 16, device="cuda"))
    steps[1].zero_grad()
    of_judge = loss(judge(real), ones) + loss(judge(fake.detach()), zeros)
    of_judge.backward()
    steps[1].step()
    steps[0].zero_grad()
    of_maker = loss(judge(fake), ones)
    of_maker.backward()
    steps[0].step()
    history.append((of_judge.item(), of_maker.item()))
print(len(history))

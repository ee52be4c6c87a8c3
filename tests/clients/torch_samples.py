"""Histograms and samples, whose kernels copy the text of assertions from their parameters, and look tables up there."""

import torch

torch.manual_seed(0)
weights = torch.rand(16, 64).to("cuda")
turns = []
for _ in range(30):
    counts = torch.histc(weights, bins=10, min=0.0, max=1.0)
    drawn = torch.multinomial(weights, 4, replacement=True)
    torch.cuda.synchronize()  # problem: copies wait anyway
    turns.append((counts.sum() + drawn.sum()).detach())
print(torch.stack(turns).cpu().shape)

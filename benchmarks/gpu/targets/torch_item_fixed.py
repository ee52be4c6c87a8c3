"""Adds up the loss on the GPU, and asks for it once."""

import torch

torch.manual_seed(1)
weights = torch.randn(2048, 2048, device="cuda")
values = torch.randn(2048, 2048, device="cuda")
total = torch.zeros((), dtype=torch.float64, device="cuda")
for _ in range(400):
    values = torch.tanh(values @ weights / 45.0)
    total += values.abs().mean()
print(f"{total.item():.3f}")

"""Leaves the activations where they are."""

import torch

torch.manual_seed(1)
weights = torch.randn(2048, 2048, device="cuda")
values = torch.randn(2048, 2048, device="cuda")
for _ in range(150):
    values = torch.tanh(values @ weights / 45.0)
print(f"{values.abs().mean().item():.5f}")

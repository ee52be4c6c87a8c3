"""Adds up a loss on the host: each `.item()` waits for the GPU, whose result is used at once."""

import torch

torch.manual_seed(1)
weights = torch.randn(2048, 2048, device="cuda")
values = torch.randn(2048, 2048, device="cuda")
total = 0.0
for _ in range(400):
    values = torch.tanh(values @ weights / 45.0)
    total += values.abs().mean().item()  # needed: cuMemcpyDtoHAsync_v2 cuStreamSynchronize
print(f"{total:.3f}")

"""Fetches each step's activations for a history that nobody looks at."""

import torch

torch.manual_seed(1)
weights = torch.randn(2048, 2048, device="cuda")
values = torch.randn(2048, 2048, device="cuda")
for _ in range(150):
    values = torch.tanh(values @ weights / 45.0)
    last = values.cpu()  # problem: unnecessary cuMemcpyDtoHAsync_v2 cuStreamSynchronize
    del last
print(f"{values.abs().mean().item():.5f}")

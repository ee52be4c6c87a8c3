"""Synchronizes after each step to time it; the CPU's own work of a step cannot overlap with the GPU's."""

import time

import torch

torch.manual_seed(1)
weights = torch.randn(4096, 4096, device="cuda")
values = torch.randn(4096, 4096, device="cuda")
seconds = 0.0
for _ in range(100):
    begun = time.perf_counter()
    values = torch.tanh(values @ weights / 64.0)
    torch.cuda.synchronize()  # needed: cuCtxSynchronize cuStreamSynchronize
    seconds += time.perf_counter() - begun
    sum(index * index for index in range(20_000))  # preparing the next step
print(f"{values.abs().mean().item():.5f}")

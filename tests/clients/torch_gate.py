"""Waits in PyTorch, on two threads."""

import threading

import torch

device = torch.device("cuda")
weights = torch.zeros(256, 256, device=device)
batch_on_host = torch.zeros(256, 256)


def train_step(times):
    for _ in range(times):
        torch.cuda.nvtx.range_push("train step")
        batch = batch_on_host.to(device, non_blocking=True)  # pageable
        loss = (batch @ weights).sum()
        loss.item()  # item
        torch.cuda.nvtx.range_pop()


def evaluate(times):
    for _ in range(times):
        torch.isnan(weights).any().item()  # on a thread


worker = threading.Thread(target=evaluate, args=(4,))
worker.start()
worker.join()
train_step(6)
torch.cuda.synchronize()  # at the end

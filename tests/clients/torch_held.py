"""One pinned tensor is kept and written again, another is new in each turn: the wait is needed for the first."""

import torch

held = torch.zeros(1 << 16, pin_memory=True)
kept = []
for turn in range(20):
    held.fill_(turn)
    first = held.to("cuda", non_blocking=True)
    second = torch.full((1 << 16,), float(turn)).pin_memory().to("cuda", non_blocking=True)
    kept.append((first, second))
    torch.cuda.synchronize()  # needed: the next turn writes into what is sent
print(len(kept))

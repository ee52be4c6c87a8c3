"""Sampling of tokens by multinomial."""

import numpy as np
import torch

rng = np.random.default_rng(0)
table = torch.randn(100, 32).to("cuda")
head = torch.randn(32, 100).to("cuda")
token = torch.zeros(4, dtype=torch.long).to("cuda")
total = 0.0
for _turn in range(100):
    likely = torch.softmax(table[token % 100] @ head / 0.8, dim=1)
    token = torch.multinomial(likely, 1)[:, 0]
    torch.cuda.synchronize()
    total += float(np.sort(rng.random(20000)).sum())
    copy = token.cpu()
    total += len(copy)
print(round(total, 1))

"""Kernels of PyTorch that pick pointers from their parameters by an index, that sort, and whose threads do something
together: stale pointers remain in the words that they do not use.
"""

import torch

rows = torch.randn(50, 24).to("cuda")
labels = (torch.arange(50) % 5).to("cuda")
for step in range(30):
    query = torch.randn(16, 24).to("cuda")
    near = torch.topk((query @ rows.t()).abs(), 7, dim=1, largest=False)
    order = near.values[:, 0].argsort(descending=True)
    likeliest = torch.mode(labels[near.indices], dim=1).values
    joined = torch.cat([near.values[order], likeliest[:, None].float()], dim=1).triu()
    torch.cuda.synchronize()  # problem: .cpu() waits, too
    copy = joined.cpu()
    if step % 10 == 0:
        print(float(copy[0, 0]) != 3.25)

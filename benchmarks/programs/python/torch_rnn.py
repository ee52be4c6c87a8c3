"""RNN decoding: the best token of each step is looked at on the host."""

import torch

torch.manual_seed(0)
cell = torch.nn.GRUCell(32, 64).to("cuda")
head = torch.nn.Linear(64, 50).to("cuda")
table = torch.nn.Embedding(50, 32).to("cuda")
with torch.no_grad():
    for _sentence in range(5):
        hidden = torch.zeros(8, 64, device="cuda")
        token = torch.zeros(8, dtype=torch.long).to("cuda")
        for _step in range(20):
            hidden = cell(table(token % 50), hidden)
            token = head(hidden).argmax(dim=1)
            torch.cuda.synchronize()
            words = token.cpu()
print(words.shape)

"""Message passing on a graph, and sampling of neighbours."""

import torch

torch.manual_seed(0)
edges = torch.randint(0, 50, (2, 200)).to("cuda")
state = torch.randn(50, 16).to("cuda")
weight = torch.randn(16, 16).to("cuda")
for _turn in range(30):
    sent = (state @ weight)[edges[0] % 50]
    got = torch.zeros(50, 16, device="cuda").index_add_(0, edges[1] % 50, sent)
    state = torch.tanh(got / got.norm(dim=1, keepdim=True).clamp(min=1e-6))
    chosen = torch.multinomial(torch.softmax(state[:, 0], dim=0), 5)
    torch.cuda.synchronize()
    copy = chosen.cpu()
print(copy.shape)

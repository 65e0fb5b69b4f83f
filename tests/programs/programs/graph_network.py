"""A graph convolutional network that finds the groups of a generated graph."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
n, groups = 120, 3
labels = torch.arange(n) % groups
same = labels[:, None] == labels
linked = torch.rand(n, n) < torch.where(same, 0.15, 0.01)
linked = (linked | linked.T).float()
linked.fill_diagonal_(0)
features = F.one_hot(labels, groups).float() + torch.randn(n, groups) * 1.5


class GraphConv(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        stdv = 1.0 / math.sqrt(out_features)
        nn.init.uniform_(self.kernel, -stdv, stdv)

    def forward(self, x, edges, norm):
        support = x @ self.kernel
        source, target = edges
        messages = support[source] * norm[:, None]
        return torch.zeros_like(support).index_add_(0, target, messages) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1, self.gc2 = GraphConv(groups, 16), GraphConv(16, groups)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x, edges, norm):
        x = F.relu(self.gc1(x, edges, norm))
        return F.log_softmax(self.gc2(self.dropout(x), edges, norm), dim=1)


edges = (linked + torch.eye(n)).nonzero().t()
degree = torch.zeros(n).scatter_add_(0, edges[1], torch.ones(edges.size(1)))
norm = (degree[edges[0]] * degree[edges[1]]).rsqrt()
order = torch.randperm(n)
train, test = order[:30], order[30:]
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for epoch in range(60):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    output = model(features, edges, norm)
    loss = F.nll_loss(output[train], labels[train])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        print(f"Epoch {epoch:03d} | loss {loss:.4f}")
model.eval()
with torch.inference_mode():
    pred = model(features, edges, norm).argmax(-1)
print(f"loss {loss.item():.5f} accuracy {(pred[test] == labels[test]).float().mean().item():.4f}")

"""Graph networks of torch-geometric: GCN and GAT on a generated graph, and batches of graphs.

needs: torch_geometric
"""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, global_mean_pool

torch.manual_seed(0)
nodes, groups = 60, 3
labels = torch.arange(nodes) % groups
same = labels[:, None] == labels[None]
linked = torch.rand(nodes, nodes) < torch.where(same, 0.3, 0.02)
edges = (linked | linked.T).nonzero().T.contiguous()
data = Data(x=torch.randn(nodes, 8) + F.one_hot(labels, 8), edge_index=edges, y=labels)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(8, 16)
        self.second = GATConv(16, groups, heads=2, concat=False)

    def forward(self, x, edge_index):
        x = F.dropout(self.first(x, edge_index).relu(), 0.1, training=self.training)
        return self.second(x, edge_index)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(30):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data.x, data.edge_index), data.y)
    loss.backward()
    optimizer.step()
model.eval()
accuracy = (model(data.x, data.edge_index).argmax(1) == labels).float().mean().item()

rings = []
for size in (4, 5, 6, 7) * 4:
    around = torch.arange(size)
    ring = torch.stack([around, (around + 1) % size])
    rings.append(Data(x=torch.randn(size, 4), edge_index=ring, y=torch.tensor([size % 2])))
mlp = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
conv = GINConv(mlp, train_eps=True)
total = 0.0
for batch in DataLoader(rings, batch_size=8):
    pooled = global_mean_pool(conv(batch.x, batch.edge_index), batch.batch)
    total += F.cross_entropy(pooled, batch.y).item()
print(f"loss {loss.item():.4f} accuracy {accuracy:.4f} rings {total:.4f} edges {data.num_edges}")

"""Tensor products of e3nn that turn with their inputs.  needs: e3nn"""

import torch
from e3nn import nn, o3

torch.manual_seed(0)
inputs, hidden = o3.Irreps("4x0e + 2x1o"), o3.Irreps("4x0e + 2x1o + 1x2e")
product = o3.FullyConnectedTensorProduct(inputs, "0e + 1o", hidden)
gate = nn.Activation("4x0e", [torch.tanh])
readout = o3.Linear(hidden, "1x1o")
points = torch.randn(10, 3)
features = inputs.randn(10, -1)


def network(features, points):
    harmonics = o3.spherical_harmonics("0e + 1o", points, normalize=True)
    out = product(features, harmonics)
    return readout(torch.cat([gate(out[:, :4]), out[:, 4:]], 1))


turn = o3.matrix_z(torch.tensor(0.7))
turned = network(features @ inputs.D_from_matrix(turn).T, points @ turn.T)
out = network(features, points)
loss = out.square().sum()
loss.backward()
same = torch.allclose(turned, out @ turn.T, atol=1e-4)
print(f"loss {loss.item():.4f} equivariant {same} grad {product.weight.grad.norm().item():.4f}")

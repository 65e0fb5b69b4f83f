"""Points of a tree placed in the Poincare ball by geoopt's Riemannian Adam.  needs: geoopt"""

import geoopt
import torch

torch.manual_seed(0)
ball = geoopt.PoincareBall()
points = geoopt.ManifoldParameter(ball.expmap0(0.1 * torch.randn(15, 2)), manifold=ball)
rotation = geoopt.ManifoldParameter(
    torch.linalg.qr(torch.randn(3, 3))[0], manifold=geoopt.Stiefel()
)
edges = torch.tensor([(child, (child - 1) // 2) for child in range(1, 15)])
optimizer = geoopt.optim.RiemannianAdam([points, rotation], lr=0.05)
for _ in range(20):
    near = ball.dist(points[edges[:, 0]], points[edges[:, 1]])
    loss = (near - 1.0).square().mean() + (rotation - torch.eye(3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
off = (rotation.T @ rotation - torch.eye(3)).abs().max().item()
print(f"loss {loss.item():.3f} radius {points.norm(dim=1).mean().item():.3f} off {off < 1e-4}")

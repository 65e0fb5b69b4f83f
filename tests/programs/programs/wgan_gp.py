"""A Wasserstein GAN with a gradient penalty: derivatives of derivatives."""

import torch
from torch import autograd, nn, optim

torch.manual_seed(7)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
        )

    def forward(self, x):
        return self.main(x).view(-1)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1).expand(real.size())
    mixed = alpha * real + (1 - alpha) * fake
    mixed = autograd.Variable(mixed, requires_grad=True)
    out = critic(mixed)
    gradients = autograd.grad(
        outputs=out,
        inputs=mixed,
        grad_outputs=torch.ones(out.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * 0.1


def real_points(n):
    angle = torch.rand(n) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


generator = nn.Sequential(
    nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
)
critic = Critic()
optimizer_d = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizer_g = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
for _ in range(15):
    for p in critic.parameters():
        p.requires_grad_(True)
    for _ in range(3):
        real = real_points(64)
        with torch.no_grad():
            fake = generator(torch.randn(64, 2))
        critic.zero_grad()
        distance = critic(real).mean() - critic(fake).mean()
        loss_d = -distance + gradient_penalty(critic, real.data, fake.data)
        loss_d.backward()
        optimizer_d.step()
    for p in critic.parameters():
        p.requires_grad_(False)
    generator.zero_grad()
    loss_g = -critic(generator(torch.randn(64, 2))).mean()
    loss_g.backward()
    optimizer_g.step()
print(f"distance {distance.item():.5f} generator {loss_g.item():.5f}")

"""A deep convolutional GAN on small generated pictures."""

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(999)
nz, ngf, ndf, nc = 16, 8, 8, 1
device = "cuda" if torch.cuda.is_available() else "cpu"
grid = torch.linspace(-1, 1, 16)
radius = torch.rand(96, 1, 1) * 0.6 + 0.2
pictures = ((grid[:, None] ** 2 + grid**2) < radius**2).float().unsqueeze(1) * 2 - 1


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


generator = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
    nn.BatchNorm2d(ngf * 2),
    nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
    nn.BatchNorm2d(ngf),
    nn.ReLU(True),
    nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
    nn.Tanh(),
).to(device)
discriminator = nn.Sequential(
    nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
    nn.BatchNorm2d(ndf * 2),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
    nn.Flatten(0),
).to(device)
generator.apply(weights_init)
discriminator.apply(weights_init)
criterion = nn.BCELoss()
optimizer_d = optim.Adam(discriminator.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_g = optim.Adam(generator.parameters(), lr=0.0002, betas=(0.5, 0.999))
loader = torch.utils.data.DataLoader(pictures, batch_size=32, shuffle=True)
for epoch in range(4):
    for real in loader:
        real = real.to(device)
        discriminator.zero_grad()
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=device)
        loss_real = criterion(discriminator(real), label)
        loss_real.backward()
        noise = torch.randn(real.size(0), nz, 1, 1, device=device)
        fake = generator(noise)
        label.fill_(0.0)
        loss_fake = criterion(discriminator(fake.detach()), label)
        loss_fake.backward()
        optimizer_d.step()
        generator.zero_grad()
        label.fill_(1.0)
        loss_g = criterion(discriminator(fake), label)
        loss_g.backward()
        optimizer_g.step()
    print(f"[{epoch}] Loss_D: {(loss_real + loss_fake).item():.4f} Loss_G: {loss_g.item():.4f}")
print(f"loss_d {(loss_real + loss_fake).item():.5f} loss_g {loss_g.item():.5f}")

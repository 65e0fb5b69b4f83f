"""A variational autoencoder on handwritten digits."""

from pathlib import Path

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

DATA = Path(__file__).resolve().parents[3] / "examples" / "data" / "digits.csv.gz"
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc21 = nn.Linear(48, 8)
        self.fc22 = nn.Linear(48, 8)
        self.fc3 = nn.Linear(8, 48)
        self.fc4 = nn.Linear(48, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
images = torch.tensor(table[:, :64]) / 16
loader = torch.utils.data.DataLoader(images, batch_size=64, shuffle=True)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    total = 0
    for data in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data.to(device))
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        total += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {total / len(loader.dataset):.4f}")
with torch.no_grad():
    sample = model.decode(torch.randn(64, 8).to(device)).cpu()
print(f"loss {total / len(loader.dataset):.5f} sample {sample.mean().item():.5f}")

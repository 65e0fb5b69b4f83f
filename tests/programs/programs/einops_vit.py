"""A vision transformer written with einops.  needs: einops"""

import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from torch import einsum, nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = rearrange(self.to_qkv(x), "b n (t h d) -> t b h n d", t=3, h=self.heads)
        dots = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        out = einsum("b h i j, b h j d -> b h i d", dots.softmax(dim=-1), v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class ViT(nn.Module):
    def __init__(self, dim=32, patch=4, size=16, classes=4, depth=2):
        super().__init__()
        self.to_patches = nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=patch, q=patch),
            nn.Linear(3 * patch**2, dim),
        )
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                [
                    nn.Sequential(nn.LayerNorm(dim), Attention(dim)),
                    nn.Sequential(
                        nn.LayerNorm(dim), nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim)
                    ),
                ]
            )
            for _ in range(depth)
        )
        self.head = nn.Sequential(Reduce("b n d -> b d", "mean"), nn.Linear(dim, classes))

    def forward(self, x):
        x = self.to_patches(x)
        x = torch.cat([repeat(self.cls, "() n d -> b n d", b=len(x)), x], dim=1) + self.pos
        for attention, feed_forward in self.blocks:
            x = x + attention(x)
            x = x + feed_forward(x)
        return self.head(x)


labels = torch.randint(4, (64,))
pictures = torch.randn(64, 3, 16, 16) * 0.5
for i, label in enumerate(labels):
    pictures[i, :, label * 4 : label * 4 + 4] += 1
model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    loss = nn.functional.cross_entropy(model(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
spread = reduce(model.pos.detach(), "() n d -> n", "max").std()
print(f"loss {loss.item():.5f} spread {spread.item():.5f}")

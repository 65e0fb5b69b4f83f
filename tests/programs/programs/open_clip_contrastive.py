"""A small CLIP of open_clip, trained to match pictures with their captions.

needs: open_clip, ftfy, timm, torchvision
"""

import open_clip
import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

torch.manual_seed(0)
vision = CLIPVisionCfg(layers=2, width=64, head_width=16, patch_size=8, image_size=32)
text = CLIPTextCfg(context_length=16, vocab_size=49408, width=64, heads=4, layers=2)
model = CLIP(embed_dim=32, vision_cfg=vision, text_cfg=text, quick_gelu=True)
tokenize = open_clip.SimpleTokenizer(context_length=16)
captions = [f"a {colour} {shape}" for colour in ("red", "blue") for shape in ("disc", "bar")]
tokens = tokenize(captions)


def picture(i):
    at = torch.linspace(-1, 1, 32)
    round_ = (at[:, None] ** 2 + at[None] ** 2 < 0.5).float()
    bar = (at[:, None].abs() < 0.3).float().expand(32, 32)
    shape = round_ if i % 2 == 0 else bar
    channels = torch.zeros(3, 32, 32)
    channels[0 if i < 2 else 2] = shape
    return channels


images = torch.stack([picture(i) for i in range(4)])
loss_of = ClipLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
for _ in range(12):
    noisy = images + 0.05 * torch.randn_like(images)
    image_features, text_features, scale = model(noisy, tokens)
    loss = loss_of(image_features, text_features, scale)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    shown = model.encode_image(images, normalize=True)
    told = model.encode_text(tokens, normalize=True)
match = (shown @ told.T).argmax(1).tolist()
print(f"loss {loss.item():.4f} match {match} tokens {tokens.sum().item()} norm {shown.std():.4f}")

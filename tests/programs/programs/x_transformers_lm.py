"""A language model of x-transformers: rotary positions, gated linear units, generation.

needs: x_transformers
"""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
model = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=32,
        max_seq_len=40,
        attn_layers=Decoder(
            dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True, ff_glu=True
        ),
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
text = torch.stack([torch.arange(start, start + 24) % 30 for start in range(8)])
for _ in range(15):
    loss = model(text)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
made = model.generate(text[:1, :8], 6, temperature=0.0)
print(f"loss {loss.item():.4f} made {made[0].tolist()}")

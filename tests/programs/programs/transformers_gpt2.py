"""A small GPT-2 of transformers, trained, saved, loaded, generating.  needs: transformers"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=49
)
model = GPT2LMHeadModel(config)
tokens = (torch.arange(24)[None] * torch.tensor([[1], [2], [3], [5]])) % 49
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model.train()
for step in range(12):
    out = model(input_ids=tokens, labels=tokens)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, out.loss.item())
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = GPT2LMHeadModel.from_pretrained(folder).eval()
made = again.generate(
    tokens[:1, :6], max_new_tokens=6, do_sample=False, pad_token_id=49, use_cache=True
)
print(f"loss {out.loss.item():.4f} made {made[0].tolist()}")

"""A small Llama of transformers with grouped heads, trained by its Trainer-like loop, sampling.

needs: transformers
"""

import tempfile

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, set_seed

set_seed(0)
config = LlamaConfig(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
tokens = torch.stack([torch.arange(start, start + 20) % 40 for start in (0, 7, 13, 22)])
for _ in range(15):
    out = model(input_ids=tokens, labels=tokens)
    out.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder).eval()
with torch.no_grad():
    cache = DynamicCache(config=config)
    first = model(tokens[:, :10], past_key_values=cache, use_cache=True).logits
    second = model(tokens[:, 10:], past_key_values=cache, use_cache=True).logits
    whole = model(tokens).logits
apart = (torch.cat([first, second], 1) - whole).abs().max().item()
made = model.generate(tokens[:2, :8], max_new_tokens=5, do_sample=False, num_beams=2)
print(
    f"loss {out.loss.item():.4f} norm {norm.item():.3f} cached {apart < 1e-4} "
    f"made {made[:, 8:].tolist()}"
)

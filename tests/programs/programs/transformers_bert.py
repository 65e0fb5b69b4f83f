"""A small BERT of transformers that sorts sequences into two kinds.  needs: transformers"""

import torch
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

torch.manual_seed(0)
config = BertConfig(
    vocab_size=40,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=24,
    num_labels=2,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_linear_schedule_with_warmup(optimizer, 3, 15)
for _ in range(15):
    tokens = torch.randint(1, 40, (16, 12))
    mask = torch.arange(12)[None] < torch.randint(4, 13, (16, 1))
    labels = (tokens[:, 0] > 20).long()
    out = model(input_ids=tokens, attention_mask=mask.long(), labels=labels)
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    model.zero_grad()
model.eval()
with torch.no_grad():
    logits = model(input_ids=tokens, attention_mask=mask.long()).logits
print(f"loss {out.loss.item():.4f} logits {logits.abs().mean().item():.4f}")

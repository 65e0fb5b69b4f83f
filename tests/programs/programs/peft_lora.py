"""A small GPT-2 tuned by peft: LoRA layers, their file, merging, and prompts that are learned.

needs: peft, transformers, safetensors
"""

import tempfile

import torch
from peft import LoraConfig, PeftModel, PromptTuningConfig, TaskType, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=40, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)
base = GPT2LMHeadModel(config)
weights = {name: value.clone() for name, value in base.state_dict().items()}
text = torch.stack([torch.arange(start, start + 16) % 37 for start in range(6)])


def train(model):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(12):
        loss = model(input_ids=text, labels=text).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def fresh():
    model = GPT2LMHeadModel(config)
    model.load_state_dict(weights)
    return model


lora = LoraConfig(
    task_type=TaskType.CAUSAL_LM,
    r=4,
    lora_alpha=8,
    lora_dropout=0.1,
    target_modules=["c_attn", "c_proj"],
    fan_in_fan_out=True,
)
model = get_peft_model(base, lora)
trained, total = model.get_nb_trainable_parameters()
loss = train(model)
model.eval()
out = model(input_ids=text).logits
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = PeftModel.from_pretrained(fresh(), folder).eval()
same = torch.equal(loaded(input_ids=text).logits, out)
with model.disable_adapter():
    off = model(input_ids=text).logits.std().item()
merged = model.merge_and_unload()
near = torch.allclose(merged(input_ids=text).logits, out, atol=1e-4)
prompts = PromptTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=4)
prompt_loss = train(get_peft_model(fresh(), prompts))
print(
    f"loss {loss:.4f} trained {trained} of {total} loaded {same} merged {near} off {off:.4f} "
    f"prompts {prompt_loss:.4f}"
)

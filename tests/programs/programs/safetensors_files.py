"""Weights through safetensors files, with shared weights and bfloat16.  needs: safetensors"""

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

torch.manual_seed(0)
folder = Path(tempfile.mkdtemp())
model = torch.nn.Sequential(
    torch.nn.Embedding(20, 8), torch.nn.Flatten(), torch.nn.Linear(24, 8), torch.nn.LayerNorm(8)
)
save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
weights = load_file(folder / "model.safetensors")
again = torch.nn.Sequential(
    torch.nn.Embedding(20, 8), torch.nn.Flatten(), torch.nn.Linear(24, 8), torch.nn.LayerNorm(8)
)
print(again.load_state_dict(weights))
x = torch.randint(20, (5, 3))
assert torch.equal(model(x), again(x))
with safe_open(folder / "model.safetensors", framework="pt", device="cpu") as file:
    names = sorted(file.keys())
    part = file.get_slice("2.weight")[:, 4:10]
    assert file.metadata() == {"format": "pt"}
half = {name: value.to(torch.bfloat16) for name, value in weights.items()}
save_file(half, folder / "half.safetensors")
half = load_file(folder / "half.safetensors")
print({name: (value.dtype, tuple(value.shape)) for name, value in half.items()})
tied = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 4), "b": torch.nn.Linear(4, 4)})
tied["b"].weight = tied["a"].weight
save_model(tied, str(folder / "tied.safetensors"))
print(load_model(tied, str(folder / "tied.safetensors")))
total = sum(v.float().sum() for v in half.values()).item()
print(f"names {len(names)} part {part.sum().item():.5f} half {total:.5f}")

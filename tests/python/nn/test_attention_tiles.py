"""Attention of bfloat16 by tiles (AMX) and without, against doubles: lengths around those of tiles.

On processors without tiles (1) is as without (0); emulated tiles go the tiles' way everywhere that
has the instructions around them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula.__file__).parents[1]
PROGRAM = """
import json, sys
import facula
attend = facula.nn.functional.scaled_dot_product_attention
facula.manual_seed(1)
facula.set_num_threads(int(sys.argv[2]))

def number(*shape):
    return facula.randn(*shape).bfloat16()

def attended(inputs, grad, options, dtype):
    leaves = [t.detach().to(dtype).requires_grad_() for t in inputs]
    out = attend(*leaves, **options)
    out.backward(grad.to(dtype))
    return [out.detach(), *(t.grad for t in leaves)]

errors, digests = {}, []
def compare(name, inputs, double_options=None, **options):
    grad = number(*inputs[0].shape)
    got = attended(inputs, grad, options, facula.bfloat16)
    wanted = attended(inputs, grad, double_options or options, facula.double)
    for what, g, w in zip(["out", "query", "key", "value"], got, wanted, strict=True):
        # The error as a part of the largest: bfloat16 keeps 8 bits.
        error = (g.double() - w).abs().max() / w.abs().max().clamp(min=1e-3)
        errors[f"{name} {what}"] = float(error)
        digests.append(g.view(facula.int16).flatten().tolist())

for length, others, width in json.loads(sys.argv[1]):
    inputs = [number(2, 3, length, width), *(number(2, 3, others, width) for _ in range(2))]
    name = f"{length} {others} {width}"
    compare(name, inputs)
    compare(name + " causal", inputs, is_causal=True)
    compare(name + " scale", inputs, scale=-0.5)
    mask = number(length, others).float()
    compare(name + " mask", inputs, {"attn_mask": mask.double()}, attn_mask=mask)
inputs = [number(1, 4, 40, 16), *(number(1, 2, 300, 16) for _ in range(2))]
compare("grouped", inputs, enable_gqa=True)
apart = [number(1, 2, 40, 33)[..., :-1], *(number(1, 2, 45, 39)[..., 2:34] for _ in range(2))]
compare("strided", apart)
large = [4 * number(1, 1, 40, 32) for _ in range(3)]
compare("large", large)
short = facula.zeros(40, 300)
short[3], short[5, 7:] = -facula.inf, -facula.inf
inputs = [number(1, 2, 40, 16), *(number(1, 2, 300, 16) for _ in range(2))]
compare("hidden", inputs, {"attn_mask": short.double()}, attn_mask=short)
hidden = attend(*inputs, attn_mask=short)[:, :, 3]
lowest = facula.full((40, 300), facula.finfo(facula.float32).min)
mean = attend(*inputs, attn_mask=lowest).double() - inputs[2].double().mean(2, keepdim=True)
inputs[0][0, 0, 2, 0] = facula.nan
broken = attend(*inputs).isnan().all(-1)[0, 0]
print(json.dumps({
    "errors": errors,
    "digest": hash(str(digests)),
    "hidden": float(hidden.abs().max()),
    "lowest": float(mean.abs().max()),
    "broken": broken.nonzero().flatten().tolist(),
}))
"""
SHAPES = [
    [3, 1, 2],
    [5, 33, 7],
    [16, 16, 32],
    [17, 31, 33],
    [33, 47, 64],
    [130, 100, 100],
    [260, 290, 16],
    [300, 530, 24],
]


def run(tiles, threads=1, pairs=""):
    switches = {"FACULA_AMX": tiles, "FACULA_PAIRS": pairs, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SHAPES), str(threads)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **switches},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("tiles, pairs", [("0", "0"), ("0", "1"), ("1", ""), ("emulated", "")])
def test_attention_is_right(tiles, pairs):
    if tiles == "emulated" and not facula.cpu.get_capabilities().get("avx512_bf16"):
        pytest.skip("tiles need the other instructions for bfloat16, which this processor lacks")
    result = run(tiles, pairs=pairs)
    assert len(result["errors"]) == 4 * (4 * len(SHAPES) + 4)
    assert {name: e for name, e in result["errors"].items() if not e < 2**-6} == {}
    assert result["hidden"] == 0
    assert result["lowest"] < 2**-8
    assert result["broken"] == [2]


def test_threads_do_not_change_bits():
    assert run("1", threads=1)["digest"] == run("1", threads=3)["digest"]

"""Products of bfloat16 by tiles (AMX) and pairs: sizes around those of tiles, all layouts.

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
F = facula.nn.functional
facula.manual_seed(1)

def worst(got, wanted):
    # The error as a part of the largest result: bfloat16 keeps 8 bits.
    return float((got.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))

def number(*shape):
    return facula.randn(*shape).bfloat16()

errors = {}
for m, n, k in json.loads(sys.argv[1]):
    a, b = number(m, k), number(k, n)
    wanted = a.double() @ b.double()
    errors[f"{m} {n} {k}"] = worst(a @ b, wanted)
    errors[f"{m} {n} {k} a.t"] = worst(a.t().contiguous().t() @ b, wanted)
    errors[f"{m} {n} {k} b.t"] = worst(a @ b.t().contiguous().t(), wanted)
    c = number(m, n)
    errors[f"{m} {n} {k} addmm"] = worst(facula.addmm(c, a, b), c.double() + wanted)
for channels, out, kernel, stride in [(3, 8, 3, 1), (16, 40, 3, 1), (32, 33, 1, 1), (20, 16, 3, 2)]:
    x = number(2, channels, 13, 11).contiguous(memory_format=facula.channels_last)
    w = number(out, channels, kernel, kernel)
    for t in (x, w):
        t.requires_grad_()
    y = F.conv2d(x, w, stride=stride, padding=kernel // 2)
    g = number(*y.shape)
    y.backward(g)
    xd, wd = (t.detach().double().requires_grad_() for t in (x, w))
    yd = F.conv2d(xd, wd, stride=stride, padding=kernel // 2)
    yd.backward(g.double())
    name = f"conv {channels} {out} {kernel} {stride}"
    errors[name] = worst(y.detach(), yd.detach())
    errors[name + " input"] = worst(x.grad, xd.grad)
    errors[name + " weight"] = worst(w.grad, wd.grad)
for kind in ("LSTM", "GRU", "RNN"):
    for inputs, hidden, batch, steps in [(3, 5, 2, 3), (32, 64, 16, 4), (33, 40, 35, 2)]:
        layer = getattr(facula.nn, kind)(inputs, hidden).bfloat16()
        exact = getattr(facula.nn, kind)(inputs, hidden).double()
        exact.load_state_dict(layer.state_dict())
        x = number(steps, batch, inputs).requires_grad_()
        xd = x.detach().double().requires_grad_()
        y, yd = layer(x)[0], exact(xd)[0]
        g = number(*y.shape)
        y.backward(g)
        yd.backward(g.double())
        name = f"{kind} {inputs} {hidden} {batch}"
        errors[name] = worst(y.detach(), yd.detach())
        errors[name + " input"] = worst(x.grad, xd.grad)
        for (part, w), wd in zip(layer.named_parameters(), exact.parameters()):
            errors[name + " " + part] = worst(w.grad, wd.grad)
print(json.dumps(errors))
"""
SHAPES = [
    [1, 1, 1],
    [9, 1, 2],
    [15, 17, 31],
    [16, 16, 32],
    [17, 33, 33],
    [33, 16, 64],
    [64, 64, 64],
    [100, 70, 1030],
    [130, 100, 2050],
]


def multiplies_pairs():
    return facula.backends.cpu.get_cpu_capability() == "AVX512"


def has_instruction():
    return facula.cpu.get_capabilities().get("avx512_bf16")


@pytest.mark.parametrize("tiles, pairs", [("0", "0"), ("0", "1"), ("1", ""), ("emulated", "0")])
def test_products_convolutions_and_recurrent_layers_are_right(tiles, pairs):
    has_pairs = multiplies_pairs()
    if tiles == "emulated" and not (has_pairs and has_instruction()):
        pytest.skip("tiles need the other instructions for bfloat16, which this processor lacks")
    switches = {"FACULA_AMX": tiles, "FACULA_PAIRS": pairs, "FACULA_DEBUG": "3"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SHAPES)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **switches},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    if tiles != "1":
        assert ("matmul: tiles of bfloat16" in run.stderr) == (tiles == "emulated")
        if has_pairs and tiles == "0":
            assert "matmul: pairs of bfloat16" in run.stderr
    errors = json.loads(run.stdout)
    assert len(errors) == 4 * len(SHAPES) + 12 + 9 * 6
    # Recurrent layers round the state at every step.
    bounds = {
        name: 2**-5 if "RNN" in name or "GRU" in name or "LSTM" in name else 2**-7
        for name in errors
    }
    assert {name: e for name, e in errors.items() if not e < bounds[name]} == {}


SAME_BITS = """
import hashlib
import facula
F = facula.nn.functional
facula.manual_seed(3)
digest = hashlib.sha256()

def number(*shape, low=-8, high=8):
    # Of any size: sums of some cancel, those of others are subnormal.
    scale = facula.randint(low, high, shape).double().exp2()
    return (facula.randn(*shape, dtype=facula.float64) * scale).bfloat16()

def add(result):
    result = facula.where(result.isnan(), facula.zeros_like(result), result)
    digest.update(result.detach().contiguous().view(facula.int16).numpy().tobytes())

for m, n, k in [(1, 40, 33), (5, 33, 64), (8, 7, 1024), (17, 33, 65), (100, 70, 1030)]:
    for low, high in [(-8, 8), (-70, -60), (50, 64)]:
        a, b = number(m, k, low=low, high=high), number(k, n, low=low, high=high)
        a[0, 0], b[0, 0] = float("inf"), 2.0**-133
        a[-1, -1] = 2.0**-130
        for right in (b, b.t().contiguous().t()):
            add(a @ right)
            add(facula.addmm(number(n, low=low, high=high), a, right))
x = number(2, 20, 13, 11).contiguous(memory_format=facula.channels_last).requires_grad_()
w = number(16, 20, 3, 3).requires_grad_()
y = F.conv2d(x, w, padding=1)
y.backward(number(*y.shape))
q = number(2, 3, 70, 32, low=-2, high=2).requires_grad_()
z = F.scaled_dot_product_attention(q, q, q)
z.backward(number(*z.shape))
layer = facula.nn.LSTM(33, 40).bfloat16()
for result in (y, x.grad, w.grad, z, q.grad, layer(number(3, 35, 33))[0]):
    add(result)
print(digest.hexdigest())
"""


def test_multiply_adds_have_the_bits_of_the_instruction():
    def bits(pairs):
        switches = {"FACULA_AMX": "0", "FACULA_PAIRS": pairs, "PYTHONPATH": str(PACKAGE)}
        run = subprocess.run(
            [sys.executable, "-c", SAME_BITS],
            env={**os.environ, **switches},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert bits("0") == bits("1")


ROWS = """
import facula
facula.manual_seed(5)
differ = []
for k, n in [(33, 70), (100, 130), (1000, 300), (2050, 70)]:
    a, b = facula.randn(40, k).bfloat16(), facula.randn(k, n).bfloat16()
    addend = facula.randn(n).bfloat16()
    turned = b.t().contiguous().t()
    whole, sum = a @ b, facula.addmm(addend, a, b)
    for rows in (1, 2, 3, 4, 5, 8, 9, 17, 33):
        for right in (b, turned):
            same = facula.equal(a[:rows] @ right, whole[:rows])
            same &= facula.equal(facula.addmm(addend, a[:rows], right), sum[:rows])
            if not same:
                differ.append((rows, n, k, right.stride()))
    for left in (a, a.t().contiguous().t()):
        if not facula.equal(left @ b[:, 3], whole[:, 3]):
            differ.append(("vector", k, left.stride()))
print(differ)
"""


@pytest.mark.parametrize("pairs", ["0", "1"])
def test_rows_have_the_same_bits_alone_and_by_any_layout(pairs):
    if not multiplies_pairs():
        pytest.skip("bfloat16 is multiplied by pairs with AVX-512 alone")
    switches = {"FACULA_AMX": "0", "FACULA_PAIRS": pairs, "PYTHONPATH": str(PACKAGE)}
    run = subprocess.run(
        [sys.executable, "-c", ROWS],
        env={**os.environ, **switches},
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == "[]", run.stderr


def test_a_wrong_switch_is_named():
    # A product of bytes asks for tiles on every processor, one of bfloat16 only where it has pairs.
    program = "import facula as f; f._int_mm(*[f.ones(64, 64, dtype=f.int8)] * 2)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "FACULA_AMX": "emulatd"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "FACULA_AMX: expected 1, 0 or emulated; got emulatd" in run.stderr

"""Calls that skip their Python, beside compiled and eager ones: `python -m bench.skipping`.

For a decoding step of a small GPT of 12 blocks and a net of 151 modules it prints microseconds of a
call, the three sides in turns, what the check of a stored program takes, and a reading.
"""

import sys
import time

import facula
from facula import nn
from facula._dynamo.skip import counts
from facula._dynamo.skip.reader import Reader

ROUNDS = 12


class Block(nn.Module):
    """Attention to a cache of keys and values, and a network of two layers."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )
        for name in ("keys", "values"):
            self.register_buffer(name, facula.zeros(1, heads, length, width // heads))

    def forward(self, x, place, mask):
        n, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (p.view(n, length, self.heads, -1).transpose(1, 2) for p in parts)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(n, length, width))
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    """Numbers of words and their place to logits of the next ones."""

    def __init__(self, blocks=12, width=64, heads=4, length=32, words=100):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, length) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("mask", facula.ones(length, length, dtype=facula.bool).tril())

    def forward(self, word, place):
        x = self.words(word) + self.places(place)
        mask = self.mask.index_select(0, place)
        for block in self.blocks:
            x = block(x, place, mask)
        return self.head(self.norm(x))


class Residual(nn.Module):
    """A layer whose result is added to its input."""

    def __init__(self, width):
        super().__init__()
        self.linear, self.act = nn.Linear(width, width), nn.ReLU()

    def forward(self, x):
        return x + self.act(self.linear(x))


CASES = {
    "GPT of 12 blocks, a token": lambda: (Gpt(), (facula.tensor([[3]]), facula.tensor([5]))),
    "151 modules": lambda: (
        nn.Sequential(*[Residual(8) for _ in range(50)]),
        (facula.randn(1, 8),),
    ),
}


def microseconds(f, args, calls):
    """The mean of some calls."""
    began = time.perf_counter()
    for _ in range(calls):
        f(*args)
    return (time.perf_counter() - began) / calls * 1e6


def sides(model, args, calls=200):
    """The best round of each side."""
    skipping = facula.compile(model, options={"skip_python": True})
    functions = {"eager": model, "compiled": facula.compile(model), "skipping": skipping}
    for f in functions.values():
        microseconds(f, args, 20)
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, f in functions.items():
            best[name] = min(best[name], microseconds(f, args, calls))
    if not counts(skipping)["played"]:
        raise RuntimeError(f"nothing was skipped: {counts(skipping)['refused']}")
    return best


def check_and_reading(model, args):
    """Microseconds of a program's check, milliseconds of a reading."""
    reader = Reader()
    began = time.perf_counter()
    result = facula._C._recorded(reader.run, model, args, {})
    reading = (time.perf_counter() - began) * 1e3
    program = reader.finish(result)
    return min(microseconds(program.holds, (), 1000) for _ in range(ROUNDS)), reading


def main():
    """Prints a line for each case."""
    facula.manual_seed(0)
    facula.set_num_threads(1)
    for name, make in CASES.items():
        model, args = make()
        model.eval()
        with facula.no_grad():
            best = sides(model, args)
            check, reading = check_and_reading(model, args)
        times = ", ".join(f"{side} {us:.0f} us" for side, us in best.items())
        print(f"{name}: {times}; check {check:.1f} us, reading {reading:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())

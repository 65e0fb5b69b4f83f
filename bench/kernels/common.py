"""What the tables of kernels are made of: inputs, the same on every module, and cases."""

import zlib
from typing import NamedTuple

import numpy as np

from bench.harness import Case

K, M = 1024, 1024 * 1024
ROUNDS, SECONDS = 7, 0.01

LAYOUTS = {
    "": lambda t: t,
    "transposed": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
    "channels_last": lambda t: channels_last(t),
    "strided": lambda t: every_second(t),
    "expanded": lambda t: t[:1].expand(t.shape),
}


class In(NamedTuple):
    """An input: shape, dtype, memory layout and the range of its values."""

    shape: tuple
    dtype: str = "float32"
    layout: str = ""
    low: float = -2.0
    high: float = 2.0


def channels_last(tensor):
    """The same values with the channels in the innermost place of memory."""
    last = tensor.movedim(1, -1).contiguous()
    return last.movedim(-1, 1)


def every_second(tensor):
    """The same values in a tensor whose innermost stride is 2."""
    wide = tensor.new_zeros((*tensor.shape, 2))
    wide[..., 0] = tensor
    return wide[..., 0]


def values(spec, seed):
    """The values of an input as a NumPy array; bfloat16 and float16 are made from float32."""
    generator = np.random.default_rng(seed)
    if spec.dtype == "bool":
        return generator.random(spec.shape) < 0.5
    if spec.dtype.startswith(("int", "uint")):
        return generator.integers(int(spec.low), int(spec.high), spec.shape).astype(spec.dtype)
    if spec.dtype.startswith("complex"):
        pairs = values(spec._replace(dtype="float64", shape=(*spec.shape, 2)), seed)
        return pairs.view(np.complex128)[..., 0].astype(spec.dtype)
    kind = "float64" if spec.dtype == "float64" else "float32"
    return generator.random(spec.shape, kind) * (spec.high - spec.low) + spec.low


def tensors(module, inputs, seed):
    """The inputs as tensors of a module."""
    found = []
    for number, spec in enumerate(inputs):
        tensor = module.from_numpy(np.array(values(spec, seed + number)))
        found.append(LAYOUTS[spec.layout](tensor.to(getattr(module, spec.dtype))))
    return found


def short(n):
    """A length as text, 1024 being 1K."""
    for unit, size in (("M", M), ("K", K)):
        if n >= size and n % size == 0:
            return f"{n // size}{unit}"
    return str(n)


def describe(spec):
    """An input as text: shape, dtype unless float32, layout."""
    shape = "x".join(short(n) for n in spec.shape)
    kind = spec.dtype.replace("float", "f").replace("int", "i").replace("complex", "c")
    words = (
        [shape] + ([kind] if spec.dtype != "float32" else []) + [spec.layout] * bool(spec.layout)
    )
    return " ".join(words)


class Table:
    """Collects the cases of one family."""

    def __init__(self, family):
        self.family, self.cases = family, []

    def add(
        self,
        label,
        inputs,
        function,
        *,
        prepare=None,
        full=False,
        checked=True,
        note=None,
    ):
        """A case that times function(module, *inputs).

        `prepare(module, *inputs)` gives other arguments in their place, outside of what is timed.
        """
        name = f"{label} {describe(inputs[0]) if note is None else note}".strip()
        seed = zlib.crc32(f"{self.family} {name}".encode())

        def make(module):
            arguments = tensors(module, inputs, seed)
            if prepare:
                arguments = prepare(module, *arguments)
            return lambda: function(module, *arguments)

        self.cases.append(self.case(name, make, full, checked))

    def backward(self, label, inputs, function, *, full=False, checked=True, note=None):
        """A case that times the backward of function(module, *inputs) alone."""
        name = f"{label} backward {describe(inputs[0]) if note is None else note}".strip()
        seed = zlib.crc32(f"{self.family} {name}".encode())

        def make(module):
            arguments = tensors(module, inputs, seed)
            wanted = [t.requires_grad_() for t in arguments if t.dtype.is_floating_point]
            result = function(module, *arguments)
            gradient = tensors(module, [In(tuple(result.shape), low=0.5, high=1)], seed + 100)[0]
            gradient = gradient.to(result.dtype)
            if result.dim() == 4 and not result.is_contiguous():
                gradient = channels_last(gradient)
            return lambda: module.autograd.grad(result, wanted, gradient, retain_graph=True)

        self.cases.append(self.case(name, make, full, checked))

    def case(self, name, make, full, checked):
        return Case(name, make, ROUNDS, self.family, full, checked, SECONDS)

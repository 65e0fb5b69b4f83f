"""Fuzzes single calls: all operators, methods and functions with drawn arguments.

    python tests/fuzz/calls.py --seconds 600 [--seed S]

Half of the calls are those of tests/python/bad_calls.py. The others take a sample of the table, or
fit arguments by the schema, in any dtype and layout; most of those succeed, so that their values
can be compared over memory of two fillings.
"""

import re
import sys

import common

# isort: split
import bad_calls
import facula
from samples import load_ops
from samples.common import make_arguments, seed_of

DTYPES = [
    facula.uint8,
    facula.int8,
    facula.int16,
    facula.int32,
    facula.int64,
    facula.float16,
    facula.float32,
    facula.float64,
    facula.complex32,
    facula.complex64,
    facula.complex128,
    facula.bool,
    facula.bfloat16,
    facula.float8_e5m2,
    facula.float8_e4m3fn,
    facula.uint16,
    facula.uint32,
    facula.uint64,
]
COMMON = [facula.float32, facula.float64, facula.int64, facula.bool]
# Sizes at which kernels change their way: nothing, one, odd, a vector and one more, some blocks.
LENGTHS = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 65]
EXTREMES = [0, 1, -1, 2, 3, -2, 127, 128, 255, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)]
# Functions whose calls say nothing: they run what they are given, or wait.
UNCALLED = re.compile(
    r"breakpoint|set_trace|_exit|fork|sleep|DataLoader|spawn|_sink|gradcheck|gradgradcheck|"
    r"checkpoint|load_library|set_num_|set_default|use_deterministic|set_deterministic"
)


def _all_targets():
    found = [t for t in bad_calls.targets() if not UNCALLED.search(t[0])]
    kinds = {}
    for t in found:
        kinds.setdefault(t[1].__name__, []).append(t)
    return kinds


TARGETS = _all_targets()
SAMPLED = [op for op in load_ops() if op.samples]
OVERLOADS = [(t[0], t[2]) for t in TARGETS["schema_call"]]


def restrict(regex):
    """Leaves what has a name that the expression finds."""
    for kind in list(TARGETS):
        TARGETS[kind] = [t for t in TARGETS[kind] if re.search(regex, t[0])]
        if not TARGETS[kind]:
            del TARGETS[kind]
    SAMPLED[:] = [op for op in SAMPLED if re.search(regex, op.name)]
    OVERLOADS[:] = [o for o in OVERLOADS if re.search(regex, o[0])]


# --- tensors as source


def tensor_source(rng, dims=None, dtype=None, length=None):
    """A tensor of drawn sizes, dtype, values and layout."""
    count = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]) if dims is None else dims
    sizes = [rng.choice(LENGTHS if count < 3 else LENGTHS[:12]) for _ in range(count)]
    if length is not None:
        sizes = list(length)
    if dtype is None:
        dtype = rng.choice(COMMON if rng.random() < 0.6 else DTYPES)
    return laid_out(rng, sizes, dtype)


def laid_out(rng, sizes, dtype):
    """A tensor of the given sizes, contiguous or not."""
    how = rng.choice(["plain", "plain", "transposed", "strided", "expanded", "offset"])
    name = str(dtype).replace("torch.", "facula.")
    if how == "transposed" and len(sizes) > 1:
        order = list(range(len(sizes)))
        rng.shuffle(order)
        made = [sizes[d] for d in order]
        back = [order.index(d) for d in range(len(sizes))]
        return f"{_values(rng, made, name)}.permute({back})"
    if how == "strided" and sizes:
        return f"{_values(rng, [*sizes[:-1], 2 * sizes[-1]], name)}[..., ::2]"
    if how == "expanded" and sizes:
        return f"{_values(rng, [1, *sizes[1:]], name)}.expand({sizes})"
    if how == "offset" and sizes:
        return f"{_values(rng, [sizes[0] + 1, *sizes[1:]], name)}[1:]"
    return _values(rng, sizes, name)


def _values(rng, sizes, name):
    count = 1
    for n in sizes:
        count *= n
    shape = f".reshape({sizes})"
    draw = rng.random()
    if draw < 0.4:
        return f"(facula.arange({count}) % {rng.choice([3, 5, 7, 100])}).to({name}){shape}"
    if draw < 0.7:
        scale, shift = rng.choice([0.1, 0.5, 3.0]), rng.choice([-2.0, -1.0, 0.0, 0.5])
        return f"(facula.arange({count}) * {scale} + {shift}).to({name}){shape}"
    if draw < 0.9 or "float" in name or "complex" in name:
        value = rng.choice([0, 1, -1, 0.5, float("nan"), float("inf"), -float("inf"), 1e30])
        return f"facula.full(({count},), {value}, dtype=facula.float64).to({name}){shape}"
    return f"facula.full(({count},), {rng.choice(EXTREMES)}).to({name}){shape}"


# --- calls as source


def schema_program(rng):
    """An overload with fit arguments: tensors of like sizes and one dtype, small numbers."""
    name, overload = rng.choice(OVERLOADS)
    dtype = rng.choice(COMMON if rng.random() < 0.5 else DTYPES)
    sizes = [rng.choice(LENGTHS[:14]) for _ in range(rng.choice([1, 2, 2, 3, 4, 5]))]
    draws = bad_calls.Draws(rng.random(), junk=0.01)
    lines, args, kwargs = [], [], {}
    for argument in overload._schema.arguments:
        if argument.has_default_value() and rng.random() < 0.5:
            continue
        text = _argument(rng, draws, argument.type, sizes, dtype, lines)
        if argument.kwarg_only or kwargs:
            kwargs[argument.name] = text
        else:
            args.append(text)
    return [*lines, _call(f"facula.{name}", args, kwargs), *_afterwards(rng, lines)]


def _argument(rng, draws, kind, sizes, dtype, lines):
    if kind.endswith("?") and rng.random() < 0.4:
        return "None"
    plain = kind.rstrip("?")
    if plain == "Tensor":
        return _tensor_argument(rng, sizes, dtype, lines)
    if plain.startswith("Tensor") and plain.endswith("]"):
        parts = [_tensor_argument(rng, sizes, dtype, lines) for _ in range(rng.choice([1, 2, 3]))]
        return f"[{', '.join(parts)}]"
    if plain == "ScalarType":
        return str(rng.choice(DTYPES)).replace("torch.", "facula.")
    if plain in ("int[]", "SymInt[]") and rng.random() < 0.4:
        return str(sizes)
    return common.source_of(draws.value(plain))


def _tensor_argument(rng, sizes, dtype, lines):
    draw = rng.random()
    if lines and draw < 0.1:
        return f"a{rng.randrange(len(lines))}"
    if draw < 0.65:
        text = laid_out(rng, sizes, dtype)
    elif draw < 0.75:
        text = laid_out(rng, sizes, facula.int64)
    elif draw < 0.85:
        text = laid_out(rng, sizes[1:], dtype)
    else:
        text = tensor_source(rng)
    if dtype.is_floating_point and rng.random() < 0.15:
        text += ".requires_grad_()"
    lines.append(f"a{len(lines)} = {text}")
    return f"a{len(lines) - 1}"


def _call(function, args, kwargs):
    given = ", ".join([*args, *(f"{k}={v}" for k, v in kwargs.items())])
    return f"r = {function}({given})"


def _afterwards(rng, lines):
    """What is done with a result: gradients of what it is made of."""
    if any("requires_grad_" in line for line in lines):
        return [
            "s = [t for t in (r if isinstance(r, (list, tuple)) else [r]) if t.requires_grad]",
            "facula.autograd.backward(s, [facula.ones_like(t) for t in s])",
        ]
    return []


def sample_program(rng):
    """A sample of the table in any dtype and layout."""
    op = rng.choice(SAMPLED)
    index = rng.randrange(len(op.samples))
    named = op.dtype_names()[0]
    args, kwargs = make_arguments(facula, op.samples[index], named, seed_of(op, index), grad=False)
    dtype = rng.choice(DTYPES)
    grad = rng.random() < 0.3 and (dtype.is_floating_point or dtype.is_complex)
    lines = []

    def written(value):
        if isinstance(value, facula.Tensor):
            text = common.source_of(value)
            if str(value.dtype) == f"torch.{named}":
                text += f".to({str(dtype).replace('torch.', 'facula.')})"
            if rng.random() < 0.2 and value.dim():
                text = f"facula.stack([{text}] * 2, -1)[..., 0]"
            lines.append(f"a{len(lines)} = {text}" + (".requires_grad_()" if grad else ""))
            return f"a{len(lines) - 1}"
        if isinstance(value, (list, tuple)) and any(isinstance(v, facula.Tensor) for v in value):
            return f"[{', '.join(map(written, value))}]"
        return common.source_of(value)

    given = [written(v) for v in args]
    named_too = {k: written(v) for k, v in kwargs.items()}
    call = _call(f"facula.{op.name}", given, named_too)
    return [*lines, call, *_afterwards(rng, lines)]


def bad_program(rng):
    """A call of tests/python/bad_calls.py."""
    label, make, subject = rng.choice(TARGETS[rng.choice(list(TARGETS))])
    try:
        function, args, kwargs = make(subject, rng.randrange(2**32))
    except Exception as error:
        raise common.Skip from error
    lines = []
    if label == "Tensor[]":
        lines.append(f"t = {common.source_of(function.__self__)}")
        name = f"t.{function.__name__}"
    else:
        name = "facula." + label.removeprefix("facula.").partition(":")[2 * (":" in label)]
        if ":" not in label:
            name = "facula." + label.removeprefix("facula.")
    names = []
    for k, value in enumerate(args):
        lines.append(f"a{k} = {common.source_of(value)}")
        names.append(f"a{k}")
    given = {k: common.source_of(v) for k, v in kwargs.items()}
    if not all(k.isidentifier() for k in given):
        raise common.Skip
    return [*lines, _call(name, names, given), "facula.autograd.backward([r.sum()])"]


def program(rng):
    """One case."""
    ways = [schema_program] * 2 * bool(OVERLOADS) + [sample_program] * bool(SAMPLED)
    return rng.choice([*ways, bad_program])(rng)


def simpler(line):
    """Lines that say less: arguments left out, smaller or plain tensors."""
    target, _, text = line.partition(" = ")
    if not text:
        return
    if target.startswith("a"):
        for plain in ("facula.ones(2, 3)", "facula.ones(3)", "1", "None"):
            if len(plain) < len(text):
                yield f"{target} = {plain}"
        cut = re.sub(r"\.(as_strided|permute|expand|requires_grad_)\([^()]*\)$", "", text)
        if cut != text:
            yield f"{target} = {cut}"
    if target == "r" and ", " in text and text.endswith(")"):
        head, _, given = text[:-1].partition("(")
        parts = re.split(r", (?![^\[(]*[\])])", given)
        for k in reversed(range(len(parts))):
            yield f"{target} = {head}({', '.join(parts[:k] + parts[k + 1 :])})"


if __name__ == "__main__":
    sys.exit(common.main(__doc__, __file__, program, simpler, restrict))

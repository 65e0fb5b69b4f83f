"""Calls that nobody should make: each operator with arguments drawn from pools of unfit values.

Run by test_bad_arguments.py in a process of its own, because a crash is what it looks for:

    python tests/python/bad_calls.py --progress FILE [--start N] [--cases N] [--only REGEX]

The number of the call under way stands in FILE, so whoever started the process knows what ended
it. Calls depend on their number alone. Python exceptions are fine; a SystemError, or a message that
only a C++ library could have written, is printed as a fault.
"""

import argparse
import gc
import importlib
import inspect
import os
import random
import re
import resource
import signal
import sys
import tempfile
import warnings
import zlib

import facula
from samples import load_ops
from samples.common import find, make_arguments, seed_of

SECONDS = 10  # a call that takes longer is hung: the alarm ends the process
SPARE_MEMORY = 1 << 30
BIG = 2**62
HUGE = [BIG, 2**63 - 1, -BIG, -(2**63), 2**45 + 1]
# The marks of an exception that was not meant for users.
INTERNAL = re.compile(r"std::|_M_|basic_string|vector::|bad_|unknown C\+\+|no variant|assert", re.I)


def _overlapping():
    return facula.ones(9).as_strided((3, 3), (1, 1))


def _filled(value, *shape, dtype=None):
    return facula.full(shape, value, dtype=dtype)


def _ramp(*shape, dtype=None):
    count = 1
    for n in shape:
        count *= n
    return facula.arange(count, dtype=dtype).reshape(shape)


# Tensors that many operators take.
FIT_TENSORS = [
    lambda: facula.ones(3),
    lambda: facula.ones(2, 3),
    lambda: facula.ones(3, 3),
    lambda: facula.ones(2, 3, 4),
    lambda: facula.ones(3, 3, requires_grad=True),
    lambda: facula.ones(2, 3, 5, 5),
    lambda: facula.ones(2, 3, 4, 5, 5),
    lambda: facula.ones(3, dtype=facula.float64),
    lambda: _ramp(3, dtype=facula.int64),
    lambda: _filled(1, 3, 3, dtype=facula.int64),
    lambda: _filled(True, 3, 3, dtype=facula.bool),
]
# Tensors that hardly any expects.
ODD_TENSORS = [
    lambda: facula.ones(()),
    lambda: facula.ones(0),
    lambda: facula.ones(0, 3),
    lambda: facula.ones(2, 0, 3),
    lambda: facula.ones(0, dtype=facula.int64),
    lambda: _filled(float("nan"), 3, 3),
    lambda: _filled(float("inf"), 3),
    lambda: _filled(1e300, 3, 3, dtype=facula.float64),
    lambda: _filled(BIG, 3, dtype=facula.int64),
    lambda: _filled(-(2**63), 3, dtype=facula.int64),
    lambda: _filled(-7, 2, 3, dtype=facula.int64),
    lambda: _filled(-128, 3, dtype=facula.int8),
    lambda: _filled(0, 3, dtype=facula.int32),
    lambda: facula.ones(3, dtype=facula.uint8),
    lambda: facula.ones(3, 3, dtype=facula.float16),
    lambda: facula.ones(3, 3, dtype=facula.bfloat16),
    lambda: facula.ones(3, 3, dtype=facula.complex64),
    lambda: facula.ones(3, dtype=facula.complex128).conj(),
    lambda: facula.ones(3, 3, device="meta"),
    lambda: facula.empty(2**16, 2**24, device="meta"),
    lambda: facula.ones(2, 3).t(),
    lambda: _ramp(4, 6).to(facula.float32)[::2, 1::2],
    lambda: facula.ones(1).expand(3),
    lambda: facula.ones(3, 1).expand(3, 3),
    _overlapping,
    lambda: facula.ones(1, 1, 1, 1, 1, 1, 1, 1, 2),
    lambda: facula.ones(*[1] * 70),
    lambda: facula.ones(2, 3).as_strided((1, 1), (2**63 - 1, BIG)),
    lambda: facula.ones(2, 3).as_strided((0, 2), (2**63 - 1, BIG)),
    lambda: facula.empty(0, 1, 1).expand(0, BIG, BIG),
    lambda: _ramp(9, dtype=facula.uint8).view(facula.bool).reshape(3, 3),
    lambda: facula.ones(3, 3, requires_grad=True) * 2,
    lambda: facula.ones(2, 3, 5, 5).contiguous(memory_format=facula.channels_last),
]
# No value of any type that operators have, or only by accident.
JUNK = [
    None,
    "x",
    "",
    "\0",
    float("nan"),
    2**70,
    -(2**70),
    1j,
    object(),
    [],
    (),
    {},
    [None],
    ["a"],
    [[1], [2]],
    True,
    2.5,
    facula.float32,
    b"bytes",
    int,
    slice(1),
    ...,
    [2**70],
    {1: 2},
    lambda: facula.ones(2),
    range(3),
    facula.Size([2, 3]),
]
INTS = [
    0,
    1,
    -1,
    2,
    3,
    4,
    -2,
    -5,
    7,
    100,
    2**31,
    -(2**31),
    2**32 + 1,
    BIG,
    -BIG,
    2**63 - 1,
    -(2**63),
    True,
]
FIT_INTS = [0, 1, 2, -1, 3]
INT_LISTS = [
    [],
    [0],
    [1],
    [2],
    [3],
    [-1],
    [2, 3],
    [3, 3],
    [0, 0],
    [0, 1],
    [1, 0],
    [-1, -1],
    [1, 1],
    [2, 2],
    [3, 3, 3],
    [1, 2, 3],
    [-5],
    [100],
    [0, 0, 0],
    [BIG],
    [BIG, 4],
    [2**32, 2**32],
    [2**31, 2**31, 4],
    [-(2**63)],
    [2**63 - 1, 2],
    [1] * 70,
    [-1, 2**62],
    [0, BIG, BIG],
    (3,),
    1,
    2,
    0,
    -1,
    BIG,
]
FLOATS = [
    0.0,
    1.0,
    0.5,
    -1.0,
    2,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    1e-308,
    -0.0,
    BIG,
]
SCALARS = [*FLOATS, 1, 0, -1, 3, True, 1 + 2j, 2**63 - 1, -(2**63), 2**64]
WORDS = [
    "mean",
    "sum",
    "none",
    "reflect",
    "constant",
    "replicate",
    "circular",
    "linear",
    "trunc",
    "floor",
    "left",
    "ij",
    "xy",
    "raise",
    "clip",
    "é" * 1000,
    "\0",
    "",
]
DTYPES = [
    facula.float32,
    facula.float64,
    facula.int64,
    facula.uint8,
    facula.bool,
    facula.complex64,
    facula.bfloat16,
    facula.float16,
    facula.int8,
]


def asks_for_much(what):
    """Whether a number among the arguments is work for longer than the alarm waits."""
    # A polynomial's order is a number of steps, in PyTorch as well, and each is a step of work.
    most = 2**63 if "_polynomial_" in what else 2**33
    return any(2**30 < int(n) < most for n in re.findall(r"(?<![\w.])\d+(?![\w.])", what))


class Draws:
    """Values for arguments, drawn with one call's own random numbers."""

    def __init__(self, seed, junk=0.08):
        self.rng = random.Random(seed)
        self.junk_rate = junk

    def junk(self):
        """Something of no fit type."""
        return self.rng.choice(JUNK)

    def tensor(self):
        """A tensor, usual or odd."""
        pool = FIT_TENSORS if self.rng.random() < 0.6 else ODD_TENSORS
        return self.rng.choice(pool)()

    def number(self, fit, every):
        """One of the usual values in half of all calls, else any."""
        return self.rng.choice(fit if self.rng.random() < 0.5 else every)

    def value(self, kind):
        """A value for a parameter of a schema's type."""
        if self.rng.random() < self.junk_rate:
            return self.junk()
        if kind.endswith("?"):
            return None if self.rng.random() < 0.4 else self.value(kind[:-1])
        if kind.startswith("Tensor") and kind.endswith("]"):
            return [self.value(kind[: kind.index("[")]) for _ in range(self.rng.randrange(4))]
        if kind.endswith("]"):
            return self.listed(kind)
        return self.single(kind)

    def listed(self, kind):
        """A list of numbers."""
        element = kind[: kind.index("[")]
        if element in ("int", "SymInt"):
            return self.number(INT_LISTS[:16], INT_LISTS)
        return [self.single(element) for _ in range(self.rng.randrange(4))]

    def single(self, kind):
        """A value that is no list."""
        if kind == "Tensor":
            return self.tensor()
        if kind in ("int", "SymInt"):
            return self.number(FIT_INTS, INTS)
        if kind == "float":
            return self.number(FLOATS[:4], FLOATS)
        if kind == "bool":
            return self.rng.random() < 0.5
        if kind == "Scalar":
            return self.number(FLOATS[:5], SCALARS)
        if kind == "str":
            return self.rng.choice(WORDS)
        if kind == "ScalarType":
            return self.rng.choice(DTYPES)
        if kind == "Device":
            return self.rng.choice(["cpu", "meta", "cpu:7", "cuda", "nothing", "cpu:-1"])
        if kind == "Layout":
            return facula.strided
        if kind == "MemoryFormat":
            return self.rng.choice(
                [facula.contiguous_format, facula.preserve_format, facula.channels_last]
            )
        if kind == "Generator":
            return facula.Generator()
        return self.junk()


def overloads():
    """(name, overload object) of every operator and variant, in order."""
    for name in sorted(set(facula._C._operator_names("aten"))):
        packet = facula._C._packet("aten", name)
        for overload in packet.overloads():
            yield f"{name}.{overload}", getattr(packet, overload)


def schema_call(overload, seed):
    """An overload with a value drawn for each of its arguments, sometimes too few or too many."""
    draws = Draws(seed)
    args, kwargs = [], {}
    for argument in overload._schema.arguments:
        leave_out = argument.has_default_value() and draws.rng.random() < 0.5
        if leave_out or draws.rng.random() < 0.02:
            continue
        value = draws.value(argument.type)
        if argument.kwarg_only or kwargs:
            kwargs[argument.name] = value
        else:
            args.append(value)
    if draws.rng.random() < 0.02:
        args.append(draws.junk())
    if draws.rng.random() < 0.02:
        kwargs["surplus"] = 1
    return overload, args, kwargs


def sample_call(op, seed):
    """A sample of the table with one of its arguments replaced by an unfit one."""
    draws = Draws(seed)
    index = draws.rng.randrange(len(op.samples))
    dtype = draws.rng.choice(op.dtype_names())
    args, kwargs = make_arguments(
        facula, op.samples[index], dtype, seed_of(op, index), grad=draws.rng.random() < 0.3
    )
    places = [*range(len(args)), *kwargs]
    if places:
        place = draws.rng.choice(places)
        holder = kwargs if isinstance(place, str) else args
        holder[place] = replacement(draws, holder[place])
    return find(facula, op.name), args, kwargs


def huge_call(op, seed):
    """A sample of the table in which one size, or each of a list, is near the end of int64."""
    draws = Draws(seed)
    index = draws.rng.choice([i for i, s in enumerate(op.samples) if number_places(s)])
    args, kwargs = make_arguments(
        facula,
        op.samples[index],
        op.dtype_names()[0],
        seed_of(op, index),
        grad=draws.rng.random() < 0.5,
    )
    place = draws.rng.choice(number_places(op.samples[index]))
    holder = kwargs if isinstance(place, str) else args
    value, huge = holder[place], draws.rng.choice(HUGE)
    if isinstance(value, (list, tuple)):
        many = draws.rng.random() < 0.5
        at = draws.rng.randrange(len(value))
        huge = [huge if many or i == at else v for i, v in enumerate(value)]
    holder[place] = huge
    return find(facula, op.name), args, kwargs


def number_places(sample):
    """Positions and names of a sample's arguments that are ints or lists of ints."""
    given = [*enumerate(sample.args), *sample.kwargs.items()]
    return [place for place, value in given if is_ints(value)]


def is_ints(value):
    """Whether a value is an int, or some of them in a list or tuple."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(type(v) is int for v in value)
    return type(value) is int


def replacement(draws, value):
    """Something in place of a fit argument: of its kind in most cases."""
    if draws.rng.random() < 0.15:
        return draws.junk()
    if isinstance(value, facula.Tensor):
        return draws.tensor()
    if isinstance(value, bool):
        return draws.rng.choice([not value, None, 2])
    if isinstance(value, int):
        return draws.rng.choice(INTS)
    if isinstance(value, float):
        return draws.rng.choice(SCALARS)
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return draws.rng.choice(INT_LISTS)
    return draws.junk()


def index_call(_, seed):
    """Reading or writing a tensor's part, under an index drawn from anything."""
    draws = Draws(seed)
    part = [
        lambda: draws.rng.choice(INTS),
        lambda: None,
        lambda: ...,
        draws.tensor,
        draws.junk,
        lambda: slice(*[draws.rng.choice([None, *INTS]) for _ in range(3)]),
        lambda: draws.rng.choice(INT_LISTS),
        lambda: [True, False, True],
    ]
    index = tuple(draws.rng.choice(part)() for _ in range(draws.rng.randrange(5)))
    if len(index) == 1 and draws.rng.random() < 0.7:
        index = index[0]
    target = draws.tensor()
    if draws.rng.random() < 0.5:
        return target.__getitem__, [index], {}
    value = draws.rng.choice([draws.tensor, draws.junk, lambda: draws.rng.choice(SCALARS)])()
    return target.__setitem__, [index, value], {}


# Methods that do what they are told to memory that others use, or to the process.
UNCALLED = {"share_memory_", "__class__", "__init_subclass__", "__subclasshook__", "__del__"}


def method_call(name, seed):
    """A method of Tensor, from the binding or from Python, with anything."""
    draws = Draws(seed, junk=0.3)
    kinds = ["Tensor", "int", "int[]", "Scalar", "ScalarType", "bool", "str", "Tensor[]"]
    args = [draws.value(draws.rng.choice(kinds)) for _ in range(draws.rng.choice([0, 1, 1, 2, 3]))]
    method = getattr(facula.Tensor, name)
    return method, [draws.tensor(), *args], {}


def maker_call(name, seed):
    """A class or function that the extension defines by hand, with anything."""
    draws = Draws(seed, junk=0.4)
    kinds = ["Tensor", "int", "int[]", "Scalar", "ScalarType", "Device", "str", "Tensor[]"]
    args = [draws.value(draws.rng.choice(kinds)) for _ in range(draws.rng.choice([0, 1, 1, 2, 3]))]
    return getattr(facula, name), args, {}


# Places of functions and classes that are written in Python, or looked up there.
PLACES = (
    "facula facula.nn facula.nn.functional facula.nn.init facula.nn.utils facula.linalg "
    "facula.fft facula.special facula.autograd facula.autograd.functional "
    "facula.autograd.forward_ad facula.autograd.graph facula.func facula.overrides "
    "facula.library facula.optim facula.optim.lr_scheduler facula.utils.data "
    "facula.utils.hooks facula.utils.checkpoint facula.random facula.amp "
    "facula.serialization facula.utils.memory facula.utils.dlpack"
).split()
# Functions that change the state of the process, or what later calls mean.
STATEFUL = re.compile(
    r"^(set_|use_|manual_seed|seed$|compile$|save$|load_library|initial_seed|"
    r"Library$|fallthrough|define$|impl$|custom_op|register_|enable_|add_)"
)


def python_functions():
    """("module.name", module, name) of all public functions and classes that Python sees."""
    for place in PLACES:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError:
            continue
        for name in sorted(dir(module)):
            public = not name.startswith("_") and not STATEFUL.match(name)
            if public and callable(present(module, name)):
                yield f"{place}.{name}", module, name


def present(module, name):
    """The attribute; None where facula says that it is still to come."""
    try:
        return getattr(module, name, None)
    except (NotImplementedError, ImportError):
        return None


def loop():
    """A list that holds itself."""
    items = [1.0]
    items.append(items)
    return items


def python_call(subject, seed):
    """A function or class written in Python with arguments of any kind, by place or by name."""
    module, name = subject
    draws = Draws(seed, junk=0.35)
    kinds = ["Tensor", "Tensor", "int", "int[]", "Scalar", "float", "ScalarType", "str", "Tensor[]"]
    function = getattr(module, name)
    count = draws.rng.choice([0, 1, 1, 2, 2, 3, 4, 8])
    args = [
        loop() if draws.rng.random() < 0.03 else draws.value(draws.rng.choice(kinds))
        for _ in range(count)
    ]
    kwargs = {}
    if draws.rng.random() < 0.3:
        kwargs[draws.rng.choice(parameter_names(function))] = draws.value(draws.rng.choice(kinds))
    return function, args, kwargs


def parameter_names(function):
    """Names that the function takes, and one that it does not."""
    try:
        return [*inspect.signature(function).parameters, "surplus"]
    except (TypeError, ValueError):
        return ["surplus"]


def targets():
    """(name, maker of calls, what it takes) of all that is called."""
    for name, overload in overloads():
        yield f"ops.aten.{name}", schema_call, overload
    for op in load_ops():
        if op.samples:
            yield f"sample:{op.name}", sample_call, op
        if any(map(number_places, op.samples)):
            yield f"huge:{op.name}", huge_call, op
    for _ in range(20):
        yield "Tensor[]", index_call, None
    for name in sorted(set(dir(facula.Tensor)) - UNCALLED):
        if callable(getattr(facula.Tensor, name, None)) and not name.startswith("__"):
            yield f"Tensor.{name}", method_call, name
    for label, module, name in python_functions():
        yield label, python_call, (module, name)
    for name in sorted(n for n in vars(facula._C) if not n.startswith("_")):
        if callable(getattr(facula._C, name)):
            yield name, maker_call, name


def touch(result):
    """Reads what a call gave back, and runs it backward: a view beyond its memory shows here."""
    if isinstance(result, (list, tuple)):
        for one in result[:4]:
            touch(one)
    if not isinstance(result, facula.Tensor) or result.numel() > 10000:
        return
    repr(result.shape)
    if result.device.type == "cpu":
        result.tolist()
    if result.requires_grad and result.dtype.is_floating_point:
        result.backward(facula.ones_like(result))


def attempt(number, name, make, subject):
    """One call, with its exceptions caught; prints a fault."""
    try:
        function, args, kwargs = make(subject, zlib.crc32(f"{name}.{number}".encode()))
    except Exception as error:  # not this call's fault
        print(f"cannot make a call of {name}: {error!r}", flush=True)
        return
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        touch(function(*args, **kwargs))
    except Exception as error:
        if isinstance(error, SystemError) or INTERNAL.search(str(error)):
            print(f"fault: {name} call {number}: {error!r}", flush=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def limit_memory():
    """Makes large allocations fail here as they would on a small machine."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return  # the sanitizer reserves terabytes; its own limit serves
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + SPARE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def show(number, targets_, cases):
    """What a call was, for the report."""
    name, make, subject = targets_[number // cases]
    function, args, kwargs = make(subject, zlib.crc32(f"{name}.{number % cases}".encode()))
    return (
        f"{name}({', '.join([*map(brief, args), *(f'{k}={brief(v)}' for k, v in kwargs.items())])})"
    )


def brief(value):
    """An argument in few words."""
    if isinstance(value, facula.Tensor):
        size, stride = list(value.shape), list(value.stride())
        dtype = str(value.dtype).replace("torch.", "")
        first = "" if value.is_meta or not value.numel() else f" of {value.flatten()[0].tolist()}"
        return f"<{dtype}{size} strides {stride} {value.device}{first}>"
    if isinstance(value, (list, tuple)) and len(value) < 9:
        return f"[{', '.join(map(brief, value))}]"
    return repr(value)[:60]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--progress", required=True)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int)
    options = parser.parse_args()
    os.chdir(tempfile.mkdtemp())  # some functions write files of any name
    chosen = [t for t in targets() if re.search(options.only, t[0])]
    if options.show is not None:
        print(show(options.show, chosen, options.cases))
        return
    warnings.simplefilter("ignore")
    facula.set_num_threads(2)
    limit_memory()
    gc.disable()
    progress = os.open(options.progress, os.O_WRONLY | os.O_CREAT)
    for number in range(options.start, len(chosen) * options.cases):
        os.pwrite(progress, b"%-20d" % number, 0)
        attempt(number % options.cases, *chosen[number // options.cases])
        if number % 500 == 0:
            gc.collect()
    print("done", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()

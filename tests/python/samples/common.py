"""What a table of samples is made of: operators, samples, tensors to be made, expected errors.

A family's file has `OPS = [Op("log1p", samples=[Sample(T(2, 3))], reference=np.log1p), ...]`. The
table names no library: the same row drives facula, PyTorch and NumPy. Values depend only on the
place in the table and on the dtype, so that every suite and every run sees the same numbers.
"""

import zlib
from dataclasses import dataclass, field

import numpy as np

KINDS = {
    "float": ("float32", "float64", "bfloat16", "float16"),
    "full": ("float32", "float64"),
    "half": ("bfloat16", "float16"),
    "complex": ("complex64", "complex128"),
    "int": ("int64", "int32", "int16", "int8", "uint8"),
    "bool": ("bool",),
}
FLOATING = {"float64", "float32", "float16", "bfloat16"}
COMPLEX = {"complex64", "complex128"}
OPTIONS = ("dtype", "low", "high", "grad", "unique", "definite")
LAYOUTS = ("contiguous", "transposed", "strided", "expanded", "channels_last")


@dataclass(frozen=True)
class T:
    """A tensor to be made: `T(2, 3, dtype="int64", low=0, high=5)`.

    dtype=None stands for the dtype under test. Values are uniform in [low, high] (integers and
    parts of complex numbers too); `unique` gives values that all differ, in random order.
    grad=False: never asked for a gradient; grad=True: asked even if its dtype was named.
    layout: contiguous, transposed (dimensions reversed in memory), strided (every second element),
    expanded (the first dimension repeats, stride 0) or channels_last (4 or 5 dimensions).
    definite: matrices that are Hermitian and positive definite.
    """

    shape: tuple
    dtype: str = None
    low: float = -2
    high: float = 2
    grad: bool = None
    layout: str = "contiguous"
    unique: bool = False
    definite: bool = False

    def __init__(self, *shape, **options):
        known = {
            "dtype": None,
            "low": -2,
            "high": 2,
            "grad": None,
            "layout": "contiguous",
            "unique": False,
            "definite": False,
        }
        unknown = set(options) - set(known)
        if unknown:
            raise TypeError(f"T(): unknown option {sorted(unknown)[0]!r}")
        for name, value in {**known, **options, "shape": shape}.items():
            object.__setattr__(self, name, value)
        if self.layout not in LAYOUTS:
            raise ValueError(f"T(): layout must be one of {LAYOUTS}; got {self.layout!r}")

    def with_layout(self, layout):
        """The same values in another layout."""
        options = {k: getattr(self, k) for k in OPTIONS}
        return T(*self.shape, layout=layout, **options)


@dataclass(frozen=True)
class Named:
    """An object that each library has under this name: `Named("channels_last")`."""

    name: str


class Sample:
    """Arguments of one call. Strings under the keyword `dtype` and `Named` are looked up in the
    library that is called."""

    def __init__(self, *args, **kwargs):
        self.args = args
        self.kwargs = kwargs

    def __repr__(self):
        parts = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"Sample({', '.join(parts)})"

    def tensors(self):
        """The T of this sample, in order, lists included."""
        return [t for t in _leaves([*self.args, *self.kwargs.values()]) if isinstance(t, T)]

    def map(self, change):
        """A sample with every leaf replaced by change(leaf, number of the leaf)."""
        number = iter(range(1 << 30))
        args = _mapped(list(self.args), lambda leaf: change(leaf, next(number)))
        kwargs = {
            k: _mapped(v, lambda leaf: change(leaf, next(number))) for k, v in self.kwargs.items()
        }
        return Sample(*args, **kwargs)


class Error:
    """A call that must raise: the class, a part of the text (of facula's message), the sample."""

    def __init__(self, error, text, sample):
        self.error = error
        self.text = text
        self.sample = sample


@dataclass
class Op:
    """One operator's row: how it is called, with what, and what NumPy says.

    name: public name, dotted where it is in a module ("nn.functional.gelu", "Tensor.index_add").
    reference: takes NumPy arrays and the same other arguments; None: the differential suite alone
    checks values. dtypes: kinds ("float", "half", "full" = float32 and float64, "complex", "int",
    "bool") or dtype names, split by spaces. grad: False where nothing is differentiable. gradgrad:
    False where PyTorch has no second derivative either. inplace, out, method: False where the form
    is not to be compared with the function. layouts: False where the meaning depends on strides
    (as_strided). nondeterministic: values are random or uninitialised. beyond_torch: why PyTorch
    fails at results or gradients of this row that are there and right here. tolerance: factor on
    the tolerances.
    """

    name: str
    samples: list
    reference: object = None
    dtypes: str = "float"
    errors: list = field(default_factory=list)
    grad: bool = True
    gradgrad: bool = True
    inplace: bool = True
    out: bool = True
    method: bool = True
    layouts: bool = True
    nondeterministic: bool = False
    beyond_torch: str = ""
    tolerance: float = 1.0
    family: str = ""
    table: str = ""

    def dtype_names(self):
        """The dtypes under test, in order, without repetition."""
        names = [d for word in self.dtypes.split() for d in KINDS.get(word, (word,))]
        return list(dict.fromkeys(names))

    def numbered_samples(self, dtype):
        """(number, sample) of those that suit a dtype: no complex values for a real result."""
        for index, sample in enumerate(self.samples):
            result = sample.kwargs.get("dtype", dtype)
            if dtype not in COMPLEX or result in COMPLEX or not isinstance(result, str):
                yield index, sample

    @property
    def short_name(self):
        """The name without its modules, and without the overload of a name in `ops.aten`."""
        if self.name.startswith("ops.aten."):
            return self.name.split(".")[2]
        return self.name.rpartition(".")[2]


def aten(name, samples, **options):
    """The row of an operator that only `ops.aten` has."""
    return Op(f"ops.aten.{name}", samples, **options)


# --- making values


def _leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]


def _mapped(value, change):
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, change) for v in value)
    return change(value)


def to_bfloat16(array):
    """float32 values rounded to the nearest bfloat16 (ties to even), still as float32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).reshape(np.shape(array))


def _numbers(t, rng, whole):
    count = int(np.prod(t.shape, dtype=np.int64))
    if t.unique and whole:
        step = max(1, int((t.high - t.low) // max(count, 1)))
        return rng.permutation(count) * step + int(np.ceil(t.low))
    if t.unique:
        return rng.permutation(np.linspace(t.low, t.high, count))
    if whole:
        low = int(np.ceil(t.low))  # the nearest whole number, where [low, high] has none
        return rng.integers(low, max(low, int(np.floor(t.high))) + 1, count)
    return rng.uniform(t.low, t.high, count)


def make_array(t, dtype, seed):
    """The values of T `t` as an array; bfloat16 comes as float32 that bfloat16 can hold."""
    rng = np.random.default_rng(seed)
    name = t.dtype or dtype
    if name == "bool":
        flat = rng.integers(0, 2, int(np.prod(t.shape, dtype=np.int64))).astype(bool)
    elif name in COMPLEX:
        flat = (_numbers(t, rng, False) + 1j * _numbers(t, rng, False)).astype(name)
    elif name in FLOATING:
        flat = _numbers(t, rng, False).astype("float32" if name == "bfloat16" else name)
        flat = to_bfloat16(flat) if name == "bfloat16" else flat
    else:
        low = max(t.low, 0) if name.startswith("uint") else t.low
        positive = T(*t.shape, low=low, high=max(t.high, low), unique=t.unique)
        flat = _numbers(positive, rng, True).astype(name)
    array = flat.reshape(t.shape)
    if t.definite:
        array = array @ array.conj().swapaxes(-1, -2) + np.eye(t.shape[-1], dtype=array.dtype)
    if t.layout == "expanded" and array.ndim and array.shape[0]:
        array = np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
    return array


def lay_out(lib, array, layout, dtype):
    """A tensor of `lib` with the array's values and the layout asked for."""

    def plain(values):
        t = lib.from_numpy(np.array(values, order="C", copy=True))
        return t.to(lib.bfloat16) if dtype == "bfloat16" else t

    n = array.ndim
    if layout == "transposed" and n > 1:
        return plain(array.transpose()).permute(*range(n - 1, -1, -1))
    if layout == "strided" and n > 0:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return plain(wide)[..., 1::2]
    if layout == "expanded" and n > 0 and array.shape[0] > 0:
        return plain(array[:1]).expand(*array.shape)
    if layout == "channels_last" and n in (4, 5):
        order = (0, *range(2, n), 1)
        back = (0, n - 1, *range(1, n - 1))
        return plain(array.transpose(order)).permute(*back)
    return plain(array)


def seed_of(op, index):
    """A number for one sample of one operator, the same in every process."""
    return zlib.crc32(f"{op.table}.{op.name}.{index}".encode())


def _constant(lib, value, key):
    if isinstance(value, Named):
        return getattr(lib, value.name)
    return getattr(lib, value) if key == "dtype" and isinstance(value, str) else value


def make_arguments(lib, sample, dtype, seed, grad=False, layout=None):
    """(args, kwargs) of a sample for a library; `grad` marks what is to be differentiated.

    `layout` puts the tensors that are contiguous in the table into another layout instead.
    """

    def make(leaf, number):
        if not isinstance(leaf, T):
            return leaf
        chosen = layout if layout and leaf.layout == "contiguous" else leaf.layout
        tensor = lay_out(
            lib,
            make_array(leaf.with_layout(chosen), dtype, seed + number),
            chosen,
            leaf.dtype or dtype,
        )
        return tensor.requires_grad_() if grad and wants_grad(leaf, dtype) else tensor

    made = sample.map(make)
    args = [_mapped(a, lambda x: _constant(lib, x, "")) for a in made.args]
    kwargs = {k: _mapped(v, lambda x, k=k: _constant(lib, x, k)) for k, v in made.kwargs.items()}
    return args, kwargs


def make_arrays(sample, dtype, seed):
    """(args, kwargs) of a sample for the NumPy reference, floating point numbers in double."""

    def make(leaf, number):
        if not isinstance(leaf, T):
            return leaf
        array = make_array(leaf, dtype, seed + number)
        wide = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind)
        return array.astype(wide) if wide else array

    made = sample.map(make)
    return list(made.args), made.kwargs


def wants_grad(t, dtype):
    """Whether a T is differentiated: of the dtype under test unless it says otherwise."""
    name = t.dtype or dtype
    if t.grad is False or name not in FLOATING | COMPLEX:
        return False
    return t.grad is True or t.dtype is None


def split_marked(sample, args, kwargs, dtype):
    """The tensors that are differentiated, and call(operator, tensors) that puts others there."""
    leaves = _leaves([*args, *kwargs.values()])
    wanted = [
        i
        for i, t in enumerate(_leaves([*sample.args, *sample.kwargs.values()]))
        if isinstance(t, T) and wants_grad(t, dtype)
    ]

    def call(function, tensors):
        others = dict(zip(wanted, tensors, strict=True))
        filled = Sample(*args, **kwargs).map(lambda leaf, number: others.get(number, leaf))
        return function(*filled.args, **filled.kwargs)

    return [leaves[i] for i in wanted], call


def find(lib, name):
    """The callable of a public name: "sum", "nn.functional.gelu", "Tensor.index_add"."""
    found = lib
    for part in name.split("."):
        found = getattr(found, part)
    return found

"""Objects that both libraries make, as functions of the library; and how to compare them."""

import collections
import datetime
import pathlib
import re


def _with_attribute(x):
    x.note = [1, 2]
    return x


def _filled(module):
    for value in module.parameters():
        value.data.fill_(1)
    return module


def _stepped(lib, kind, **options):
    param = lib.nn.Parameter(lib.ones(2))
    optimizer = getattr(lib.optim, kind)([param], **options)
    param.sum().backward()
    optimizer.step()
    return optimizer


def _over(x, *views):
    return [x, *(view(x) for view in views)]


DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu bcomplex32"
).split()
LAYOUTS = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn".split()

# What weights_only=True reads.
PLAIN = {
    **{f"dtype_{d}": lambda lib, d=d: lib.tensor([0, 1, 2]).to(getattr(lib, d)) for d in DTYPES},
    **{f"name_{d}": lambda lib, d=d: getattr(lib, d) for d in DTYPES},
    **{f"layout_{n}": lambda lib, n=n: getattr(lib, n) for n in LAYOUTS},
    "views": lambda lib: _over(lib.arange(6.0), lambda x: x[2:4], lambda x: x.view(2, 3).t()),
    "twice": lambda lib: (lambda x: [x, x])(lib.arange(6.0)),
    "parameter_twice": lambda lib: (lambda p: [p, p, p.data])(lib.nn.Parameter(lib.ones(2))),
    "scalar": lambda lib: lib.tensor(3),
    "empty": lambda lib: lib.zeros(0, 3),
    "expanded": lambda lib: lib.ones(1).expand(5, 3),
    "requires_grad": lambda lib: lib.ones(2, requires_grad=True),
    "made_by_an_operation": lambda lib: lib.ones(2, requires_grad=True) * 2,
    "part_of_large": lambda lib: lib.ones(100)[:2],
    "conj": lambda lib: lib.tensor([1 + 2j]).conj(),
    "neg": lambda lib: lib.tensor([1 + 2j, 3]).conj().imag,
    "meta": lambda lib: lib.empty(2, 3, device="meta"),
    "meta_requires_grad": lambda lib: lib.empty(2, 3, device="meta", requires_grad=True),
    "channels_last": lambda lib: lib.ones(1, 2, 3, 4).contiguous(memory_format=lib.channels_last),
    "parameter": lambda lib: lib.nn.Parameter(lib.ones(2)),
    "frozen_parameter": lambda lib: lib.nn.Parameter(lib.ones(2), requires_grad=False),
    "buffer": lambda lib: lib.nn.Buffer(lib.ones(2)),
    "attribute": lambda lib: _with_attribute(lib.ones(2)),
    "parameter_attribute": lambda lib: _with_attribute(lib.nn.Parameter(lib.ones(2))),
    "plain": lambda lib: {"a": [1, 2.5, None, True], "b": (1, 2, 3, 4, 5), "c": {1}, "d": b"ab"},
    "numbers": lambda lib: [2**70, -5, 1 + 2j, 1e300, 255, 65536, float("inf"), -(2**63)],
    "text": lambda lib: ["", "é \ud800", "x" * 300],
    "bytes": lambda lib: bytearray(b"abc"),
    "ordered": lambda lib: collections.OrderedDict(a=lib.ones(1), b=lib.ones(2)),
    "counter": lambda lib: collections.Counter("abca"),
    "containers": lambda lib: {"a": {"b": [(1, (2, [3, {4: lib.ones(1)}]))]}},
    "size": lambda lib: lib.Size([1, 2]),
    "devices": lambda lib: [lib.device("cpu"), lib.device("cuda", 1), lib.device("meta")],
    "typed_storage": lambda lib: lib.ones(3).storage(),
    "untyped_storage": lambda lib: lib.ones(3).untyped_storage(),
    "tensor_and_typed": lambda lib: _over(lib.arange(3.0), lambda x: x.storage()),
    "untyped_and_tensor": lambda lib: _over(
        lib.arange(3, dtype=lib.uint8), lambda x: x.untyped_storage()
    ),
    "random_state": lambda lib: (lib.manual_seed(0), lib.get_rng_state())[1],
    "state_dict": lambda lib: _filled(lib.nn.Linear(2, 1)).state_dict(),
    "batch_norm_state": lambda lib: lib.nn.BatchNorm2d(3).state_dict(),
    "sgd_state": lambda lib: _stepped(lib, "SGD", lr=0.1, momentum=0.9).state_dict(),
    "adam_state": lambda lib: _stepped(lib, "Adam", lr=0.1).state_dict(),
}

# What needs weights_only=False, or is refused by both.
OBJECTS = {
    "frozenset": lambda lib: frozenset([1]),
    "defaultdict": lambda lib: collections.defaultdict(list, a=[1]),
    "deque": lambda lib: collections.deque([1, 2]),
    "path": lambda lib: pathlib.PurePosixPath("/a"),
    "date": lambda lib: datetime.date(2020, 1, 1),
    "generator": lambda lib: lib.Generator().manual_seed(3),
    "max": lambda lib: lib.ones(2, 3).max(0),
    "sort": lambda lib: lib.tensor([3, 1, 2]).sort(),
    "function": lambda lib: lib.nn.functional.relu,
    "class": lambda lib: lib.nn.Linear,
    "uninitialized": lambda lib: lib.nn.parameter.UninitializedParameter(),
    "linear": lambda lib: _filled(lib.nn.Linear(1, 2)),
    "sequential": lambda lib: lib.nn.Sequential(
        lib.nn.ReLU(), lib.nn.BatchNorm1d(2), lib.nn.Dropout(0.3)
    ),
    "module_list": lambda lib: lib.nn.ModuleList([lib.nn.ReLU(), lib.nn.Flatten()]),
    "lstm": lambda lib: _filled(lib.nn.LSTM(1, 2, 2, bidirectional=True)),
    "gru_cell": lambda lib: _filled(lib.nn.GRUCell(1, 2)),
    "attention": lambda lib: _filled(lib.nn.MultiheadAttention(2, 1)),
    "encoder": lambda lib: _filled(lib.nn.TransformerEncoderLayer(2, 1, 2)),
    "decoder": lambda lib: _filled(lib.nn.TransformerDecoderLayer(2, 1, 2)),
    "lazy": lambda lib: lib.nn.LazyLinear(2),
    "adam": lambda lib: _stepped(lib, "Adam", lr=0.1),
    "dataset": lambda lib: lib.utils.data.TensorDataset(lib.ones(2)),
}


def _last(value):
    return str(value).rpartition(".")[2]


def _tensor(x):
    shown = [type(x).__name__, _last(x.dtype), tuple(x.shape), x.requires_grad, str(x.device)]
    shown += [x.stride(), x.is_conj(), x.is_neg(), {k: plain(v) for k, v in vars(x).items()}]
    if x.device.type != "meta":
        shown += [x.storage_offset(), x.untyped_storage().nbytes(), x.detach().tolist()]
    return shown


def _dict(value):
    return [type(value).__name__, {k: plain(v) for k, v in value.items()}, plain_attributes(value)]


def plain_attributes(value):
    """The attributes of an object, in plain values."""
    return {k: plain(v) for k, v in getattr(value, "__dict__", {}).items()}


def plain(value):
    """An object of either library in plain values that can be compared."""
    if "Uninitialized" in type(value).__name__:
        return type(value).__name__
    if hasattr(value, "untyped_storage"):
        return _tensor(value)
    if "Storage" in type(value).__name__:
        # Files do not tell bytes from elements of one byte.
        return ["Storage", _last(getattr(value, "dtype", "uint8")), value.tolist()]
    if hasattr(value, "initial_seed"):
        return value.get_state().tolist()[:100]
    if hasattr(value, "state_dict") and not isinstance(value, type):
        return [type(value).__name__, repr(value), plain(value.state_dict())]
    if isinstance(value, dict):
        return _dict(value)
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [plain(item) for item in value]]
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, sorted(map(repr, value))]
    if type(value).__name__ == "TensorDataset":
        return plain_attributes(value)
    return re.sub(r" at 0x\w+", "", repr(value).replace("facula", "torch"))

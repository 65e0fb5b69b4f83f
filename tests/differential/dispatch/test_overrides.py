"""What overrides are told, next to what PyTorch tells them."""

import collections.abc  # noqa: F401
import typing

import facula
import pytest

torch = pytest.importorskip("torch")

import facula.library  # noqa: E402
import facula.overrides as our_overrides  # noqa: E402
import torch.overrides as their_overrides  # noqa: E402

LIBRARIES = {facula: our_overrides, torch: their_overrides}

# Calls of which a function mode sees the same functions, in the same order.
CALLS = {
    "tensor": lambda lib, x: lib.tensor([1.0]),
    "as_tensor": lambda lib, x: lib.as_tensor([1.0]),
    "frombuffer": lambda lib, x: lib.frombuffer(b"1234", dtype=lib.uint8),
    "ones": lambda lib, x: lib.ones(2),
    "einsum": lambda lib, x: lib.einsum("i->i", x),
    "relu": lambda lib, x: lib.nn.functional.relu(x),
    "linear": lambda lib, x: lib.nn.functional.linear(x, x),
    "sum": lambda lib, x: x.sum(),
    "add": lambda lib, x: x + 1,
    "radd": lambda lib, x: 1 + x,
    "div": lambda lib, x: x / 2,
    "shape": lambda lib, x: x.shape,
    "grad": lambda lib, x: x.grad,
    "index": lambda lib, x: x[0],
    "requires_grad_": lambda lib, x: x.requires_grad_(),
    "is_floating_point": lambda lib, x: lib.is_floating_point(x),
    "tolist": lambda lib, x: x.tolist(),
    "float": lambda lib, x: float(x[:1]),
    "len": lambda lib, x: len(x),
    "repr": lambda lib, x: repr(x),
    "data": lambda lib, x: x.data,
    "default dtype": lambda lib, x: lib.get_default_dtype(),
    "init": lambda lib, x: lib.nn.init.uniform_(x),
    "broadcast": lambda lib, x: lib.broadcast_tensors(x),
    "stack": lambda lib, x: lib.stack([x]),
    "overload": lambda lib, x: lib.ops.aten.add.Tensor(x, x),
    "packet": lambda lib, x: lib.ops.aten.add(x, x),
    "result_type": lambda lib, x: lib.result_type(x, 1),
    "can_cast": lambda lib, x: lib.can_cast(lib.int32, lib.float32),
    "promote_types": lambda lib, x: lib.promote_types(lib.int32, lib.float32),
    "to": lambda lib, x: x.to("cpu"),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "unique": lambda lib, x: lib.unique(x),
    "split": lambda lib, x: lib.split(x, 1),
    "norm": lambda lib, x: lib.norm(x),
    "size": lambda lib, x: x.size(),
    "stride": lambda lib, x: x.stride(),
    "type": lambda lib, x: x.type(),
    "as_subclass": lambda lib, x: x.as_subclass(lib.Tensor),
    "register_hook": lambda lib, x: lib.ones(1, requires_grad=True).register_hook(print),
    "is_tensor": lambda lib, x: lib.is_tensor(x),
    "hash": lambda lib, x: hash(x),
    "contains": lambda lib, x: 1 in x,
}


def _seen(lib, call):
    overrides, names = LIBRARIES[lib], []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    x = lib.ones(2)
    with Mode():
        call(lib, x)
    return [name and name.replace("facula", "torch") for name in names]


@pytest.mark.parametrize("name", CALLS)
def test_modes_see_the_same(name):
    assert _seen(facula, CALLS[name]) == _seen(torch, CALLS[name])


def test_overridable_functions():
    """What both libraries have is overridable in both, or in neither."""
    ours, theirs = (
        {_plain(overrides, f) for f in overrides.get_testing_overrides()}
        for overrides in LIBRARIES.values()
    )
    ignored = {_plain(their_overrides, f) for f in their_overrides.get_ignored_functions()}
    wrong = {name for name in ours & ignored if name} - theirs - ALWAYS_TOLD
    assert not wrong
    missing = {name for name in theirs - ours if name and _exists(name)}
    assert not missing


# PyTorch lists these as ignored; both libraries tell overrides of them.
ALWAYS_TOLD = set()


def _plain(overrides, function):
    name = overrides.resolve_name(function)
    return name and name.replace("facula", "torch")


def _exists(name):
    value = facula
    for part in name.split(".")[1:]:
        if part == "__get__":
            return True
        value = getattr(value, part, None)
    return value is not None


# --- schemas from annotations

PARAMETERS = [
    "x: Tensor",
    "x: Tensor, y: Optional[Tensor]",
    "x: Sequence[Tensor]",
    "x: List[Tensor]",
    "x: list[Tensor]",
    "x: List[Optional[Tensor]]",
    "x: int",
    "x: Optional[int]",
    "x: List[int]",
    "x: Sequence[int]",
    "x: Optional[Sequence[int]]",
    "x: float",
    "x: Sequence[float]",
    "x: Optional[float]",
    "x: bool",
    "x: Sequence[bool]",
    "x: str",
    "x: Optional[str]",
    "x: Union[int, float, bool]",
    "x: Union[int, float]",
    "x: Sequence[Union[int, float, bool]]",
    "x: dtype",
    "x: Optional[dtype]",
    "x: device",
    "x: Tensor, *, y: int = 3",
    "x: Tensor, y: float = 1.5",
    "x: Tensor, y: str = 'hi'",
    "x: Tensor, y: bool = True",
    "x: Tensor, y: Optional[int] = None",
    "x: Tensor, y: dtype = float32",
    "x: Tensor, y: device = cpu",
    "x: Tensor, y: Sequence[int] = (1, 2)",
    "x",
    "*args: Tensor",
    "**kw: Tensor",
    "x: Dict[str, int]",
    "x: Tensor | None",
    "x: Tuple[int, int]",
    "x: Any",
    "x: complex",
    "x: 'Tensor'",
    "x: Tensor, y: float = float('inf')",
    "x: bytes",
    "x: collections.abc.Sequence[Tensor]",
    "x: Tensor, y: int = -3",
]
RESULTS = [
    "Tensor",
    "None",
    "Tuple[Tensor, Tensor]",
    "tuple[Tensor, int]",
    "List[Tensor]",
    "int",
    "float",
    "bool",
    "Optional[Tensor]",
    "Union[int, float, bool]",
    "str",
    "dict",
    "Sequence[Tensor]",
    "Tuple[List[Tensor], Tensor]",
]
MUTATED = [{"x"}, ["y", "z"], ("w",), "unknown", "x", {"nope"}, {"i"}, ()]


def _schema(lib, text, mutates_args=()):
    names = {
        **vars(typing),
        "collections": collections,
        "Tensor": lib.Tensor,
        "dtype": lib.dtype,
        "device": lib.device,
        "float32": lib.float32,
        "cpu": lib.device("cpu"),
    }
    exec(f"def function{text}: pass", names)
    try:
        return lib.library.infer_schema(names["function"], mutates_args=mutates_args)
    except ValueError:
        return ValueError


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_schemas_of_parameters(parameters):
    text = f"({parameters}) -> Tensor"
    assert _schema(facula, text) == _schema(torch, text)


@pytest.mark.parametrize("result", RESULTS)
def test_schemas_of_results(result):
    text = f"(x: Tensor) -> {result}"
    assert _schema(facula, text) == _schema(torch, text)


@pytest.mark.parametrize("mutated", MUTATED, ids=str)
def test_schemas_of_written_arguments(mutated):
    text = "(x: Tensor, y: Tensor, z: List[Tensor], w: Optional[Tensor], i: int) -> None"
    assert _schema(facula, text, mutated) == _schema(torch, text, mutated)


# --- operators below autograd

OPERATORS = {
    "backward": lambda lib, x: (x * 2).sum().backward(),
    "views": lambda lib, x: (x.view(-1), x.t(), x[0]),
    "in place": lambda lib, x: lib.zeros(2).add_(1),
    "casts": lambda lib, x: x.to(lib.float64),
}


def _operators(lib, call):
    names = []
    modes = __import__(f"{lib.__name__}.utils._python_dispatch", fromlist=["x"])

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = lib.ones(2, requires_grad=True)
    with Mode():
        call(lib, x)
    return names


@pytest.mark.parametrize("name", OPERATORS)
def test_modes_see_the_same_operators(name):
    ours, theirs = (_operators(lib, OPERATORS[name]) for lib in LIBRARIES)
    assert ours == [n for n in theirs if n != "aten.detach.default"] or ours == theirs

"""autograd.functional, func and forward_ad against PyTorch: values, structure, errors."""

import importlib

import facula
import pytest
import torch

LIBS = (facula, torch)


def _plain(value):
    """Tensors as numbers, with their place in tuples, lists and dicts."""
    if isinstance(value, (list, tuple)):
        name = "tuple" if isinstance(value, tuple) else "list"
        return (name, [_plain(v) for v in value])
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return (
            str(value.dtype).rpartition(".")[2],
            tuple(value.shape),
            value.detach().tolist(),
            value.requires_grad,
        )
    return value


def _outcome(case, lib):
    try:
        return _plain(case(lib))
    except Exception as error:
        return type(error).__name__


def _af(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.functional")


def _fn(lib):
    return importlib.import_module(f"{lib.__name__}.func")


FUNCTIONS = {
    "square": lambda lib: lambda a: a * a,
    "cubes": lambda lib: lambda a: (a**3).sum(),
    "linear": lambda lib: lambda a: a.sum(),
    "constant": lambda lib: lambda a: lib.ones(()),
    "detached": lambda lib: lambda a: (a * a).detach(),
    "tuple": lambda lib: lambda a: (a * 2, a.sum()),
    "list": lambda lib: lambda a: [a, a],
    "number": lambda lib: lambda a: 3.0,
    "complex": lambda lib: lambda a: a * (1 + 2j),
}
OPTIONS = [{}, {"create_graph": True}, {"strict": True}, {"strict": True, "create_graph": True}]
JACOBIANS = [
    *OPTIONS,
    {"vectorize": True},
    {"vectorize": True, "strategy": "forward-mode"},
    {"strategy": "forward-mode"},
    {"strategy": "no"},
    {"vectorize": True, "strict": True},
]
HESSIANS = [
    *OPTIONS,
    {"vectorize": True},
    {"outer_jacobian_strategy": "no"},
]


def _x(lib):
    return lib.tensor([1.0, 2.0, 3.0])


def _functional_cases():
    for name, make in FUNCTIONS.items():
        for options in JACOBIANS:
            yield (
                f"jacobian-{name}-{options}",
                lambda lib, m=make, o=options: _af(lib).jacobian(m(lib), _x(lib), **o),
            )
        for options in HESSIANS:
            yield (
                f"hessian-{name}-{options}",
                lambda lib, m=make, o=options: _af(lib).hessian(m(lib), _x(lib), **o),
            )
        for product in ("vjp", "jvp", "hvp", "vhp"):
            for options in OPTIONS:
                for v in ("fits", "none", "wrong"):
                    yield (
                        f"{product}-{name}-{v}-{options}",
                        lambda lib, m=make, o=options, p=product, v=v: getattr(_af(lib), p)(
                            m(lib), _x(lib), _vector(lib, v), **o
                        ),
                    )


def _vector(lib, kind):
    return {"fits": lib.tensor([2.0, 0.5, 1.0]), "wrong": lib.ones(2), "none": None}[kind]


FUNC_CASES = {
    "grad": lambda lib: _fn(lib).grad(lambda a: (a**3).sum())(_x(lib)),
    "grad not scalar": lambda lib: _fn(lib).grad(lambda a: a)(_x(lib)),
    "grad no tensor": lambda lib: _fn(lib).grad(lambda a: 3.0)(_x(lib)),
    "grad of number": lambda lib: _fn(lib).grad(lambda a: a.sum())(3.0),
    "grad of ints": lambda lib: _fn(lib).grad(lambda a: a.sum())(lib.arange(3)),
    "grad of dict": lambda lib: _fn(lib).grad(lambda d: (d["x"] * 2).sum())({"x": _x(lib)}),
    "grad complex": lambda lib: _fn(lib).grad(lambda a: (a * 1j).sum())(_x(lib)),
    "grad argnums": lambda lib: _fn(lib).grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(
        _x(lib), 2 * _x(lib)
    ),
    **{
        f"argnums {n}": lambda lib, n=n: _fn(lib).grad(lambda a: a.sum(), argnums=n)(_x(lib))
        for n in (2, -1, -2, (0, 0), (), [0], "x", (0.5,), (0,))
    },
    "grad_and_value aux": lambda lib: _fn(lib).grad_and_value(
        lambda a: (a.sum(), a * 2), has_aux=True
    )(_x(lib)),
    "no aux": lambda lib: _fn(lib).grad(lambda a: a.sum(), has_aux=True)(_x(lib)),
    "vjp": lambda lib: _fn(lib).vjp(lambda a: (a * a, a.sum()), _x(lib))[1](
        (_x(lib), lib.tensor(1.0))
    ),
    "vjp structure": lambda lib: _fn(lib).vjp(lambda a: (a, a), _x(lib))[1](_x(lib)),
    "vjp shape": lambda lib: _fn(lib).vjp(lambda a: a, _x(lib))[1](lib.ones(2)),
    "vjp empty": lambda lib: _fn(lib).vjp(lambda a: (), _x(lib)),
    "jvp": lambda lib: _fn(lib).jvp(lambda a: {"a": a * a}, (_x(lib),), (_x(lib),)),
    "jvp list": lambda lib: _fn(lib).jvp(lambda a: a, [_x(lib)], [_x(lib)]),
    "jvp nothing": lambda lib: _fn(lib).jvp(lambda a: a, (), ()),
    "jvp numbers": lambda lib: _fn(lib).jvp(lambda a: a, (_x(lib),), (3.0,)),
    "jvp shapes": lambda lib: _fn(lib).jvp(lambda a: a, (_x(lib),), (lib.ones(2),)),
    "jvp bool": lambda lib: _fn(lib).jvp(lambda a: a > 1, (_x(lib),), (_x(lib),)),
    "jvp aux number": lambda lib: _fn(lib).jvp(
        lambda a: (a, 3), (_x(lib),), (_x(lib),), has_aux=True
    ),
    "jvp strict": lambda lib: _fn(lib).jvp(
        lambda a: lib.ones(2), (_x(lib),), (_x(lib),), strict=True
    ),
    "jacrev": lambda lib: _fn(lib).jacrev(lambda a: (a * a, {"k": a.sum()}), argnums=(0,))(_x(lib)),
    "jacfwd": lambda lib: _fn(lib).jacfwd(lambda a: (a * a, {"k": a.sum()}), argnums=(0,))(_x(lib)),
    "jacrev complex": lambda lib: _fn(lib).jacrev(lambda a: a)(_x(lib) + 0j),
    "jacfwd complex": lambda lib: _fn(lib).jacfwd(lambda a: a)(_x(lib) + 0j),
    "jacrev chunk": lambda lib: _fn(lib).jacrev(lambda a: a, chunk_size=0)(_x(lib)),
    "jacrev chunks": lambda lib: _fn(lib).jacrev(lambda a: a * a, chunk_size=2)(_x(lib)),
    "hessian": lambda lib: _fn(lib).hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(
        _x(lib), _x(lib)
    ),
    # Detached: PyTorch leaves requires_grad on, though no graph was asked for.
    "hessian forward": lambda lib: _af(lib)
    .hessian(
        FUNCTIONS["cubes"](lib), _x(lib), vectorize=True, outer_jacobian_strategy="forward-mode"
    )
    .detach(),
    "linearize": lambda lib: _fn(lib).linearize(lambda a: a * a, _x(lib))[1](_x(lib)),
    "linearize shape": lambda lib: _fn(lib).linearize(lambda a: a * a, _x(lib))[1](lib.ones(2)),
    "linearize dtype": lambda lib: _fn(lib).linearize(lambda a: a, _x(lib))[1](_x(lib).double()),
}
VMAP_ARGUMENTS = {
    "in number": {"in_dims": 3},
    "in text": {"in_dims": "x"},
    "in nest": {"in_dims": (0, 0)},
    "in None": {"in_dims": None},
    "in tuple of None": {"in_dims": (None,)},
    "in last": {"in_dims": -1},
    "out None": {"out_dims": None},
    "out text": {"out_dims": "x"},
    "out far": {"out_dims": 3},
    "out tuple": {"out_dims": (0,)},
    "out pair": {"out_dims": (0, 0)},
    "chunks": {"chunk_size": 2},
    "chunk 0": {"chunk_size": 0},
    "random": {"randomness": "no"},
}
VMAP_FUNCTIONS = {
    "number": lambda lib: lambda a: 3,
    "None": lambda lib: lambda a: None,
    "item": lambda lib: lambda a: a.item(),
    "branch": lambda lib: lambda a: a if a > 0 else -a,
    "nonzero": lambda lib: lib.nonzero,
    "rand": lambda lib: lambda a: lib.rand(2),
    "masked": lambda lib: lambda a: a.masked_select(a > 0),
    "dict": lambda lib: lambda a: {"k": a, "t": (a, a)},
    "outer": lambda lib: lambda a: lib.ones(2),
    "tensor": lambda lib: lambda a: a * 2,
}
CASES = {
    **dict(_functional_cases()),
    **FUNC_CASES,
    **{
        f"vmap {k}": lambda lib, o=o: _fn(lib).vmap(lambda a: a * 2, **o)(_x(lib))
        for k, o in VMAP_ARGUMENTS.items()
    },
    **{
        f"vmap of {k}": lambda lib, f=f: _fn(lib).vmap(f(lib))(_x(lib))
        for k, f in VMAP_FUNCTIONS.items()
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_outcome(name):
    ours, theirs = (_outcome(CASES[name], lib) for lib in LIBS)
    assert ours == theirs


@pytest.mark.parametrize("module", ["func", "autograd.functional", "autograd.forward_ad"])
def test_public_names(module):
    ours, theirs = (importlib.import_module(f"{lib.__name__}.{module}") for lib in LIBS)
    public = [n for n in getattr(theirs, "__all__", dir(theirs)) if not n.startswith("_")]
    unwanted = {"torch", "fwAD", "rearrange"}  # rearrange: of another library's patterns
    assert [n for n in public if n not in unwanted and not hasattr(ours, n)] == []


def ctc_of_samples(lib, lengths_too):
    F = lib.nn.functional
    log_probs = (lib.arange(80.0).reshape(2, 5, 2, 4) * 1.7).sin().log_softmax(3)
    targets = lib.tensor([[[1, 2], [2, 1]], [[3, 1], [1, 1]]])
    inputs = lib.tensor([[5, 4], [3, 5]])
    longest = lib.tensor([[2, 1], [2, 2]])
    if lengths_too:
        return lib.vmap(F.ctc_loss)(log_probs, targets, inputs, longest)
    return lib.vmap(lambda x: F.ctc_loss(x, targets[0], inputs[0], longest[0]))(log_probs)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("lengths_too", [False, True])
def test_ctc_loss_with_lengths_as_tensors(lengths_too):
    ours, theirs = (ctc_of_samples(lib, lengths_too) for lib in (facula, torch))
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5)

"""Each decomposition gives what its operator gives; tables and make_fx use them."""

import contextlib
import warnings

import facula
import pytest
from facula._decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    global_decomposition_table,
    register_decomposition,
    remove_decompositions,
)
from facula.fx.experimental._recorded_calls import as_recorded
from facula.fx.experimental.proxy_tensor import make_fx
from facula.utils._python_dispatch import TorchDispatchMode
from facula.utils._pytree import tree_leaves, tree_map
from samples import load_ops
from samples.common import find, make_arguments, seed_of

aten = facula.ops.aten
DTYPES = ("float32", "bfloat16", "int64", "complex64")


def _copied(nest):
    is_strided = lambda t: isinstance(t, facula.Tensor) and t.layout is facula.strided  # noqa: E731
    return tree_map(lambda t: t.clone() if is_strided(t) else t, nest)


def _tensors(nest):
    return [t for t in tree_leaves(nest) if isinstance(t, facula.Tensor)]


def _assert_same(ours, expected, name):
    ours, expected = _tensors(ours), _tensors(expected)
    assert len(ours) == len(expected), name
    for a, b in zip(ours, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), name
        if "empty" in name:
            continue
        exact = not (b.is_floating_point() or b.is_complex())
        tolerance = 2e-2 if b.dtype is facula.bfloat16 else 1e-4
        options = {"rtol": tolerance, "atol": tolerance / 10, "equal_nan": True}
        assert facula.equal(a, b) if exact else facula.allclose(a, b, **options), (name, a, b)


class _Compared(TorchDispatchMode):
    """Runs each operator and its decomposition, and compares."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        named = as_recorded(func, args, kwargs)[0]
        function = decomposition_table.get(named) or decomposition_table.get(func)
        is_random = facula.Tag.nondeterministic_seeded in func.tags
        # Below the layer that resolves them, conjugated arguments are those before it.
        lazy = any(t.is_conj() or t.is_neg() for t in _tensors((args, kwargs)))
        if function is None or is_random or lazy:
            return func(*args, **kwargs)
        own_args, own_kwargs = _copied((args, kwargs))
        expected = func(*args, **kwargs)
        _assert_same(function(*own_args, **own_kwargs), expected, str(named))
        self.seen.add(named)
        return expected


def _run(op, dtype, index, sample):
    grad = bool(op.grad) and dtype in ("float32", "bfloat16")
    try:
        args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index), grad=grad)
    except (TypeError, RuntimeError):  # the row is not for this dtype
        return
    with contextlib.suppress(NotImplementedError):
        results = _tensors(find(facula, op.name)(*args, **kwargs))
        losses = [r.abs().sum() if r.is_complex() else r.float().sum() for r in results]
        losses = [loss for loss in losses if loss.requires_grad]
        if losses:
            sum(losses).backward()


def test_decompositions_give_what_operators_give_on_the_table_of_samples():
    mode = _Compared()
    with warnings.catch_warnings(), mode:
        warnings.simplefilter("ignore")
        for op in load_ops():
            for dtype in set(DTYPES) & set(op.dtype_names()):
                samples = list(op.numbered_samples(dtype))
                for index, sample in samples if dtype == "float32" else samples[:1]:
                    _run(op, dtype, index, sample)
    assert len(mode.seen) > 120


def _x(*shape):
    return facula.arange(float(facula.Size(shape).numel())).reshape(shape) / 5 - 1


# Operators that facula runs by their parts, or that no sample calls directly.
ALONE = {
    "selu": (aten.selu.default, lambda: (_x(5),)),
    "relu6": (aten.relu6.default, lambda: (_x(5) * 9,)),
    "prelu": (aten.prelu.default, lambda: (_x(2, 3, 4), facula.tensor([0.1, 0.2, 0.3]))),
    "prelu of one": (aten.prelu.default, lambda: (_x(2, 3), facula.tensor([0.1]))),
    "rrelu": (aten.rrelu_with_noise.default, lambda: (_x(5), facula.ones(5))),
    "fill": (aten.fill.Scalar, lambda: (_x(2, 3), 4.0)),
    "fill by tensor": (aten.fill.Tensor, lambda: (_x(2, 3), facula.tensor(4.0))),
    "zero": (aten.zero.default, lambda: (_x(2, 3),)),
    "soft margin": (aten.soft_margin_loss.default, lambda: (_x(5), facula.ones(5))),
    "soft margin backward": (
        aten.soft_margin_loss_backward.default,
        lambda: (facula.tensor(2.0), _x(5), facula.ones(5), 1),
    ),
    "xlogy of a number": (aten.xlogy.Scalar_Self, lambda: (2.0, _x(5) + 2)),
    "dropout backward": (
        aten.native_dropout_backward.default,
        lambda: (_x(5), _x(5) > 0, 2.0),
    ),
    "glu backward": (aten.glu_backward.default, lambda: (_x(3, 2), _x(3, 4), 1)),
}


@pytest.mark.parametrize("name", ALONE)
def test_decomposition_of_a_composite(name):
    op, arguments = ALONE[name]
    _assert_same(decomposition_table[op](*arguments()), op(*arguments()), name)


def test_dropout_keeps_a_share_and_the_mean():
    facula.manual_seed(0)
    out, mask = decomposition_table[aten.native_dropout.default](facula.ones(10000), 0.25, True)
    assert abs(mask.float().mean().item() - 0.75) < 0.02
    assert facula.equal(out, mask * (1 / 0.75))


def test_make_fx_takes_operators_apart():
    table = get_decompositions([aten.silu, aten.addmm])
    x, w, b = _x(2, 3), _x(3, 4), _x(4)
    function = lambda x, w, b: facula.nn.functional.silu(facula.addmm(b, x, w))  # noqa: E731
    graph = make_fx(function, decomposition_table=table)(x, w, b)
    targets = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    assert targets == [
        "aten.mm.default",
        "aten.add.Tensor",
        "aten.sigmoid.default",
        "aten.mul.Tensor",
    ]
    assert facula.allclose(graph(x, w, b), function(x, w, b))


def test_tables_are_made_and_changed():
    core = core_aten_decompositions()
    assert aten.silu.default in core and aten.add.Tensor not in core
    remove_decompositions(core, [aten.silu])
    assert aten.silu.default not in core and aten.silu.default in decomposition_table
    assert decomposition_table is global_decomposition_table["post_autograd"]
    assert get_decompositions([aten.relu]) == {}
    table = {}
    register_decomposition(aten.sin, table)(facula.sin)
    assert table[aten.sin.default] is facula.sin
    with pytest.raises(RuntimeError, match="table lacks"):
        register_decomposition(aten.sin.default, table)(facula.sin)
    with pytest.raises(AssertionError, match="expected type"):
        get_decompositions([aten.sin], type="other")

"""What calls write: out= and in-place results under every layer that computes them another way."""

import facula
import pytest
from facula import func

FOUR = [[0.0, 1.0], [2.0, 3.0]]


def _split_into(x, a, b):
    facula.split_copy(x, 1, out=[a, b])
    return a + b


def _foreach_into(x, a, b):
    facula._foreach_add_([a, b], [x[0], x[1]])
    return a * b


def _max_into(x, a, b):
    index = facula.zeros_like(b, dtype=facula.int64)
    facula.max(x, 0, out=(a, index))
    return a + index


def _add_into(x, a, b):
    facula.add(x[0], x[1], out=a)
    b.copy_(a)
    return b


WRITERS = {"list": _split_into, "foreach": _foreach_into, "several": _max_into, "one": _add_into}
WRITERS = [pytest.param(f, id=name) for name, f in WRITERS.items()]


def _arguments(shape):
    return facula.tensor(FOUR), facula.zeros(shape), facula.ones(shape)


def _plain(writer, shape):
    x, a, b = _arguments(shape)
    return writer(x, a, b).tolist(), a.tolist(), b.tolist()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_functionalize_keeps_what_is_written(writer, remove):
    shape = (1, 2) if writer is _split_into else (2,)
    x, a, b = _arguments(shape)
    got = func.functionalize(writer, remove=remove)(x, a, b).tolist()
    assert (got, a.tolist(), b.tolist()) == _plain(writer, shape)


@pytest.mark.parametrize("writer", WRITERS)
def test_vmap_keeps_what_is_written(writer):
    shape = (1, 2) if writer is _split_into else (2,)
    xs = facula.stack([facula.tensor(FOUR), facula.tensor(FOUR) * 3])
    a, b = facula.zeros((2, *shape)), facula.ones((2, *shape))
    got = facula.vmap(writer)(xs, a, b)
    for i in range(2):
        mine_a, mine_b = facula.zeros(shape), facula.ones(shape)
        assert got[i].tolist() == writer(xs[i], mine_a, mine_b).tolist()
        assert (a[i].tolist(), b[i].tolist()) == (mine_a.tolist(), mine_b.tolist())


@pytest.mark.parametrize("writer", [w for w in WRITERS if w.id != "several"])
def test_conjugate_bits_are_written_through(writer):
    shape = (1, 2) if writer is _split_into else (2,)
    x = facula.tensor(FOUR, dtype=facula.complex64)
    values = [facula.full(shape, 1 + 2j), facula.full(shape, 3 - 1j)]
    lazy = [v.conj_physical().conj() for v in values]
    assert all(t.is_conj() for t in lazy)
    assert writer(x, *lazy).tolist() == writer(x, *values).tolist()
    assert [t.tolist() for t in lazy] == [t.tolist() for t in values]


def test_vmap_refuses_a_list_without_a_batch():
    x, a, b = facula.ones(3, 2, 2), facula.zeros(3, 1, 2), facula.zeros(1, 2)
    with pytest.raises(RuntimeError, match="would write a batch into a tensor that has none"):
        facula.vmap(lambda t, one: facula.split_copy(t, 1, out=[one, b]))(x, a)


def test_list_out_of_another_length_raises():
    x, a = facula.tensor(FOUR), facula.zeros(1, 2)
    with pytest.raises(RuntimeError, match=r"split_copy\(\): out= must be a list of 2 tensors"):
        facula.split_copy(x, 1, out=[a])
    with pytest.raises(RuntimeError, match="must be a list of 2 tensors; got 1"):
        func.functionalize(lambda t, o: facula.split_copy(t, 1, out=[o]))(x, a)


# --- out= has no derivative, of composites neither (PyTorch 2.15)

SQUARE, VECTOR = (2, 2), (2,)
REFUSED = {
    "matmul": (lambda a, o: facula.matmul(a, a, out=o), SQUARE),
    "matmul of out": (lambda a, o: facula.matmul(a.detach(), a.detach(), out=a), SQUARE),
    "linear": (lambda a, o: facula.nn.functional.linear(a, a, out=o), SQUARE),
    "hstack": (lambda a, o: facula.hstack([a, a], out=o), (2, 4)),
    "vstack": (lambda a, o: facula.vstack([a.detach(), a], out=o), (4, 2)),
    "diff": (lambda a, o: facula.diff(a, out=o), (2, 1)),
    "outer": (lambda a, o: facula.outer(a[0], a[1], out=o), SQUARE),
    "kron": (lambda a, o: facula.kron(a, a, out=o), (4, 4)),
    "max": (lambda a, o: facula.max(a, a, out=o), SQUARE),
    "nanmean": (lambda a, o: facula.nanmean(a, out=o), ()),
    "norm": (lambda a, o: facula.norm(a, 2, 1, out=o), VECTOR),
    "take_along_dim": (
        lambda a, o: facula.take_along_dim(a, facula.zeros(2, 2, dtype=int), 1, out=o),
        SQUARE,
    ),
    "add": (lambda a, o: facula.add(a, a, out=o), SQUARE),
    "arange": (lambda a, o: facula.arange(4.0, out=a), SQUARE),
}
FOLLOWED = {
    "inner": (lambda a, o: facula.inner(a, a, out=o), SQUARE),
    "tensordot": (lambda a, o: facula.tensordot(a, a, dims=[[1], [0]], out=o), SQUARE),
    "quantile": (lambda a, o: facula.quantile(a, 0.5, out=o), ()),
    "linalg.norm": (lambda a, o: facula.linalg.norm(a, out=o), ()),
}
UNTOUCHED = {
    "argmax": (lambda a, o: facula.argmax(a, out=o), (), facula.int64),
    "eq": (lambda a, o: facula.eq(a, a, out=o), SQUARE, facula.bool),
    "any": (lambda a, o: facula.any(a, out=o), (), facula.bool),
}


def _cases(table):
    return [pytest.param(*case, id=name) for name, case in table.items()]


def _leaf():
    return facula.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)


@pytest.mark.parametrize(("call", "shape"), _cases(REFUSED))
def test_out_with_requires_grad_raises(call, shape):
    out = facula.zeros(shape)
    with pytest.raises(RuntimeError, match=r"functions with out=\.\.\. arguments don't support"):
        call(_leaf(), out)
    assert out.sum().item() == 0 and not out.requires_grad
    with facula.no_grad():
        call(_leaf(), out)
    call(_leaf().detach(), out)


@pytest.mark.parametrize(("call", "shape"), _cases(FOLLOWED))
def test_out_that_is_a_copy_takes_its_gradient(call, shape):
    out = call(_leaf(), facula.zeros(shape))
    assert type(out.grad_fn).__name__ == "CopyBackwards"


@pytest.mark.parametrize(("call", "shape", "dtype"), _cases(UNTOUCHED))
def test_out_of_what_has_no_derivative(call, shape, dtype):
    assert not call(_leaf(), facula.zeros(shape, dtype=dtype)).requires_grad

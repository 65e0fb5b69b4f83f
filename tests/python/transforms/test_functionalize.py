"""functionalize: the same results and changes of inputs, by operators that change nothing."""

import facula
import pytest
from facula import _C, func
from facula._trace import trace
from facula.utils._python_dispatch import TorchDispatchMode

B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def _both_ways(f, remove):
    """Results of f and what became of its input: eager, functionalized."""
    a, b = facula.tensor(B), facula.tensor(B)
    return (f(a), a), (func.functionalize(f, remove=remove)(b), b)


def _view_then_change(x):
    row, flat = x[0], x.view(-1)
    row.add_(10)
    flat[1:3].mul_(2)
    x.t().sub_(1)
    return row * 1


def _squeezed(x):
    y = x.clone().unsqueeze(0)
    y.squeeze_(0).transpose_(0, 1)
    y.add_(1)
    return y


def _out(x):
    y = facula.empty(2, 3)
    facula.add(x, x, out=y)
    return y


def _row_of_a_dense_write(x):
    every_other = x[:, ::2]
    every_other.add_(1)
    row = every_other[0]
    x.add_(1)
    return row + 0


def _write_of_another_layout(x):
    y = x.t().clone(memory_format=facula.preserve_format)
    row = y[0]
    facula.mul(facula.arange(6.0).reshape(3, 2), 2, out=y)
    return row + 0


def _bits(x):
    z = facula.view_as_complex(x[:, :2].clone())
    z.conj().imag.add_(1)
    y = x.view(facula.int32)
    y[0].add_(1)
    return facula.view_as_real(z) + 0


def _parts(x):
    a, b, c = x.unbind(1)
    a.add_(b)
    first, rest = x.split([1, 2], 1)
    rest.mul_(first)
    x.unsqueeze(0)[0].diagonal().sub_(c)
    return a * 1


def _filled(x):
    x.zero_()
    x[1].fill_(3)
    x.copy_(x + facula.ones(3))
    return x.clone()


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize(
    "f",
    [
        _view_then_change,
        _squeezed,
        _out,
        _filled,
        _row_of_a_dense_write,
        _write_of_another_layout,
        _bits,
        _parts,
        lambda x: x.mul_(2),
        lambda x: x.clone().view(-1).mul_(2),
    ],
)
def test_same_as_eager(f, remove):
    (out, given), (out_f, given_f) = _both_ways(f, remove)
    assert out.tolist() == out_f.tolist()
    assert given.tolist() == given_f.tolist()


def test_the_program_changes_nothing():
    graph = trace(_view_then_change, [facula.tensor(B)], functionalize=True)
    assert graph.nodes
    for name, _ in graph.nodes:
        assert not name.split("::")[1].split(".")[0].endswith("_"), str(graph)
    out, changed = graph.run([facula.tensor(B)])
    eager = facula.tensor(B)
    assert out.tolist() == _view_then_change(eager).tolist()
    assert changed.tolist() == eager.tolist()


def test_inputs_that_share_memory():
    def f(x, y):
        y.add_(100)
        return x + 0

    a, b = facula.tensor(B), facula.tensor(B)
    assert func.functionalize(f)(b, b[1]).tolist() == f(a, a[1]).tolist()
    assert a.tolist() == b.tolist()


def test_gradients_pass_through():
    def f(x):
        y = x * 2
        y[0].mul_(3)
        return (y * y).sum()

    a = facula.tensor(B, requires_grad=True)
    b = facula.tensor(B, requires_grad=True)
    f(a).backward()
    func.functionalize(f)(b).backward()
    assert a.grad.tolist() == b.grad.tolist()


def test_storage_resized_to_nothing_and_back():
    def f(x):
        n = x.numel() * 4
        kept = x.clone()
        facula.ops.aten.resize_storage_bytes_(x, 0)
        with pytest.raises(RuntimeError, match="0 bytes"):
            x + 1
        facula.ops.aten.resize_storage_bytes_(x, n)
        x.copy_(kept)
        return x + 1

    a = facula.tensor(B)
    assert func.functionalize(f)(a).tolist() == [[v + 1 for v in row] for row in B]
    assert a.tolist() == B


def test_results_that_are_inputs_keep_their_identity():
    a = facula.tensor(B)
    assert func.functionalize(lambda x: x.add_(1))(a) is a


def test_errors():
    with pytest.raises(RuntimeError, match="remove must be"):
        func.functionalize(lambda x: x, remove="all")
    outside = facula.ones(3)
    with pytest.raises(RuntimeError, match="not an input"):
        func.functionalize(lambda x: outside.add_(x))(facula.ones(3))
    assert not _C._is_functional_tensor(outside)


def test_views_that_are_copies_share_nothing():
    x = facula.tensor(B)
    flat = func.functionalize(lambda t: t.view(-1), remove="mutations_and_views")(x)
    assert flat.data_ptr() != x.data_ptr() and not flat._is_view()


@pytest.mark.parametrize(
    "f", [_view_then_change, _squeezed, _bits, _parts, lambda x: x.t().reshape(-1).detach()]
)
def test_without_views_only_copies_run(f):
    names = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            if any(a.alias_info and not a.alias_info.is_write for a in op._schema.returns):
                names.append(str(op))
            return op(*args, **(kwargs or {}))

    with Watch():
        func.functionalize(f, remove="mutations_and_views")(facula.tensor(B))
    allowed = ("aten.resolve_", "aten.lift_fresh", "aten.contiguous")
    assert not [n for n in names if not n.startswith(allowed)]


SPARSE = {
    "to_dense": lambda s, x: s.to_dense().add_(1),
    "scaled": lambda s, x: (s * 2).to_dense(),
    "product": lambda s, x: (s @ x).mul_(3),
    "sparse result": lambda s, x: s + s,
    "made inside": lambda s, x: x.clone().fill_(2).to_sparse(),
}


@pytest.mark.parametrize("layout", [facula.sparse_coo, facula.sparse_csr])
@pytest.mark.parametrize("case", SPARSE)
def test_sparse_tensors_pass_through(case, layout):
    dense = facula.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
    s, x = dense.to_sparse(layout=layout), facula.arange(9.0).view(3, 3)
    wanted = SPARSE[case](s, x)
    got = func.functionalize(SPARSE[case])(s, x)
    assert got.layout == wanted.layout and not _C._is_functional_tensor(got)
    assert facula.equal(got.to_dense(), wanted.to_dense())
    with pytest.raises(NotImplementedError, match="functionalize"):
        func.functionalize(lambda t: t.mul_(2))(s)
    assert facula.equal(s.to_dense(), dense)

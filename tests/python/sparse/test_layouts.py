"""Sparse tensors against strided ones: conversions, arithmetic, products, gradients, pickles."""

import copy
import io
import pickle

import facula
import pytest
from sparse_cases import CASES, ERRORS, GRADIENTS, Inputs

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def in_layout(t, name, **options):
    if "bs" in name:
        options["blocksize"] = (2, 2)
    return t.to_sparse(layout=getattr(facula, name), **options)


def matrix(seed=0, shape=(4, 6), dtype=facula.float64):
    facula.manual_seed(seed)
    t = facula.randint(-3, 4, shape).to(dtype)
    return t * (facula.rand(shape) < 0.4)


@pytest.mark.parametrize("name", CASES)
def test_cases_run(name):
    CASES[name](Inputs(facula))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_run(name):
    assert all(g is not None for g in GRADIENTS[name](Inputs(facula)))


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_raised(name):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
        ERRORS[name](Inputs(facula))


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_conversions_keep_values(source, target):
    t = matrix()
    s = in_layout(in_layout(t, source), target)
    assert s.layout == getattr(facula, target) and facula.equal(s.to_dense(), t)


@pytest.mark.parametrize("name", LAYOUTS[1:])
def test_batches_and_dense_dimensions(name):
    t = matrix(shape=(4, 6)).expand(3, 4, 6).contiguous()
    assert facula.equal(in_layout(t, name).to_dense(), t)
    wide = t.permute(1, 2, 0).contiguous()
    assert facula.equal(in_layout(wide, name, dense_dim=1).to_dense(), wide)


@pytest.mark.parametrize("name", LAYOUTS)
def test_products_are_those_of_strided_matrices(name):
    t, right = matrix(), matrix(1, (6, 3))
    s = in_layout(t, name)
    assert facula.equal(s @ right, t @ right)
    assert facula.equal(right.t() @ in_layout(t.t().contiguous(), name), right.t() @ t.t())
    assert facula.equal(s @ right[:, 0], t @ right[:, 0])
    assert facula.equal((s @ in_layout(t.t().contiguous(), name)).to_dense(), t @ t.t())


@pytest.mark.parametrize("name", LAYOUTS)
def test_arithmetic_is_that_of_strided_tensors(name):
    a, b = matrix(2), matrix(3)
    s, t = in_layout(a, name), in_layout(b, name)
    for found, expected in [
        (s + t, a + b),
        (s - t, a - b),
        (s * t, a * b),
        (s * b, a * b),
        (b + s, a + b),
        (s * 3, a * 3),
        (s / 2, a / 2),
        (-s, -a),
        (s.sin(), a.sin()),
        (s.t(), a.t()),
    ]:
        dense = found if found.layout == facula.strided else found.to_dense()
        assert facula.equal(dense, expected)


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_and_pickles(name):
    s = in_layout(matrix(), name).requires_grad_()
    file = io.BytesIO()
    facula.save(s, file)
    file.seek(0)
    found = [copy.deepcopy(s), pickle.loads(pickle.dumps(s)), facula.load(file)]
    for t in found:
        assert t.layout == s.layout and repr(t.detach()) == repr(s.detach())


def test_a_file_with_indices_outside_the_size_is_refused():
    bad = facula.sparse_coo_tensor([[7]], [1.0], (2,))
    file = io.BytesIO()
    facula.save(bad, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        facula.load(file)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.to_dense(),
        lambda t: t.coalesce(),
        lambda t: t @ facula.ones(2, 2),
        lambda t: t + t,
        lambda t: facula.ones(2, 2) + t,
        lambda t: facula.ones(2, 2).add_(t),
        lambda t: t * facula.ones(2, 2),
        lambda t: t.sum(0),
        lambda t: facula.sparse.softmax(t, 1),
        lambda t: t.to_sparse_csr(),
        lambda t: t[0],
        lambda t: t.narrow_copy(0, 0, 1),
    ],
)
@pytest.mark.parametrize("indices", ([[5, 0], [0, 1]], [[-1, 0], [0, 1]], [[0, 2**62], [1, 2**62]]))
def test_indices_outside_the_size_raise_where_they_are_read(use, indices):
    with pytest.raises((RuntimeError, IndexError)):
        use(facula.sparse_coo_tensor(indices, [1.0, 2.0], (2, 2)))


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.to_dense(),
        lambda t: t @ facula.ones(2, 2),
        lambda t: facula.ones(2, 2) @ t,
        lambda t: t.to_sparse(),
        lambda t: t.to_sparse_csc(),
        lambda t: t + t,
        lambda t: facula.sparse.sampled_addmm(t, facula.ones(2, 2), facula.ones(2, 2)),
        lambda t: facula.sparse.mm(t, facula.ones(2, 2), "amax"),
        lambda t: facula.ones(2, 2).sparse_mask(t),
    ],
)
@pytest.mark.parametrize(
    "crow, col, size",
    [
        ([0, 1, 2], [0, 9], (2, 2)),
        ([0, 1, 2], [0, -1], (2, 2)),
        ([0, 5, 2], [0, 1], (2, 2)),
        ([0, 2, 1], [0, 1], (2, 2)),
        ([0, 2**62, 2], [0, 1], (2, 2)),
        ([1, 1, 2], [0, 1], (2, 2)),
        ([0, 2], [0, 1], (2, 2)),
        ([0, 1, 2], [0], (2, 2)),
        ([0, 1, 2], [0, 1], (2**40, 2)),
    ],
)
def test_bad_rows_raise_where_they_are_read(use, crow, col, size):
    with pytest.raises((RuntimeError, IndexError)):
        use(facula.sparse_csr_tensor(crow, col, [1.0, 2.0], size))


def test_indices_changed_afterwards_raise():
    t = facula.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced=True)
    t._indices()[0, 1] = 10**12
    with pytest.raises(RuntimeError):
        t.to_dense()


def test_invariants_as_context_decorator_and_setting():
    checks = facula.sparse.check_sparse_tensor_invariants

    def bad():
        return facula.sparse_coo_tensor([[5]], [1.0], (2,))

    assert not checks.is_enabled()
    bad()
    with pytest.raises(RuntimeError), checks():
        bad()
    with pytest.raises(RuntimeError):
        checks()(bad)()
    checks.enable()
    try:
        assert checks.is_enabled()
        with checks(False):
            bad()
    finally:
        checks.disable()
    assert not checks.is_enabled()


@pytest.mark.parametrize("masked", (True, False))
@pytest.mark.parametrize("name", LAYOUTS)
def test_gradcheck_of_sparse_inputs(name, masked):
    check = facula.sparse.as_sparse_gradcheck(facula.autograd.gradcheck)
    s = in_layout(matrix(), name).requires_grad_()
    assert check(lambda t: t.to_dense(masked_grad=masked) ** 2, [s], masked=masked)


def optimized(make, sparse):
    facula.manual_seed(0)
    table = facula.nn.Embedding(6, 3, sparse=sparse)
    optimizer = make(table.parameters())
    for step in range(3):
        optimizer.zero_grad()
        (table(facula.tensor([0, 2, 2, step])) ** 2).sum().backward()
        assert table.weight.grad.is_sparse == sparse
        optimizer.step()
    return table.weight.detach()


def test_sgd_takes_sparse_gradients():
    results = [optimized(lambda p: facula.optim.SGD(p, lr=0.1), s) for s in (True, False)]
    assert facula.allclose(*results)


def test_adagrad_takes_sparse_gradients():
    results = [optimized(lambda p: facula.optim.Adagrad(p, lr=0.1), s) for s in (True, False)]
    assert facula.allclose(*results)


def test_sparse_adam_moves_rows_that_were_looked_up_alone():
    facula.manual_seed(0)
    before = facula.nn.Embedding(6, 3).weight.detach().clone()
    after = optimized(lambda p: facula.optim.SparseAdam(p, lr=0.1), True)
    moved = (before != after).any(1)
    assert moved.tolist() == [True, True, True, False, False, False]


def test_text():
    t = facula.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(t) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n"
        "       size=(2, 3), nnz=2, layout=facula.sparse_coo)"
    )


def test_sizes_near_the_largest_integer_raise():
    indices, values = facula.zeros(0, 2, dtype=facula.int64), facula.ones(2)
    with pytest.raises(RuntimeError, match="len\\(size\\) == sparse_dim"):
        facula.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
            2**63 - 1, 2, [2, 2], indices, values, layout=facula.sparse_coo
        )


def test_one_row_with_a_stride_beyond_memory_is_converted():
    x = facula.ones(1).as_strided((1, 1), (2**63 - 1, 2**62))
    assert x.to_sparse().to_dense().tolist() == x.to_sparse_csr().to_dense().tolist() == [[1.0]]

"""facula.func: derivatives and batching, against values worked out by hand or by loops."""

import warnings

import facula
import pytest
from facula import func

B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def _close(a, b):
    assert tuple(a.shape) == tuple(b.shape)
    assert a.dtype == b.dtype
    assert float((a - b).abs().sum()) <= 1e-4 * (1 + float(b.abs().sum())), (a, b)


def _by_loop(f, *args):
    """What vmap(f)(*args) must be."""
    return facula.stack([f(*(a[i] for a in args)) for i in range(args[0].size(0))])


def test_grad_of_grad():
    third = func.grad(func.grad(lambda x: x * x * x))
    assert third(facula.tensor(2.0)).item() == 12.0


def test_vmap_of_grad_of_grad():
    x = facula.tensor([0.5, 1.5, -2.0])
    _close(func.vmap(func.grad(func.grad(lambda v: v * v * v)))(x), 6 * x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1,
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: x.sum(-1, keepdim=True),
        lambda x: x.unsqueeze(0),
        lambda x: x.unsqueeze(-1),
        lambda x: x[1:],
        lambda x: x[-1],
        lambda x: x.view(1, -1),
        lambda x: x.expand(2, 3),
        lambda x: x.reshape(3, 1).t(),
        lambda x: facula.cat([x, x * 2]),
        lambda x: facula.stack([x, x], 1),
        lambda x: x.dot(x),
        lambda x: x.clone().mul_(x[0]),
        lambda x: facula.zeros_like(x) + x,
        lambda x: x.new_zeros(2) + x[0],
        lambda x: x.flip(0),
        lambda x: x.split(2)[1],
        lambda x: x.unbind()[0],
        lambda x: x.softmax(0),
        lambda x: x.roll(1, 0),
        lambda x: x.squeeze(),
    ],
)
def test_vmap_agrees_with_a_loop(f):
    x = facula.tensor(B)
    _close(func.vmap(f)(x), _by_loop(f, x))


@pytest.mark.parametrize(
    "f, shapes",
    [
        (facula.mm, [(2, 3), (3, 4)]),
        (facula.mv, [(2, 3), (3,)]),
        (facula.dot, [(3,), (3,)]),
        (facula.bmm, [(2, 2, 3), (2, 3, 1)]),
        (facula.matmul, [(3,), (3, 2)]),
        (lambda a, b, c: facula.addmm(a, b, c, beta=2, alpha=0.5), [(4,), (2, 3), (3, 4)]),
    ],
)
def test_vmap_of_products(f, shapes):
    facula.manual_seed(0)
    args = [facula.rand(5, *s) for s in shapes]
    _close(func.vmap(f)(*args), _by_loop(f, *args))
    # with each argument alone batched
    for at in range(len(args)):
        some = [a if i == at else a[0] for i, a in enumerate(args)]
        dims = tuple(0 if i == at else None for i in range(len(args)))
        expected = facula.stack(
            [f(*(a[k] if i == at else a for i, a in enumerate(some))) for k in range(5)]
        )
        _close(func.vmap(f, in_dims=dims)(*some), expected)


def test_vmap_dims_and_nests():
    x = facula.tensor(B)
    _close(func.vmap(lambda v: v * 2, in_dims=1, out_dims=1)(x), x * 2)
    out = func.vmap(
        lambda d: {"a": d["x"] + d["y"], "b": (d["x"],)}, in_dims=({"x": 0, "y": None},)
    )({"x": x, "y": facula.ones(3)})
    _close(out["a"], x + 1)
    _close(out["b"][0], x)


def test_vmap_in_chunks():
    x = facula.arange(10.0)
    _close(func.vmap(lambda v: v * v, chunk_size=3)(x), x * x)


def test_a_batched_scalar_promotes_as_a_scalar():
    out = func.vmap(lambda a, b: a * b)(facula.ones(2, 3), facula.ones(2, dtype=facula.float64))
    assert out.dtype == facula.float32


def test_in_place_on_views_under_grad_and_vmap():
    def f(a):
        b = a.clone()
        b[1].mul_(5)
        b.add_(1)
        return (b * b).sum()

    a = facula.arange(3.0)
    expected = facula.tensor([2.0, 60.0, 6.0])
    _close(func.grad(f)(a), expected)
    _close(func.vmap(func.grad(f))(facula.stack([a, a])), facula.stack([expected, expected]))


def test_grad_with_aux_argnums_and_value():
    def f(x, y):
        return ((x * y).sum(), x + 1)

    (gx, gy), (value, aux) = func.grad_and_value(f, argnums=(0, 1), has_aux=True)(
        facula.ones(2), facula.full((2,), 3.0)
    )
    assert gx.tolist() == [3.0, 3.0] and gy.tolist() == [1.0, 1.0]
    assert value.item() == 6.0 and aux.tolist() == [2.0, 2.0]


def test_jacobians():
    x = facula.tensor([1.0, 2.0])
    _close(func.jacrev(lambda v: v * v.sum())(x), facula.tensor([[4.0, 1.0], [2.0, 5.0]]))
    _close(func.jacfwd(lambda v: v * v.sum())(x), facula.tensor([[4.0, 1.0], [2.0, 5.0]]))
    _close(func.hessian(lambda v: (v * v * v).sum())(x), facula.tensor([[6.0, 0.0], [0.0, 12.0]]))


def test_vjp_and_jvp():
    x = facula.tensor([1.0, 2.0])
    out, pull = func.vjp(lambda v: (v * v, v.sum()), x)
    assert out[0].tolist() == [1.0, 4.0]
    assert pull((facula.ones(2), facula.tensor(10.0)))[0].tolist() == [12.0, 14.0]
    value, tangent = func.jvp(lambda v: v * v, (x,), (facula.tensor([1.0, 10.0]),))
    assert value.tolist() == [1.0, 4.0] and tangent.tolist() == [2.0, 40.0]


def test_levels_keep_histories_apart():
    w = facula.tensor([1.0, 2.0], requires_grad=True)
    y = func.grad(lambda v: (v * v * w).sum())(facula.ones(2))
    assert y.requires_grad
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]
    inner = func.grad(lambda v: (v * func.grad(lambda u: (u * v).sum())(facula.ones(2))).sum())
    assert inner(facula.tensor([3.0, 4.0])).tolist() == [6.0, 8.0]


def test_randomness():
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(lambda x: x + facula.rand(1))(facula.zeros(3))
    same = func.vmap(lambda x: x + facula.rand(2), randomness="same")(facula.zeros(3))
    assert same[0].tolist() == same[1].tolist() == same[2].tolist()
    different = func.vmap(lambda x: x + facula.rand(2), randomness="different")(facula.zeros(3))
    assert different[0].tolist() != different[1].tolist()


def test_the_loop_warns_once_and_is_right():
    x = facula.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])

    def rows(v):
        return facula.take(v, facula.tensor([0, 2]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _close(func.vmap(rows)(x), _by_loop(rows, x))


def test_errors():
    kept = []
    func.vmap(lambda x: kept.append(x) or x)(facula.ones(3))
    with pytest.raises(RuntimeError, match="ended"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="item"):
        func.vmap(lambda x: x.item())(facula.ones(3))
    with pytest.raises(RuntimeError, match="would write a batch"):
        func.vmap(lambda x: facula.zeros(2).add_(x))(facula.ones(3))
    with pytest.raises(RuntimeError, match="captured"):
        w = facula.ones(3)
        func.grad(lambda x: w.add_(x).sum())(facula.ones(3))
    with pytest.raises(RuntimeError, match="0-dim"):
        func.grad(lambda x: x)(facula.ones(3))
    with pytest.raises(ValueError, match="same size"):
        func.vmap(lambda x, y: x)(facula.ones(3), facula.ones(2))
    with pytest.raises(IndexError):
        func.vmap(lambda x: x.sum(1))(facula.ones(3, 2))
    assert func.grad(lambda x: x * x)(facula.tensor(1.0)).item() == 2.0  # the stack is whole again


def test_functional_call_and_ensembles():
    from facula import nn

    net = nn.Linear(2, 1)
    zero = {name: facula.zeros_like(p) for name, p in net.named_parameters()}
    before = net.weight
    assert func.functional_call(net, zero, facula.ones(1, 2)).tolist() == [[0.0]]
    assert net.weight is before
    models = [nn.Linear(2, 1) for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    out = func.vmap(lambda p: func.functional_call(models[0], p, facula.ones(1, 2)))(params)
    expected = facula.stack([m(facula.ones(1, 2)) for m in models])
    _close(out.detach(), expected.detach())
    assert buffers == {}

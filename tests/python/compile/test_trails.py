"""Calls that go as an earlier one did compute no shapes; others give what eager gives."""

import facula
import pytest
from facula._dynamo.capture import Capture

nn, F = facula.nn, facula.nn.functional


@pytest.fixture(autouse=True)
def forgotten():
    facula._dynamo.reset()
    yield
    facula._dynamo.reset()


@pytest.fixture
def computed(monkeypatch):
    """The functions whose results' shapes were computed, in their order."""
    names, plain = [], Capture._on_examples

    def noted(self, func, args, kwargs):
        names.append(getattr(func, "__name__", str(func)))
        return plain(self, func, args, kwargs)

    monkeypatch.setattr(Capture, "_on_examples", noted)
    return names


def chain(x, y):
    return (x + y).sin() * 2 - x


def nested(x, y):
    a, (b, c) = x.chunk(2)[0], facula.stack([x, y]).unbind()
    return {"a": a, "b": [b * c, x.max(dim=0)]}


def in_place(x, y):
    z = x * 1
    z.add_(y).mul_(2)
    z[0] = 7
    z[1:2].zero_()
    return z.t_(), z.shape


def geometry(x, y):
    z = (x @ y.T)[None]
    if z.dim() == 3 and z.is_contiguous() and len(z) == 1 and z.requires_grad == x.requires_grad:
        return z.reshape(z.size(0), -1) + z.shape[-1]
    return z


def breaks(x, y):
    z = x + y
    if z.sum() > 0:
        z = z * 2
    return z.exp() if float(z.mean()) < 100 else z


def modes(x, y):
    with facula.no_grad():
        z = x * 2
    with facula.autocast("cpu"):
        w = x @ y.T
    return z, w + 1, x * y


class Double(facula.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def custom(x, y):
    return Double.apply(x) + F.layer_norm(y, (3,)) + F.dropout(y, 0.5, training=False)


PROGRAMS = [chain, nested, in_place, geometry, breaks, modes, custom]


def pair(requires_grad=False, dtype=facula.float32, size=4):
    facula.manual_seed(size)
    x, y = facula.randn(size, 3, dtype=dtype), facula.rand(size, 3, dtype=dtype)
    return x.requires_grad_(requires_grad), y


def told(value):
    def shown(t):
        return (t.detach(), t.dtype, t.requires_grad) if isinstance(t, facula.Tensor) else t

    return str(facula.utils._pytree.tree_map(shown, value))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_a_call_that_goes_as_before_computes_no_shapes(f, backend, computed):
    compiled = facula.compile(f, backend=backend)
    for requires_grad in (False, True):
        wanted = told(f(*pair(requires_grad)))
        assert [told(compiled(*pair(requires_grad))) for _ in range(2)] == [wanted] * 2
        computed.clear()
        assert told(compiled(*pair(requires_grad))) == wanted
        assert computed == []


@pytest.mark.parametrize("f", PROGRAMS)
def test_other_arguments_give_what_eager_gives(f):
    compiled = facula.compile(f, backend="eager")
    calls = [
        lambda: pair(),
        lambda: pair(size=6),
        lambda: pair(dtype=facula.float64),
        lambda: pair(True),
        lambda: (pair()[0],) * 2,
        lambda: (pair()[0].t().contiguous().t(), pair()[1]),
        lambda: tuple(t[:2] for t in pair()),
        lambda: (nn.Parameter(pair()[0]), pair()[1]),
    ]
    for make in calls * 3:
        assert told(compiled(*make())) == told(f(*make()))


def test_gradients_of_calls_that_follow():
    compiled = facula.compile(chain, backend="aot_eager")
    for _ in range(4):
        x, y = pair(True)
        (found,) = facula.autograd.grad(compiled(x, y).sum(), x)
        x, y = pair(True)
        assert facula.equal(found, facula.autograd.grad(chain(x, y).sum(), x)[0])


def leaves_in_the_middle(x, n):
    y = x * 2
    z = y + n  # another number each time
    return y, z * 3


def grows(x, kept):
    y = x + 1
    if kept is not None:
        kept.append(y)
    return y * 2


def test_a_call_that_leaves_the_trail_goes_on_from_what_it_has():
    f = facula.compile(leaves_in_the_middle, backend="eager", dynamic=False)
    x = facula.ones(2)
    for n in (1, 2, 1, 3, 2.0, True, 1):
        assert told(f(x, n)) == told(leaves_in_the_middle(x, n))


def test_a_value_that_only_a_later_call_keeps():
    f, kept = facula.compile(grows, backend="eager"), []
    for into in (None, None, kept, None, kept):
        assert f(facula.ones(1), into).tolist() == [4]
    assert [y.tolist() for y in kept] == [[2], [2]]


@pytest.mark.parametrize(
    "mode",
    [
        facula.no_grad,
        facula.inference_mode,
        lambda: facula.autocast("cpu"),
        lambda: facula.random.fork_rng(),
    ],
)
def test_modes_around_a_call(mode):
    f = facula.compile(lambda x, y: (x @ y.T).relu(), backend="eager")
    plain = f._torchdynamo_orig_callable
    for _ in range(3):
        assert told(f(*pair(True))) == told(plain(*pair(True)))
        with mode():
            assert told(f(*pair(True))) == told(plain(*pair(True)))


def test_default_dtype_is_a_part_of_the_trail():
    f = facula.compile(lambda x: x + facula.ones(2), backend="eager")
    x = facula.ones(2, dtype=facula.float16)
    for dtype in (facula.float32, facula.float64) * 2:
        facula.set_default_dtype(dtype)
        try:
            assert f(x).dtype is dtype
        finally:
            facula.set_default_dtype(facula.float32)


def test_two_arguments_that_share_memory():
    def f(x, y):
        x.add_(1)
        return y * 2

    compiled = facula.compile(f, backend="aot_eager")
    for shared in (False, False, True, True, False):
        x = facula.zeros(2)
        y = x[:] if shared else facula.zeros(2)
        assert compiled(x, y).tolist() == ([2, 2] if shared else [0, 0])


def test_offsets_of_views_are_no_other_trail(computed):
    f, data = facula.compile(lambda x: x + 1, backend="eager"), facula.arange(10.0)
    found = [f(data[i : i + 2]).tolist() for i in range(4)]
    assert found == [[i + 1, i + 2] for i in range(4)] and len(computed) == 1
    g = facula.compile(lambda x: (x.storage_offset(), x + 1)[0], backend="eager")
    assert [g(data[i:]) for i in (3, 5, 5)] == [3, 5, 5]


def test_a_function_that_never_goes_the_same_way_is_left_alone(computed):
    f = facula.compile(lambda x, n: x * n + 1, backend="eager")
    x = facula.ones(1)
    for i in range(60):
        assert f(x, i + 0.5).item() == i + 1.5
    assert len(computed) == 120


def test_an_exception_on_the_trail_leaves_what_was_done():
    def f(x, stop):
        x.add_(1)
        if stop:
            raise KeyError("stop")
        return x + 1

    compiled, x = facula.compile(f, backend="eager"), facula.zeros(1)
    for stop in (False, False, True, True, False):
        if stop:
            with pytest.raises(KeyError):
                compiled(x, stop)
        else:
            compiled(x, stop)
    assert x.item() == 5


def test_state_that_python_asks_for_is_that_of_this_call():
    def f(x):
        y = x * 2
        return y._version, y.add_(1)._version, x.grad

    compiled = facula.compile(f, backend="eager")
    for _ in range(3):
        x = facula.ones(1)
        x.grad = facula.ones(1)
        assert compiled(x) == f(x) and f(x)[2] is x.grad

"""Programs that break naive compilers: compiled, each does what it does when it is not.

A program takes nothing and returns tensors, numbers, texts and exceptions; the checker runs it as
it is and compiled, twice, and compares bits, dtypes, strides, versions, gradients and errors.
"""

import gc
import threading

import facula
import pytest
from facula import nn

PROGRAMS = {}


def program(function):
    """Puts a program into the table."""
    PROGRAMS[function.__name__] = function
    return function


def seeded(*sizes, grad=False):
    return facula.randn(*sizes, requires_grad=grad)


def described(value, version=True):
    """What two runs must agree in."""
    if isinstance(value, facula.Tensor):
        # Whether two gradients were added in place hangs on who held them.
        facts = (value.dtype, tuple(value.shape), version and value._version, value.requires_grad)
        strides = value.stride() if value.layout == facula.strided else ()
        node = type(value.grad_fn).__name__
        grad = described(value.grad, False) if value.is_leaf and value.grad is not None else None
        bits = (
            value.detach().contiguous().view(facula.uint8)
            if value.numel() and value.dim()
            else value
        )
        return (*facts, strides, node, grad, bits.tolist())
    if isinstance(value, (list, tuple)):
        return [described(v) for v in value]
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    return value


@program
def handled_errors():
    def f(a):
        try:
            return facula.linalg.cholesky(a)
        except facula.linalg.LinAlgError:
            return facula.linalg.cholesky(a + 3 * facula.eye(3))

    return f(facula.eye(3) * -1.0), f(facula.eye(3))


@program
def error_at_its_line():
    x = seeded(3)
    y = x * 2
    try:
        y + seeded(4)
    except RuntimeError as e:
        return e, y
    return None


@program
def index_error_is_caught():
    table, at = seeded(4, 2), facula.tensor([0, 9])
    try:
        facula.nn.functional.embedding(at, table) + 1
    except (IndexError, RuntimeError) as e:
        return e
    return None


@program
def array_overwritten_between():
    np = pytest.importorskip("numpy")
    a = np.ones(4, dtype=np.float32)
    x = facula.from_numpy(a)
    y = x * 2
    a[:] = 7
    return y, x + 1


@program
def own_array_overwritten_between():
    x = facula.ones(4)
    y = x * 2
    array = x.numpy()
    z = x * 3
    array[:] = 5
    return y, z, x + 1


@program
def other_modes_next_call():
    w = seeded(3, grad=True)

    def f():
        return w * 2 + 1

    a = f()
    with facula.no_grad():
        b = f()
    with facula.inference_mode():
        c = f()
    facula.set_default_dtype(facula.float64)
    try:
        d = facula.ones(2) + f().detach()[:2]
    finally:
        facula.set_default_dtype(facula.float32)
    return a, b, c.clone(), c.is_inference(), d


@program
def exponents():
    x = seeded(5)
    return [x**n for n in (2, 3, 0.5, -1, 2.0)]


@program
def hook_on_a_value_that_dies():
    seen = []
    x = seeded(3, grad=True)

    def f():
        h = x * 2
        h.register_hook(lambda g: seen.append(g.clone()))
        return (h * 3).sum()

    f().backward()
    return x, seen


@program
def retained_gradient():
    x = seeded(3, grad=True)
    h = x * 2
    h.retain_grad()
    (h * h).sum().backward()
    return h.grad, x


@program
def buffer_with_another_view():
    buffer = facula.zeros(6)
    view = buffer.view(2, 3)
    seen = []
    buffer.add_(1)
    thread = threading.Thread(target=lambda: seen.append(view.sum().item()))
    thread.start()
    thread.join()
    view[0].mul_(4)
    return seen, buffer, view, buffer._version


@program
def other_thread_reads_a_pending_value():
    x = seeded(100)
    y = (x * 2).relu()
    seen = []
    thread = threading.Thread(target=lambda: seen.append((y + 1).sum()))
    thread.start()
    thread.join()
    return seen, y


@program
def printed_loss():
    net = nn.Linear(4, 2)
    x = seeded(3, 4)
    loss = nn.functional.mse_loss(net(x), facula.ones(3, 2))
    text = f"{loss.item():.6f} {loss}"
    loss.backward()
    return text, list(net.parameters())


@program
def early_exit():
    layers = [seeded(4, 4) for _ in range(24)]
    x = seeded(2, 4)
    for depth, layer in enumerate(layers):
        x = (x @ layer).tanh()
        if x.abs().mean() > 0.6:
            return depth, x
    return len(layers), x


@program
def recurrent_lengths():
    cell = nn.RNNCell(3, 4)
    results = []
    for length in (1, 5, 2, 7):
        h = facula.zeros(1, 4)
        for _ in range(length):
            h = cell(seeded(1, 3), h)
        results.append(h)
    return results


@program
def running_loss():
    total = 0.0
    w = seeded(4, grad=True)
    for _ in range(50):
        total = total + (w * seeded(4)).sum()
    return total


@program
def memory_does_not_grow():
    x = facula.ones(1 << 18)
    for _ in range(400):  # 400 MB if nothing were freed
        x = x * 1.0
    return x.sum()


@program
def gradient_between_outputs():
    x = seeded(3, grad=True)
    z = x.sin()
    y = (z * z).sum()
    return [g.clone() for g in facula.autograd.grad(y, z)]


@program
def unused_outputs():
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    optimizer = facula.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)
    x = seeded(3, 2)
    used, unused = net["a"](x), net["b"](x)
    used.sum().backward()
    optimizer.step()
    return list(net.parameters()), unused, [p.grad is None for p in net.parameters()]


@program
def second_derivative():
    x = seeded(4, grad=True)
    y = (x.exp() * x).sum()
    (g,) = facula.autograd.grad(y, x, create_graph=True)
    (g * g).sum().backward()
    return x, g


@program
def error_in_an_optimizer_step():
    w = nn.Parameter(seeded(3))
    optimizer = facula.optim.SGD([w], lr=0.5)
    (w * 2).sum().backward()

    class Stop(Exception):
        pass

    def closure():
        with facula.no_grad():
            w.mul_(2)
        raise Stop("in the middle")

    try:
        optimizer.step(closure)
    except Stop as e:
        return e, w
    return None


@program
def gradients_read_and_set():
    x = seeded(3, grad=True)
    (x * 2).sum().backward()
    first = x.grad
    x.grad = x.grad * 0.5
    (x * x).sum().backward()
    return first, x.grad, x


@program
def in_place_on_a_leaf():
    x = seeded(3, grad=True)
    try:
        x.add_(1)
    except RuntimeError as e:
        return e
    return None


@program
def changed_saved_tensor():
    x = seeded(3, grad=True)
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as e:
        return type(e).__name__
    return None


@program
def views_of_inputs():
    x = seeded(4, 3)

    def f(t):
        return t[0], t.t(), t.view(-1)

    row, turned, flat = f(x)
    flat[0] = 9.0
    return row, turned, flat, row.data_ptr() == x.data_ptr(), turned._base is x


@program
def geometry_changes():
    x = facula.arange(6.0)
    y = x * 2
    x.resize_(2, 2)
    z = x + 1
    w = facula.ones(3)
    v = w + 1
    w.set_(facula.full((2,), 4.0))
    p = facula.zeros(3)
    q = p + 1
    p.data = facula.full((3,), 8.0)
    y.t_()
    return y, z, v, w + 1, q, p + 1


@program
def freed_and_filled_storage():
    weight = seeded(4, 4)
    full = weight.clone()
    storage = weight.untyped_storage()
    size = storage.size()
    y = weight @ facula.ones(4)
    storage.resize_(0)
    storage.resize_(size)
    weight.copy_(full)
    return y, weight @ facula.ones(4)


@program
def two_threads_one_model():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    x = seeded(3, 4)
    compiled = facula.compile(net)
    results = [None] * 2

    def run(i):
        for _ in range(20):
            results[i] = compiled(x * (i + 1))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


@program
def collected_garbage():
    x = seeded(10)
    values = []
    for i in range(5):
        a = x * i
        cycle = [a]
        cycle.append(cycle)
        values.append(a + 1)
        del a, cycle
        gc.collect()
    return values


@program
def generators_and_closures():
    def numbers(t):
        for i in range(3):
            t = t * 2 + i
            yield t

    state = {"sum": facula.zeros(2)}
    for t in numbers(facula.ones(2)):
        state["sum"] = state["sum"] + t
    return state


@program
def random_numbers_in_order():
    x = facula.rand(4)
    y = nn.functional.dropout(facula.ones(8), 0.5)
    return x, y, facula.rand(2), facula.get_rng_state().sum()


@program
def writes_through_broken_chains():
    x = facula.zeros(4, 4)
    x[1:3, ::2] += 1
    x.diagonal().fill_(5)
    x.t()[0].copy_(facula.arange(4.0))
    facula.add(x, 1, out=x)
    x[x > 3] = 0
    return x


@program
def half_and_mixed_types():
    x = seeded(33)
    h = x.half()
    return h * 1.5 + 0.1, (h + x) * 2, (x > 0) & (x < 1), x.int() // 2, x.bfloat16().tanh() * 3


@program
def broadcast_chains():
    x, row, column = seeded(5, 40), seeded(40), seeded(5, 1)
    y = ((x + row) * column).tanh() - row
    z = (y.t() + column.view(-1)).relu()
    return y, z, x.expand(3, 5, 40) * row + 1


@program
def in_place_chains():
    x = seeded(64)
    y = x + 1
    x.mul_(2).add_(y).relu_()
    y.sub_(x)
    return x, y, x._version, y._version


@program
def overlapping_writes():
    x = facula.arange(8.0)
    y = x[1:] * 2
    x[:-1].add_(1)
    z = x[1:] + y
    x.mul_(2)
    return x, y, z


@program
def interrupted():
    try:
        x = facula.ones(3) + 1
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        return x * 2


@program
def copied_and_pickled():
    import copy
    import pickle

    x = seeded(3) * 2
    return copy.deepcopy(x), pickle.loads(pickle.dumps(x + 1))


@program
def checkpointed():
    from facula.utils.checkpoint import checkpoint

    w = seeded(4, grad=True)
    y = checkpoint(lambda t: (t.sin() * w).tanh(), seeded(4, grad=True), use_reentrant=False)
    y.sum().backward()
    return w, y


@program
def custom_function():
    class Twice(facula.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * 2

        @staticmethod
        def backward(ctx, g):
            (t,) = ctx.saved_tensors
            return g * 2 + t * 0

    x = seeded(3, grad=True)
    Twice.apply(x * 1).sum().backward()
    return x


@program
def transformed():
    from facula.func import grad, vmap

    x = seeded(4, 3)
    return vmap(lambda r: r.sin().sum())(x), grad(lambda t: (t**3).sum())(x)


@program
def modes_inside():
    from facula.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    Count.calls = 0
    x = facula.ones(3) * 2
    with Count():
        y = x + 1
    return y, Count.calls


def run(name, call):
    facula.manual_seed(0)
    return described(call(PROGRAMS[name]))


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_compiled_program_does_what_it_does_uncompiled(name):
    want = run(name, lambda f: f())
    compiled = facula.compile(PROGRAMS[name])
    for _ in range(2):
        assert run(name, lambda f: compiled()) == want


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_state_is_as_before(name):
    facula.manual_seed(0)
    facula.compile(PROGRAMS[name])()
    assert not facula._C._is_recording()
    assert facula.is_grad_enabled() and facula.get_default_dtype() is facula.float32


def test_an_exception_leaves_what_was_computed():
    kept = []

    @facula.compile
    def f(x):
        kept.append(x * 2 + 1)
        x.add_(1)
        raise ValueError("out")

    x = facula.ones(3)
    with pytest.raises(ValueError, match="out"):
        f(x)
    assert x.tolist() == [2, 2, 2] and kept[0].tolist() == [3, 3, 3]
    assert not facula._C._is_recording()

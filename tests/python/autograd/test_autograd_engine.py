"""The engine: deep graphs, passes inside passes, several threads, errors."""

import gc
import threading
import weakref

import facula
import pytest
from facula.autograd import Function, grad


def leaf(*values):
    return facula.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def chain(x, length):
    for _ in range(length):
        x = -x
    return x


def test_a_graph_of_a_million_nodes_runs_and_dies():
    x = leaf()
    y = chain(x, 1_000_000)
    y.backward(facula.ones(3))
    assert x.grad.tolist() == [1, 1, 1]
    del y
    kept = chain(x, 1_000_000).grad_fn  # destroyed without having run
    del kept


class Recursive(Function):
    """Its backward starts a pass of its own, and so on, `depth` times."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth == 0:
            return gradient, None
        with facula.enable_grad():
            x = facula.ones(1, requires_grad=True)
            Recursive.apply(x, ctx.depth - 1).backward(gradient)
        return x.grad + 1, None


def test_passes_inside_passes_go_deep():
    x = leaf(1.0)
    Recursive.apply(x, 2000).backward()
    assert x.grad.item() == 2001


def test_an_error_in_a_deep_pass_reaches_the_caller():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            if ctx.depth == 0:
                raise KeyError("from the depth")
            with facula.enable_grad():
                Failing.apply(facula.ones(1, requires_grad=True), ctx.depth - 1).backward()

    with pytest.raises(KeyError, match="from the depth") as caught:
        Failing.apply(leaf(1.0), 200).backward()
    assert caught.value.__traceback__ is not None


def test_after_an_error_the_graph_can_be_released_and_used_again():
    fail = True

    class Sometimes(Function):
        @staticmethod
        def forward(ctx, x):
            return x.exp()

        @staticmethod
        def backward(ctx, gradient):
            if fail:
                raise ValueError("once")
            return gradient * 2

    x = leaf()
    middle = x * 1
    y = Sometimes.apply(middle).sum()
    with pytest.raises(ValueError, match="once"):
        y.backward()
    fail = False
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]
    node = weakref.ref(middle.grad_fn)
    del middle, y
    gc.collect()
    assert node() is None


def run_in_threads(work, count=8):
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_threads_accumulate_into_shared_leaves():
    w = facula.ones(64, requires_grad=True)

    def work(_):
        for _ in range(100):
            (w * 2).sum().backward()

    run_in_threads(work)
    assert (w.grad == 2 * 8 * 100).all().item()


def test_threads_run_one_graph_backward():
    w = facula.ones(16, requires_grad=True)
    y = w
    for _ in range(50):
        y = y.sin().exp() * 0.5
    y = y.sum()
    expected = grad(y, w, retain_graph=True)[0]

    def work(_):
        for _ in range(20):
            (got,) = grad(y, w, retain_graph=True)
            assert facula.equal(got, expected)

    run_in_threads(work)


def test_threads_that_free_one_graph_give_a_gradient_or_the_error():
    for _ in range(50):
        w = facula.ones(16, requires_grad=True)
        y = w.sin().exp().sum()
        raised = []

        def work(_, y=y, raised=raised):
            try:
                y.backward()
            except RuntimeError as error:
                assert "second time" in str(error)
                raised.append(error)

        run_in_threads(work, 4)


def test_threads_add_and_remove_hooks_while_a_pass_runs():
    w = facula.ones(4, requires_grad=True)
    y = w * 2
    z = (y * 3).sum()

    def work(i):
        for _ in range(50):
            if i % 2:
                y.register_hook(lambda g: g).remove()
                y.grad_fn.register_prehook(lambda g: None).remove()
            else:
                z.backward(retain_graph=True)

    run_in_threads(work)
    assert w.grad.tolist() == [6 * 4 * 50] * 4


def test_threads_make_and_drop_accumulation_nodes():
    w = facula.ones(1, requires_grad=True)

    def work(_):
        for _ in range(2000):
            w.view_as(w)

    run_in_threads(work, 4)


def test_queue_callback_runs_after_the_pass():
    order = []
    x = leaf()
    y = x * 2

    def hook(g):
        facula.autograd.graph.queue_callback(lambda: order.append(x.grad.tolist()))
        order.append("hook")

    y.register_hook(hook)
    y.sum().backward()
    assert order == ["hook", [2, 2, 2]]
    with pytest.raises(RuntimeError, match="no backward pass runs"):
        facula.autograd.graph.queue_callback(lambda: None)


def test_gradients_of_inputs_alone_do_not_touch_other_leaves():
    x, y = leaf(), leaf()
    z = (x * y).sum()
    z.backward(inputs=[x], retain_graph=True)
    assert y.grad is None
    grad(z, x)
    assert x.grad.tolist() == [1, 2, 3]


def test_nodes_off_the_path_to_the_inputs_do_not_run():
    ran = []

    class Watched(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            ran.append(1)
            return gradient

    x, y = leaf(), leaf()
    grad((Watched.apply(x) * y).sum(), y)
    assert not ran


@pytest.mark.eager("arguments of put-off calls live on")
def test_saved_tensors_are_freed_as_soon_as_they_are_used():
    x = leaf()
    y = x * 1
    dead = []
    finalizer = weakref.finalize(y, dead.append, 1)
    z = y.sin()
    z.register_hook(lambda g: dead.append("still there"))
    (z * 1).sum().backward(retain_graph=True)
    del y
    assert finalizer.alive
    z.sum().backward()
    assert not finalizer.alive


def test_accumulation_is_in_place_only_where_it_is_safe():
    x = leaf()
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append((g, g.tolist())))
    (y * 2 + y * 3).sum().backward()
    assert [g.tolist() for g, _ in seen] == [values for _, values in seen]
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first


def test_the_given_cotangent_is_never_changed():
    x = leaf()
    given = facula.ones(3)
    (x + 0).backward(given)
    x.grad.add_(1)
    y = x * 1
    facula.autograd.backward([y, y], [given, given])
    assert given.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: facula.autograd.backward([None]), AssertionError),
        (lambda: facula.autograd.backward([3]), RuntimeError),
        (lambda: facula.autograd.graph.increment_version(3), RuntimeError),
    ],
)
def test_what_is_no_tensor_is_refused(call, error):
    with pytest.raises(error, match="expected"):
        call()

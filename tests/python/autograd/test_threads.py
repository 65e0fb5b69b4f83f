"""Threads that share weights, graphs and tensors: nothing crashes, and no gradient is lost.

`make tsan` runs these under the thread sanitizer, which finds races that no crash shows.
"""

import gc
import threading
import warnings

import facula
import pytest
from facula import nn

THREADS = 4


def run_threads(body, count=THREADS, rounds=30):
    """Runs body(thread, round) on some threads at once; the first error is raised here."""
    errors = []
    ready = threading.Barrier(count)

    def work(number):
        ready.wait()
        try:
            for i in range(rounds):
                body(number, i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads_share_weights_from_their_first_forward_on():
    for _ in range(10):
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
        x = facula.ones(2, 4, dtype=facula.double)
        run_threads(lambda n, i, net=net, x=x: net(x).sum().backward(), rounds=5)
        alone = [p.grad / (THREADS * 5) for p in net.parameters()]
        net.zero_grad()
        net(x).sum().backward()
        for p, g in zip(net.parameters(), alone, strict=True):
            assert facula.allclose(p.grad, g)


def test_threads_add_whole_numbers_into_one_leaf():
    w = facula.zeros(1000, requires_grad=True)
    run_threads(lambda n, i: (w * 2).sum().backward())
    assert w.grad.eq(2 * THREADS * 30).all()


def test_threads_add_while_grads_are_recorded():
    w = facula.zeros(8, requires_grad=True, dtype=facula.double)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cycle that this makes
        run_threads(lambda n, i: (w * 2).sum().backward(create_graph=True), rounds=10)
    assert w.grad.eq(2 * THREADS * 10).all()
    w.grad = None


def test_threads_run_backward_on_one_graph():
    w = facula.ones(50, requires_grad=True)
    y = (w * w).exp().sum()
    run_threads(lambda n, i: y.backward(retain_graph=True), rounds=20)
    alone = facula.autograd.grad((w * w).exp().sum(), w)[0]
    assert facula.allclose(w.grad, alone * (THREADS * 20))


def test_a_grad_that_is_reset_while_others_add_to_it():
    w = facula.ones(200, requires_grad=True)

    def body(number, i):
        if number == 0:
            w.grad = None
            assert w.grad is None or w.grad.shape == w.shape
            w.grad = facula.zeros(200)
        else:
            (w * 2).sum().backward()
            seen = w.grad
            assert seen is None or seen.shape == w.shape

    run_threads(body, rounds=200)
    assert w.grad.remainder(2).eq(0).all()


def test_a_tensor_that_keeps_its_grad_goes_away_meanwhile():
    w = facula.ones(50, requires_grad=True)
    kept = [None]

    def body(number, i):
        if number == 0:
            y = w * 3
            y.retain_grad()
            kept[0] = y.sum()
            del y
        elif (root := kept[0]) is not None:
            root.backward(retain_graph=True)

    run_threads(body, rounds=200)


def test_threads_read_the_history_of_one_changed_view():
    for _ in range(20):
        base = facula.ones(6, requires_grad=True).clone()
        views = [base[1:], base.view(2, 3), base.unsqueeze(0)]
        base.mul_(3)
        found = []
        run_threads(
            lambda n, i, views=views, found=found: found.append(
                [v.grad_fn.name() for v in views] + [(v * 2).requires_grad for v in views]
            ),
            rounds=1,
        )
        assert all(f == found[0] for f in found)


def test_hooks_come_and_go_while_others_run_backward():
    w = facula.ones(20, requires_grad=True)
    y = w * 2

    def body(number, i):
        if number == 0:
            handles = [w.register_hook(lambda g: None), y.register_hook(lambda g: g)]
            handles.append(w.register_post_accumulate_grad_hook(lambda t: None))
            handles.append(y.grad_fn.register_hook(lambda a, b: None))
            for h in handles:
                h.remove()
        else:
            y.sum().backward(retain_graph=True)

    run_threads(body, rounds=60)


def test_graphs_are_dropped_by_other_threads_than_made_them():
    shelf = [None] * THREADS
    w = facula.ones(30, requires_grad=True)

    def body(number, i):
        shelf[number] = (w * i).exp().sum()
        shelf[(number + 1) % THREADS] = None
        if i % 10 == 0:
            gc.collect()

    run_threads(body, rounds=100)


def test_versions_of_one_tensor_are_counted_by_all_threads():
    x = facula.zeros(16)
    saved = facula.ones(16, requires_grad=True) * x  # so that the version is read
    before = x._version
    run_threads(lambda n, i: x.add_(1), rounds=100)
    assert x._version == before + 100 * THREADS
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()


def test_a_change_by_parts_counts_once_and_hides_no_other():
    # index_fill_ of a view, copy_ and zero_ work by further in-place operators inside.
    x = facula.zeros(8, 8)
    view = x.view(64)

    def body(number, i):
        if number % 2:
            x.cumsum_(0)
        else:
            view.fill_(1)

    before = x._version
    run_threads(body, rounds=50)
    assert x._version == before + 50 * THREADS

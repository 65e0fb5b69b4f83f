"""Gradients of calls with functions that are recorded into a graph: `cond`, `map`, `scan`,
`while_loop`."""

import facula
import pytest
from facula._higher_order_ops import map, scan, while_loop  # noqa: A004
from facula.functorch.compile import aot_function, nop
from facula.fx.experimental.proxy_tensor import make_fx


def chosen(c, x, w):
    found = facula.cond(x.sum() > 0, lambda x, w: (x @ w).sin(), lambda x, w: x * 2 + c, (x, w))
    return found.sum() + c.sum()


def chosen_by_closure(c, x, w):
    return facula.cond(x.sum() > 0, lambda x: (x @ w).sin(), lambda x: x.cos() * c, (x,)).sum()


def mapped(c, x, w):
    return map(lambda x, c, w: (x @ w * c).sin(), x, c, w).square().sum()


def mapped_by_closure(c, x, w):
    rows = map(lambda x: {"a": (x @ w * c).sin(), "b": x.long() * 2}, x)
    return rows["a"].square().sum() + rows["b"].sum()


def scanned(c, x, w):
    last, out = scan(lambda c, x: ((c * 2).tanh() + x, c * x), c, x)
    return last.sum() + (out * 2).sin().sum() + w.sum()


def scanned_by_closure(c, x, w):
    last, out = scan(lambda c, x: ((c @ w).tanh() + x, (c * x).sum()), c, x)
    return last.sum() + (out * 2).sin().sum()


def scanned_back_with_a_counter(c, x, w):
    start = facula.zeros((), dtype=facula.int64), c
    (count, last), out = scan(
        lambda s, x: ((s[0] + 1, s[1] * x + w.sum(0)), s[1] + 1), start, x, reverse=True
    )
    return (last * count).sum() + out.square().sum()


def outputs_alone(c, x, w):
    return scan(lambda c, x: (x * 1, c * w[0]), c, x)[1].sum()


def repeated(c, x, w):
    def step(i, c, x):
        return i + 1, (c @ w).tanh() + x[0], x * 2

    start = facula.zeros((), dtype=facula.int64), c, x
    _, c, x = while_loop(lambda i, c, x: i < 3, step, start)
    return c.sum() + x.square().sum()


def repeated_never(c, x, w):
    (found,) = while_loop(lambda x: x.sum() > 1e6, lambda x: (x * w[0, 0],), (x,))
    return found.sin().sum()


PROGRAMS = [
    *(chosen, chosen_by_closure, mapped, mapped_by_closure, scanned, scanned_by_closure),
    *(scanned_back_with_a_counter, outputs_alone, repeated, repeated_never),
]


def arguments():
    facula.manual_seed(0)
    shapes = (3,), (4, 3), (3, 3)
    return [facula.randn(shape).requires_grad_() for shape in shapes]


def gradients(function):
    return lambda *args: facula.autograd.grad(function(*args), args, allow_unused=True)


def check(found, expected):
    for a, b, like in zip(found, expected, arguments(), strict=True):
        a, b = (facula.zeros_like(like) if t is None else t for t in (a, b))
        assert facula.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_gradients_in_a_graph(function, mode):
    graph = make_fx(gradients(function), tracing_mode=mode)(*arguments())
    names = [str(node.target) for node in graph.graph.nodes]
    assert sum(name in ("cond", "scan", "map_impl", "while_loop_kept") for name in names) >= 2
    check(graph(*arguments()), gradients(function)(*arguments()))


@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_of_a_compiled_function(function):
    x, y = arguments(), arguments()
    compiled = aot_function(function, nop)
    compiled(*x).backward()
    function(*y).backward()
    check([t.grad for t in x], [t.grad for t in y])
    plain = [t.detach() for t in arguments()]
    assert facula.allclose(aot_function(function, nop)(*plain), function(*plain))

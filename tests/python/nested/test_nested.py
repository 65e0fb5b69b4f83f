"""facula.nested without PyTorch: gradients, what is shared, promises of its own."""

import copy
import doctest
import pickle
import weakref

import facula
import pytest
from facula.nested._internal import base, construct, nested_int, nested_tensor, ops, strided
from facula.nn.attention import varlen
from nested_cases import CALLS, ERRORS, inputs, numbers


@pytest.mark.parametrize("module", [base, construct, nested_int, nested_tensor, strided, varlen])
def test_examples(module):
    names = vars(construct) | vars(nested_tensor) | vars(varlen)
    assert doctest.testmod(module, extraglobs={**names, "facula": facula}).failed == 0


@pytest.mark.parametrize("name", facula.nested.__all__)
def test_documentation(name):
    text = getattr(facula.nested, name).__doc__
    assert "Args:" in text and "Returns:" in text and ">>> " in text


@pytest.mark.parametrize("label, call, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(label, call, error):
    with pytest.raises(error):
        call(facula, inputs(facula)[0])


def test_every_rule_says_for_which_arguments_it_holds():
    for rules in (ops.RULES, strided.RULES):
        assert all(rule.holds for rule in rules.table.values())


@pytest.fixture
def doubles():
    before = facula.get_default_dtype()
    facula.set_default_dtype(facula.float64)
    yield
    facula.set_default_dtype(before)


def weighted_sum(result):
    """A number that every element of a result has its own part in; None without gradients."""
    results = [result] if isinstance(result, facula.Tensor) else list(result)
    parts = [p for r in results for p in (r.unbind() if r.is_nested else [r])]
    parts = [p for p in parts if p.requires_grad]
    if not parts:
        return None
    return sum((p * numbers(facula, *p.shape).to(p.dtype)).sum() for p in parts)


def moved(call, step):
    """The number for leaves that are moved by `step` times numbers."""
    made, leaves = inputs(facula)
    with facula.no_grad():
        for leaf in leaves.values():
            leaf += step * numbers(facula, *leaf.shape).flip(0)
    return float(weighted_sum(call(facula, remade(made, leaves))))


def remade(made, leaves):
    """The nested tensors; those of layout strided hold copies, and are made anew."""
    for name in "stu":
        parts = [p.detach() for p in made[name].unbind()]
        made[name] = facula.nested.as_nested_tensor([leaves[name], *parts[1:]])
    return made


@pytest.mark.parametrize("label, call", CALLS, ids=[c[0] for c in CALLS])
def test_gradients_equal_differences(label, call, doubles):
    made, leaves = inputs(facula)
    total = weighted_sum(call(facula, made))
    if total is None:
        return
    total.backward()
    slope = 0.0
    for leaf in leaves.values():
        if leaf.grad is not None:
            slope += float((leaf.grad * numbers(facula, *leaf.shape).flip(0)).sum())
    step = 1e-6
    expected = (moved(call, step) - moved(call, -step)) / (2 * step)
    assert slope == pytest.approx(expected, rel=1e-4, abs=1e-6)


def jagged(requires_grad=False):
    parts = [numbers(facula, 2, 3), numbers(facula, 4, 3)]
    return facula.nested.nested_tensor(parts, layout=facula.jagged, requires_grad=requires_grad)


def test_leaf_collects_a_nested_gradient():
    x = jagged(True)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.is_nested and x.grad.shape == x.shape
    assert facula.equal(x.grad.values(), 4 * x.detach().values())


def test_gradients_of_an_inner_tensor_and_hooks():
    x = jagged(True)
    y = x * 2
    (grad,) = facula.autograd.grad((y * y).sum(), [y], retain_graph=True)
    seen = []
    y.register_hook(seen.append)
    y.retain_grad()
    (y * y).sum().backward()
    for found in (grad, seen[-1], y.grad):
        assert facula.equal(found.detach().values(), 2 * y.detach().values())


def test_second_derivative():
    x = jagged(True)
    (first,) = facula.autograd.grad((x**3).sum(), [x], create_graph=True)
    (second,) = facula.autograd.grad(first.sum(), [x])
    facula.testing.assert_close(second.values(), 6 * x.detach().values())


def test_function_of_the_user():
    class Double(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = jagged(True)
    Double.apply(x).sum().backward()
    assert x.grad.values().tolist() == [[2.0] * 3] * 6


def test_leaf_in_place_raises_and_history_follows_in_place_writes():
    x = jagged(True)
    with pytest.raises(RuntimeError):
        x.add_(1)
    y = x * 1
    y.mul_(3).add_(x)
    y.sum().backward()
    assert x.grad.values().tolist() == [[4.0] * 3] * 6


def test_memory_is_shared_with_values():
    values = facula.zeros(3)
    x = facula.nested.nested_tensor_from_jagged(values, facula.tensor([0, 1, 3]))
    x.add_(1)
    x[0].fill_(5)
    assert values.tolist() == [5.0, 1.0, 1.0]
    assert x.values().data_ptr() == values.data_ptr()


def test_same_offsets_fit_together_and_equal_ones_do_not():
    offsets = facula.tensor([0, 1, 3])
    make = facula.nested.nested_tensor_from_jagged
    a, b = make(facula.ones(3), offsets), make(facula.ones(3), offsets)
    assert a.shape == b.shape and (a + b).values().tolist() == [2.0] * 3
    other = make(facula.ones(3), offsets.clone())
    assert a.shape != other.shape
    with pytest.raises(RuntimeError, match="add"):
        a + other


def test_offsets_are_not_kept_alive():
    x = jagged()
    offsets = weakref.ref(x.offsets())
    del x
    assert offsets() is None


def test_rows_between_sequences_do_not_count():
    x = facula.nested.narrow(
        facula.arange(8.0).reshape(2, 4), 1, 1, facula.tensor([1, 2]), layout=facula.jagged
    )
    assert x.sum().item() == 12.0 and x.max().item() == 6.0
    assert x.contiguous().values().tolist() == [1.0, 5.0, 6.0]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copies(layout, way):
    parts = [numbers(facula, 2, 3), numbers(facula, 1, 3)]
    x = facula.nested.nested_tensor(parts, layout=getattr(facula, layout), requires_grad=True)
    x = x.detach().transpose(1, 2).requires_grad_()
    found = pickle.loads(pickle.dumps(x)) if way == "pickle" else copy.deepcopy(x)
    assert found.layout == x.layout and found.requires_grad
    assert [t.tolist() for t in found.unbind()] == [t.tolist() for t in x.unbind()]


@pytest.mark.parametrize("ends", [[0, 9], [3, 1], [-1, 3]])
def test_sequences_outside_of_the_values_raise(ends):
    with pytest.raises(RuntimeError, match="must lie in"):
        facula.nested.nested_tensor_from_jagged(facula.ones(3), facula.tensor([*ends, 3]))


def test_a_ragged_size_compares_with_small_numbers_only():
    n = jagged().shape[1]
    assert n >= 2 and n > 1 and n != 4 and repr(3 * n) == f"3*{n}"
    with pytest.raises(ValueError):
        n < 5  # noqa: B015
    with pytest.raises(AttributeError):
        n + 1
    with pytest.raises((RuntimeError, MemoryError)):
        facula.zeros(n, dtype=facula.uint8)


def test_attention_is_that_of_each_sequence():
    made, _ = inputs(facula)
    attend = facula.nn.functional.scaled_dot_product_attention
    found = attend(made["q"], made["k"], made["k"], is_causal=True)
    triples = zip(found.unbind(), made["q"].unbind(), made["k"].unbind(), strict=True)
    for part, q, k in triples:
        facula.testing.assert_close(part, attend(q, k, k, is_causal=True))


def test_attention_takes_equal_lengths_that_were_made_apart():
    def made(*lengths):
        parts = [facula.ones(n, 8) for n in lengths]
        return facula.nested.nested_tensor(parts, layout=facula.jagged).unsqueeze(2).transpose(1, 2)

    attend = facula.nn.functional.scaled_dot_product_attention
    q = made(2, 3)
    assert attend(q, made(4, 1), made(4, 1)).shape == q.shape
    with pytest.raises(RuntimeError, match="same lengths"):
        attend(q, made(4, 1), made(1, 4))


def test_multihead_attention_refuses_nested_tensors():
    layer = facula.nn.MultiheadAttention(4, 2, batch_first=True)
    x = inputs(facula)[0]["x"]
    with pytest.raises(AssertionError):
        layer(x, x, x)


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (1, 1)])
def test_varlen_attention(window):
    q, k = numbers(facula, 5, 2, 4), numbers(facula, 7, 2, 4).flip(0)
    ends_q, ends_k = facula.tensor([0, 2, 5]), facula.tensor([0, 3, 7])
    out, lse = varlen.varlen_attn(
        q, k, k, ends_q, ends_k, 3, 4, window_size=window, return_aux=varlen.AuxRequest(lse=True)
    )
    for (a, b), (c, d) in (((0, 2), (0, 3)), ((2, 5), (3, 7))):
        for i in range(a, b):
            at = i - a + (d - c) - (b - a)
            first = c if window[0] < 0 else max(c, c + at - window[0])
            last = d if window[1] < 0 else min(d, c + at + window[1] + 1)
            scores = facula.einsum("hd,khd->hk", q[i], k[first:last]) / 2
            expected = facula.einsum("hk,khd->hd", scores.softmax(-1), k[first:last])
            facula.testing.assert_close(out[i], expected)
            facula.testing.assert_close(lse[:, i], scores.logsumexp(-1))

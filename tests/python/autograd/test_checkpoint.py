"""Checkpointing: the same gradients, random numbers and hooks as without, and its errors."""

import contextlib
from collections import Counter
from functools import partial

import facula
import pytest
from facula.utils._python_dispatch import TorchDispatchMode
from facula.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

both_ways = pytest.mark.parametrize("reentrant", [True, False])


def leaf(*values):
    return facula.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


@both_ways
def test_gradients_are_those_without(reentrant):
    def f(a, b):
        return (a.sin() * b).exp(), a * b

    a, b = leaf(), leaf()
    first, second = checkpoint(f, a, b, use_reentrant=reentrant)
    (first.sum() + (second * second).sum()).backward()
    c, d = leaf(), leaf()
    first, second = f(c, d)
    (first.sum() + (second * second).sum()).backward()
    assert facula.equal(a.grad, c.grad) and facula.equal(b.grad, d.grad)


@both_ways
def test_random_numbers_are_drawn_again(reentrant):
    def f(x):
        return facula.nn.functional.dropout(x, 0.5) * x

    x = facula.ones(100, requires_grad=True)
    facula.manual_seed(3)
    y = checkpoint(f, x, use_reentrant=reentrant)
    state = facula.get_rng_state()
    y.sum().backward()
    assert facula.equal(x.grad, 2 * y)
    assert facula.equal(facula.get_rng_state(), state)


@both_ways
def test_the_function_runs_twice(reentrant):
    runs = []

    def f(x):
        runs.append(facula.is_grad_enabled())
        return x.sin().cos()

    x = leaf()
    checkpoint(f, x, use_reentrant=reentrant).sum().backward()
    assert runs == [not reentrant, True]


@pytest.mark.filterwarnings("ignore:checkpoint.* requires grad")
@both_ways
def test_checkpoints_nest(reentrant):
    def inner(x):
        return x.exp().sin()

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=reentrant).exp()

    x, z = leaf(), leaf()
    checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    inner(z.cos()).exp().sum().backward()
    assert facula.equal(x.grad, z.grad)


@both_ways
def test_parameters_that_the_function_closes_over_get_gradients(reentrant):
    layer = facula.nn.Linear(3, 2)
    x = leaf()
    checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert layer.weight.grad is not None and layer.bias.grad.tolist() == [1, 1]


@both_ways
def test_sequential_cuts_into_segments(reentrant):
    model = facula.nn.Sequential(*(facula.nn.Linear(3, 3) for _ in range(5)))
    x, z = leaf(), leaf()
    checkpoint_sequential(model, 2, x, use_reentrant=reentrant).sum().backward()
    got = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(z).sum().backward()
    assert facula.equal(x.grad, z.grad)
    assert all(facula.equal(a, p.grad) for a, p in zip(got, model.parameters(), strict=True))


def test_keyword_arguments_and_structures_need_the_other_way():
    x = leaf()
    found = checkpoint(lambda d, *, k: {"y": d["x"] * k}, {"x": x}, k=2.0, use_reentrant=False)
    found["y"].sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="unknown keyword"):
        checkpoint(lambda x, k: x, x, k=1, use_reentrant=True)


def test_grad_and_double_backward_without_reentrance():
    x = leaf()
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum()
    (first,) = facula.autograd.grad(y, x, create_graph=True)
    (second,) = facula.autograd.grad(first.sum(), x)
    z = leaf()
    (first_plain,) = facula.autograd.grad(z.sin().exp().sum(), z, create_graph=True)
    (second_plain,) = facula.autograd.grad(first_plain.sum(), z)
    assert facula.allclose(first, first_plain) and facula.allclose(second, second_plain)


def test_the_reentrant_way_refuses_grad():
    x = leaf()
    y = checkpoint(lambda x: x.sin(), x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="use_reentrant=True"):
        facula.autograd.grad(y, x)


def test_another_number_of_saved_tensors_is_an_error():
    runs = []

    def f(x):
        runs.append(1)
        return x.sin() if len(runs) == 1 else x * 2

    y = checkpoint(f, leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different number of tensors"):
        y.sum().backward()


def test_other_shapes_are_an_error_unless_unchecked():
    def changing():
        runs = []

        def f(x):
            runs.append(1)
            return (x if len(runs) == 1 else x[:1]).sin().sum()

        return f

    y = checkpoint(changing(), leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="is different when"):
        y.backward()
    x = leaf()
    checkpoint(changing(), x, use_reentrant=False, determinism_check="none").backward()
    assert x.grad is not None


def test_early_stop():
    ends = []

    def f(x):
        y = x.sin()
        ends.append(1)
        return y

    checkpoint(f, leaf(), use_reentrant=False).sum().backward()
    assert len(ends) == 1
    with set_checkpoint_early_stop(False):
        y = checkpoint(f, leaf(), use_reentrant=False)
    y.sum().backward()
    assert len(ends) == 3


def test_context_fn_surrounds_both_runs():
    seen = []

    @contextlib.contextmanager
    def note(text):
        seen.append(text)
        yield

    y = checkpoint(
        lambda x: x.sin(),
        leaf(),
        use_reentrant=False,
        context_fn=lambda: (note("first"), note("again")),
    )
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "again"]


def test_retained_graphs_run_again():
    x = leaf()
    y = checkpoint(lambda x: x.sin(), x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert facula.allclose(x.grad, 2 * x.detach().cos())


def matrix():
    return (facula.arange(9.0).reshape(3, 3) / 10).requires_grad_()


def count_calls(run):
    """The result of `run()`, and how often each operator was called meanwhile."""
    calls = Counter()

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls[str(func)] += 1
            return func(*args, **(kwargs or {}))

    with Count():
        result = run()
    return result, calls


def selective(policy, function, **options):
    """A checkpointed call whose policy chooses what is kept."""
    contexts = partial(create_selective_checkpoint_contexts, policy, **options)
    return partial(checkpoint, function, use_reentrant=False, context_fn=contexts)


def products(x):
    return (x @ x @ x).sigmoid().sum()


POLICIES = {
    "list": ([facula.ops.aten.mm.default], 0, 1),
    "nothing": ([], 2, 1),
    "everything": (lambda ctx, op, *args, **kwargs: True, 0, 0),
    "must recompute": (lambda *args, **kwargs: CheckpointPolicy.MUST_RECOMPUTE, 2, 1),
    "must save": (lambda *args, **kwargs: CheckpointPolicy.MUST_SAVE, 0, 0),
    "offload from the CPU": (lambda *args, **kwargs: CheckpointPolicy.MUST_CPU_OFFLOAD, 2, 1),
    "by result": (lambda ctx, op, *args, **kwargs: ctx.op_output.dim() == 2, 0, 0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_selective_checkpointing_runs_again_what_was_not_kept(name):
    policy, products_again, sigmoids_again = POLICIES[name]
    x, plain = matrix(), matrix()
    y = selective(policy, products)(x)
    _, calls = count_calls(y.backward)
    products(plain).backward()
    assert facula.allclose(x.grad, plain.grad)
    assert calls["aten.mm.default"] == products_again + 4  # four of them are the gradients'
    assert calls["aten.sigmoid.default"] == sigmoids_again


def test_selective_checkpointing_runs_backward_once():
    y = selective([facula.ops.aten.mm.default], products)(matrix())
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        y.backward()


def test_selective_checkpointing_finds_changes_of_what_it_kept():
    def change(x):
        doubled = x * 2
        return (doubled.add_(1) * x).sin().sum()

    keep = [facula.ops.aten.mul.Tensor]
    with pytest.raises(RuntimeError, match="mutated"):
        selective(keep, change)(leaf()).backward()
    selective(keep, change, allow_cache_entry_mutation=True)(leaf()).backward()


def test_selective_checkpointing_cannot_keep_changes():
    keep = [facula.ops.aten.add_.Tensor]
    with pytest.raises(RuntimeError, match="changes its arguments"):
        selective(keep, lambda x: (x * 2).add_(1).sin().sum())(leaf())


@pytest.mark.parametrize(
    ("policy", "error"), [(3, TypeError), ([facula.ops.aten.mm], ValueError), (["mm"], ValueError)]
)
def test_selective_checkpointing_refuses_other_policies(policy, error):
    with pytest.raises(error, match="create_selective_checkpoint_contexts"):
        create_selective_checkpoint_contexts(policy)

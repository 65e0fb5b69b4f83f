"""Hooks on the making of nodes, dtypes of gradients that a Function asks for, lists it saved."""

import facula
import pytest
from facula.autograd import Function
from facula.autograd.graph import node_creation_hook


def leaf():
    return facula.tensor([1.0, 2.0, 3.0], requires_grad=True)


def names_made(run):
    """Names of the nodes that `run()` makes, in order."""
    seen = []
    with node_creation_hook(lambda node: seen.append(node.name())):
        run()
    return seen


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_every_node_is_shown_once():
    x = leaf()
    made = names_made(lambda: ((x * 2).sum(), x.sin()))
    assert made == [
        "torch::autograd::AccumulateGrad",
        "MulBackward0",
        "SumBackward0",
        "SinBackward0",  # the leaf's node is still there
    ]


def test_nodes_that_are_no_operators_are_shown():
    x, y = leaf() * 1, leaf()
    assert names_made(lambda: facula.floor_divide(x, 2)) == ["torch::autograd::NotImplemented"]
    assert names_made(lambda: Twice.apply(y))[-1] == "TwiceBackward"
    assert names_made(lambda: x[:2].mul_(2)) == [
        "SliceBackward0",
        "AsStridedBackward0",
        "torch::autograd::CopySlices",
    ]


def test_a_node_is_complete_when_it_is_shown():
    seen = []

    def look(node):
        if node.name() == "MulBackward0":
            seen.append((node._saved_other.tolist(), len(node.next_functions)))
            seen.append(len(node._input_metadata))

    x = leaf()
    with node_creation_hook(look):
        x * x
    assert seen == [([1.0, 2.0, 3.0], 2), 1]


def test_hooks_of_outer_contexts_come_first():
    order = []
    x = leaf() * 1
    with (
        node_creation_hook(lambda node: order.append("outer")),
        node_creation_hook(lambda node: order.append("inner")),
    ):
        x * 2
    x * 2
    assert order == ["outer", "inner"]


def test_backward_of_a_recorded_pass_is_seen():
    x = leaf()
    y = (x * x).sum()
    assert "MulBackward0" in names_made(lambda: facula.autograd.grad(y, x, create_graph=True))


def test_a_hook_may_not_make_nodes_and_its_errors_come_out():
    x = leaf()

    def fail(node):
        raise ValueError("no")

    with node_creation_hook(lambda node: x.exp()), pytest.raises(RuntimeError, match="creation"):
        x * 2
    with node_creation_hook(fail), pytest.raises(ValueError, match="no"):
        x * 2
    assert (x * 2).tolist() == [2, 4, 6]
    with pytest.raises(TypeError), node_creation_hook(3):
        pass


def test_metadata_written_by_a_hook_reaches_backward():
    x, found = leaf(), []

    def mark(node):
        node.metadata["region"] = "first"
        node.register_prehook(lambda grads: found.append(node.metadata["region"]))

    with node_creation_hook(mark):
        y = (x * 2).sum()
    y.backward()
    assert found == ["first"] * 3


# --- dtypes of gradients


def declaring(*dtypes, constant=False):
    """A Function that asks for gradients of these dtypes, and notes those it gets."""
    got = []

    class Declares(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_output_grad_dtype(*dtypes)
            y = x * 2
            if constant:
                ctx.mark_non_differentiable(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            got.append(gradient.dtype)
            return gradient.to(facula.float32) * 2

    return Declares, got


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        (facula.float64, facula.float32, facula.float64),
        (facula.float16, facula.float32, facula.float16),
        (None, facula.float64, facula.float64),
        (None, facula.float32, facula.float32),
    ],
)
def test_gradients_come_in_the_dtype_asked_for(declared, given, expected):
    function, got = declaring(declared)
    x = leaf()
    function.apply(x).backward(facula.ones(3, dtype=given))
    assert got == [expected]
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("dtypes", "constant", "text"),
    [
        ((facula.float64, None), False, "one dtype for each of 1"),
        ((3,), False, "got int"),
        ((facula.int64,), False, "no gradient of dtype"),
        ((facula.float64,), True, "takes None"),
    ],
)
def test_declarations_that_do_not_fit(dtypes, constant, text):
    function, _ = declaring(*dtypes, constant=constant)
    with pytest.raises(RuntimeError, match=text):
        function.apply(leaf())


def test_dtypes_are_declared_once():
    context = facula.autograd.function.FunctionCtx()
    context.set_output_grad_dtype(None)
    with pytest.raises(RuntimeError, match="once"):
        context.set_output_grad_dtype(None)


def test_marking_shared_storage_warns():
    with pytest.warns(FutureWarning, match="does nothing"):
        facula.autograd.function.FunctionCtx().mark_shared_storage()


# --- lists of saved tensors


def test_lists_of_saved_tensors_take_hooks():
    x = leaf()
    index = facula.tensor([0, 2])
    node = x[index].grad_fn
    assert [t.tolist() for t in node._saved_indices] == [[0, 2]]
    packed = []
    (raw,) = node._raw_saved_indices
    raw.register_hooks(lambda t: packed.append(t) or t, lambda t: t)
    assert packed[0].tolist() == [0, 2]

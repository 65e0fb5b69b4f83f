"""What a call costs: operators on tensors so small that the arithmetic takes no time."""

from bench.harness import Case, Statement
from bench.training import adam, mlp_step


def case(name, text, names):
    """A case of one expression; `names(module)` gives what its names stand for."""
    return Case(name, lambda m: Statement(text, names(m)))


def operands(*shapes, grad=False):
    """Names a, b, ... for tensors of ones, and m for the module."""

    def make(m):
        tensors = [m.ones(shape, requires_grad=grad) for shape in shapes]
        return dict(zip("abcd", tensors, strict=False)) | {"m": m}

    return make


def functional(*shapes):
    """Names a, b, ... for tensors of ones, and F for the module of functions."""

    def make(m):
        return operands(*shapes)(m) | {"F": m.nn.functional}

    return make


def two_and_out(m):
    return {"m": m, "a": m.ones(1), "b": m.ones(1), "out": m.empty(1)}


def logits_and_classes(m):
    return {"F": m.nn.functional, "a": m.ones(4, 10), "classes": m.tensor([1, 2, 3, 4])}


def module_and_input(m):
    return {"module": m.nn.Linear(4, 4), "a": m.ones(1, 4)}


def four_parts(m):
    return {"m": m, "parts": [m.ones(2, 2) for _ in range(4)]}


def chain_backward(m):
    a = m.ones(1, requires_grad=True)

    def run():
        a.grad = None
        ((a * 2).exp() + a).sum().backward()

    return run


def no_grad_block(m):
    def run():
        with m.no_grad():
            pass

    return run


CASES = [
    case("a + b [1]", "a + b", operands(1, 1)),
    case("a + 1.5 [1]", "a + 1.5", operands(1)),
    case("a + b, with grad [1]", "a + b", operands(1, 1, grad=True)),
    case("a.add_(b) [1]", "a.add_(b)", operands(1, 1)),
    case("add(a, b, out=) [1]", "m.add(a, b, out=out)", two_and_out),
    case("a + b, broadcast [4, 1] [3]", "a + b", operands((4, 1), 3)),
    case("relu [1]", "m.relu(a)", operands(1)),
    case("exp [1]", "m.exp(a)", operands(1)),
    case("neg [4, 4]", "m.neg(a)", operands((4, 4))),
    Case("forward and backward of 4 ops", chain_backward),
    Case("training step, MLP 4-4-4, Adam", mlp_step(adam, 4, 4)),
    case("a[1]", "a[1]", operands((4, 4))),
    case("a[:, 1:3]", "a[:, 1:3]", operands((4, 4))),
    case("view and transpose", "a.view(2, 8).transpose(0, 1)", operands((4, 4))),
    case("a.shape", "a.shape", operands((4, 4))),
    case("a.dtype", "a.dtype", operands((4, 4))),
    case("empty(2, 3)", "m.empty(2, 3)", operands()),
    case("zeros(2, 3)", "m.zeros(2, 3)", operands()),
    case("tensor([1., 2., 3.])", "m.tensor([1.0, 2.0, 3.0])", operands()),
    case("item()", "a.item()", operands(())),
    case("sum [4, 4]", "a.sum()", operands((4, 4))),
    case("mean(1, keepdim=True) [4, 4]", "a.mean(1, keepdim=True)", operands((4, 4))),
    case("a @ b [4, 4]", "a @ b", operands((4, 4), (4, 4))),
    case("cat of 4", "m.cat(parts)", four_parts),
    case("softmax [2, 8]", "m.softmax(a, 1)", operands((2, 8))),
    case("linear [2, 4]", "F.linear(a, b, c)", functional((2, 4), (3, 4), 3)),
    case("layer_norm [2, 8]", "F.layer_norm(a, (8,), b, c)", functional((2, 8), 8, 8)),
    case("cross_entropy [4, 10]", "F.cross_entropy(a, classes)", logits_and_classes),
    case("nn.Linear(4, 4)(x), with grad", "module(a)", module_and_input),
    Case("with no_grad()", no_grad_block),
]

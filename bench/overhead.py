"""What a call costs: operators on tensors so small that the arithmetic takes no time."""

from bench.harness import Case


def unary(name, shape=(1,)):
    """A case of a function of one tensor."""

    def make(m):
        function, x = getattr(m, name), m.ones(shape)
        return lambda: function(x)

    return Case(f"{name} {list(shape)}", make)


def add_tensor(m):
    a, b = m.ones(1), m.ones(1)
    return lambda: a + b


def add_number(m):
    a = m.ones(1)
    return lambda: a + 1.5


def add_grad(m):
    a, b = m.ones(1, requires_grad=True), m.ones(1, requires_grad=True)
    return lambda: a + b


def add_in_place(m):
    a, b = m.zeros(1), m.ones(1)
    return lambda: a.add_(b)


def add_out(m):
    a, b, out = m.ones(1), m.ones(1), m.empty(1)
    return lambda: m.add(a, b, out=out)


def add_broadcast(m):
    a, b = m.ones(4, 1), m.ones(3)
    return lambda: a + b


def chain_backward(m):
    a = m.ones(1, requires_grad=True)

    def run():
        a.grad = None
        ((a * 2).exp() + a).sum().backward()

    return run


def index_row(m):
    a = m.ones(4, 4)
    return lambda: a[1]


def slice_columns(m):
    a = m.ones(4, 4)
    return lambda: a[:, 1:3]


def view_transpose(m):
    a = m.ones(4, 4)
    return lambda: a.view(2, 8).transpose(0, 1)


def make_zeros(m):
    return lambda: m.zeros(2, 3)


def make_from_list(m):
    return lambda: m.tensor([1.0, 2.0, 3.0])


def item(m):
    a = m.ones(())
    return a.item


def sum_all(m):
    a = m.ones(4, 4)
    return lambda: a.sum()


def mean_dim(m):
    a = m.ones(4, 4)
    return lambda: a.mean(1, keepdim=True)


def matmul(m):
    a, b = m.ones(4, 4), m.ones(4, 4)
    return lambda: a @ b


def concatenate(m):
    parts = [m.ones(2, 2) for _ in range(4)]
    return lambda: m.cat(parts)


def softmax(m):
    a = m.ones(2, 8)
    return lambda: m.softmax(a, 1)


def linear(m):
    x, w, b = m.ones(2, 4), m.ones(3, 4), m.ones(3)
    return lambda: m.nn.functional.linear(x, w, b)


def layer_norm(m):
    x, w, b = m.ones(2, 8), m.ones(8), m.ones(8)
    return lambda: m.nn.functional.layer_norm(x, (8,), w, b)


def cross_entropy(m):
    x, y = m.ones(4, 10), m.tensor([1, 2, 3, 4])
    return lambda: m.nn.functional.cross_entropy(x, y)


def module_call(m):
    module, x = m.nn.Linear(4, 4), m.ones(1, 4)
    return lambda: module(x)


def no_grad_block(m):
    def run():
        with m.no_grad():
            pass

    return run


CASES = [
    Case("a + b [1]", add_tensor),
    Case("a + 1.5 [1]", add_number),
    Case("a + b, with grad [1]", add_grad),
    Case("a.add_(b) [1]", add_in_place),
    Case("add(a, b, out=) [1]", add_out),
    Case("a + b, broadcast [4, 1] [3]", add_broadcast),
    unary("relu"),
    unary("exp"),
    unary("neg", (4, 4)),
    Case("forward and backward of 4 ops", chain_backward),
    Case("a[1]", index_row),
    Case("a[:, 1:3]", slice_columns),
    Case("view and transpose", view_transpose),
    Case("zeros(2, 3)", make_zeros),
    Case("tensor([1., 2., 3.])", make_from_list),
    Case("item()", item),
    Case("sum [4, 4]", sum_all),
    Case("mean(1, keepdim=True) [4, 4]", mean_dim),
    Case("a @ b [4, 4]", matmul),
    Case("cat of 4", concatenate),
    Case("softmax [2, 8]", softmax),
    Case("linear [2, 4]", linear),
    Case("layer_norm [2, 8]", layer_norm),
    Case("cross_entropy [4, 10]", cross_entropy),
    Case("nn.Linear(4, 4)(x), with grad", module_call),
    Case("with no_grad()", no_grad_block),
]

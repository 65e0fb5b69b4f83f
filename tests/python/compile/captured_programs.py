"""Programs that backends of `compile` see as graphs, written for facula and PyTorch alike.

Each is a function of the library that returns a function, a list of the arguments of its calls, and
options of `compile`. `GRAPHS` says how many graphs PyTorch 2.15 makes, of how many calls.
"""


def pointwise(torch):
    def f(x):
        return x.sin() + x.cos() * 2

    return f, [(torch.ones(3),), (torch.zeros(3),)], {}


def several_results(torch):
    def f(x, y):
        a = x + y
        return a, {"b": a * 2}, [a.sum()]

    return f, [(torch.ones(3), torch.ones(3))] * 2, {}


def branch_on_data(torch):
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    return f, [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)], {}


def branch_on_shape(torch):
    def f(x):
        if x.shape[0] > 2:
            return x + 1
        return x - 1

    return f, [(torch.ones(3),)] * 2, {}


def item_inside(torch):
    def f(x):
        n = x.sum().item()
        return x * n

    return f, [(torch.ones(3),)] * 2, {}


def explicit_break(torch):
    def f(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    return f, [(torch.ones(3),)] * 2, {}


def two_breaks(torch):
    def f(x):
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
        torch._dynamo.graph_break()
        return x - 3

    return f, [(torch.ones(3),)] * 2, {}


def disabled_inside(torch):
    @torch._dynamo.disable
    def g(x):
        return x * 5

    def f(x):
        x = x + 1
        x = g(x)
        return x - 1

    return f, [(torch.ones(3),)] * 2, {}


def sizes_change(torch):
    def f(x):
        return x.relu() * 2

    return f, [(torch.ones(n),) for n in (3, 4, 5, 6)], {}


def sizes_change_static(torch):
    def f(x):
        return x.relu() * 2

    return f, [(torch.ones(n),) for n in (3, 4, 5, 4)], {"dynamic": False}


def sizes_change_dynamic(torch):
    def f(x):
        return x.relu().view(x.shape[0], 1)

    return f, [(torch.ones(n),) for n in (3, 4, 5, 6)], {"dynamic": True}


def view_of_shape(torch):
    def f(x):
        return x.view(x.shape[0], -1) + 1

    return f, [(torch.ones(n, 2, 2),) for n in (3, 4, 5, 6)], {}


def size_one(torch):
    def f(x):
        return x + 1

    return f, [(torch.ones(n, 3),) for n in (3, 1, 5, 7)], {}


def dtypes_change(torch):
    def f(x):
        return x + x

    return f, [(torch.ones(3, dtype=d),) for d in (torch.float32, torch.float64, torch.int64)], {}


def rank_changes(torch):
    def f(x):
        return x + x

    return f, [(torch.ones(3),), (torch.ones(3, 3),), (torch.ones(3),)], {}


def integers_change(torch):
    def f(x, n):
        return x * n

    return f, [(torch.ones(3), n) for n in (3, 4, 5)], {}


def strings_change(torch):
    def f(x, how):
        return x + 1 if how == "plus" else x - 1

    return f, [(torch.ones(3), how) for how in ("plus", "minus", "plus")], {}


def gradients_wanted(torch):
    def f(x):
        return x * x

    return f, [(torch.ones(3),), (torch.ones(3, requires_grad=True),)], {}


def no_grad_outside(torch):
    def f(x):
        return x * x

    def off(x):
        with torch.no_grad():
            return x

    return f, [(torch.ones(3),), (off(torch.ones(3)),)], {}


def no_grad_inside(torch):
    def f(x):
        with torch.no_grad():
            y = x * 2
        return x * y

    return f, [(torch.ones(3, requires_grad=True),)] * 2, {}


def linear_model(torch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    return model, [(torch.ones(2, 3),)] * 2, {}


def normalized_model(torch):
    nn = torch.nn
    model = torch.nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Softmax(-1))
    return model, [(torch.ones(2, 3),)] * 2, {}


def convolutions(torch):
    nn = torch.nn
    model = torch.nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return model, [(torch.ones(2, 1, 6, 6),)] * 2, {}


def train_and_eval(torch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5))

    def f(x, training):
        model.train(training)
        return model(x)

    return f, [(torch.ones(2, 3), mode) for mode in (True, False, True)], {}


def attention(torch):
    def f(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    x = torch.ones(1, 2, 4, 8)
    return f, [(x, x, x)], {}


def loss(torch):
    def f(x, y):
        return torch.nn.functional.cross_entropy(x, y)

    return f, [(torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1]))] * 2, {}


def in_place(torch):
    def f(x):
        x.add_(1)
        x[0] = 5
        y = x.view(-1)
        y.mul_(2)
        return x.sum()

    return f, [(torch.ones(2, 2),), (torch.ones(2, 2),)], {}


def inputs_shared(torch):
    def f(x, y):
        return x + y

    x = torch.ones(3)
    return f, [(x, x), (x, torch.ones(3))], {}


def closures(torch):
    w = torch.full((3,), 2.0)

    def f(x):
        return x * w

    return f, [(torch.ones(3),)] * 2, {}


def functions_called(torch):
    def g(x):
        return x + 1

    def f(x):
        for _ in range(3):
            x = g(x)
        return x

    return f, [(torch.ones(3),)] * 2, {}


def tuples_of_results(torch):
    def f(x):
        values, places = torch.max(x, 1)
        a, b = torch.split(x, 1)
        return values, places, a + b, torch.chunk(x, 2)[0]

    return f, [(torch.arange(6.0).view(2, 3),)] * 2, {}


def made_inside(torch):
    def f(x):
        return x + torch.zeros(3) + torch.arange(3) + torch.ones_like(x)

    return f, [(torch.ones(3),)] * 2, {}


def nonzero_inside(torch):
    def f(x):
        places = torch.nonzero(x)
        return places + 1

    return f, [(torch.ones(3),)] * 2, {}


def backward_inside(torch):
    def f(x):
        y = (x * 2).sum()
        y.backward()
        return x.grad + 1

    return f, [(torch.ones(3, requires_grad=True),)], {}


def autocast_inside(torch):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y + x

    return f, [(torch.ones(3, 3),)] * 2, {}


def constants_of_modules(torch):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0
            self.register_buffer("shift", torch.ones(3))

        def forward(self, x):
            return x * self.scale + self.shift

    return Scaled(), [(torch.ones(3),)] * 2, {}


# Graphs that the backend is called with, and calls in them, under PyTorch 2.15.
GRAPHS = {
    "pointwise": (1, 4),
    "several_results": (1, 3),
    "branch_on_data": (3, 5),
    "branch_on_shape": (1, 1),
    "item_inside": (2, 2),
    "explicit_break": (2, 2),
    "two_breaks": (3, 3),
    "disabled_inside": (2, 2),
    "sizes_change": (2, 4),
    "sizes_change_static": (3, 6),
    "sizes_change_dynamic": (1, 2),
    "view_of_shape": (2, 4),
    "size_one": (3, 3),
    "dtypes_change": (3, 3),
    "rank_changes": (2, 2),
    "integers_change": (2, 2),
    "strings_change": (2, 2),
    "gradients_wanted": (2, 2),
    "no_grad_outside": (1, 1),
    "no_grad_inside": (1, 4),
    "linear_model": (1, 3),
    "normalized_model": (1, 5),
    "convolutions": (1, 4),
    "train_and_eval": (2, 4),
    "attention": (1, 1),
    "loss": (1, 1),
    "in_place": (1, 5),
    "inputs_shared": (2, 2),
    "closures": (1, 1),
    "functions_called": (1, 3),
    "tuples_of_results": (1, 9),
    "made_inside": (1, 6),
    "nonzero_inside": (1, 1),
    "backward_inside": (2, 3),
    "autocast_inside": (1, 4),
    "constants_of_modules": (1, 2),
}


def run(torch, program, backend=None):
    """The results of a program's calls, and how often the backend was called, with how many calls.

    Args:
        torch (module): facula or PyTorch.
        backend (str): behind the counter; "eager" for None.
    """
    from importlib import import_module

    testing = import_module(f"{torch.__name__}._dynamo.testing")
    torch._dynamo.reset()
    torch.manual_seed(0)
    counter = testing.CompileCounterWithBackend(backend or "eager")
    function, calls, options = program(torch)
    compiled = torch.compile(function, backend=counter, **options)
    torch.manual_seed(1)
    results = [compiled(*args) for args in calls]
    torch.manual_seed(0)
    function, calls, options = program(torch)
    torch.manual_seed(1)
    expected = [function(*args) for args in calls]
    return results, expected, (counter.frame_count, counter.op_count)


def programs():
    """All programs by name."""
    return {name: globals()[name] for name in GRAPHS}

"""Scripts whose calls are never played: their Python does what no program holds."""

import warnings

import facula
from facula import nn
from skipped_scripts import CALLS, calls, net, script


@script(off="STORE_ATTR")
def attributes_are_set(compile):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def forward(self, x):
            self.count += 1
            return x * self.count

    model = Counter()
    return calls(compile(model), facula.ones(2)), model.count


@script(off="print")
def prints(compile):
    seen = []

    class To:
        write = staticmethod(seen.append)
        flush = staticmethod(lambda: None)

    @compile
    def f(x):
        print("called", file=To)
        return x + 1

    return calls(f, facula.ones(2)), seen


@script(off="a list that it did not make")
def an_outer_list_grows(compile):
    log = []

    @compile
    def f(x):
        log.append(len(log))
        return x + 1

    return calls(f, facula.ones(2)), log


@script(off="value of a tensor")
def branches_on_data(compile):
    f = compile(lambda x: x + 1 if x.sum() > 0 else x - 1)
    return [f(facula.ones(2) * (-1) ** i) for i in range(CALLS)]


@script(off="Tensor.item")
def numbers_are_read(compile):
    f = compile(lambda x: x * x.sum().item())
    return [f(facula.ones(2) * i) for i in range(CALLS)]


@script(off="reads the number in a tensor")
def tensors_given_as_numbers(compile):
    f = compile(lambda x, n: (facula.add(x, x, alpha=n), x[: n + 0]))
    return [f(facula.ones(4), facula.tensor(i % 3 + 1)) for i in range(CALLS)]


@script(off="reads the number in a tensor")
def tensors_given_as_sizes(compile):
    f = compile(lambda x, n: x.view(n, -1))
    return [f(facula.ones(4), facula.tensor(2 ** (i % 3))) for i in range(CALLS)]


@script(plays=2)
def operators_of_tensors_are_patched(compile):
    add, relu = facula.Tensor.__add__, facula.Tensor.relu

    def change(i):
        facula.Tensor.__add__ = add if i < 5 else lambda a, b: a * 100
        facula.Tensor.relu = relu if i < 3 else lambda a: a - 1

    seen = calls(compile(lambda x: x + x.relu()), facula.ones(2), before=change)
    facula.Tensor.__add__, facula.Tensor.relu = add, relu
    return seen


@script(plays=4)
def tensors_have_attributes(compile):
    model = net()
    f = compile(lambda x: model(x.relu()) * model[3].bias.exp())

    def change(i):
        if i == 4:
            model[3].bias.note = "mine"
        if i == 8:
            model[3].bias.exp = lambda: 3.0

    seen = calls(f, facula.randn(2, 3), n=12, before=change)
    x = facula.randn(2, 3)
    x.relu = lambda: facula.ones(2, 3)
    return seen + calls(f, x) + calls(f, facula.randn(2, 3))


@script(off="sizes that depend on data")
def sizes_depend_on_data(compile):
    f = compile(lambda x: x[x > 0].reshape(-1) * x[x > 0].shape[0])
    return [f(facula.randn(5)) for _ in range(CALLS)]


@script(plays=6)
def sizes_that_depend_on_data_are_not_looked_at(compile):
    f = compile(lambda x: x[x > 0] * 2)
    return [f(facula.randn(5)) for _ in range(CALLS)]


@script(off="handles exceptions")
def exceptions_are_caught(compile):
    @compile
    def f(x, i):
        try:
            return facula.index_select(x, 0, i)
        except IndexError:
            return x

    good, bad = facula.tensor([0]), facula.tensor([9])
    return [f(facula.ones(3), bad if i % 3 == 2 else good) for i in range(CALLS)]


@script(plays=6)
def generators(compile):
    outer = [1, 2, 3]

    def each(x, n):
        for i in range(n):
            yield x * i

    @compile
    def f(x, y):
        rows = [v + 1 for v in each(x, 3)]
        a, b = (t.sum() for t in (x, y))
        total = sum(v * k for v, k in zip(each(y, 2), (k for k in outer), strict=False))
        if any(k > 2 for k in outer) and all(t.dim() == 1 for t in (x, y)):
            total = total + next(each(x, 5))
        return rows, a, b, tuple(t * 2 for t in rows), total

    def change(i):
        if i == 6:
            outer[1] = 7

    return calls(f, facula.randn(3), facula.randn(3), n=12, before=change)


@script(off="value of a tensor")
def generators_of_truths(compile):
    f = compile(lambda x: x + 1 if any(v > 0 for v in (x[0], x[1])) else x - 1)
    return [f(facula.randn(2)) for _ in range(CALLS)]


@script(off="that it did not make")
def generators_from_elsewhere(compile):
    def each():
        for i in range(100):
            yield i + 1

    rows = each()
    return calls(
        compile(lambda x: [x * i for i, _ in zip(rows, (1, 2), strict=False)]), facula.ones(2)
    )


@script(off="that it did not make")
def iterators_from_elsewhere(compile):
    rows = iter([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    return calls(compile(lambda x: x * next(rows)), facula.ones(2))


@script(off="that it did not make")
def views_of_dicts_from_elsewhere(compile):
    settings = {"a": 1}
    values = settings.values()

    def change(i):
        settings[i] = i

    return calls(compile(lambda x: [x * v for v in values]), facula.ones(2), before=change)


@script(plays=1)
def methods_of_arguments_from_elsewhere(compile):
    x = facula.ones(2)
    double = x.add
    f = compile(lambda t: double(t))
    return [f(x), f(x), f(x * 3), f(x * 4), f(x)]


@script(plays=3)
def identity_of_tensors_is_asked(compile):
    held = facula.zeros(2)
    f = compile(lambda x, y: (x + 1 if x is y else x - 1, x is held, y is x.contiguous()))
    x = facula.ones(2)
    pairs = [(x, facula.ones(2)), (facula.ones(2), x), (x, x), (held, x), (x, held), (x, x + 1)]
    return [f(*pairs[i % 6]) for i in range(36)]


@script(plays=4)
def attention_of_a_tensor_to_itself(compile):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return calls(compile(layer), facula.randn(2, 3, 8))


@script(off="an operator warns")
def operators_warn(compile):
    f = compile(lambda x: x.sum().mH + 1)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen += calls(f, facula.ones(2))
    for _ in range(4):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            seen += [f(facula.ones(2)), [str(w.message) for w in told]]
    return seen


@script(off="same object")
def identity_of_numbers_is_asked(compile):
    f = compile(lambda x, n: x + 1 if n is 1000.0 + x.shape[0] else x)  # noqa: F632
    return calls(f, facula.ones(2), 1002.0)


@script(off="did not make")
def operators_on_lists_give_the_list(compile):
    held = [facula.zeros(2), facula.ones(2)]

    @compile
    def f(x):
        same = facula._foreach_add_(held, 1.0)
        same.reverse()
        return x + same[0]

    return calls(f, facula.ones(2)), len(held), held[0]


@script(off="did not make")
def a_list_of_arguments_is_changed(compile):
    def f(rows, x):
        rows.append(x)
        return len(rows)

    rows = []
    compiled = compile(f)
    return [(compiled(rows, facula.ones(2)), len(rows)) for _ in range(CALLS)]


@script(off="enclosing function")
def a_closure_is_counted(compile):
    n = 0

    @compile
    def f(x):
        nonlocal n
        n += 1
        return x * n

    return calls(f, facula.ones(2)), n


@script(off="it calls")
def time_and_random_of_python(compile):
    import random

    random.seed(0)
    f = compile(lambda x: x * random.random())
    return calls(f, facula.ones(2))


@script(off="with statement")
def modes_are_entered_inside(compile):
    @compile
    def f(x):
        with facula.enable_grad():
            return x * 2

    x = facula.ones(2, requires_grad=True)
    return calls(f, x)


@script(off="Tensor.grad")
def attributes_of_tensors(compile):
    f = compile(lambda x: x.grad if x.grad is not None else x * 2)
    x = facula.ones(2, requires_grad=True)
    seen = calls(f, x)
    x.grad = facula.zeros(2)
    return seen + calls(f, x)

"""Misuse: a clear Python exception each time, never a crash, and arguments left alone."""

import facula
import pytest
from samples import load_ops
from samples.checks import each
from samples.common import find, make_arguments, seed_of

OPS = load_ops()


@pytest.mark.parametrize("op", **each([op for op in OPS if op.errors]))
def test_table_errors(op):
    """What the table says must raise, raises that class with that text."""
    for number, error in enumerate(op.errors):
        args, kwargs = make_arguments(
            facula, error.sample, op.dtype_names()[0], seed_of(op, number)
        )
        with pytest.raises(error.error) as caught:
            find(facula, op.name)(*args, **kwargs)
        assert error.text in str(caught.value), f"{error.sample}: {caught.value}"


@pytest.mark.parametrize("op", **each(op for op in OPS if "." not in op.name))
def test_hostile_arguments(op):
    """Arguments of wrong types and counts raise TypeError (or an error on their values)."""
    function = find(facula, op.name)
    hostile = (
        object(),
        "text",
        b"bytes",
        {},
        lambda: 0,
        1 << 200,
        float("nan"),
        [[]],
        [None],
        facula.float32,
        facula.ones(0),
        facula.ones(()),
        range(3),
    )
    for value in hostile:
        for count in (1, 2, 3):
            try:
                function(*[value] * count)
            except Exception as error:  # any class: what matters is that it is raised and says why
                assert str(error) or isinstance(error, (KeyError, RecursionError))
    with pytest.raises(TypeError):
        function(no_such_argument=1)


def x(*sizes, **options):
    return facula.ones(*(sizes or (2, 3)), **options)


# What is called, the class, a word of the text.
MISUSES = {
    "shapes do not broadcast": (lambda: x(2, 3) + x(2, 4), RuntimeError, "size"),
    "dtype of a bool subtraction": (lambda: x().bool() - x().bool(), RuntimeError, "bool"),
    "in-place result does not fit": (lambda: x(3).add_(x(2, 3)), RuntimeError, "shape"),
    "in-place result does not cast": (lambda: x(3).long().add_(0.5), RuntimeError, "cast"),
    "dimension out of range": (lambda: x().sum(2), IndexError, "range"),
    "dimension given twice": (lambda: x().sum((0, 0)), RuntimeError, "dim"),
    "index out of range": (lambda: x()[2], IndexError, "bounds"),
    "too many indices": (lambda: x()[0, 0, 0], IndexError, "indices"),
    "negative step": (lambda: x()[::-1], ValueError, "step"),
    "bad index type": (lambda: x()["a"], (TypeError, IndexError), ""),
    "view of another size": (lambda: x().view(4), RuntimeError, "size"),
    "two inferred sizes": (lambda: x().reshape(-1, -1), RuntimeError, "one dimension"),
    "negative size": (lambda: facula.empty(-1), RuntimeError, "negative"),
    "size that overflows": (lambda: facula.empty(1 << 40, 1 << 40), RuntimeError, ""),
    "size that is no int": (lambda: facula.empty(2.5), TypeError, "int"),
    "strides outside the storage": (lambda: x().as_strided((9,), (1,)), RuntimeError, "storage"),
    "negative strides": (lambda: x().as_strided((2,), (-1,)), RuntimeError, "negative"),
    "unknown dtype": (lambda: x(dtype="float32"), TypeError, "dtype"),
    "unknown device": (lambda: x(device="nowhere"), RuntimeError, "nowhere"),
    "bad device index": (lambda: facula.device("cpu:-1"), RuntimeError, ""),
    "no such attribute": (lambda: x().no_such_thing, AttributeError, "no_such_thing"),
    "no such function": (lambda: facula.no_such_thing, AttributeError, "no_such_thing"),
    "data on meta": (
        lambda: x(device="meta").tolist(),
        (RuntimeError, NotImplementedError),
        "meta",
    ),
    "item of several": (lambda: x().item(), RuntimeError, "Scalar"),
    "truth of several": (lambda: bool(x()), RuntimeError, "ambiguous"),
    "int of nothing": (lambda: int(facula.empty(0)), (RuntimeError, ValueError), ""),
    "length of a number": (lambda: len(facula.ones(())), TypeError, "0-d"),
    "ragged data": (lambda: facula.tensor([[1, 2], [3]]), ValueError, "length"),
    "data of no numbers": (lambda: facula.tensor(["a"]), (TypeError, ValueError), ""),
    "an int too large": (
        lambda: facula.tensor([1 << 70]),
        (ValueError, RuntimeError, OverflowError),
        "",
    ),
    "grad of integers": (lambda: x(dtype=facula.int64).requires_grad_(), RuntimeError, "floating"),
    "backward of no scalar": (
        lambda: x().requires_grad_().add(1).backward(),
        RuntimeError,
        "scalar",
    ),
    "backward without a graph": (lambda: x().sum().backward(), RuntimeError, "grad"),
    "cotangent of another shape": (
        lambda: x().requires_grad_().add(1).backward(x(4)),
        RuntimeError,
        "shape",
    ),
    "numpy of a tensor with grad": (lambda: x().requires_grad_().numpy(), RuntimeError, "grad"),
    "bool of a text number": (lambda: x() + "1", TypeError, "str"),
    "cat of nothing": (lambda: facula.cat([]), (RuntimeError, ValueError), ""),
    "cat of shapes that differ": (lambda: facula.cat([x(2, 3), x(2, 4)]), RuntimeError, "Sizes"),
    "cat of a tensor": (lambda: facula.cat(x()), TypeError, ""),
    "element of no dtype": (lambda: x().to("nothing"), RuntimeError, ""),
    "leaf changed in place": (lambda: x().requires_grad_().add_(1), RuntimeError, "leaf"),
    "writing to an expanded tensor": (lambda: x(1).expand(3).add_(1), RuntimeError, "written to"),
    "overlapping output": (
        lambda: (lambda t: facula.add(t[:-1], 1, out=t[1:]))(x(4)),
        RuntimeError,
        "memory",
    ),
    "_combination_indices": (
        lambda: facula.ops.aten._combination_indices(-1, 4, True),
        RuntimeError,
        "must not be negative; got -1 and 4",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name):
    call, error, text = MISUSES[name]
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value), str(caught.value)


def test_saved_tensor_changed_in_place():
    a = x(3).requires_grad_()
    b = a * 1
    c = (b * b).sum()
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.backward()


def test_second_backward_of_freed_graph():
    a = x(3).requires_grad_()
    c = (a * a).sum()
    c.backward()
    with pytest.raises(RuntimeError, match="second time"):
        c.backward()


def test_error_leaves_state_alone():
    """After an error in no_grad, in a list and in an in-place change, everything is as before."""
    a = x(3).requires_grad_()
    version = a._version
    with pytest.raises(RuntimeError), facula.no_grad():
        a.add_(x(2))
    assert facula.is_grad_enabled()
    assert a.tolist() == [1.0, 1.0, 1.0]
    assert a._version == version


def test_deep_nesting_raises():
    data = [1.0]
    for _ in range(100_000):
        data = [data]
    with pytest.raises((ValueError, RecursionError, RuntimeError)):
        facula.tensor(data)
    while isinstance(data, list):  # taken apart by hand: its own deallocation would recurse
        data = data[0]


def test_list_that_holds_itself():
    data = []
    data.append(data)
    with pytest.raises((ValueError, RecursionError, RuntimeError)):
        facula.tensor(data)


def test_sequence_that_shrinks_while_read():
    class Shrinking:
        def __init__(self):
            self.length = 3

        def __len__(self):
            self.length -= 1
            return self.length

        def __getitem__(self, i):
            if i > 0:
                raise IndexError(i)
            return 1.0

    with pytest.raises((IndexError, ValueError, TypeError, RuntimeError)):
        facula.tensor(Shrinking())


@pytest.mark.parametrize(
    ("size", "stride", "text"),
    [([4, 3], [1, 3], "stride must be"), ([5, 3], [3, 1], "invalid"), ([12], [], "stride must be")],
)
def test_reshape_alias_stays_in_memory(size, stride, text):
    """Strides are those of the memory in the given size, so that nothing else is read."""
    with pytest.raises(RuntimeError, match=text):
        facula.ops.aten._reshape_alias(facula.ones(3, 4), size, stride)

"""What it costs that Python objects live as long as their tensors."""

import threading

from bench.harness import Case


def make_and_drop(m):
    """The result is Python's alone: its object ends with it."""
    a, b = m.ones(1), m.ones(1)

    def run():
        a + b

    return run


def keep_and_take_back(m):
    """The object is dropped by Python, kept by C++, and comes back."""
    owner = m.zeros(1)
    owner.grad = m.ones(1)

    def run():
        owner.grad  # noqa: B018

    return run


def into_a_graph_and_back(m):
    """A tensor that Python holds is saved for backward and let go of."""
    x, y = m.ones(1), m.ones(1, requires_grad=True)

    def run():
        y * x

    return run


def forget_saved(m):
    """Intermediate results that only the graph holds, released with the GIL."""
    x = m.ones(1, requires_grad=True)

    def run():
        y = x
        for _ in range(16):
            y = y * x

    return run


def release_in_backward(make):
    """The engine releases 16 saved results, whose objects Python dropped, without the GIL."""

    def prepare(m):
        start = m.ones(1, requires_grad=True)
        wrap = make(m)

        def run():
            start.grad = None
            y = start
            for _ in range(16):
                y = wrap(y * y)
            y.backward()

        return run

    return prepare


def plain(m):
    return lambda t: t


def tagged(m):
    """Each result has an attribute, so that its object cannot be told apart from its end."""

    def mark(t):
        t.tag = 1
        return t

    return mark


def release_with_busy_thread(m):
    """The same while another thread computes in Python and has to be asked for the GIL."""
    inner = release_in_backward(plain)(m)

    def run():
        stop = []

        def spin():
            while not stop:
                pass

        thread = threading.Thread(target=spin)
        thread.start()
        inner()
        stop.append(1)
        thread.join()

    return run


def make_class(m):
    """A class statement; what the metaclass adds is in here."""

    def run():
        type("Sub", (m.Tensor,), {})

    return run


def subclass_and_drop(m):
    cls, data = type("Sub", (m.Tensor,), {}), m.ones(1)

    def run():
        m.Tensor._make_subclass(cls, data)

    return run


def subclass_with_attribute(m):
    cls, data = type("Sub", (m.Tensor,), {}), m.ones(1)

    def run():
        m.Tensor._make_subclass(cls, data).tag = 1

    return run


def subclass_with_finalizer(m):
    cls = type("Sub", (m.Tensor,), {"__del__": lambda self: None})
    data = m.ones(1)

    def run():
        m.Tensor._make_subclass(cls, data)

    return run


def storage_object(m):
    t = m.ones(1)

    def run():
        t.untyped_storage()

    return run


CASES = [
    Case("make and drop a + b", make_and_drop),
    Case("keep in .grad, take back", keep_and_take_back),
    Case("save x for backward, let go", into_a_graph_and_back),
    Case("graph of 16, dropped", forget_saved),
    Case("graph of 16, backward", release_in_backward(plain)),
    Case("graph of 16 attributes, backward", release_in_backward(tagged)),
    Case("graph of 16, GIL in demand", release_with_busy_thread),
    Case("class of tensors", make_class),
    Case("subclass: make and drop", subclass_and_drop),
    Case("subclass with attribute", subclass_with_attribute),
    Case("subclass with __del__", subclass_with_finalizer),
    Case("untyped_storage()", storage_object),
]

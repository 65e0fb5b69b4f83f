"""Questions that programs ask of a compiler, counters, and small helpers."""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from collections import Counter, defaultdict

import facula

# What was captured and why captures ended: group -> name -> count.
counters = defaultdict(Counter)
# The seconds that what ran under `dynamo_timed` took: its name -> one number for each run.
compilation_time_metrics = {}


def is_compile_supported(device_type):
    """Whether functions are compiled for a kind of device: for the CPU.

    Example:
        >>> from facula._dynamo.utils import is_compile_supported
        >>> is_compile_supported("cpu")
        True
    """
    return str(device_type).partition(":")[0] == "cpu"


def count_calls(g):
    """The number of calls in a graph.

    Example:
        >>> module = facula.fx.symbolic_trace(lambda x: x.sin() + 1)
        >>> count_calls(module.graph)
        2
    """
    return sum("call" in node.op for node in g.nodes)


def istype(obj, allowed_types):
    """Whether an object's class is this one, or one of these; subclasses are not.

    Example:
        >>> istype(True, int), istype([], (list, tuple))
        (False, True)
    """
    if isinstance(allowed_types, (tuple, list, set)):
        return type(obj) in allowed_types
    return type(obj) is allowed_types


def istensor(obj):
    """Whether an object is a Tensor or Parameter, and of no other subclass."""
    return istype(obj, (facula.Tensor, facula.nn.Parameter))


def clone_input(x, *, dtype=None):
    """A copy of a tensor that requires grad as it does, with its strides and gradient."""
    with facula.no_grad():
        made = facula.empty_strided(x.size(), x.stride(), dtype=dtype or x.dtype, device=x.device)
        made.copy_(x)
    made.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        made.grad = clone_input(x.grad, dtype=dtype)
    return made


def clone_inputs(example_inputs):
    """Copies of the tensors in a list, tuple or dict of example inputs."""
    one = lambda x: clone_input(x) if isinstance(x, facula.Tensor) else x  # noqa: E731
    if isinstance(example_inputs, dict):
        return {name: one(value) for name, value in example_inputs.items()}
    return [one(value) for value in example_inputs]


def same(*args, **kwargs):
    """Whether two nests of tensors agree (`_dynamo.testing.same`)."""
    from facula._dynamo.testing import same as compare

    return compare(*args, **kwargs)


# --- times


@contextlib.contextmanager
def dynamo_timed(key, phase_name=None, **options):
    """Context manager: the time that passes within it is noted under a name.

    Args:
        key (str): the name in `compilation_time_metrics`.
        phase_name (str | None), options: make no difference.
    """
    start = time.perf_counter()
    try:
        yield
    finally:
        compilation_time_metrics.setdefault(key, []).append(time.perf_counter() - start)


def compile_times(repr="str", aggregate=False):
    """The times that `dynamo_timed` noted.

    Args:
        repr (str): "str" for a table as text, "csv" for names and times as two lists.
        aggregate (bool): sums in the place of single times.

    Returns:
        str | tuple[list[str], list[str]] | None: None for another `repr`.
    """
    rows = {
        name: [f"{seconds:.{4 if repr == 'str' else 6}f}" for seconds in found]
        for name, times in compilation_time_metrics.items()
        for found in ([sum(times)] if aggregate else times,)
    }
    if repr == "csv":
        return list(rows), [", ".join(row) for row in rows.values()]
    if repr != "str":
        return None
    lines = [", ".join([name, *row]) for name, row in rows.items()]
    return "\n".join(["Compilation metrics:", "Function, Runtimes (s)", *lines])


# --- small helpers


@functools.lru_cache(None)
def warn_once(msg, stacklevel=1):
    """Warn, the first time that there is this message."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_namedtuple(obj):
    """Whether an object is a named tuple, such as what an operator with several results gives.

    Example:
        >>> is_namedtuple(facula.ones(2, 2).max(1)), is_namedtuple((1, 2))
        (True, False)
    """
    return is_namedtuple_cls(type(obj))


def is_namedtuple_cls(cls):
    """Whether a class is one of named tuples."""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    return isinstance(getattr(cls, "_fields", None), tuple) or (
        cls.__module__ == f"{facula.__name__}.return_types"
    )


def namedtuple_fields(cls):
    """The names of a named tuple's fields.

    Args:
        cls (type): a class of named tuples.

    Example:
        >>> namedtuple_fields(type(facula.ones(2, 2).max(1)))
        ('values', 'indices')
    """
    if hasattr(cls, "_fields"):
        return cls._fields
    return tuple(name for name in cls.__match_args__)


def hashable(x):
    """Whether an object has a hash."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def nothing(*args, **kwargs):
    """Do nothing."""


def rmse(ref, res):
    """The root of the mean squared difference of two tensors, as a Tensor.

    Example:
        >>> rmse(facula.ones(2), facula.zeros(2))
        tensor(1.)
    """
    return facula.sqrt(facula.mean(facula.square(ref - res)))


@contextlib.contextmanager
def preserve_rng_state():
    """Context manager: random numbers go on after it as if nothing had been drawn in it."""
    before = facula.get_rng_state()
    try:
        yield
    finally:
        facula.set_rng_state(before)


def checkpoint_params(gm):
    """A function that gives a module its parameters and buffers of now back.

    Args:
        gm (Module): the module.

    Returns:
        callable: without arguments; restores values, gradients and the random numbers.
    """
    random_state = facula.get_rng_state()
    tensors = [*gm.parameters(), *gm.buffers()]
    saved = [(t, t.detach().clone(), None if t.grad is None else t.grad.clone()) for t in tensors]

    def restore():
        facula.set_rng_state(random_state)
        with facula.no_grad():
            for tensor, value, grad in saved:
                tensor.copy_(value)
                tensor.grad = None if grad is None else grad.clone()

    return restore

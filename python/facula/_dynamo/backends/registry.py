"""The table of backends that `compile` knows by name."""

from __future__ import annotations

import functools
from importlib import import_module

from facula._dynamo.exc import InvalidBackend


def recorded(gm, example_inputs=None, **options):
    """The backend of functions that are recorded at each call (docs/internals/recorder.md)."""
    return gm.forward


def _in(module, name):
    """A backend that is imported when it is called."""

    def backend(gm, example_inputs, **kwargs):
        found = getattr(import_module(f"{__package__}.{module}"), name)
        return found(gm, example_inputs, **kwargs)

    backend.__name__ = backend.__qualname__ = name
    return backend


_DEBUGGING = (
    "eager eager_debug eager_noexcept aot_eager aot_eager_decomp_partition "
    "aot_eager_default_partitioner"
)
# Name -> the function and what kind it is.
_BACKENDS = {
    **{name: (_in("debugging", name), ("debug",)) for name in _DEBUGGING.split()},
    "inductor": (recorded, ()),
    "cudagraphs": (recorded, ()),
}
_ENTRY_POINTS = "torch_dynamo_backends"


@functools.cache
def _installed():
    """Backends of installed packages: name to entry point."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=_ENTRY_POINTS)}


def register_backend(compiler_fn=None, name=None, tags=()):
    """Give a backend a name; a decorator too.

    Args:
        compiler_fn (callable): takes a graph and example inputs, returns a callable.
        name (str): that of the function unless given.
        tags (sequence of str): its kinds, "debug" or "experimental".
    """
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _BACKENDS:
        raise AssertionError(f"register_backend(): expected a new name; got {name!r} again")
    _BACKENDS[name] = (compiler_fn, tuple(tags))
    return compiler_fn


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that have none of these tags, as a sorted list.

    Example:
        >>> "inductor" in facula._dynamo.list_backends()
        True
    """
    excluded = set(exclude_tags or ())
    known = {name for name, (_, tags) in _BACKENDS.items() if not excluded & set(tags)}
    return sorted(known | (set(_installed()) - set(_BACKENDS)))


def lookup_backend(compiler_fn):
    """The backend of a name; a function is one itself.

    Raises:
        InvalidBackend: the name is not registered.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _BACKENDS and compiler_fn in _installed():
        register_backend(_installed()[compiler_fn].load(), name=compiler_fn)
    if compiler_fn not in _BACKENDS:
        raise InvalidBackend(compiler_fn)
    return _BACKENDS[compiler_fn][0]


def is_own(compiler_fn):
    """Whether a backend, or its name, is the recorder."""
    return compiler_fn is None or lookup_backend(compiler_fn) is recorded

"""The table of backends that `compile` knows by name."""

from __future__ import annotations

from facula._dynamo.exc import InvalidBackend


def _as_it_is(gm, example_inputs=None, **options):
    """The backend of programs that run as they are."""
    return gm


# Name -> the function and what kind it is.
_BACKENDS = {
    "eager": (_as_it_is, ("debug",)),
    "aot_eager": (_as_it_is, ("debug",)),
    "inductor": (_as_it_is, ()),
    "cudagraphs": (_as_it_is, ()),
}


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
    _BACKENDS[name or compiler_fn.__name__] = (compiler_fn, tuple(tags))
    return compiler_fn


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that have none of these tags, as a sorted list.

    Example:
        >>> "inductor" in facula._dynamo.list_backends()
        True
    """
    excluded = set(exclude_tags or ())
    return sorted(name for name, (_, tags) in _BACKENDS.items() if not excluded & set(tags))


def lookup_backend(compiler_fn):
    """The backend of a name; a function is one itself.

    Raises:
        InvalidBackend: the name is not registered.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _BACKENDS:
        raise InvalidBackend(compiler_fn)
    return _BACKENDS[compiler_fn][0]


def is_own(compiler_fn):
    """Whether a backend, or its name, is one that runs functions as they are."""
    return compiler_fn is None or lookup_backend(compiler_fn) is _as_it_is

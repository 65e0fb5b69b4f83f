"""What the compiled core imports when it is asked for signatures, or when pickles are read."""

from __future__ import annotations

from facula import _C


def signature_of(text):
    """The `inspect.Signature` of a text like "($self, other, *, alpha=1)"."""
    import inspect

    text = text.replace("$self", "self")
    # `lambda` and `from` are argument names of a few operators, but words of Python.
    for word in ("lambda", "from", "is", "in"):
        text = text.replace(f"({word},", f"({word}_,").replace(f" {word},", f" {word}_,")
        text = text.replace(f" {word}=", f" {word}_=").replace(f" {word})", f" {word}_)")
    return inspect.signature(eval(f"lambda {text[1:-1]}: None"))


def rebuild_generator(state, device="cpu"):
    """A Generator of a device in the given state (uint8 tensor)."""
    return _C.Generator(device).set_state(state)


def rebuild_storage(data):
    """An UntypedStorage with a copy of `data` (bytes)."""
    storage = _C.UntypedStorage(len(data))
    memoryview(storage)[:] = data
    return storage

"""What the compiled core imports when it is asked for signatures, or when pickles are read."""

from __future__ import annotations

from facula import _C


def signature_of(texts):
    """One `inspect.Signature` with the parameters of all overloads.

    A parameter that some overload does without is shown with a default.

    Args:
        texts (str or list of str): like "($self, other, *, alpha=1)", one for each overload.

    Returns:
        inspect.Signature

    Example:
        >>> signature_of(["(input)", "(input, dim, *, out=None)"])
        <Signature (input, dim=None, *, out=None)>
    """
    overloads = [_one_signature(t) for t in ([texts] if isinstance(texts, str) else texts)]
    if len(overloads) == 1:
        return overloads[0]
    found = {}
    for overload in overloads:
        for parameter in overload.parameters.values():
            found.setdefault(parameter.name, []).append(parameter)
    merged = [_merged(same, len(overloads)) for same in found.values()]
    merged.sort(key=lambda p: p.kind)
    optional = False
    for i, p in enumerate(merged):
        optional = p.kind == p.POSITIONAL_OR_KEYWORD and (optional or p.default is not p.empty)
        if optional and p.default is p.empty:
            merged[i] = p.replace(default=None)
    return overloads[0].replace(parameters=merged)


def _merged(same, overloads):
    """One parameter for those of the same name in some of the overloads."""
    first = min(same, key=lambda p: p.kind)
    defaults = [p.default for p in same if p.default is not p.empty]
    if defaults or len(same) < overloads:
        return first.replace(default=defaults[0] if defaults else None)
    return first


def _one_signature(text):
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

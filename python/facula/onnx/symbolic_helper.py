"""What functions that write ONNX's operators say of themselves; nothing calls them yet."""

from __future__ import annotations

__all__ = ["parse_args"]


def parse_args(*arg_descriptors):
    """A decorator that notes the kinds of a function's arguments ("v", "i", "f", "s", "none" ...).

    Returns:
        function: the same, with `_arg_descriptors`.
    """

    def note(function):
        function._arg_descriptors = list(arg_descriptors)
        return function

    return note

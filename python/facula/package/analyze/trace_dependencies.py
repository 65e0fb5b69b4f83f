"""Which modules a function uses when it runs."""

import sys
from collections.abc import Callable, Iterable


def trace_dependencies(callable: Callable, inputs: Iterable[tuple]) -> list:
    """The modules whose functions run in calls of a function.

    Args:
        callable: is called with each tuple of inputs.
        inputs: tuples of arguments.

    Returns:
        list of str: names of modules.

    Example:
        >>> import json
        >>> from facula.package.analyze import trace_dependencies
        >>> "json.encoder" in trace_dependencies(json.dumps, [([1],)])
        True
    """
    found = {}

    def note(frame, event, argument):
        if event == "call":
            name = frame.f_globals.get("__name__")
        elif event == "c_call":
            name = getattr(argument, "__module__", None)
        else:
            name = None
        if name and name != __name__:
            found[name] = True

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(found)

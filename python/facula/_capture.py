"""What Python does to tensors without calling functions that modes see: captured functions run what
they have put off before it (`_dynamo/capture.py`)."""

from __future__ import annotations

import functools
import sys

from facula import _C


def current():
    """The capture that is at work on this thread, or None."""
    if not _C._len_torch_function_stack():
        return None
    module = sys.modules.get("facula._dynamo.capture")
    return module.current() if module else None


def finish(reason):
    """End the segment of a captured function here, if there is one.

    Args:
        reason (str): why the graph cannot go on.
    """
    if capture := current():
        capture.finish(reason)


def transform(name, *options):
    """A decorator for the functions that a transform makes: one call of a captured graph.

    The function that is transformed is `function` of the decorator's result; where it reads what a
    graph would not know, the transform ends the graph.

    Args:
        name (str): of the transform.
        options: of the transform.
    """

    def decorate(run, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            capture = current()
            if capture is None:
                return run(*args, **kwargs)
            return capture.transform(name, function, options, run, args, kwargs)

        return call

    return decorate


def not_captured(reason):
    """A decorator for functions that run on real tensors, outside of captured graphs.

    Args:
        reason (str): why, for messages.
    """

    def decorate(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            capture = current()
            if capture is None:
                return function(*args, **kwargs)
            return capture.run_outside(reason, function, args, kwargs)

        return run

    return decorate

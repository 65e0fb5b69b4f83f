"""Functions, generators and classes that run under a context manager."""

from __future__ import annotations

import functools
import inspect


def decorated(switch, function):
    """`function` run under a fresh clone of `switch` at each call."""
    if inspect.isclass(function):
        import warnings

        warnings.warn(
            "decorating a class decorates its __init__ alone; decorate that method itself",
            FutureWarning,
            stacklevel=3,
        )
        function.__init__ = decorated(switch, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):
        return _decorated_generator(switch, function)

    @functools.wraps(function)
    def run(*args, **kwargs):
        with switch.clone():
            return function(*args, **kwargs)

    return run


def _decorated_generator(switch, function):
    # The switch is on only while the generator's own code runs.
    @functools.wraps(function)
    def run(*args, **kwargs):
        with switch.clone():
            generator = function(*args, **kwargs)
        step, value = generator.send, None
        while True:
            try:
                with switch.clone():
                    item = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield item
                step = generator.send
            except GeneratorExit:
                with switch.clone():
                    generator.close()
                raise
            except BaseException as error:
                step, value = generator.throw, error

    return run

"""Scripts about functions whose Python is skipped, and what runs them.

A script takes a function that compiles, calls what it compiled under changes of all kinds, and
gives a list of what it saw. It runs uncompiled, compiled, and with `skip_python`, and must see the
same.
"""

import facula
from facula import nn

SCRIPTS = {}
CALLS = 9


def script(plays=0, off=None):
    """Puts a script into the table, with how many calls are played at least, or why none is."""

    def put(function):
        SCRIPTS[function.__name__] = (function, plays, off)
        return function

    return put


def described(value):
    if isinstance(value, facula.Tensor):
        facts = (type(value).__name__, value.dtype, tuple(value.shape), value.stride())
        node = type(value.grad_fn).__name__
        counted = None if value.is_inference() else value._version
        return (*facts, value.requires_grad, value.is_leaf, node, counted, value.tolist())
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(described, value)]
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    return value


def run(name, compile):
    facula.manual_seed(0)
    before = facula.is_grad_enabled()
    facula.set_grad_enabled(False)
    try:
        return described(SCRIPTS[name][0](compile))
    finally:
        facula.set_grad_enabled(before)


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 2))


def calls(f, *args, n=CALLS, before=None):
    """What n calls give, with before(i) ahead of each."""
    seen = []
    for i in range(n):
        if before:
            before(i)
        try:
            seen.append(f(*args))
        except Exception as error:
            seen.append(error)
    return seen


def at(step, change):
    return lambda i: change() if i == step else None

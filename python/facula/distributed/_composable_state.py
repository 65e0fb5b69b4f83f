"""What functions that change a module in place keep about it."""

from __future__ import annotations

import weakref


class _State:
    """What one function keeps about a module."""


_states = weakref.WeakKeyDictionary()  # module -> a weak reference to its first state


def _insert_module_state(module, state):
    """Note the state of a module."""
    if module in _states:
        raise AssertionError(f"expected a module without a state; got {type(module).__name__}")
    _states[module] = weakref.ref(state)


def _get_module_state(module):
    """The state of a module, or None."""
    if isinstance(module, _State):
        return module
    found = _states.get(module)
    return None if found is None else found()

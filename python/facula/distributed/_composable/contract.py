"""contract: functions that change a module in place, each at most once, and keep its names."""

from __future__ import annotations

import functools
import uuid
from collections import OrderedDict

from facula.distributed._composable_state import _State
from facula.nn import Module

_STATES, _REGISTRY = "_composable_states", "_composable_registry"


class RegistryItem:
    """Notes that a function has been applied to a module."""


def _get_registry(module):
    """The functions that have been applied to a module: a dict by their names, or None."""
    return vars(module).get(_REGISTRY)


def _names(modules):
    found = []
    for module in modules:
        members = (module.named_parameters, module.named_buffers, module.named_modules)
        found.append([[name for name, _ in each()] for each in members])
    return found


def contract(state_cls=_State):
    """A decorator for functions that change a module in place.

    The function is applied to a module at most once, and must leave the names of parameters,
    buffers and submodules as they are. `function.state(module)` is what it keeps.

    Args:
        state_cls (type): made without arguments for each module.

    Raises:
        AssertionError: a call for a module that had one.
        RuntimeError: names have changed.

    Example:
        >>> @contract()
        ... def freeze(module):
        ...     freeze.state(module).count = 1
        ...     return module.requires_grad_(False)
        >>> layer = freeze(facula.nn.Linear(1, 1))
        >>> freeze.state(layer).count, layer.weight.requires_grad
        (1, False)
    """

    def decorate(function):
        key = uuid.uuid4().hex

        @functools.wraps(function)
        def applied(module, *args, **kwargs):
            modules = [module] if isinstance(module, Module) else list(module)
            state = state_cls()
            for each in modules:
                _note(each, key, function.__name__, state)
            before = _names(modules)
            changed = function(module, *args, **kwargs)
            if changed is not None and _names(_listed(changed)) != before:
                raise RuntimeError(
                    f"{function.__name__}(): expected the same names of parameters, buffers and "
                    "modules afterwards; got others"
                )
            return changed

        applied.state = lambda module: vars(module).get(_STATES, {}).get(key)
        return applied

    return decorate


def _listed(modules):
    return [modules] if isinstance(modules, Module) else list(modules)


def _note(module, key, name, state):
    states = vars(module).setdefault(_STATES, OrderedDict())
    registry = vars(module).setdefault(_REGISTRY, OrderedDict())
    if key in states or name in registry:
        raise AssertionError(
            f"{name}(): expected a module to which it was not applied; got {module}"
        )
    states[key] = state
    registry[name] = RegistryItem()


__all__ = ["RegistryItem", "contract"]

"""Modules as functions of their parameters, by the names that functorch had for it; `func` has
`functional_call` and `stack_module_state` nowadays."""

from __future__ import annotations

import copy

import facula
from facula.func import functional_call
from facula.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _without_values(model):
    """A copy of a module whose parameters and buffers hold no memory."""
    return copy.deepcopy(model).to("meta")


class FunctionalModuleWithBuffers(Module):
    """A module without parameters and buffers: a call takes them as its first two arguments.

    Args:
        stateless_model (Module): what is called.
        param_names, buffer_names (sequence of str): the names of what is given.
    """

    def __init__(self, stateless_model, param_names, buffer_names=()):
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params, buffers, *args, **kwargs):
        """What the module gives with these parameters and buffers."""
        given = dict(zip(self.param_names, params, strict=True))
        given |= dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without parameters: a call takes them as its first argument."""

    def forward(self, params, *args, **kwargs):
        """What the module gives with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def _taken(named, untracked):
    return tuple(t.detach().clone() if untracked else t for t in named.values())


def make_functional(model, disable_autograd_tracking=False):
    """A module as a function of its parameters.

    Args:
        model (Module): has no buffers.
        disable_autograd_tracking (bool): whether the parameters are copies without gradients.

    Returns:
        tuple[FunctionalModule, tuple[Tensor]]: the function, which takes parameters and then the
        module's arguments, and the parameters.

    Raises:
        RuntimeError: the module has buffers.

    Example:
        >>> function, params = make_functional(facula.nn.Linear(2, 1, bias=False))
        >>> function([facula.ones(1, 2)], facula.ones(3, 2)).shape
        facula.Size([3, 1])
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(): expected a module without buffers; got one with some, for which "
            "there is make_functional_with_buffers()"
        )
    params = dict(model.named_parameters())
    function = FunctionalModule(_without_values(model), params)
    return function, _taken(params, disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """A module as a function of its parameters and buffers.

    Args:
        model (Module): what is called.
        disable_autograd_tracking (bool): whether the parameters are copies without gradients.

    Returns:
        tuple: the function, which takes parameters, buffers and then the module's arguments; the
        parameters; the buffers.
    """
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    function = FunctionalModuleWithBuffers(_without_values(model), params, buffers)
    return function, _taken(params, disable_autograd_tracking), tuple(buffers.values())


def combine_state_for_ensemble(models):
    """Modules of one class as one function, with their parameters and buffers stacked for `vmap`.

    Args:
        models (sequence of Modules): of one class, in one mode.

    Returns:
        tuple: the function, the parameters and the buffers, with the models as first dimension.

    Raises:
        RuntimeError: no models, or models of several classes or modes.
    """
    models = list(models)
    kinds = {(type(m), m.training) for m in models}
    if len(kinds) != 1:
        raise RuntimeError(
            "combine_state_for_ensemble(): expected modules of one class and one mode; got "
            f"{len(models)} modules of {len(kinds)} kinds"
        )
    functions, params, buffers = zip(
        *(make_functional_with_buffers(m) for m in models), strict=True
    )

    def stacked(states):
        return tuple(facula.stack(each).detach() for each in zip(*states, strict=True))

    params = tuple(p.requires_grad_() for p in stacked(params))
    return functions[0], params, stacked(buffers)

"""One step of each optimizer as a function of lists of tensors.

The lists hold parameters, their gradients and the parts of their state, which are changed in place;
step counts are counted by the function (but not by `sparse_adam`). The keywords are the settings of
the optimizer.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import NamedTuple

import facula
from facula.optim import _lists


class _Form(NamedTuple):
    """How a function is called.

    `lists` names the parts of the state behind params and grads, "parameter=entry of the state";
    `flags` are the parameters that have defaults, `settings` those that must be given.
    """

    lists: str
    flags: str
    settings: str
    before: str = "params grads"


_F, _N = "=False", "=None"
_ADAM_LISTS = (
    "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq max_exp_avg_sqs=max_exp_avg_sq state_steps=step"
)
_ADAM_FLAGS = (
    f"foreach{_N} capturable{_F} differentiable{_F} fused{_N} grad_scale{_N} found_inf{_N} "
    f"has_complex{_F}"
)
_ADAM_SETTINGS = "amsgrad beta1 beta2 lr weight_decay eps maximize"
_PLAIN_FLAGS = f"foreach{_N} maximize{_F} differentiable{_F} capturable{_F} has_complex{_F}"

_FORMS = {
    "adadelta": _Form(
        "square_avgs=square_avg acc_deltas=acc_delta state_steps=step",
        f"capturable{_F} foreach{_N} differentiable{_F} has_complex{_F}",
        "lr rho eps weight_decay maximize",
    ),
    "adafactor": _Form(
        "row_vars=row_var col_vars=col_var variances=variance state_steps=step",
        f"foreach{_N} grad_scale{_N} found_inf{_N} has_complex{_F}",
        "d lr beta2_decay weight_decay eps1 eps2 maximize",
    ),
    "adagrad": _Form(
        "state_sums=sum state_steps=step",
        f"fused{_N} grad_scale{_N} found_inf{_N} has_sparse_grad{_F} foreach{_N} "
        f"differentiable{_F} has_complex{_F}",
        "lr weight_decay lr_decay eps maximize",
    ),
    "adam": _Form(_ADAM_LISTS, f"{_ADAM_FLAGS} decoupled_weight_decay{_F}", _ADAM_SETTINGS),
    "adamax": _Form(
        "exp_avgs=exp_avg exp_infs=exp_inf state_steps=step",
        _PLAIN_FLAGS,
        "eps beta1 beta2 lr weight_decay",
    ),
    "adamw": _Form(_ADAM_LISTS, _ADAM_FLAGS, _ADAM_SETTINGS),
    "asgd": _Form(
        "axs=ax mus=mu etas=eta state_steps=step", _PLAIN_FLAGS, "lambd lr t0 alpha weight_decay"
    ),
    "muon": _Form(
        "muon_momentum_bufs=momentum_buffer",
        "",
        f"foreach{_N} lr weight_decay momentum nesterov ns_coefficients ns_steps eps "
        "adjust_lr_fn has_complex",
    ),
    "nadam": _Form(
        "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq mu_products=mu_product state_steps=step",
        f"decoupled_weight_decay{_F} foreach{_N} capturable{_F} differentiable{_F} "
        f"has_complex{_F} maximize{_F}",
        "beta1 beta2 lr weight_decay momentum_decay eps",
    ),
    "radam": _Form(
        "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq state_steps=step",
        f"decoupled_weight_decay{_F} foreach{_N} differentiable{_F} capturable{_F} "
        f"has_complex{_F} maximize{_F}",
        "beta1 beta2 lr weight_decay eps",
    ),
    "rmsprop": _Form(
        "square_avgs=square_avg grad_avgs=grad_avg momentum_buffer_list=momentum_buffer "
        "state_steps=step",
        _PLAIN_FLAGS,
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": _Form(
        "prevs=prev step_sizes=step_size state_steps=step",
        f"foreach{_N} capturable{_F} maximize{_F} differentiable{_F} has_complex{_F}",
        "step_size_min step_size_max etaminus etaplus",
    ),
    "sgd": _Form(
        "momentum_buffer_list=momentum_buffer",
        f"has_sparse_grad{_F} foreach{_N} fused{_N} grad_scale{_N} found_inf{_N}",
        "weight_decay momentum lr dampening nesterov maximize",
        before="params d_p_list",
    ),
    "sparse_adam": _Form(
        "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq state_steps=step",
        "",
        "eps beta1 beta2 lr maximize",
    ),
}
_CLASS_OF = {
    "adafactor": "Adafactor",
    "adamw": "AdamW",
    "asgd": "ASGD",
    "nadam": "NAdam",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
    "sparse_adam": "SparseAdam",
}
_DEFAULTS = {_F: False, _N: None}


def _parameters(form):
    Parameter = inspect.Parameter
    for entry in f"{form.before} {form.lists}".split():
        yield Parameter(entry.partition("=")[0], Parameter.POSITIONAL_OR_KEYWORD)
    for kind, entries in (
        (Parameter.POSITIONAL_OR_KEYWORD, form.flags),
        (Parameter.KEYWORD_ONLY, form.settings),
    ):
        for entry in entries.split():
            name, equals, default = entry.partition("=")
            default = _DEFAULTS.get(equals + default, Parameter.empty)
            yield Parameter(name, kind, default=default)


def _group(given):
    """The settings of a parameter group out of a function's arguments."""
    group = {"differentiable": False, "decoupled_weight_decay": False, "weight_decay": 0} | given
    for name, parts in (
        ("betas", ("beta1", "beta2")),
        ("eps", ("eps1", "eps2")),
        ("etas", ("etaminus", "etaplus")),
        ("step_sizes", ("step_size_min", "step_size_max")),
    ):
        if parts[0] in given:
            group[name] = tuple(given[part] for part in parts)
    return group


def _optimizer(name, given):
    """An optimizer without parameters, of which only the step is used."""
    class_name = _CLASS_OF.get(name, name.capitalize())
    cls = getattr(facula.optim, class_name)
    optimizer = cls.__new__(cls)
    for setting in ("grad_scale", "found_inf"):
        if given.get(setting) is not None:
            setattr(optimizer, setting, given[setting])
    return optimizer


def _step_listed(name, optimizer, group, params, grads, states):
    names = optimizer._buffers(group)
    for lists in _lists.split_by_kind(params, grads, states):
        optimizer._step_kind(group, *lists, names)


def _step_adam(name, optimizer, group, params, grads, states):
    group["decoupled_weight_decay"] = name == "adamw" or group["decoupled_weight_decay"]
    names = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    lists = [[state[key] for state in states if key in state] for key in names]
    optimizer._step_collected(group, params, grads, *lists)


def _step_sgd(name, optimizer, group, params, grads, states):
    buffers = [state["momentum_buffer"] for state in states] if group["momentum"] else []
    optimizer.state = {p: state for p, state in zip(params, states, strict=True)}
    optimizer._step_buffered(group, params, grads, buffers)


def _step_single(name, optimizer, group, params, grads, states):
    for p, grad, state in zip(params, grads, states, strict=True):
        optimizer._step_with(group, p, grad, state)


_STEPS = {
    "adam": _step_adam,
    "adamw": _step_adam,
    "sgd": _step_sgd,
    "adafactor": _step_single,
    "muon": _step_single,
    "sparse_adam": _step_single,
}


def _make(name, form):
    signature = inspect.Signature(list(_parameters(form)))
    pairs = [entry.split("=") for entry in form.lists.split()]

    def function(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        params, grads = (given[key] for key in form.before.split())
        states = [{} for _ in params]
        for parameter, entry in pairs:
            # A list may be shorter, or empty where the settings leave that part of the state out.
            for state, value in zip(states, given[parameter], strict=False):
                state[entry] = value
        group = _group({key: given[key] for key in given if key not in dict(pairs)})
        step = _STEPS.get(name, _step_listed)
        with facula.set_grad_enabled(group["differentiable"] and facula.is_grad_enabled()):
            step(name, _optimizer(name, given), group, params, grads, states)
        if name == "sgd":
            given["momentum_buffer_list"][:] = [state["momentum_buffer"] for state in states]

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = f"One step of `optim.{_CLASS_OF.get(name, name.capitalize())}`."
    return function


for _name, _form in _FORMS.items():
    globals()[_name] = _make(_name, _form)
__all__ = list(_FORMS)


def function_of_module(module, name):
    """The function of this module that the module of an optimizer has too.

    Raises:
        AttributeError: another name.
    """
    if name != module.rpartition(".")[2].lstrip("_"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(import_module(__name__), name)

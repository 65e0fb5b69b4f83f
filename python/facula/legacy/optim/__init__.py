"""Torch7's optimizers: functions that get a closure and the parameters as one flat tensor.

Each is called as `sgd(opfunc, x, config, state=None)`: `opfunc(x)` gives the loss and its gradient,
`x` is changed in place, `config` has the settings by Torch7's names, and `state` (config itself
where there is none) keeps what has to live from call to call. The steps are those of
`facula.optim`.

Example:
    >>> from facula.legacy import optim
    >>> x, config = facula.tensor([3.0, -2.0]), {"learningRate": 0.1}
    >>> for _ in range(100):
    ...     x, loss = optim.sgd(lambda x: (x.square().sum().item(), 2 * x), x, config)
    >>> x.abs().max().item() < 1e-6
    True
"""

from __future__ import annotations

import facula

_COMMON = {"learningRate": "lr", "weightDecay": "weight_decay"}
_BETAS = {"beta1": 0, "beta2": 1}
_STATE = {"optimizer", "evalCounter", "learningRateDecay"}


def _settings(name, config, names):
    """The settings of a config by the names that they have in `facula.optim`."""
    found, betas = {}, [0.9, 0.999]
    for key, value in config.items():
        if key in _BETAS and "betas" in names:
            betas[_BETAS[key]] = value
            found["betas"] = tuple(betas)
        elif key in names:
            found[names[key]] = value
        elif key not in _STATE:
            known = {*names, "learningRateDecay", *(_BETAS if "betas" in names else ())}
            listed = ", ".join(sorted(known - {"betas"}))
            raise ValueError(f"{name}(): expected settings of {listed}; got {key!r}")
    return found


def _optimizer(name, kind, x, config, state, names, defaults):
    """The optimizer that `state` keeps for x, made where there is none yet."""
    settings = {**defaults, **_settings(name, config, names)}
    kept = state.get("optimizer")
    if kept is None or kept.param_groups[0]["params"][0].data_ptr() != x.data_ptr():
        kept = state["optimizer"] = kind([x.detach().requires_grad_()], **settings)
        state["evalCounter"] = 0
    decay = 1 + state["evalCounter"] * config.get("learningRateDecay", 0)
    kept.param_groups[0].update(settings, lr=settings["lr"] / decay)
    return kept


def _method(name, doc, kind, defaults, **names):
    def method(opfunc, x, config, state=None):
        state = config if state is None else state
        own = dict(defaults)
        if name == "sgd" and "dampening" not in config and not config.get("nesterov"):
            own["dampening"] = config.get("momentum", 0)  # Torch7's default
        optimizer = _optimizer(name, kind, x, config, state, {**_COMMON, **names}, own)
        loss, gradient = opfunc(x)
        optimizer.param_groups[0]["params"][0].grad = gradient.detach()
        optimizer.step()
        state["evalCounter"] += 1
        return x, loss

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{doc}\n\nReturns:\n    x, and the loss before the step."
    return method


sgd = _method(
    "sgd",
    "A step against the gradient, with momentum.",
    facula.optim.SGD,
    {"lr": 1e-3},
    momentum="momentum",
    dampening="dampening",
    nesterov="nesterov",
)
_OF_ADAM = {"epsilon": "eps", "betas": "betas"}
adam = _method("adam", "A step of Adam.", facula.optim.Adam, {"lr": 1e-3}, **_OF_ADAM)
adamax = _method(
    "adamax",
    "A step of Adam with the infinity norm.",
    facula.optim.Adamax,
    {"lr": 2e-3},
    **_OF_ADAM,
)
adagrad = _method("adagrad", "A step of Adagrad.", facula.optim.Adagrad, {"lr": 1e-3})
adadelta = _method(
    "adadelta",
    "A step of Adadelta.",
    facula.optim.Adadelta,
    {"lr": 1.0},
    rho="rho",
    eps="eps",
)
rmsprop = _method(
    "rmsprop",
    "A step of RMSprop.",
    facula.optim.RMSprop,
    {"lr": 1e-2, "alpha": 0.99},
    alpha="alpha",
    epsilon="eps",
)
asgd = _method(
    "asgd",
    "A step of averaged stochastic gradient descent.",
    facula.optim.ASGD,
    {"lr": 1e-2},
    alpha="alpha",
    t0="t0",
)
rprop = _method("rprop", "A step of resilient backpropagation.", facula.optim.Rprop, {"lr": 0.1})


def lbfgs(opfunc, x, config, state=None):
    """Several steps of L-BFGS.

    Args:
        opfunc (callable): gives the loss and its gradient for x.
        x (Tensor): the parameters, changed in place.
        config (dict): learningRate, maxIter, maxEval, tolFun, tolX, nCorrection.
        state (dict): keeps the optimizer; config itself where there is none.

    Returns:
        x, and the losses of all evaluations.
    """
    names = {
        "learningRate": "lr",
        "maxIter": "max_iter",
        "maxEval": "max_eval",
        "tolFun": "tolerance_grad",
        "tolX": "tolerance_change",
        "nCorrection": "history_size",
    }
    state = config if state is None else state
    optimizer = _optimizer("lbfgs", facula.optim.LBFGS, x, config, state, names, {"lr": 1.0})
    parameter, losses = optimizer.param_groups[0]["params"][0], []

    def closure():
        loss, gradient = opfunc(x)
        parameter.grad = gradient.detach()
        losses.append(loss)
        return loss

    optimizer.step(closure)
    return x, losses

"""Averages of a model over training: stochastic weight averaging and exponential moving ones."""

from __future__ import annotations

import math
from copy import deepcopy

import facula
from facula.nn import Module
from facula.nn.modules.batchnorm import _BatchNorm
from facula.optim._schedule_base import LRScheduler, per_group
from facula.optim.lr_scheduler import _warn_get_lr_called_within_step

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


def _is_real_or_complex(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"decay must be in [0, 1]; got {decay}")


def get_ema_multi_avg_fn(decay=0.999):
    """The update of exponential moving averages, for lists of tensors.

    Args:
        decay: weight of the past, in [0, 1].

    Returns:
        A function (averages, values, count) that changes the averages in place.

    Raises:
        ValueError: decay out of range.
    """
    _check_decay(decay)

    @facula.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        """Move each average towards its value by a share of 1 - decay."""
        if _is_real_or_complex(ema_param_list[0]):
            facula._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
            return
        for average, value in zip(ema_param_list, current_param_list, strict=True):
            average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """The update of plain averages, for lists of tensors.

    Returns:
        A function (averages, values, count) that changes the averages in place.
    """

    @facula.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        """Move each average towards its value by a share of 1 / (num_averaged + 1)."""
        count = num_averaged + 1
        if _is_real_or_complex(averaged_param_list[0]):
            facula._foreach_lerp_(averaged_param_list, current_param_list, float(1 / count))
            return
        for average, value in zip(averaged_param_list, current_param_list, strict=True):
            average.add_(((value - average) / count).to(average.dtype))

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """The update of an exponential moving average: a function (average, value, count) to a Tensor.

    Args:
        decay: weight of the past, in [0, 1].

    Raises:
        ValueError: decay out of range.
    """
    _check_decay(decay)

    @facula.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        """The average after a further value."""
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """The update of a plain average: a function (average, value, count) to a Tensor."""

    @facula.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        """The average after a further value."""
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the times of `update_parameters`.

    Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization".

    Args:
        model: the Module that is trained.
        device: where the averages live; where the model does when None.
        avg_fn: function (average, value, count) to the new average of a parameter.
        multi_avg_fn: function (averages, values, count) that changes lists in place.
        use_buffers: average the buffers, too, in place of copying them.

    Without a function the average is the plain one.

    Raises:
        AssertionError: both functions.

    Example:
        >>> model = facula.nn.Linear(2, 1)
        >>> averaged = facula.optim.swa_utils.AveragedModel(model)
        >>> averaged.update_parameters(model)
        >>> bool((averaged.module.weight == model.weight).all())
        True
    """

    def __init__(
        self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: give avg_fn or multi_avg_fn; got both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", facula.tensor(0, dtype=facula.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged_of(self, model):
        values = list(model.parameters())
        return values + list(model.buffers()) if self.use_buffers else values

    def update_parameters(self, model):
        """Add the parameters of `model` to the averages."""
        averages = [t.detach() for t in self._averaged_of(self.module)]
        values = [
            value.detach().to(average.device)
            for average, value in zip(averages, self._averaged_of(model), strict=False)
        ]
        if self.n_averaged == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        else:
            self._update(averages, values)
        if not self.use_buffers:
            for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=False):
                ours.detach().copy_(theirs.detach().to(ours.device))
        self.n_averaged += 1

    def _update(self, averages, values):
        if self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                count = self.n_averaged.to(average.device)
                average.copy_(self.avg_fn(average, value, count))
            return
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        kinds = {}
        for average, value in zip(averages, values, strict=True):
            ours, theirs = kinds.setdefault((average.device, average.dtype), ([], []))
            ours.append(average)
            theirs.append(value)
        for (device, _), (ours, theirs) in kinds.items():
            update(ours, theirs, self.n_averaged.to(device))


@facula.no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of batch normalization anew, over the batches of `loader`.

    Args:
        loader: iterable of inputs, or of tuples that begin with one.
        model: Module; its training mode is afterwards as before.
        device: where inputs are moved.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        # Without momentum the running statistics are plain means over the batches.
        module.momentum = None
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the current rate to a fixed one, and stays there.

    Args:
        optimizer: whose groups change.
        swa_lr: the last rate, or one for each group.
        anneal_epochs: how many epochs it takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: number of the last step when training goes on, else -1.

    Raises:
        ValueError: another strategy, or epochs that are no integer of at least 0.
    """

    def __init__(
        self, optimizer, swa_lr: float, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1
    ) -> None:
        rates = per_group(optimizer, "swa_lr", swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: anneal_strategy must be 'cos' or 'linear'; got {anneal_strategy!r}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: anneal_epochs must be an integer of at least 0; got {anneal_epochs}"
            )
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t):
        return t

    @staticmethod
    def _cosine_anneal(t):
        return (1 - math.cos(math.pi * t)) / 2

    def _set_anneal_func(self, anneal_strategy):
        self._anneal_strategy = anneal_strategy
        is_cosine = anneal_strategy == "cos"
        self.anneal_func = self._cosine_anneal if is_cosine else self._linear_anneal

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        """The rate at the start, of which `lr` is what a share `alpha` of the way makes."""
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self):
        """The next rates."""
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (
            self.anneal_func(max(0, min(1, n / max(1, self.anneal_epochs))))
            for n in (step - 1, step)
        )
        rates = []
        for group in self.optimizer.param_groups:
            first = self._get_initial_lr(group["lr"], group["swa_lr"], before)
            rates.append(group["swa_lr"] * now + first * (1 - now))
        return rates

    def state_dict(self):
        """Everything but optimizer and function; returns a dict."""
        hidden = ("optimizer", "anneal_func")
        return {key: value for key, value in self.__dict__.items() if key not in hidden}

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)

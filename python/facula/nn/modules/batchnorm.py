"""Batch normalization layers."""

from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep, _ones_and_zeros
from facula.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter


class _NormBase(Module):
    """What batch and instance normalization share."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum=0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        _keep(
            self,
            num_features=num_features,
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
        )
        weight = Parameter(facula.empty(num_features, **options)) if affine else None
        self.register_parameter("weight", weight)
        has_bias = affine and bias
        self.register_parameter(
            "bias", Parameter(facula.empty(num_features, **options)) if has_bias else None
        )
        self._register_statistics(track_running_stats, num_features, options)
        self.reset_parameters()

    def _register_statistics(self, track, num_features, options):
        mean = var = count = None
        if track:
            mean = facula.zeros(num_features, **options)
            var = facula.ones(num_features, **options)
            count = facula.tensor(0, dtype=facula.long, device=options["device"])
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self):
        """Set the running mean to 0, the variance to 1 and the count to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Reset the statistics; set weight to 1 and bias to 0."""
        self.reset_running_stats()
        _ones_and_zeros(self.weight, self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Checkpoints of version 1 do not count batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                count = self.num_batches_tracked
                state_dict[key] = (
                    count
                    if count is not None and not count.is_meta
                    else facula.tensor(0, dtype=facula.long)
                )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Batch normalization without a check of the number of dimensions."""

    def _average_factor(self):
        """The weight of this batch in the running statistics; counts the batch."""
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        return factor

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Normalize `input`, (N, C, *)."""
        self._check_input_dim(input)
        factor = self._average_factor()
        mean, var = self.running_mean, self.running_var
        use_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch, factor, self.eps)


def _check_dims(input, allowed):
    if input.dim() not in allowed:
        names = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"batch norm: input must be {names}; got {input.dim()}D")


_DOC = """Normalizes each channel over the batch of a {shape} input.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a batch in the running statistics; None for a plain average.
        affine: whether there are trained weight and bias.
        track_running_stats: keep statistics for evaluation.
        device, dtype: of parameters and statistics.
        bias: whether there is a bias when `affine`.

    Raises:
        ValueError: an input with another number of dimensions.
    """


class BatchNorm1d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C) or (N, C, L)")

    def _check_input_dim(self, input):
        _check_dims(input, (2, 3))


class BatchNorm2d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C, H, W)")

    def _check_input_dim(self, input):
        _check_dims(input, (4,))


class BatchNorm3d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C, D, H, W)")

    def _check_input_dim(self, input):
        _check_dims(input, (5,))


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Finds `num_features` at the first call."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        options = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = facula.tensor(0, dtype=facula.long, device=device)

    def reset_parameters(self):
        """Reset the layer, once its shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Give parameters and statistics the shapes that `input` asks for."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        shape = (self.num_features,)
        for value in (self.weight, self.bias) if self.affine else ():
            if value is not None:
                value.materialize(shape)
        if self.track_running_stats:
            self.running_mean.materialize(shape)
            self.running_var.materialize(shape)
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that finds `num_features` at its first call."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that finds `num_features` at its first call."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that finds `num_features` at its first call."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the processes of a group, as if their batches were one.

    Outside of training, and where there is one process, it is a plain batch normalization of inputs
    of at least 2 dimensions. Ranks may have batches of different sizes, also empty ones.

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as in
            `BatchNorm1d`.
        process_group: whose processes are taken together; the default group if None.

    Raises:
        ValueError: an input of fewer than 2 dimensions or without channels; while training, no more
            than one number of each channel over all ranks.

    Example:
        >>> model = facula.nn.Sequential(facula.nn.Linear(4, 4), facula.nn.BatchNorm1d(4))
        >>> facula.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
        SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm: input must have at least 2 dimensions; got {input.dim()}"
            )
        if input.shape[1] == 0:
            raise ValueError(
                "SyncBatchNorm: input must have at least one channel; got shape "
                f"{tuple(input.shape)}"
            )

    def _use_ranks(self):
        import facula.distributed as dist

        if not (self.training and dist.is_available() and dist.is_initialized()):
            return False
        return dist.get_world_size(self.process_group) > 1

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Normalize `input`, (N, C, *)."""
        if not self._use_ranks():
            return super().forward(input)
        from facula.nn.modules._functions import SyncBatchNorm as Function

        self._check_input_dim(input)
        factor = self._average_factor()
        track = self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if track else (None, None)
        args = (input, self.weight, self.bias, mean, var, self.eps, factor, self.process_group)
        return Function.apply(*args)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Replace all batch normalizations in `module`; returns it, or the replacement."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for table in ("_parameters", "_buffers"):
                getattr(result, table).update(getattr(module, table))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result

"""Instance normalization layers."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    """Instance normalization over `_spatial` dimensions."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self):
        return self._spatial + 1

    def _check_input_dim(self, input):
        low = self._spatial + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(
                f"{type(self).__name__}: input must be {low}D or {low + 1}D; got {input.dim()}D"
            )

    def _check_channels(self, input, dim):
        if input.size(dim) == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"{type(self).__name__}: input's size in dimension {dim} must be "
                f"num_features, {self.num_features}; got {input.size(dim)}"
            )
        import warnings

        warnings.warn(
            f"InstanceNorm: input's size in dimension {dim} is not num_features; with affine=False "
            "this does not matter",
            stacklevel=3,
        )

    def _normalize(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input):
        """Normalize `input`, (N, C, *) or (C, *)."""
        self._check_input_dim(input)
        batched = input.dim() != self._get_no_batch_dim()
        self._check_channels(input, 1 if batched else 0)
        if batched:
            return self._normalize(input)
        return self._normalize(input.unsqueeze(0)).squeeze(0)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            keys = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if keys:
                names = " and ".join(f'"{k}"' for k in keys)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__}, which "
                    "has track_running_stats=False; remove them from state_dict"
                )
                for key in keys:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


_DOC = """Normalizes each channel of each instance of a {shape} input.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a batch in the running statistics.
        affine: whether there are trained weight and bias.
        track_running_stats: keep statistics for evaluation.
        device, dtype: of parameters and statistics.
        bias: whether there is a bias when `affine`.

    Raises:
        ValueError: an input with another number of dimensions or channels.
    """


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, L) or (C, L)")
    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, H, W) or (C, H, W)")
    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, D, H, W) or (C, D, H, W)")
    _spatial = 3


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that finds `num_features` at its first call."""

    cls_to_become = InstanceNorm1d
    _spatial = 1


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that finds `num_features` at its first call."""

    cls_to_become = InstanceNorm2d
    _spatial = 2


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that finds `num_features` at its first call."""

    cls_to_become = InstanceNorm3d
    _spatial = 3

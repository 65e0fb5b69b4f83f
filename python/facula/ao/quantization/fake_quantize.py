"""Fake quantization as modules: training sees the rounding that quantization will bring."""

from __future__ import annotations

from abc import ABC, abstractmethod

import facula
from facula.nn import Module

from ._partial import with_args
from ._ranges import is_per_channel, is_per_tensor
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "ObserverOrFakeQuantize",
    "FakeQuantizeBase",
    "FakeQuantize",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "default_fake_quant",
    "default_weight_fake_quant",
    "default_dynamic_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_affine_fixed_qparams_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_histogram_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_wt_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "fused_wt_fake_quant_range_neg_127_to_127",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
]


class FakeQuantizeBase(ABC, Module):
    """What fake-quantizing modules share: switches for observing and for rounding."""

    def __init__(self):
        super().__init__()
        # Buffers, so that they are copied to devices and saved with the model.
        self.register_buffer("fake_quant_enabled", facula.tensor([1], dtype=facula.uint8))
        self.register_buffer("observer_enabled", facula.tensor([1], dtype=facula.uint8))

    @abstractmethod
    def forward(self, x):
        """The tensor, rounded."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)"""

    def enable_fake_quant(self, enabled=True):
        """Round from now on."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        """Round no more."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        """Observe from now on."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        """Observe no more."""
        self.enable_observer(False)

    with_args = classmethod(with_args)


# Either of the modules that see tensors pass.
ObserverOrFakeQuantize = ObserverBase | FakeQuantizeBase


def _wanted_range(quant_min, quant_max, observer_kwargs):
    if quant_min is None or quant_max is None:
        return
    if quant_min > quant_max:
        raise AssertionError("quant_min must be less than or equal to quant_max")
    observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)


class FakeQuantize(FakeQuantizeBase):
    """Observes tensors, and rounds them to what a quantized tensor could hold.

    Args:
        observer: class or factory of the observer. quant_min, quant_max (int): range of integers.
        is_dynamic (bool): whether each tensor's own range serves. Further arguments are the
            observer's.

    Example:
        >>> fake = FakeQuantize(quant_min=0, quant_max=255)
        >>> fake(facula.tensor([0.0, 0.301, 1.0]))
        tensor([0.0000, 0.3020, 1.0000])
    """

    def __init__(
        self,
        observer=MovingAverageMinMaxObserver,
        quant_min=None,
        quant_max=None,
        is_dynamic=False,
        **observer_kwargs,
    ):
        super().__init__()
        _wanted_range(quant_min, quant_max, observer_kwargs)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.quant_min = self.activation_post_process.quant_min
        self.quant_max = self.activation_post_process.quant_max
        self.is_dynamic = self.activation_post_process.is_dynamic
        scheme = self.activation_post_process.qscheme
        floats = scheme is facula.per_channel_affine_float_qparams
        zero_dtype = facula.float if floats else facula.int
        self.register_buffer("scale", facula.tensor([1.0], dtype=facula.float))
        self.register_buffer("zero_point", facula.tensor([0], dtype=zero_dtype))
        self.dtype, self.qscheme = self.activation_post_process.dtype, scheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        if not (is_per_channel(scheme) or is_per_tensor(scheme)):
            raise AssertionError(f"unknown scheme {scheme}")
        self.is_per_channel = is_per_channel(scheme)

    def calculate_qparams(self):
        """(scale, zero point) for what was observed."""
        return self.activation_post_process.calculate_qparams()

    def _observe(self, X):
        self.activation_post_process(X.detach())
        scale, zero_point = self.calculate_qparams()
        if self.scale.shape != scale.shape:
            self.scale.resize_(scale.shape)
            self.zero_point.resize_(zero_point.shape)
        self.scale.copy_(scale)
        self.zero_point.copy_(zero_point)

    def forward(self, X):
        """The tensor, rounded where that is enabled."""
        if self.observer_enabled[0] == 1:
            self._observe(X)
        if self.fake_quant_enabled[0] != 1:
            return X
        bounds = (self.quant_min, self.quant_max)
        if self.is_per_channel:
            return facula.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *bounds
            )
        return facula.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *bounds)

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min="
            f"{self.activation_post_process.quant_min}, quant_max="
            f"{self.activation_post_process.quant_max}, dtype={self.dtype}, "
            f"qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a given scale and zero point; its observer sees nothing."""

    def __init__(self, observer):
        super().__init__(observer=observer)
        self.scale, self.zero_point = self.activation_post_process.calculate_qparams()

    def calculate_qparams(self):
        """(scale, zero point) as given."""
        return self.scale, self.zero_point

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min="
            f"{self.activation_post_process.quant_min}, quant_max="
            f"{self.activation_post_process.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize with a moving average of bounds, as one operator."""

    def __init__(
        self,
        observer=MovingAverageMinMaxObserver,
        quant_min=0,
        quant_max=255,
        **observer_kwargs,
    ):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        kinds = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, kinds):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver; "
                f"got {type(self.activation_post_process)}"
            )
        self.register_buffer("fake_quant_enabled", facula.tensor([1], dtype=facula.long))
        self.register_buffer("observer_enabled", facula.tensor([1], dtype=facula.long))
        self.is_symmetric_quant = self.activation_post_process.qscheme in (
            facula.per_tensor_symmetric,
            facula.per_channel_symmetric,
        )

    def calculate_qparams(self):
        """(scale, zero point) for what was observed."""
        return self.activation_post_process.calculate_qparams()

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min="
            f"{self.activation_post_process.quant_min}, quant_max="
            f"{self.activation_post_process.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )

    def forward(self, X):
        """The tensor, rounded where that is enabled."""
        observer = self.activation_post_process
        return facula.fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            observer.min_val,
            observer.max_val,
            self.scale,
            self.zero_point,
            observer.averaging_constant,
            self.quant_min,
            self.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


def _switch(method):
    def switch(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, method)()

    switch.__name__ = method
    switch.__doc__ = f"`{method}` of a fake-quantizing module, for `Module.apply`."
    return switch


disable_fake_quant = _switch("disable_fake_quant")
enable_fake_quant = _switch("enable_fake_quant")
disable_observer = _switch("disable_observer")
enable_observer = _switch("enable_observer")

_ACTIVATION = {"quant_min": 0, "quant_max": 255, "dtype": facula.quint8}
_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": facula.qint8}
_NARROW = {"quant_min": -127, "quant_max": 127, "dtype": facula.qint8}
_AVERAGE = {"observer": MovingAverageMinMaxObserver}
_BY_CHANNEL = {"observer": MovingAveragePerChannelMinMaxObserver}
_ROWS = {
    **_BY_CHANNEL,
    "qscheme": facula.per_channel_affine_float_qparams,
    "ch_axis": 0,
    "averaging_constant": 1,
}

default_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, **_ACTIVATION, qscheme=facula.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, **_WEIGHT, qscheme=facula.per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    **_AVERAGE,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=facula.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_BY_CHANNEL, **_WEIGHT, qscheme=facula.per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(
    **_ROWS, dtype=facula.quint8, quant_min=0, quant_max=255
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(**_ROWS, dtype=facula.quint4x2)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_ACTIVATION, qscheme=facula.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_AVERAGE, **_ACTIVATION)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_WEIGHT, qscheme=facula.per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_BY_CHANNEL, **_WEIGHT, qscheme=facula.per_channel_symmetric
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_NARROW, qscheme=facula.per_tensor_symmetric, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_BY_CHANNEL, **_NARROW, qscheme=facula.per_channel_symmetric, eps=2**-12
)

"""Observers: modules that see tensors pass, and say what scale and zero point suit them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict

import facula
from facula.nn import Module

from . import _granularity
from ._granularity import *  # noqa: F403
from ._partial import with_args, with_callable_args
from ._ranges import (
    calculate_qmin_qmax,
    is_per_tensor,
    qparams_of_range,
    validate_qmin_qmax,
)

__all__ = [
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    *_granularity.__all__,
]

_EPS = facula.finfo(facula.float32).eps


class ObserverBase(ABC, Module):
    """What observers share: `forward` sees a tensor and returns it.

    Args:
        dtype (facula.dtype): of the quantized tensors. is_dynamic (bool): whether each tensor's
            own range serves, at run time.
    """

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """See a tensor."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point) for what was seen."""

    with_args = classmethod(with_args)
    with_callable_args = classmethod(with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """What observers of ranges share.

    Args:
        dtype (facula.dtype): of the quantized tensors. qscheme: affine or symmetric, for the
            tensor or by channels. reduce_range (bool): half of the integers. quant_min, quant_max
            (int): the range of integers, where it is not the dtype's. eps (float): the least
            scale.
    """

    _version = 3

    def __init__(
        self,
        dtype=facula.quint8,
        qscheme=facula.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", facula.tensor([eps], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _validate_qmin_qmax(self, quant_min, quant_max):
        validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val, max_val):
        return qparams_of_range(
            min_val,
            max_val,
            self.quant_min,
            self.quant_max,
            self.dtype,
            self.eps,
            self.has_customized_qrange,
            self.qscheme,
        )

    def reset_min_max_vals(self):
        """Forget what was seen."""
        raise NotImplementedError(f"{type(self).__name__}.reset_min_max_vals() is not defined")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest value seen.

    Example:
        >>> observer = MinMaxObserver()
        >>> _ = observer(facula.tensor([-1.0, 1.0]))
        >>> observer.calculate_qparams()
        (tensor([0.0078]), tensor([127], dtype=facula.int32))
    """

    def __init__(
        self,
        dtype=facula.quint8,
        qscheme=facula.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}: expected a scheme for whole tensors; got {qscheme}"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.register_buffer("min_val", facula.tensor(float("inf")))
        self.register_buffer("max_val", facula.tensor(float("-inf")))

    def forward(self, x_orig):
        """See a tensor."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = facula.aminmax(x_orig.detach().to(self.min_val.dtype))
        self.min_val.copy_(facula.minimum(low, self.min_val))
        self.max_val.copy_(facula.maximum(high, self.max_val))
        return x_orig

    def calculate_qparams(self):
        """(scale, zero point) for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val.copy_(facula.tensor(float("inf")))
        self.max_val.copy_(facula.tensor(float("-inf")))


def _follow(running, seen, rate):
    """Where a running bound moves to; the first value seen sets it."""
    return running + rate * (seen - running)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Running averages of each tensor's least and greatest value.

    Args:
        averaging_constant (float): how far the averages move towards a new tensor's.
    """

    def __init__(
        self,
        averaging_constant=0.01,
        dtype=facula.quint8,
        qscheme=facula.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver: a dynamic range is of one batch, so expected an "
                f"averaging_constant of 1; got {averaging_constant}"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )

    def forward(self, x_orig):
        """See a tensor."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = facula.aminmax(x_orig.detach().to(self.min_val.dtype))
        if self.min_val != float("inf") or self.max_val != float("-inf"):
            low = _follow(self.min_val, low, self.averaging_constant)
            high = _follow(self.max_val, high, self.averaging_constant)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest value seen of each channel along `ch_axis`."""

    def __init__(
        self,
        ch_axis=0,
        dtype=facula.quint8,
        qscheme=facula.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        if is_per_tensor(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}: expected a scheme by channels; got {qscheme}"
            )
        if is_dynamic:
            raise NotImplementedError(
                f"{type(self).__name__}: dynamic ranges are those of whole tensors"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", facula.tensor([]))
        self.register_buffer("max_val", facula.tensor([]))

    def forward(self, x_orig):
        """See a tensor."""
        return self._forward(x_orig)

    def _bounds(self, x_orig):
        x = x_orig.detach().to(self.min_val.dtype)
        rows = x.movedim(self.ch_axis, 0).flatten(start_dim=1) if x.dim() > 1 else x.unsqueeze(1)
        return facula.aminmax(rows, dim=1)

    def _forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._bounds(x_orig)
        if self.min_val.numel():
            low, high = facula.minimum(low, self.min_val), facula.maximum(high, self.max_val)
        self._keep(low, high)
        return x_orig

    def _keep(self, low, high):
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def calculate_qparams(self):
        """(scales, zero points) for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val, self.max_val = facula.rand(0), facula.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Running averages of each channel's least and greatest value."""

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=facula.quint8,
        qscheme=facula.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        super().__init__(
            ch_axis=ch_axis,
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def forward(self, x_orig):
        """See a tensor."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._bounds(x_orig)
        if self.min_val.numel():
            low = _follow(self.min_val, low, self.averaging_constant)
            high = _follow(self.max_val, high, self.averaging_constant)
        self._keep(low, high)
        return x_orig


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts values in bins, and chooses the range with the least squared error of rounding.

    The search drops quantiles from both ends as long as the error, for values spread evenly over
    each bin, does not grow.

    Args:
        bins (int): of the histogram.
    """

    def __init__(
        self,
        bins=2048,
        dtype=facula.quint8,
        qscheme=facula.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                f"HistogramObserver: expected a scheme for whole tensors; got {qscheme}"
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver: a dynamic range is of one batch alone")
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.bins, self.upsample_rate = bins, 16
        self.register_buffer("histogram", facula.zeros(bins))
        self.register_buffer("min_val", facula.tensor(float("inf")))
        self.register_buffer("max_val", facula.tensor(float("-inf")))
        self.dst_nbins = 2 ** (8 * dtype.itemsize)

    def _error(self, first, last):
        """The squared error where bins `first` to `last` are what the integers serve."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begin = (facula.arange(self.bins) - first) * width
        end = begin + width
        top = self.dst_nbins - 1
        from_step = facula.clamp(facula.div(begin, step, rounding_mode="floor"), 0, top)
        to_step = facula.clamp(facula.div(end, step, rounding_mode="floor"), 0, top)
        density = self.histogram / width
        # From a bin's begin to the end of its first step, whole steps, and from the last one's.
        # The cubes are of float32, as PyTorch's, since the search compares nearly equal errors.
        half, above = step / 2, facula.tensor(step / 2)
        error = _cubes(begin - (from_step + 0.5) * step, facula.ones(self.bins) * half, density)
        error += (to_step - from_step - 1) * _cubes(-above, above, density)
        error += _cubes(-above, end - (to_step * step + half), density)
        return error.sum().item()

    def _non_linear_param_search(self):
        """(least, greatest) value of the range with the least error."""
        width = (self.max_val - self.min_val) / self.bins
        counts = facula.cumsum(self.histogram, dim=0).tolist()
        total, step = facula.sum(self.histogram).item(), 1e-5
        alpha, beta, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + step, beta - step
            left, right = first, last
            while left < last and counts[left] < next_alpha * total:
                left += 1
            while right > first and counts[right] > next_beta * total:
                right -= 1
            next_first, next_last = first, last
            if left - first > last - right:
                next_first, alpha = left, next_alpha
            else:
                next_last, beta = right, next_beta
            if (next_first, next_last) == (first, last):
                continue
            error = self._error(next_first, next_last)
            if error > least:
                break
            least, first, last = error, next_first, next_last
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _spread(self, histogram, low, high, new_low, new_high):
        """The counts in bins of a wider range, by the middles of 16 parts of each bin."""
        parts = self.bins * self.upsample_rate
        fine = histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (high - low) / parts
        middles = facula.linspace(low, high, parts + 1)[:-1] + 0.5 * width
        edges = facula.linspace(new_low, new_high, self.bins + 1)
        places = facula.bucketize(middles, edges, right=True) - 1
        return facula.bincount(places, weights=fine, minlength=self.bins)

    def _joined(self, low, high, counts, new_low, new_high):
        if low == high:  # all that was seen is one value
            one = facula.histc(low, self.bins, min=new_low.item(), max=new_high.item())
            return counts + one * facula.sum(self.histogram)
        return counts + self._spread(self.histogram, low, high, new_low, new_high)

    def reset_histogram(self, x, min_val, max_val):
        """Begin anew with one tensor of values in [min_val, max_val]."""
        self.min_val.copy_(min_val)
        self.max_val.copy_(max_val)
        counts = facula.histc(x, self.bins, min=min_val.item(), max=max_val.item())
        self.histogram.resize_(counts.shape).copy_(counts)

    def forward(self, x_orig):
        """See a tensor."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        low, high = facula.aminmax(x)
        if low == float("-inf") or high == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            low, high = facula.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        new_low, new_high = facula.minimum(self.min_val, low), facula.maximum(self.max_val, high)
        counts = facula.histc(x, self.bins, min=new_low.item(), max=new_high.item())
        if new_low == self.min_val and new_high == self.max_val:
            joined = self.histogram + counts
        else:
            joined = self._joined(self.min_val, self.max_val, counts, new_low, new_high)
        self.histogram.copy_(joined)
        self.min_val.copy_(new_low)
        self.max_val.copy_(new_high)
        return x_orig

    def calculate_qparams(self):
        """(scale, zero point) for what was seen."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn(
                "calculate_qparams(): the observer has seen no values yet; scale 1, zero point 0",
                stacklevel=2,
            )
            return facula.tensor([1.0]), facula.tensor([0])
        if self.bins != len(self.histogram):
            raise AssertionError(f"expected {self.bins} bins; got {len(self.histogram)}")
        return self._calculate_qparams(*self._non_linear_param_search())

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _cubes(begin, end, density):
    """The integral of squares from begin to end, times the density."""
    return density * (end * end * end - begin * begin * begin) / 3


class FixedQParamsObserver(ObserverBase):
    """Sees nothing: the scale and the zero point are given."""

    def __init__(
        self,
        scale,
        zero_point,
        dtype=facula.quint8,
        qscheme=facula.per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver: its range is fixed, not dynamic")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", facula.tensor([scale], dtype=facula.float))
        self.register_buffer("zero_point", facula.tensor([zero_point], dtype=facula.int))
        self.qscheme = qscheme

    def forward(self, X):
        """The tensor itself."""
        return X

    def calculate_qparams(self):
        """(scale, zero point) as given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Sees nothing: holds a dtype, and whether tensors are quantized by their own range."""

    def __init__(
        self,
        dtype=facula.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = facula.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            self.is_dynamic = True

    def forward(self, x):
        """The tensor itself."""
        return x

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self):
        """Raises: there is nothing to calculate."""
        raise Exception(
            "PlaceholderObserver keeps no range: calculate_qparams() has nothing to tell"
        )


class RecordingObserver(ObserverBase):
    """Keeps copies of all tensors seen."""

    def __init__(self, dtype=facula.quint8):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val = []

    def forward(self, x):
        """See a tensor."""
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        """Raises: there is nothing to calculate."""
        raise Exception("RecordingObserver keeps no range: calculate_qparams() has nothing to tell")

    def get_tensor_value(self):
        """The tensors seen, a list."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Sees nothing: holds a dtype."""

    def __init__(self, dtype=facula.float16, custom_op_name=""):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.dtype, self.custom_op = dtype, custom_op_name

    def forward(self, x):
        """The tensor itself."""
        return x

    def calculate_qparams(self):
        """Raises: there is nothing to calculate."""
        raise Exception("NoopObserver keeps no range: calculate_qparams() has nothing to tell")


class ReuseInputObserver(ObserverBase):
    """Stands for an operator whose result is quantized as its input is."""

    def __init__(self):
        super().__init__(facula.quint8, is_dynamic=False)

    def forward(self, x):
        """The tensor itself."""
        return x

    def calculate_qparams(self):
        """Raises: there is nothing to calculate."""
        raise Exception(
            "ReuseInputObserver keeps no range: calculate_qparams() has nothing to tell"
        )


def _is_activation_post_process(module):
    from .fake_quantize import FakeQuantizeBase

    return isinstance(module, (ObserverBase, FakeQuantizeBase))


def get_observer_state_dict(mod):
    """What the observers in a module have seen.

    Returns:
        dict of Tensors, as `Module.state_dict` has them.
    """
    state = OrderedDict()
    for key, value in mod.state_dict().items():
        if "observer" in key or "activation_post_process" in key:
            state[key] = value
    return state


def load_observer_state_dict(mod, obs_dict):
    """Give the observers in a module what `get_observer_state_dict` said.

    Raises:
        RuntimeError: an observer's entry is missing, or an entry has no observer.
    """
    missing, unexpected = [], list(obs_dict)
    for name, module in mod.named_modules():
        if not _is_activation_post_process(module):
            continue
        prefix = name + "."
        own = {k: v for k, v in obs_dict.items() if k.startswith(prefix)}
        result = module.load_state_dict({k[len(prefix) :]: v for k, v in own.items()}, strict=False)
        missing += [prefix + key for key in result.missing_keys]
        unexpected = [k for k in unexpected if k not in own]
    if missing or unexpected:
        raise RuntimeError(
            f"Missing keys for observer {missing} or unexpected keys {unexpected} in state_dict"
        )


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(
    dtype=facula.qint8, qscheme=facula.per_tensor_symmetric
)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=facula.qint8,
    qscheme=facula.per_tensor_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=facula.qint8, qscheme=facula.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=facula.qint8,
    qscheme=facula.per_channel_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=facula.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=facula.quint8, qscheme=facula.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=facula.quint4x2, qscheme=facula.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=facula.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=facula.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver

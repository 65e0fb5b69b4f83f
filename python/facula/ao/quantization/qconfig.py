"""How modules are quantized: an observer for what they give, one for their weights."""

from __future__ import annotations

from collections import namedtuple

import facula
from facula.nn import Identity

from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig",
    "QConfigDynamic",
    "default_qconfig",
    "default_debug_qconfig",
    "default_per_channel_qconfig",
    "default_dynamic_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "per_channel_dynamic_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "default_quint8_weight_qconfig",
    "default_qat_qconfig",
    "default_dynamic_qat_qconfig",
    "default_weight_only_qconfig",
    "default_activation_only_qconfig",
    "default_qat_qconfig_v2",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "get_default_qconfig",
    "get_default_qat_qconfig",
    "QConfigAny",
    "qconfig_equals",
]


def _check_factories(kind, **observers):
    for observer in observers.values():
        if isinstance(observer, facula.nn.Module):
            raise ValueError(
                f"{kind} received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """How a module is quantized.

    Args:
        activation: class or factory of the observer for what the module gives.
        weight: class or factory of the observer for its weight.

    Raises:
        ValueError: an observer itself was given.

    Example:
        >>> from facula.ao.quantization import MinMaxObserver
        >>> config = QConfig(MinMaxObserver, MinMaxObserver.with_args(dtype=facula.qint8))
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        _check_factories("QConfig", activation=activation, weight=weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older name of a configuration whose activations are quantized by their own range."""

    __slots__ = ()

    def __new__(cls, activation=Identity, weight=Identity):
        _check_factories("QConfigDynamic", weight=weight)
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=facula.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=facula.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=facula.float16),
    PlaceholderObserver.with_args(dtype=facula.float16),
)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(ReuseInputObserver, NoopObserver)
_symmetric_activation = HistogramObserver.with_args(
    dtype=facula.qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qconfig = QConfig(
    _symmetric_activation, weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _symmetric_activation, per_channel_weight_observer_range_neg_127_to_127
)
_symmetric_fake = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=facula.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _symmetric_fake, fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _symmetric_fake, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
_floats = NoopObserver.with_args(dtype=facula.float32)
default_embedding_qat_qconfig = QConfig(_floats, default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(_floats, default_embedding_fake_quant_4bit)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _check_backend(backend):
    if backend not in _BACKENDS:
        raise AssertionError(f"expected a backend of {list(_BACKENDS)}; got {backend!r}")


def get_default_qconfig(backend="x86", version=0):
    """The configuration for quantization after training.

    Args:
        backend (str): fbgemm and x86 use half of the integers for activations; qnnpack has one
            scale for a weight, the others one for each output.

    Raises:
        AssertionError: another backend or version.

    Example:
        >>> get_default_qconfig("fbgemm").activation().quant_max
        127
    """
    _check_backend(backend)
    if version != 0:
        raise AssertionError(f"version: {version} not supported; expected 0")
    weight = (
        default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    )
    reduces = backend in ("fbgemm", "x86")
    return QConfig(HistogramObserver.with_args(reduce_range=reduces), weight)


def get_default_qat_qconfig(backend="x86", version=1):
    """The configuration for training with fake quantization.

    Args:
        backend (str): as for `get_default_qconfig`. version (int): 1 for fused modules, else 0.

    Raises:
        AssertionError: another backend or version.
    """
    _check_backend(backend)
    if version not in (0, 1):
        raise AssertionError(f"version: {version} not supported; expected 0 or 1")
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    options = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    activation = kind.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **options
    )
    if version == 0:
        by_channel, whole = default_per_channel_weight_fake_quant, default_weight_fake_quant
    else:
        by_channel, whole = default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant
    return QConfig(activation, whole if backend == "qnnpack" else by_channel)


def qconfig_equals(q1, q2):
    """Whether two configurations make the same observers.

    Example:
        >>> qconfig_equals(default_qconfig, QConfig(*default_qconfig))
        True
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return all(_factories_equal(a, b) for a, b in zip(q1, q2, strict=False))


def _factories_equal(a, b):
    a, b = getattr(a, "p", a), getattr(b, "p", b)
    if not hasattr(a, "func") or not hasattr(b, "func"):
        return a == b
    if a.func != b.func or a.args != b.args or a.keywords.keys() != b.keywords.keys():
        return False
    return all(_factories_equal(a.keywords[k], b.keywords[k]) for k in a.keywords)

"""Loss layers; each is the function of nn.functional with its settings kept."""

from __future__ import annotations

import math

from facula.nn import _reduction
from facula.nn import functional as F
from facula.nn.modules.linear import Linear
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep


class _Loss(Module):
    """Keeps the settings of a loss; `_settings` names those that its function takes."""

    _settings = ("reduction",)

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__()
        legacy = size_average is not None or reduce is not None
        self.reduction = _reduction.legacy_get_string(size_average, reduce) if legacy else reduction

    def _loss(self, function, *tensors):
        return function(*tensors, **{name: getattr(self, name) for name in self._settings})


class _WeightedLoss(_Loss):
    """A loss with a weight, which is a buffer."""

    _settings = ("weight", "reduction")

    def __init__(
        self, weight=None, size_average=None, reduce=None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def _positive_margin(loss, margin):
    if margin <= 0:
        raise ValueError(f"{type(loss).__name__}: margin must be positive; got {margin}")
    return margin


class L1Loss(_Loss):
    """|input - target|, reduced."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of `input` against `target`."""
        return self._loss(F.l1_loss, input, target)


class NLLLoss(_WeightedLoss):
    """Negative log likelihood of classes."""

    __constants__ = ["ignore_index", "reduction"]
    _settings = ("weight", "ignore_index", "reduction")

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        _keep(self, ignore_index=ignore_index)

    def forward(self, input, target):
        """The loss of log probabilities `input` against classes `target`."""
        return self._loss(F.nll_loss, input, target)


class NLLLoss2d(NLLLoss):
    """Old name of `NLLLoss`."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        import warnings

        warnings.warn(
            "NLLLoss2d is deprecated; NLLLoss takes the same inputs", FutureWarning, stacklevel=2
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of Poisson counts."""

    __constants__ = ["log_input", "full", "eps", "reduction"]
    _settings = ("log_input", "full", "eps", "reduction")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average=None,
        eps: float = 1e-8,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, log_input=log_input, full=full, eps=eps)

    def forward(self, log_input, target):
        """The loss of expectations `log_input` against counts `target`."""
        return self._loss(F.poisson_nll_loss, log_input, target)


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of Gaussian targets."""

    __constants__ = ["full", "eps", "reduction"]
    _settings = ("full", "eps", "reduction")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        _keep(self, full=full, eps=eps)

    def forward(self, input, target, var):
        """The loss of expectations `input` with variances `var` against `target`."""
        return self._loss(F.gaussian_nll_loss, input, target, var)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of log probabilities from a target."""

    __constants__ = ["reduction"]
    _settings = ("reduction", "log_target")

    def __init__(
        self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, log_target=log_target)

    def forward(self, input, target):
        """The loss of log probabilities `input` against `target`."""
        return self._loss(F.kl_div, input, target)


class MSELoss(_Loss):
    """(input - target)^2, reduced."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of `input` against `target`."""
        return self._loss(F.mse_loss, input, target)


class BCELoss(_WeightedLoss):
    """Cross entropy between probabilities and targets."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of probabilities `input` against `target`."""
        return self._loss(F.binary_cross_entropy, input, target)


class BCEWithLogitsLoss(_Loss):
    """Cross entropy between the sigmoid of logits and targets."""

    _settings = ("weight", "pos_weight", "reduction")

    def __init__(
        self, weight=None, size_average=None, reduce=None, reduction: str = "mean", pos_weight=None
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        """The loss of logits `input` against `target`."""
        return self._loss(F.binary_cross_entropy_with_logits, input, target)


class HingeEmbeddingLoss(_Loss):
    """x for targets 1, max(0, margin - x) for targets -1."""

    __constants__ = ["margin", "reduction"]
    _settings = ("margin", "reduction")

    def __init__(
        self, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, margin=margin)

    def forward(self, input, target):
        """The loss of distances `input` against `target`."""
        return self._loss(F.hinge_embedding_loss, input, target)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of scores against lists of classes."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of scores `input` against `target`."""
        return self._loss(F.multilabel_margin_loss, input, target)


class SmoothL1Loss(_Loss):
    """Squared error over 2 * beta below `beta`, else |error| - beta / 2."""

    __constants__ = ["reduction"]
    _settings = ("reduction", "beta")

    def __init__(
        self, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, beta=beta)

    def forward(self, input, target):
        """The loss of `input` against `target`."""
        return self._loss(F.smooth_l1_loss, input, target)


class HuberLoss(_Loss):
    """Half the squared error below `delta`, else delta * (|error| - delta / 2)."""

    __constants__ = ["reduction", "delta"]
    _settings = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"HuberLoss: delta must be a float or int; got {type(delta)}")
        _keep(self, delta=delta)

    def forward(self, input, target):
        """The loss of `input` against `target`."""
        return self._loss(F.huber_loss, input, target)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), reduced."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of `input` against targets 1 and -1."""
        return self._loss(F.soft_margin_loss, input, target)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy between logits and classes or class probabilities.

    Args:
        weight: (C) weights of the classes, or None.
        ignore_index: class that counts for nothing.
        reduction: "none", "mean" or "sum".
        label_smoothing: in [0, 1].
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]
    _settings = ("weight", "ignore_index", "reduction", "label_smoothing")

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        _keep(self, ignore_index=ignore_index, label_smoothing=label_smoothing)

    def forward(self, input, target):
        """The loss of logits `input` against `target`."""
        return self._loss(F.cross_entropy, input, target)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy between a learned linear map of the input and classes or probabilities.

    Args:
        in_features: size of an input sample.
        num_classes: number of classes.
        out_features: further sizes (d1, ...) of a target with more than one class per sample.
        bias: whether the map has one.
        reduction, weight, label_smoothing: as for `CrossEntropyLoss`.
        ignore_index: class that counts for nothing; None: -100. Not for probabilities.
        options: a `LinearCrossEntropyOptions` to go by blocks, which never hold all logits.

    Raises:
        RuntimeError: weight of another shape than (num_classes); label_smoothing not in [0, 1].

    Example:
        >>> loss = facula.nn.LinearCrossEntropyLoss(8, 5)
        >>> loss(facula.randn(3, 8), facula.tensor([1, 0, 4])).dim()
        0
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]
    _settings = ("weight", "reduction", "ignore_index", "label_smoothing", "options")

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device=None,
        dtype=None,
        reduction: str = "mean",
        weight=None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options=None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss: weight must have shape {(num_classes,)}; got "
                f"{tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"LinearCrossEntropyLoss: label_smoothing must be in [0, 1]; got {label_smoothing}"
            )
        _keep(self, in_features=in_features, num_classes=num_classes)
        _keep(self, out_features=tuple(out_features), ignore_index=ignore_index)
        _keep(self, label_smoothing=label_smoothing, options=options)
        rows = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input, target):
        """The loss of the linear map of `input` against `target`."""
        shape = self.num_classes, *self.out_features
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            **{name: getattr(self, name) for name in self._settings},
        )

    def extra_repr(self):
        """The settings."""
        shown = "in_features num_classes out_features bias reduction ignore_index label_smoothing"
        values = {"bias": self.linear.bias is not None}
        names = (*shown.split(), "options")
        return ", ".join(f"{n}={values.get(n, getattr(self, n, None))}" for n in names)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over classes of the logistic loss against 0/1 targets."""

    __constants__ = ["reduction"]

    def forward(self, input, target):
        """The loss of scores `input` against `target`."""
        return self._loss(F.multilabel_soft_margin_loss, input, target)


class CosineEmbeddingLoss(_Loss):
    """1 - cos for targets 1, max(0, cos - margin) for targets -1."""

    __constants__ = ["margin", "reduction"]
    _settings = ("margin", "reduction")

    def __init__(
        self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, margin=margin)

    def forward(self, input1, input2, target):
        """The loss of two inputs against `target`."""
        return self._loss(F.cosine_embedding_loss, input1, input2, target)


class MarginRankingLoss(_Loss):
    """max(0, -target * (input1 - input2) + margin)."""

    __constants__ = ["margin", "reduction"]
    _settings = ("margin", "reduction")

    def __init__(
        self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, margin=margin)

    def forward(self, input1, input2, target):
        """The loss of two inputs against `target`."""
        return self._loss(F.margin_ranking_loss, input1, input2, target)


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of scores against classes. Raises ValueError for bad settings."""

    __constants__ = ["p", "margin", "reduction"]
    _settings = ("p", "margin", "weight", "reduction")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight=None,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p must be 1 or 2; got {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: weight must be None or have 1 dimension; got {weight.dim()}"
            )
        _keep(self, p=p, margin=margin)

    def forward(self, input, target):
        """The loss of scores `input` against classes `target`."""
        return self._loss(F.multi_margin_loss, input, target)


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), p-norm distance."""

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]
    _settings = ("margin", "p", "eps", "swap", "reduction")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _keep(self, margin=_positive_margin(self, margin), p=p, eps=eps, swap=swap)

    def forward(self, anchor, positive, negative):
        """The loss of three (N, D) tensors."""
        return self._loss(F.triplet_margin_loss, anchor, positive, negative)


class TripletMarginWithDistanceLoss(_Loss):
    """The triplet loss with a distance of one's own."""

    __constants__ = ["margin", "swap", "reduction"]
    _settings = ("distance_function", "margin", "swap", "reduction")

    def __init__(
        self,
        *,
        distance_function=None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if distance_function is None:
            from facula.nn.modules.distance import PairwiseDistance

            distance_function = PairwiseDistance()
        _keep(
            self,
            distance_function=distance_function,
            margin=_positive_margin(self, margin),
            swap=swap,
        )

    def forward(self, anchor, positive, negative):
        """The loss of three tensors."""
        return self._loss(F.triplet_margin_with_distance_loss, anchor, positive, negative)


class CTCLoss(_Loss):
    """Connectionist temporal classification loss."""

    __constants__ = ["blank", "reduction"]
    _settings = ("blank", "reduction", "zero_infinity")

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(None, None, reduction)
        _keep(self, blank=blank, zero_infinity=zero_infinity)

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        """The loss of (T, N, C) log probabilities against target sequences."""
        return self._loss(F.ctc_loss, log_probs, targets, input_lengths, target_lengths)

"""Softmax over many classes that spends its effort on the frequent ones."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import facula
from facula.nn import functional as F
from facula.nn.modules.container import ModuleList, Sequential
from facula.nn.modules.linear import Linear
from facula.nn.modules.module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax in which rare classes stand in clusters with small projections of their own.

    Grave et al., "Efficient softmax approximation for GPUs".

    Args:
        in_features: size of the input.
        n_classes: number of classes, the frequent ones first.
        cutoffs: increasing class numbers at which clusters begin; those before the first are in
            the head.
        div_value: each further cluster has a projection smaller by this factor.
        head_bias: whether the head has a bias.
        device, dtype: of the parameters.

    Raises:
        ValueError: cutoffs that are no increasing integers in [1, n_classes - 1].

    Example:
        >>> m = facula.nn.AdaptiveLogSoftmaxWithLoss(32, 10, cutoffs=[2, 5])
        >>> out = m(facula.randn(4, 32), facula.tensor([0, 3, 9, 1]))
        >>> out.output.shape
        facula.Size([4])
        >>> m.predict(facula.randn(4, 32)).shape
        facula.Size([4])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        cutoffs = _checked_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **options),
                    Linear(hidden, classes, bias=False, **options),
                )
            )

    def reset_parameters(self):
        """Fill all parameters anew."""
        self.head.reset_parameters()
        for down, out in self.tail:
            down.reset_parameters()
            out.reset_parameters()

    def forward(self, input_: facula.Tensor, target_: facula.Tensor):
        """The log probability of each target.

        Args:
            input_: (N, in_features), or (in_features,).
            target_: (N,) or (), int64 class numbers.

        Returns:
            A named tuple of `output`, shaped as the target, and `loss`, minus its mean.

        Raises:
            RuntimeError: sizes that do not fit, or a target that is no class.
        """
        _check_sizes(input_, target_)
        is_batched = target_.dim() > 0
        input = input_ if is_batched else input_.unsqueeze(0)
        target = target_ if is_batched else target_.unsqueeze(0)
        # Where the class of each row stands in the head: itself, or its cluster.
        in_head = target.new_empty(target.size(0))
        output = input.new_zeros(target.size(0))
        used = 0
        for i, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs, strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            used += rows.numel()
            if i == 0:
                in_head.index_copy_(0, rows, target[rows])
                continue
            log_probs = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            in_head.index_fill_(0, rows, self.shortlist_size + i - 1)
            relative = (target[rows] - low).unsqueeze(1)
            found = log_probs.gather(1, relative.view(-1, 1)).squeeze(1)
            output.index_copy_(0, rows, found)
        if used != target.size(0):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: target must be in [0, {self.n_classes - 1}]; got "
                f"values in [{target.min().item()}, {target.max().item()}]"
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """The log probabilities of all classes, of which the head's part is known."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            share = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + share)
        return facula.cat(parts, dim=1)

    def log_prob(self, input):
        """The log probability of every class; (N, in_features) to (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class; (N, in_features) to (N,), int64."""
        head = self.head(input)
        best = facula.argmax(head, dim=1)
        in_tail = best >= self.shortlist_size
        if not in_tail.any():
            return best
        rows = in_tail.nonzero().squeeze(1)
        log_probs = self._get_full_log_prob(input[rows], head[rows])
        return best.index_copy(0, rows, facula.argmax(log_probs, dim=1))


def _checked_cutoffs(cutoffs, n_classes):
    if not isinstance(cutoffs, Sequence) or len(cutoffs) == 0:
        raise ValueError(
            "AdaptiveLogSoftmaxWithLoss: cutoffs must be a sequence of at least one class number; "
            f"got {cutoffs!r}"
        )
    cutoffs = list(cutoffs)
    fits = all(int(c) == c for c in cutoffs) and cutoffs == sorted(set(cutoffs))
    if not fits or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
        raise ValueError(
            "AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing integers in "
            f"[1, {n_classes - 1}]; got {cutoffs}"
        )
    return cutoffs


def _check_sizes(input, target):
    if target.dim() > 1:
        raise RuntimeError(
            f"AdaptiveLogSoftmaxWithLoss: target must have 0 or 1 dimensions; got {target.dim()}"
        )
    if input.dim() != target.dim() + 1 or (target.dim() and input.size(0) != target.size(0)):
        raise RuntimeError(
            "AdaptiveLogSoftmaxWithLoss: input must have one row for each target; got shapes "
            f"{tuple(input.shape)} and {tuple(target.shape)}"
        )

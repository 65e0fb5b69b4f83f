"""Batch normalization beside a layer whose weight takes up the norm's factor."""

from __future__ import annotations

import math

import facula
from facula.nn import init


class FoldedNorm:
    """What layers with a normalization `bn` share: its factor, its statistics, its mode.

    The weight is rounded as it will be when the normalization has become a part of it (Krishnamoorthi,
    "Quantizing deep convolutional networks for efficient inference", 2018, section 3.2.2).
    """  # noqa: E501

    def _norm_factor(self):
        """The factor by which the normalization changes each output."""
        return self.bn.weight / facula.sqrt(self.bn.running_var + self.bn.eps)

    def _start_norm(self):
        self.reset_bn_parameters()
        if self.training and not self.freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self):
        """Forget the running statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self):
        """Draw the normalization's weight and the layer's bias anew."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)
        self._reset_bias()

    def _reset_bias(self):
        if self.bias is None:
            return
        inputs, _ = init._calculate_fan_in_and_fan_out(self.weight)
        bound = 1 / math.sqrt(inputs)
        init.uniform_(self.bias, -bound, bound)

    def update_bn_stats(self):
        """Follow each batch's statistics from now on."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self):
        """Use the running statistics as they are from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode=True):
        """Switch between training and evaluation; a frozen normalization stays as it is."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _take_norm(self, bn):
        self.bn.weight, self.bn.bias = bn.weight, bn.bias
        self.bn.running_mean, self.bn.running_var = bn.running_mean, bn.running_var
        self.bn.num_batches_tracked = bn.num_batches_tracked

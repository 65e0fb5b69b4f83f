"""The reference recurrent layers and cells."""

from __future__ import annotations

from facula import nn

from .utils import init_qparams, quantized_weight, rounded_weight

__all__ = ["RNNCell", "LSTMCell", "GRUCell", "LSTM", "GRU"]


class _Cell:
    """What these cells share; the float class comes after it in the order of bases."""

    _IS_REFERENCE = True

    def __init__(self, *args, weight_qparams_dict=None, **kwargs):
        super().__init__(*args, **kwargs)
        given = weight_qparams_dict
        if given is None:
            given = {"weight_ih": None, "weight_hh": None, "is_decomposed": False}
        if set(given) != {"weight_ih", "weight_hh", "is_decomposed"}:
            raise AssertionError(
                f"{self._get_name()}: expected 'weight_ih', 'weight_hh' and 'is_decomposed' in "
                f"weight_qparams_dict; got {list(given)}"
            )
        self.is_decomposed = given["is_decomposed"]
        for name in ("weight_ih", "weight_hh"):
            init_qparams(self, name, given[name], self.weight_ih.device)

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    def _weights(self):
        return self.get_weight_ih(), self.get_weight_hh(), self.bias_ih, self.bias_hh

    def get_weight_ih(self):
        """The weight of inputs, rounded, as floats."""
        return rounded_weight(self, "weight_ih")

    def get_weight_hh(self):
        """The weight of states, rounded, as floats."""
        return rounded_weight(self, "weight_hh")

    def get_quantized_weight_ih(self):
        """The weight of inputs, quantized."""
        return quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self):
        """The weight of states, quantized."""
        return quantized_weight(self, "weight_hh")

    @classmethod
    def from_float(cls, mod, weight_qparams_dict, use_precomputed_fake_quant=False):
        """From a float cell, with its parameters.

        Args:
            mod (Module). weight_qparams_dict (dict): how `weight_ih` and `weight_hh` are rounded,
                and `is_decomposed`.
        """
        options = {"nonlinearity": mod.nonlinearity} if isinstance(mod, nn.RNNCell) else {}
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.bias,
            device=mod.weight_ih.device,
            dtype=mod.weight_ih.dtype,
            weight_qparams_dict=weight_qparams_dict,
            **options,
        )
        for name, parameter in mod.named_parameters():
            setattr(made, name, parameter)
        return made


class RNNCell(_Cell, nn.RNNCell):
    """A recurrent cell with rounded weights; arguments as nn.RNNCell's.

    Args:
        weight_qparams_dict (dict): how `weight_ih` and `weight_hh` are rounded, and whether
            `is_decomposed`.
    """


class LSTMCell(_Cell, nn.LSTMCell):
    """An LSTM cell with rounded weights; arguments as nn.LSTMCell's and RNNCell's."""


class GRUCell(_Cell, nn.GRUCell):
    """A GRU cell with rounded weights; arguments as nn.GRUCell's and RNNCell's."""


class _Layers:
    """What these layers share; the float class comes after it in the order of bases."""

    _IS_REFERENCE = True

    def __init__(self, *args, weight_qparams_dict=None, **kwargs):
        super().__init__(*args, **kwargs)
        given = weight_qparams_dict or {}
        self.is_decomposed = given.get("is_decomposed", False)
        self._rounded = tuple(name for name, _ in self.named_parameters() if "weight" in name)
        for name in self._rounded:
            init_qparams(self, name, given.get(name), getattr(self, name).device)

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    @property
    def _flat_weights(self):
        names = [name for names in self._all_weights for name in names]
        # The base class asks before it is known what is rounded.
        rounded = self.__dict__.get("_rounded", ())
        return [
            rounded_weight(self, name) if name in rounded else getattr(self, name, None)
            for name in names
        ]

    def get_flat_weights(self):
        """All parameters in the operator's order, weights rounded.

        Returns:
            list of Tensor
        """
        return self._flat_weights

    def get_quantized_weight_bias_dict(self):
        """Quantized weights and float biases by name.

        Returns:
            dict of Tensor
        """
        return {
            name: quantized_weight(self, name) if name in self._rounded else parameter
            for name, parameter in self.named_parameters()
        }

    @classmethod
    def from_float(cls, mod, weight_qparams_dict):
        """From a float layer, with its parameters.

        Args:
            mod (Module). weight_qparams_dict (dict): how each weight is rounded, by name, and
                `is_decomposed`.
        """
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            weight_qparams_dict=weight_qparams_dict,
        )
        for name, parameter in mod.named_parameters():
            setattr(made, name, parameter)
        return made


class LSTM(_Layers, nn.LSTM):
    """LSTM layers with rounded weights; arguments as nn.LSTM's.

    Args:
        weight_qparams_dict (dict): how each weight is rounded, by name, and `is_decomposed`.
    """


class GRU(_Layers, nn.GRU):
    """GRU layers with rounded weights; arguments as nn.GRU's and LSTM's."""

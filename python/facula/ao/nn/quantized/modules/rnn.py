"""Recurrent layers of quantized numbers."""

from __future__ import annotations

from facula.ao.nn.quantizable.modules.rnn import LSTM as _QuantizableLSTM

__all__ = ["LSTM"]


class LSTM(_QuantizableLSTM):
    """An LSTM of quantized numbers, converted from a quantizable one that has seen data."""

    _FLOAT_MODULE = _QuantizableLSTM

    def _get_name(self):
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args, **kwargs):
        """Raises NotImplementedError: an LSTM is observed before it is converted."""
        raise NotImplementedError(
            "nnq.LSTM.from_float(): expected an observed LSTM; prepare() makes one"
        )

    @classmethod
    def from_observed(cls, other):
        """From a quantizable LSTM that has seen data.

        Raises:
            AssertionError: another class.
        """
        from facula.ao import quantization

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"expected a quantizable LSTM; got {type(other).__name__}")
        converted = quantization.convert(other, inplace=False, remove_qconfig=True)
        converted.__class__ = cls
        return converted

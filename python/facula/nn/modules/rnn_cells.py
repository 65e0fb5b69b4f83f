"""Single steps of recurrent networks."""

from __future__ import annotations

import math

import facula
from facula.nn import init
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter


class RNNCellBase(Module):
    """What the cells share: two weights, two biases.

    Args:
        input_size, hidden_size (int): sizes of the input and of the state.
        bias (bool): whether there are biases.
        num_chunks (int): gates, whose rows lie one after the other in the weights.
        device, dtype: of the parameters.
    """

    __module__ = f"{facula.__name__}.nn.modules.rnn"  # where pickles of PyTorch have it

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _keep(self, input_size=input_size, hidden_size=hidden_size, bias=bias)
        options, rows = {"device": device, "dtype": dtype}, num_chunks * hidden_size
        self.weight_ih = Parameter(facula.empty((rows, input_size), **options))
        self.weight_hh = Parameter(facula.empty((rows, hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(facula.empty(rows, **options)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        """The sizes, and what is not as by default."""
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"

    def _check_dims(self, input, states):
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        for state in states:
            if state.dim() not in (1, 2):
                raise ValueError(
                    f"{type(self).__name__}: Expected hidden to be 1D or 2D, "
                    f"got {state.dim()}D instead"
                )

    def _zeros(self, input):
        return facula.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _weights(self):
        """What the operators compute with; reference modules of quantization round it first."""
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, operator, input, hx):
        """The call of a cell of one state."""
        self._check_dims(input, () if hx is None else (hx,))
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        state = operator(input, hx, *self._weights())
        return state.squeeze(0) if single else state


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu in place of tanh.

    Args:
        input_size, hidden_size, bias, device, dtype: as for :class:`RNNCellBase`.
        nonlinearity (str): "tanh" or "relu".

    Shape: input (batch, input_size) or (input_size); hx and result (batch, hidden_size) or
        (hidden_size).
    """

    __module__ = f"{facula.__name__}.nn.modules.rnn"  # where pickles of PyTorch have it

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: facula.Tensor, hx: facula.Tensor | None = None) -> facula.Tensor:
        """The state after `input`; hx is zeros where it is None."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = facula.rnn_tanh_cell if self.nonlinearity == "tanh" else facula.rnn_relu_cell
        return self._step(operator, input, hx)


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for :class:`RNNCellBase`.

    Shape: as for :class:`RNNCell`.
    """

    __module__ = f"{facula.__name__}.nn.modules.rnn"  # where pickles of PyTorch have it

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: facula.Tensor, hx: facula.Tensor | None = None) -> facula.Tensor:
        """The state after `input`; hx is zeros where it is None."""
        return self._step(facula.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for :class:`RNNCellBase`.

    Shape: as for :class:`RNNCell`, with pairs (h, c) of states.
    """

    __module__ = f"{facula.__name__}.nn.modules.rnn"  # where pickles of PyTorch have it

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: facula.Tensor, hx: tuple[facula.Tensor, facula.Tensor] | None = None
    ) -> tuple[facula.Tensor, facula.Tensor]:
        """The pair of states after `input`; both are zeros where hx is None."""
        self._check_dims(input, () if hx is None else hx)
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
            hx = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        h, c = facula.lstm_cell(input, hx, *self._weights())
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)

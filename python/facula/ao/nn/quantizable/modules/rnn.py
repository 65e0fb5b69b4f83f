"""An LSTM made of linear layers and sums that can be observed and quantized."""

from __future__ import annotations

import facula
from facula import nn
from facula.nn import Module
from facula.nn import functional as F

__all__ = ["LSTMCell", "LSTM"]

_GATES = ("input", "forget", "cell", "output")


class LSTMCell(Module):
    """One step of an LSTM, whose parts can be observed and quantized.

    Args:
        input_dim, hidden_dim (int): the sizes. bias (bool): whether the gates have biases.
        split_gates (bool): whether each gate has linear layers of its own.

    Example:
        >>> from facula.ao.nn.quantizable import LSTMCell
        >>> hidden, cell = LSTMCell(3, 4)(facula.ones(2, 3))
        >>> hidden.shape
        facula.Size([2, 4])
    """

    _FLOAT_MODULE = nn.LSTMCell
    __constants__ = ("split_gates",)

    def __init__(
        self, input_dim, hidden_dim, bias=True, device=None, dtype=None, *, split_gates=False
    ):
        from facula.ao.nn.quantized.modules.functional_modules import FloatFunctional

        options = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.split_gates = split_gates
        if split_gates:
            self.igates, self.hgates, self.gates = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
            for gate in _GATES:
                self.igates[gate] = nn.Linear(input_dim, hidden_dim, bias=bias, **options)
                self.hgates[gate] = nn.Linear(hidden_dim, hidden_dim, bias=bias, **options)
                self.gates[gate] = FloatFunctional()
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias=bias, **options)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias=bias, **options)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams = self.initial_cell_state_qparams = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = facula.quint8

    def _sums(self, x, hidden):
        if not self.split_gates:
            return self.gates.add(self.igates(x), self.hgates(hidden)).chunk(4, 1)
        return [self.gates[g].add(self.igates[g](x), self.hgates[g](hidden)) for g in _GATES]

    def forward(self, x, hidden=None):
        """The next hidden and cell states (N, hidden_dim).

        Args:
            x (Tensor): (N, input_dim). hidden (tuple): the states before; zeros if not given.
        """
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        i, f, g, o = self._sums(x, hx)
        i, f = self.input_gate(i), self.forget_gate(f)
        g, o = self.cell_gate(g), self.output_gate(o)
        kept, new = self.fgate_cx.mul(f, cx), self.igate_cgate.mul(i, g)
        cy = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(o, facula.tanh(cy)), cy

    def initialize_hidden(self, batch_size, is_quantized=False):
        """States of zeros for a batch."""
        zeros = facula.zeros(batch_size, self.hidden_size)
        if not is_quantized:
            return zeros, facula.zeros(batch_size, self.hidden_size)
        hidden, cell = self.initial_hidden_state_qparams, self.initial_cell_state_qparams
        return (
            facula.quantize_per_tensor(zeros, *hidden, self.hidden_state_dtype),
            facula.quantize_per_tensor(zeros, *cell, self.cell_state_dtype),
        )

    def _get_name(self):
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi, wh, bi=None, bh=None, split_gates=False):
        """A cell with these weights (4 hidden, in), (4 hidden, hidden) and biases.

        Raises:
            AssertionError: only one of the biases is given.
        """
        if (bi is None) != (bh is None):
            raise AssertionError("both biases must be given or none")
        cell = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for layer, weight, bias in ((cell.igates, wi, bi), (cell.hgates, wh, bh)):
            if not split_gates:
                layer.weight = nn.Parameter(weight)
                layer.bias = None if bias is None else nn.Parameter(bias)
                continue
            biases = [None] * 4 if bias is None else bias.chunk(4, 0)
            for gate, part, own in zip(_GATES, weight.chunk(4, 0), biases, strict=True):
                layer[gate].weight = nn.Parameter(part)
                layer[gate].bias = None if own is None else nn.Parameter(own)
        return cell

    @classmethod
    def from_float(cls, other, use_precomputed_fake_quant=False, split_gates=False):
        """From an nn.LSTMCell.

        Raises:
            AssertionError: another class.
        """
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"expected an nn.LSTMCell; got {type(other).__name__}")
        made = cls.from_params(
            other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates
        )
        made.qconfig = getattr(other, "qconfig", None)
        made.igates.qconfig = made.hgates.qconfig = made.qconfig
        return made


class _LSTMSingleLayer(Module):
    """One direction of a layer."""

    def __init__(
        self, input_dim, hidden_dim, bias=True, device=None, dtype=None, *, split_gates=False
    ):
        super().__init__()
        self.cell = LSTMCell(
            input_dim, hidden_dim, bias=bias, device=device, dtype=dtype, split_gates=split_gates
        )

    def forward(self, x, hidden=None):
        """(outputs (T, N, hidden), last states)"""
        outputs = []
        for step in x:
            hidden = self.cell(step, hidden)
            outputs.append(hidden[0])
        return facula.stack(outputs, 0), hidden

    @classmethod
    def from_params(cls, *args, **kwargs):
        """A direction with a cell of these weights and biases."""
        cell = LSTMCell.from_params(*args, **kwargs)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(Module):
    """One layer, of one or two directions."""

    def __init__(
        self,
        input_dim,
        hidden_dim,
        bias=True,
        batch_first=False,
        bidirectional=False,
        device=None,
        dtype=None,
        *,
        split_gates=False,
    ):
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        options = {"device": device, "dtype": dtype, "split_gates": split_gates}
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias=bias, **options)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias=bias, **options)

    def forward(self, x, hidden=None):
        """(outputs (T, N, directions * hidden), last states)"""
        x = x.transpose(0, 1) if self.batch_first else x
        hx, cx = (None, None) if hidden is None else hidden
        if not self.bidirectional:
            output, states = self.layer_fw(x, None if hx is None else (hx, cx))
        else:
            ahead = None if hx is None else (hx[0], cx[0])
            back = None if hx is None else (hx[1], cx[1])
            first, ends = self.layer_fw(x, ahead)
            second, back_ends = self.layer_bw(x.flip(0), back)
            output = facula.cat([first, second.flip(0)], first.dim() - 1)
            pairs = zip(ends, back_ends, strict=True)
            states = tuple(facula.stack(pair, 0) for pair in pairs)
        return (output.transpose(0, 1) if self.batch_first else output), states

    @classmethod
    def from_float(cls, other, layer_idx=0, qconfig=None, **kwargs):
        """A layer of an nn.LSTM.

        Raises:
            AssertionError: no configuration.
        """
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("expected a float module with a configuration")
        bidirectional = kwargs.get("bidirectional", other.bidirectional)
        split_gates = kwargs.get("split_gates", False)
        size = kwargs.get("input_size", other.input_size)
        made = cls(
            size if layer_idx == 0 else other.hidden_size,
            kwargs.get("hidden_size", other.hidden_size),
            kwargs.get("bias", other.bias),
            kwargs.get("batch_first", other.batch_first),
            bidirectional,
            split_gates=split_gates,
        )
        made.qconfig = getattr(other, "qconfig", qconfig)
        for name, suffix in (("layer_fw", ""), ("layer_bw", "_reverse"))[: 1 + bidirectional]:
            parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            params = [getattr(other, f"{p}_l{layer_idx}{suffix}", None) for p in parts]
            setattr(made, name, _LSTMSingleLayer.from_params(*params, split_gates=split_gates))
        return made


class LSTM(Module):
    """An LSTM whose parts can be observed and quantized; arguments as `nn.LSTM`'s.

    Args:
        split_gates (bool): whether each gate has linear layers of its own.

    Example:
        >>> from facula.ao.nn.quantizable import LSTM
        >>> output, (hidden, cell) = LSTM(3, 4)(facula.zeros(5, 2, 3))
        >>> output.shape, hidden.shape
        (facula.Size([5, 2, 4]), facula.Size([1, 2, 4]))
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
        *,
        split_gates=False,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.training = bidirectional, False
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                f"element being zeroed; got {dropout}"
            )
        options = {"device": device, "dtype": dtype, "split_gates": split_gates}
        sizes = [input_size, *[hidden_size * (1 + bidirectional)] * (num_layers - 1)]
        self.layers = nn.ModuleList(
            _LSTMLayer(
                size, hidden_size, bias, batch_first=False, bidirectional=bidirectional, **options
            )
            for size in sizes
        )

    def _begin(self, x, hidden):
        """The states (hidden, cell) of each layer before the first step."""
        directions = 1 + self.bidirectional
        if hidden is None:
            zeros = facula.zeros(
                directions, x.size(1), self.hidden_size, dtype=facula.float, device=x.device
            ).squeeze(0)
            if x.is_quantized:
                zeros = facula.quantize_per_tensor(zeros, 1.0, 0, x.dtype)
            return [(zeros, zeros)] * self.num_layers
        if not isinstance(hidden[0], facula.Tensor):
            return list(zip(hidden[0], hidden[1], strict=True))
        shape = (self.num_layers, directions, x.size(1), self.hidden_size)
        hx, cx = (state.reshape(shape) for state in hidden)
        return [(hx[i].squeeze(0), cx[i].squeeze(0)) for i in range(self.num_layers)]

    def forward(self, x, hidden=None):
        """(outputs, (last hidden states, last cell states)), as nn.LSTM's."""
        x = x.transpose(0, 1) if self.batch_first else x
        ends = []
        for i, (layer, begin) in enumerate(zip(self.layers, self._begin(x, hidden), strict=True)):
            x, states = layer(x, begin)
            x = F.dropout(x, self.dropout, self.training and i < self.num_layers - 1)
            ends.append(states)
        shape = (-1, ends[0][0].shape[-2], ends[0][0].shape[-1])
        hidden = tuple(facula.stack(states).reshape(shape) for states in zip(*ends, strict=True))
        return (x.transpose(0, 1) if self.batch_first else x), hidden

    def _get_name(self):
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other, qconfig=None, split_gates=False):
        """From an nn.LSTM with a configuration; its parts are observed from now on.

        Raises:
            AssertionError: another class, or no configuration.
        """
        from facula.ao import quantization

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"expected an nn.LSTM; got {type(other).__name__}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("expected a float module with a configuration")
        made = cls(
            other.input_size,
            other.hidden_size,
            other.num_layers,
            other.bias,
            other.batch_first,
            other.dropout,
            other.bidirectional,
            split_gates=split_gates,
        )
        made.qconfig = getattr(other, "qconfig", qconfig)
        for i in range(other.num_layers):
            made.layers[i] = _LSTMLayer.from_float(
                other, i, qconfig, batch_first=False, split_gates=split_gates
            )
        if other.training:
            return quantization.prepare_qat(made.train(), inplace=True)
        return quantization.prepare(made.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other):
        """Raises NotImplementedError: `ao.nn.quantized.LSTM` comes from an observed one."""
        raise NotImplementedError(
            "quantizable.LSTM.from_observed(): ao.nn.quantized.LSTM.from_observed is what converts"
        )

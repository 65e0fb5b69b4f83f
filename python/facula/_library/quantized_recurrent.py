"""Recurrent layers of floats whose weights are quantized: cells' parameters and whole sequences."""

from __future__ import annotations

import facula
from facula.nn import functional as F

from .quantized_operators import _operator, find


class CellParamsBase:
    """The weights and biases of one layer and direction.

    Args:
        w_ih, w_hh: packed weights for the input and the hidden state, with their biases.
        bias_ih, bias_hh (Tensor): the biases. reduce_range (bool): whether half of the integers
            serve for inputs.
    """

    def __init__(self, w_ih, w_hh, bias_ih=None, bias_hh=None, reduce_range=False):
        self.w_ih, self.w_hh = w_ih, w_hh
        self.bias_ih, self.bias_hh, self.reduce_range = bias_ih, bias_hh, reduce_range

    @property
    def is_half(self):
        """Whether the weights are of float16."""
        return not hasattr(self.w_ih, "packed")

    def _linear(self, x, packed):
        if self.is_half:
            return find("linear_dynamic_fp16")(x, packed)
        return find("linear_dynamic")(x, packed, self.reduce_range)

    def linear_ih(self, x):
        """The gates' part of inputs (*, in)."""
        return self._linear(x, self.w_ih)

    def linear_hh(self, h):
        """The gates' part of hidden states (*, hidden)."""
        return self._linear(h, self.w_hh)

    def unpack(self):
        """((weight_ih, weight_hh), (bias_ih, bias_hh))"""
        (w_ih, b_ih), (w_hh, b_hh) = self.w_ih.unpack(), self.w_hh.unpack()
        return (w_ih, w_hh), (b_ih, b_hh)

    def __reduce__(self):
        parts = (self.w_ih, self.w_hh, self.bias_ih, self.bias_hh, self.reduce_range)
        return type(self), parts

    def __deepcopy__(self, memo):
        return self  # it never changes

    def __repr__(self):
        return "<facula.classes.rnn.CellParamsBase>"


@_operator
def make_quantized_cell_params_dynamic(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    """A cell's parameters with weights of qint8."""
    return CellParamsBase(w_ih, w_hh, bias_ih, bias_hh, reduce_range)


@_operator
def make_quantized_cell_params_fp16(w_ih, w_hh):
    """A cell's parameters with weights of float16."""
    return CellParamsBase(w_ih, w_hh)


def lstm_step(gates_of_input, state, params):
    """The next (hidden, cell) states."""
    hidden, cell = state
    i, f, g, o = (gates_of_input + params.linear_hh(hidden)).chunk(4, 1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(gates_of_input, state, params):
    """The next (hidden,) state."""
    (hidden,) = state
    r, z, n = gates_of_input.chunk(3, 1)
    r_h, z_h, n_h = params.linear_hh(hidden).chunk(3, 1)
    r, z = (r + r_h).sigmoid(), (z + z_h).sigmoid()
    n = (n + r * n_h).tanh()
    return ((hidden - n) * z + n,)


def _steps(sizes, reverse):
    """(first row, rows) of each step of a packed sequence."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    steps = list(zip(starts[:-1], sizes, strict=True))
    return steps[::-1] if reverse else steps


def _direction(data, sizes, states, params, step, reverse):
    """(outputs, last states) of one direction over a packed sequence.

    The gates' part of all inputs comes at once, so the whole sequence is quantized by one range.
    Rows whose sequence has ended keep their last state.
    """
    gates = params.linear_ih(data)
    outputs = [None] * len(sizes)
    states = list(states)
    for place, (start, rows) in enumerate(_steps(sizes, reverse)):
        now = step(gates[start : start + rows], [s[:rows] for s in states], params)
        states = [
            new if rows == s.size(0) else facula.cat([new, s[rows:]])
            for new, s in zip(now, states, strict=True)
        ]
        outputs[len(sizes) - 1 - place if reverse else place] = now[0]
    return facula.cat(outputs), states


def run_layers(data, sizes, states, params, step, num_layers, dropout, train, bidirectional):
    """All layers over a packed sequence.

    Args:
        data (Tensor): (rows, in), the steps one after the other. sizes (list of int): rows of
            each step, not growing. states (list of Tensor): (layers * directions, batch, hidden).
        params (list of CellParamsBase): by layer and direction. step: `lstm_step` or `gru_step`.

    Returns:
        (Tensor, list of Tensor): (rows, directions * hidden) and the last states.
    """
    directions = 2 if bidirectional else 1
    last = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            begin = [state[place] for state in states]
            output, ends = _direction(data, sizes, begin, params[place], step, direction == 1)
            outputs.append(output)
            for kept, end in zip(last, ends, strict=True):
                kept.append(end)
        data = facula.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and train and layer < num_layers - 1:
            data = F.dropout(data, dropout, True)
    return data, [facula.stack(kept) for kept in last]

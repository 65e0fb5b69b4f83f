"""Recurrent networks over whole sequences: RNN, LSTM, GRU; single steps are in rnn_cells."""

from __future__ import annotations

import math
import numbers
import warnings

import facula
from facula.nn import init
from facula.nn.modules.module import Module
from facula.nn.modules.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter
from facula.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim=1):
    """The tensor with the given order of indices along `dim`."""
    return tensor.index_select(dim, permutation)


def _check_size(name, value):
    if not isinstance(value, int):
        raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be greater than zero; got {value}")


def _check_dropout(dropout, num_layers):
    valid = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not (valid and 0 <= dropout <= 1):
        raise ValueError(f"dropout should be a number in range [0, 1]; got {dropout!r}")
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            f"dropout={dropout} has no effect: it stands between layers, and num_layers is 1",
            stacklevel=4,
        )


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters of all layers and directions, and checks.

    Args:
        mode (str): "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size, hidden_size (int): sizes of the inputs and of the state.
        num_layers (int): each layer but the first takes the outputs of the one before.
        bias (bool): whether there are biases.
        batch_first (bool): inputs and outputs are (batch, steps, size), not (steps, batch, size).
        dropout (float): probability of dropping outputs of all layers but the last, in training.
        bidirectional (bool): a second network reads the sequences from their ends.
        proj_size (int): of an LSTM, the size that the state is projected to; 0: it is not.
        device, dtype: of the parameters.

    Raises:
        TypeError: a size that is no int, or a flag that is no bool.
        ValueError: sizes that are not positive, or values out of range.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _check_dropout(float(dropout) if isinstance(dropout, str) else dropout, num_layers)
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        _check_size("input_size", input_size)
        _check_size("hidden_size", hidden_size)
        if num_layers <= 0:
            raise ValueError(f"num_layers must be greater than zero; got {num_layers}")
        if proj_size < 0 or proj_size >= hidden_size:
            raise ValueError(
                f"proj_size must be 0 or positive, and smaller than hidden_size, {hidden_size}; "
                f"got {proj_size}"
            )
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        _keep(
            self,
            mode=mode,
            input_size=input_size,
            hidden_size=hidden_size,
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=float(dropout),
            bidirectional=bidirectional,
            proj_size=proj_size,
        )
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bool(bidirectional)]:
                self._all_weights.append(
                    self._add_layer(layer, f"_l{layer}{suffix}", {"device": device, "dtype": dtype})
                )
        self.reset_parameters()

    def _add_layer(self, layer, suffix, options):
        """Parameters of one direction of one layer; returns their names."""
        state = self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        gates = _GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else state * directions
        shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, state)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(facula.empty(shape, **options)))
        return [name + suffix for name in shapes]

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """Lists of the parameters, one for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Do nothing: on the CPU parameters need not lie together."""

    def reset_parameters(self):
        """Draw all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Raise unless the input has the weights' dtype and this network's input size."""
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not facula.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}): "
                "convert the input with .to(), or the module"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.size(-1)}"
            )

    def _expected_size(self, input, batch_sizes, size):
        batch = (
            input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        )
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input, batch_sizes):
        """The size of the initial state for an input; returns a tuple of int."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise RuntimeError unless hx has the size."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise unless input and initial state fit this network."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its sequences in another order, or as it is for None."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    def extra_repr(self):
        """The sizes, and what is not as by default."""
        shown = [str(self.input_size), str(self.hidden_size)]
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown.append(f"{name}={value}")
        return ", ".join(shown)

    def __getstate__(self):
        # Here these follow from the others; PyTorch, which may read the pickle, keeps them.
        state = dict(super().__getstate__())
        state["_flat_weights_names"] = self._flat_weights_names
        state["_flat_weights"] = self._flat_weights
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        # Modules that were saved before projections came.
        self.__dict__.setdefault("proj_size", 0)
        for name in ("_flat_weights", "_flat_weights_names", "_flat_weight_refs"):
            self.__dict__.pop(name, None)

    # --- the call

    def _arguments(self, train):
        """What the operator takes behind input and state."""
        return (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            train,
            self.bidirectional,
        )

    def _zero_state(self, input, batch, size):
        layers = self.num_layers * (2 if self.bidirectional else 1)
        return facula.zeros(layers, batch, size, dtype=input.dtype, device=input.device)

    def _batched(self, input):
        """Whether the input is a batch; ValueError unless it has 2 or 3 dimensions."""
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        return input.dim() == 3

    def _run(self, operator, input, hx):
        """The call of RNN and GRU: of one state."""
        if isinstance(input, PackedSequence):
            return self._run_packed(operator, input, hx)
        batched = self._batched(input)
        if hx is not None and hx.dim() != input.dim():
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {input.dim()}-D but got {hx.dim()}-D tensor"
            )
        if not batched:
            output, state = self._run(
                operator,
                input.unsqueeze(0 if self.batch_first else 1),
                None if hx is None else hx.unsqueeze(1),
            )
            return output.squeeze(0 if self.batch_first else 1), state.squeeze(1)
        if hx is None:
            hx = self._zero_state(input, input.size(int(not self.batch_first)), self.hidden_size)
        self.check_forward_args(input, hx, None)
        return operator(input, hx, *self._arguments(self.training), self.batch_first)

    def _run_packed(self, operator, packed, hx):
        data, batch_sizes, order, back = packed
        if hx is None:
            hx = self._zero_state(data, int(batch_sizes[0]), self.hidden_size)
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        output, state = operator(data, batch_sizes, hx, *self._arguments(self.training))
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(state, back)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu in place of tanh.

    Args:
        input_size, hidden_size, num_layers: as for :class:`RNNBase`.
        nonlinearity (str): "tanh" or "relu".
        bias, batch_first, dropout, bidirectional, device, dtype: as for :class:`RNNBase`.

    Shape: input (steps, batch, input_size), (steps, input_size) or a PackedSequence; hx and last
        state (layers * directions, batch, hidden_size); output (steps, batch, directions *
        hidden_size).

    Example:
        >>> output, state = facula.nn.RNN(10, 20, 2)(facula.randn(5, 3, 10))
        >>> output.shape, state.shape
        (facula.Size([5, 3, 20]), facula.Size([2, 3, 20]))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        """Run the network; returns the outputs of all steps and the last states."""
        operator = facula.rnn_tanh if self.mode == "RNN_TANH" else facula.rnn_relu
        return self._run(operator, input, hx)


class GRU(RNNBase):
    """Gated recurrent units: h' = (1 - z) n + z h.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z likewise, n = tanh(W_in x + b_in + r (W_hn h +
    b_hn)); weights hold the rows of r, z and n, in this order.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
            dtype: as for :class:`RNNBase`.

    Shape: as for :class:`RNN`.
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        """Run the network; returns the outputs of all steps and the last states."""
        return self._run(facula.gru, input, hx)


class LSTM(RNNBase):
    """Long short-term memory: c' = f c + i g, h' = o tanh(c').

    i, f, o = sigmoid(W_i* x + b_i* + W_h* h + b_h*), g the same with tanh; weights hold the rows of
    i, f, g and o, in this order. With a projection h' is multiplied by W_hr.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype: as for :class:`RNNBase`.

    Shape: as for :class:`RNN`; the state is a pair (h, c) of which h has proj_size where it is set.

    Example:
        >>> output, (h, c) = facula.nn.LSTM(10, 20, batch_first=True)(facula.randn(3, 5, 10))
        >>> output.shape, c.shape
        (facula.Size([3, 5, 20]), facula.Size([1, 3, 20]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The size of the initial cell for an input; returns a tuple of int."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise unless input and initial states fit this network."""
        self.check_input(input, batch_sizes)
        for i, size in enumerate((self.get_expected_hidden_size, self.get_expected_cell_size)):
            self.check_hidden_size(
                hidden[i], size(input, batch_sizes), f"Expected hidden[{i}] size {{}}, got {{}}"
            )

    def permute_hidden(self, hx, permutation):
        """Both states with their sequences in another order, or as they are for None."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def forward(self, input, hx=None):
        """Run the network; returns the outputs of all steps and the pair of last states."""
        if isinstance(input, PackedSequence):
            return self._run_packed_pair(input, hx)
        batched = self._batched(input)
        if hx is not None and (hx[0].dim() != input.dim() or hx[1].dim() != input.dim()):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {input.dim()}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        if not batched:
            pair = None if hx is None else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
            time = 0 if self.batch_first else 1
            output, (h, c) = self.forward(input.unsqueeze(time), pair)
            return output.squeeze(time), (h.squeeze(1), c.squeeze(1))
        if hx is None:
            hx = self._zero_states(input, input.size(int(not self.batch_first)))
        self.check_forward_args(input, hx, None)
        output, h, c = facula.lstm(input, hx, *self._arguments(self.training), self.batch_first)
        return output, (h, c)

    def _zero_states(self, input, batch):
        return (
            self._zero_state(input, batch, self.proj_size or self.hidden_size),
            self._zero_state(input, batch, self.hidden_size),
        )

    def _run_packed_pair(self, packed, hx):
        data, batch_sizes, order, back = packed
        if hx is None:
            hx = self._zero_states(data, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        output, h, c = facula.lstm(data, batch_sizes, hx, *self._arguments(self.training))
        return (
            PackedSequence(output, batch_sizes, order, back),
            self.permute_hidden((h, c), back),
        )

"""Recurrent layers and cells of floats with quantized weights."""

from __future__ import annotations

import facula
from facula import nn
from facula._library.quantized_recurrent import gru_step, lstm_step, run_layers
from facula.ao.nn._from_float import check_float
from facula.ao.nn.quantized.modules.utils import quantize_weight
from facula.nn import Module
from facula.nn.utils.rnn import PackedSequence

from .linear import _weight_observer

__all__ = [
    "pack_weight_bias",
    "PackedParameter",
    "RNNBase",
    "LSTM",
    "GRU",
    "RNNCellBase",
    "RNNCell",
    "LSTMCell",
    "GRUCell",
    "apply_permutation",
]


def apply_permutation(tensor, permutation, dim=1):
    """The tensor's rows along `dim` in another order."""
    return tensor.index_select(dim, permutation)


def _packed(weight, bias, dtype):
    half = dtype is not facula.qint8
    quantized = facula.ops.quantized
    pack = quantized.linear_prepack_fp16 if half else quantized.linear_prepack
    return pack(weight, bias)


def pack_weight_bias(qweight, bias, dtype):
    """The weight (out, in) and bias (out) of a linear layer, packed.

    Args:
        dtype (facula.dtype): qint8 for a quantized weight, float16 for one of floats.
    """
    return _packed(qweight, bias, dtype)


def _cell_params(packed_ih, packed_hh, bias_ih, bias_hh, dtype):
    quantized = facula.ops.quantized
    if dtype is facula.qint8:
        # Half of the integers, as the linear layers.
        return quantized.make_quantized_cell_params_dynamic(
            packed_ih, packed_hh, bias_ih, bias_hh, True
        )
    return quantized.make_quantized_cell_params_fp16(packed_ih, packed_hh)


class PackedParameter(Module):
    """Packed parameters as a module, so that they are saved with the others."""

    def __init__(self, param):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        key = prefix + "param"
        if key in state_dict:
            self.param = state_dict[key]
        elif strict:
            missing_keys.append(key)
        others = {k: v for k, v in state_dict.items() if k != key}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


def _check_weight_dtype(dtype):
    if dtype not in (facula.qint8, facula.float16):
        raise RuntimeError(f"Unsupported dtype specified for dynamic quantized RNN: {dtype}")


class RNNBase(Module):
    """What recurrent layers with quantized weights share.

    Args:
        mode (str): LSTM or GRU. dtype (facula.dtype): of the weights, qint8 or float16. The others
            are nn.LSTM's.

    Raises:
        RuntimeError: another dtype.
    """

    _FLOAT_MODULE = nn.RNNBase
    _version = 2

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=facula.qint8,
    ):
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.dtype, self.version, self.training = dtype, 2, False
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"dropout should be a number in range [0, 1]; got {dropout}")
        if mode not in ("LSTM", "GRU"):
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        _check_weight_dtype(dtype)
        self._all_weight_values = nn.ModuleList(
            PackedParameter(self._drawn(place)) for place in range(num_layers * self._directions)
        )

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _drawn(self, place):
        """Parameters to be replaced, of the sizes that this layer has."""
        inputs = self.input_size
        if place >= self._directions:
            inputs = self.hidden_size * self._directions
        rows = (4 if self.mode == "LSTM" else 3) * self.hidden_size
        w_ih, w_hh = facula.randn(rows, inputs), facula.randn(rows, self.hidden_size)
        b_ih, b_hh = facula.randn(rows), facula.randn(rows)
        if self.dtype is facula.qint8:
            w_ih = facula.quantize_per_tensor(w_ih, 0.1, 0, facula.qint8)
            w_hh = facula.quantize_per_tensor(w_hh, 0.1, 0, facula.qint8)
        packed = (_packed(w_ih, b_ih, self.dtype), _packed(w_hh, b_hh, self.dtype))
        return _cell_params(*packed, b_ih, b_hh, self.dtype)

    def _get_name(self):
        return "DynamicQuantizedRNN"

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input, batch_sizes):
        """Raise RuntimeError where the input's sizes do not fit."""
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        """(layers * directions, batch, hidden)"""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * self._directions, batch, self.hidden_size

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise RuntimeError where a state's sizes do not fit."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise RuntimeError where the input's or the state's sizes do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with the batch in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    def _states_of(self, hx):
        return [hx]

    def _hidden_of(self, states):
        return states[0]

    def _zeros(self, sizes, input):
        return facula.zeros(*sizes, dtype=input.dtype, device=input.device)

    def forward_impl(self, input, hx, batch_sizes, max_batch_size, sorted_indices):
        """(output, last state) of a tensor, or of a packed sequence's data and batch sizes."""
        if hx is None:
            sizes = (self.num_layers * self._directions, max_batch_size, self.hidden_size)
            hx = self._start(self._zeros(sizes, input))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        data = input
        if batch_sizes is None:
            data = input.transpose(0, 1) if self.batch_first else input
            sizes, shape = [data.size(1)] * data.size(0), data.shape[:2]
            data = data.reshape(-1, data.size(-1))
        else:
            sizes = batch_sizes.tolist()
        output, states = run_layers(
            data,
            sizes,
            self._states_of(hx),
            [m.param for m in self._all_weight_values],
            self._step,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        if batch_sizes is None:
            output = output.reshape(*shape, -1)
            output = output.transpose(0, 1) if self.batch_first else output
        return output, self._hidden_of(states)

    def _start(self, zeros):
        return zeros

    def forward_tensor(self, input, hx=None):
        """(output, last state) of a tensor."""
        batch = input.size(0) if self.batch_first else input.size(1)
        output, hidden = self.forward_impl(input, hx, None, batch, None)
        return output, self.permute_hidden(hidden, None)

    def forward_packed(self, input, hx=None):
        """(packed output, last state) of a packed sequence."""
        data, batch_sizes, sorted_indices, unsorted_indices = input
        output, hidden = self.forward_impl(
            data, hx, batch_sizes, int(batch_sizes[0]), sorted_indices
        )
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(hidden, unsorted_indices)

    def forward(self, input, hx=None):
        """(output, last state); inputs and states as nn.LSTM's or nn.GRU's."""
        if isinstance(input, PackedSequence):
            return self.forward_packed(input, hx)
        return self.forward_tensor(input, hx)

    def set_weight_bias(self, weight_bias_dict):
        """Take other quantized weights and biases, by nn.LSTM's names."""
        for place, suffix in enumerate(self._suffixes()):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w_ih, w_hh, b_ih, b_hh = (weight_bias_dict[f"{name}_{suffix}"] for name in names)
            packed = (_packed(w_ih, b_ih, self.dtype), _packed(w_hh, b_hh, self.dtype))
            params = _cell_params(*packed, b_ih, b_hh, self.dtype)
            self._all_weight_values[place].param = params

    def _suffixes(self):
        for layer in range(self.num_layers):
            for direction in range(self._directions):
                yield f"l{layer}{'_reverse' if direction else ''}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From an nn.LSTM or nn.GRU with a configuration.

        Raises:
            AssertionError: another class, or no configuration.
            RuntimeError: weights of another dtype.
        """
        check_float(f"nnq.dynamic.{cls.__name__}", mod, (nn.LSTM, nn.GRU), none_is_default=True)
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError("quantized LSTM: proj_size is not supported")
        if not mod.bias:
            raise AssertionError("quantized recurrent layers need biases; got bias=False")
        dtype = _weight_observer(mod).dtype
        _check_weight_dtype(dtype)
        sizes = (mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first)
        made = (LSTM if type(mod) is nn.LSTM else GRU)(
            *sizes, mod.dropout, mod.bidirectional, dtype
        )
        found = {}
        for suffix in made._suffixes():
            for part in ("ih", "hh"):
                weight = getattr(mod, f"weight_{part}_{suffix}")
                found[f"weight_{part}_{suffix}"] = _dynamic_weight(mod, weight, dtype)
                found[f"bias_{part}_{suffix}"] = getattr(mod, f"bias_{part}_{suffix}").detach()
        made.set_weight_bias(found)
        return made

    @classmethod
    def from_reference(cls, ref_mod):
        """From a reference layer, whose weights `get_quantized_weight_bias_dict` tells."""
        dtype = ref_mod.weight_ih_l0_dtype
        sizes = (ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias)
        options = (ref_mod.batch_first, ref_mod.dropout, ref_mod.bidirectional, dtype)
        made = cls(*sizes, *options)
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made

    def _weight_bias(self):
        found = {"weight": {}, "bias": {}}
        for place, suffix in enumerate(self._suffixes()):
            weights, biases = self._all_weight_values[place].param.unpack()
            for part, weight, bias in zip(("ih", "hh"), weights, biases, strict=True):
                found["weight"][f"weight_{part}_{suffix}"] = weight
                found["bias"][f"bias_{part}_{suffix}"] = bias
        return found

    def get_weight(self):
        """The quantized weights, a dict by nn.LSTM's names."""
        return self._weight_bias()["weight"]

    def get_bias(self):
        """The biases, a dict by nn.LSTM's names."""
        return self._weight_bias()["bias"]


def _dynamic_weight(mod, weight, dtype):
    weight = weight.detach().float()
    if dtype is not facula.qint8:
        return weight
    observer = _weight_observer(mod)
    observer(weight)
    return quantize_weight(weight, observer)


class LSTM(RNNBase):
    """An LSTM with weights of qint8 or float16; arguments as `nn.LSTM`'s, and `dtype`.

    Example:
        >>> from facula.ao.nn.quantized.dynamic import LSTM
        >>> output, (h, c) = LSTM(3, 4)(facula.zeros(5, 2, 3))
        >>> output.shape
        facula.Size([5, 2, 4])
    """

    _FLOAT_MODULE = nn.LSTM
    _step = staticmethod(lstm_step)

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedLSTM"

    def _start(self, zeros):
        return zeros, zeros

    def _states_of(self, hx):
        return list(hx)

    def _hidden_of(self, states):
        return tuple(states)

    def permute_hidden(self, hx, permutation):
        """The states with the batch in another order."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise RuntimeError where the input's or the states' sizes do not fit."""
        self.check_input(input, batch_sizes)
        wanted = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], wanted, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], wanted, "Expected hidden[1] size {}, got {}")


class GRU(RNNBase):
    """A GRU with weights of qint8 or float16; arguments as `nn.GRU`'s, and `dtype`."""

    _FLOAT_MODULE = nn.GRU
    _step = staticmethod(gru_step)

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedGRU"


class RNNCellBase(Module):
    """What recurrent cells with quantized weights share.

    Args:
        input_size, hidden_size, bias: as nn.LSTMCell's. num_chunks (int): of gates.
        dtype (facula.dtype): of the weights, qint8 or float16.
    """

    def __init__(self, input_size, hidden_size, bias=True, num_chunks=4, dtype=facula.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype
        _check_weight_dtype(dtype)
        rows = num_chunks * hidden_size
        self.bias_ih = facula.randn(rows) if bias else None
        self.bias_hh = facula.randn(rows) if bias else None
        w_ih, w_hh = facula.randn(rows, input_size), facula.randn(rows, hidden_size)
        if dtype is facula.qint8:
            w_ih = facula.quantize_per_tensor(w_ih, 1.0, 0, facula.qint8)
            w_hh = facula.quantize_per_tensor(w_hh, 1.0, 0, facula.qint8)
        self._packed_weight_ih = _packed(w_ih, self.bias_ih, dtype)
        self._packed_weight_hh = _packed(w_hh, self.bias_hh, dtype)

    def _get_name(self):
        return "DynamicQuantizedRNNBase"

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def check_forward_input(self, input):
        """Raise RuntimeError where the input's size does not fit."""
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, "
                f"expected {self.input_size}"
            )

    def check_forward_hidden(self, input, hx, hidden_label=""):
        """Raise RuntimeError where a state's sizes do not fit."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size "
                f"{hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected "
                f"{self.hidden_size}"
            )

    def _state(self, input, hx, label=""):
        if hx is None:
            return facula.zeros(
                input.size(0), self.hidden_size, dtype=input.dtype, device=input.device
            )
        self.check_forward_hidden(input, hx, label)
        return hx

    def _weights(self):
        return self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float cell with a configuration.

        Raises:
            AssertionError: another class, or no configuration.
            RuntimeError: weights of another dtype.
        """
        kinds = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        check_float(f"nnq.dynamic.{cls.__name__}", mod, tuple(kinds), none_is_default=True)
        if not mod.bias:
            raise AssertionError("quantized recurrent cells need biases; got bias=False")
        dtype = _weight_observer(mod).dtype
        _check_weight_dtype(dtype)
        options = {"nonlinearity": mod.nonlinearity} if type(mod) is nn.RNNCell else {}
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, mod.bias, dtype=dtype, **options)
        found = {}
        for part in ("ih", "hh"):
            weight = getattr(mod, f"weight_{part}")
            found[f"weight_{part}"] = _dynamic_weight(mod, weight, dtype)
            found[f"bias_{part}"] = getattr(mod, f"bias_{part}").detach()
        made.set_weight_bias(found)
        return made

    @classmethod
    def from_reference(cls, ref_mod):
        """From a reference cell, whose weights `get_quantized_weight_ih` and `_hh` tell."""
        options = {"nonlinearity": ref_mod.nonlinearity} if cls is RNNCell else {}
        sizes = (ref_mod.input_size, ref_mod.hidden_size, ref_mod.bias)
        made = cls(*sizes, dtype=ref_mod.weight_ih_dtype, **options)
        made.set_weight_bias(
            {
                "weight_ih": ref_mod.get_quantized_weight_ih(),
                "weight_hh": ref_mod.get_quantized_weight_hh(),
                "bias_ih": ref_mod.bias_ih,
                "bias_hh": ref_mod.bias_hh,
            }
        )
        return made

    def _weight_bias(self):
        weight_ih, bias_ih = self._packed_weight_ih.unpack()
        weight_hh, bias_hh = self._packed_weight_hh.unpack()
        return {
            "weight": {"weight_ih": weight_ih, "weight_hh": weight_hh},
            "bias": {"bias_ih": bias_ih, "bias_hh": bias_hh},
        }

    def get_weight(self):
        """The quantized weights, a dict by nn.LSTMCell's names."""
        return self._weight_bias()["weight"]

    def get_bias(self):
        """The biases, a dict by nn.LSTMCell's names."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict):
        """Take other quantized weights and biases, by nn.LSTMCell's names."""
        found = weight_bias_dict
        self.bias_ih, self.bias_hh = found["bias_ih"], found["bias_hh"]
        self._packed_weight_ih = _packed(found["weight_ih"], self.bias_ih, self.weight_dtype)
        self._packed_weight_hh = _packed(found["weight_hh"], self.bias_hh, self.weight_dtype)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = self._packed_weight_ih
        destination[prefix + "_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        names = ("_packed_weight_ih", "_packed_weight_hh")
        for name in names:
            if prefix + name in state_dict:
                setattr(self, name, state_dict[prefix + name])
            elif strict:
                missing_keys.append(prefix + name)
        self.bias_ih = self._packed_weight_ih.unpack()[1]
        self.bias_hh = self._packed_weight_hh.unpack()[1]
        others = {k: v for k, v in state_dict.items() if k.removeprefix(prefix) not in names}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class RNNCell(RNNCellBase):
    """An RNN's cell with weights of qint8 or float16; arguments as `nn.RNNCell`'s, and `dtype`."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=facula.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self):
        return "DynamicQuantizedRNNCell"

    def forward(self, input, hx=None):
        """The next hidden state (N, hidden).

        Raises:
            RuntimeError: a nonlinearity that is neither tanh nor relu, or sizes that do not fit.
        """
        self.check_forward_input(input)
        hx = self._state(input, hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        run = getattr(facula.ops.quantized, f"quantized_rnn_{self.nonlinearity}_cell_dynamic")
        return run(input, hx, *self._weights())


class LSTMCell(RNNCellBase):
    """An LSTM's cell with weights of qint8 or float16; arguments as `nn.LSTMCell`'s, and `dtype`."""  # noqa: E501

    def __init__(self, *args, **kwargs):
        super().__init__(*args, num_chunks=4, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedLSTMCell"

    def forward(self, input, hx=None):
        """The next hidden and cell states, each (N, hidden)."""
        self.check_forward_input(input)
        hidden, cell = (None, None) if hx is None else hx
        states = (self._state(input, hidden, "[0]"), self._state(input, cell, "[1]"))
        run = facula.ops.quantized.quantized_lstm_cell_dynamic
        return run(input, states, *self._weights())


class GRUCell(RNNCellBase):
    """A GRU's cell with weights of qint8 or float16; arguments as `nn.GRUCell`'s, and `dtype`."""

    def __init__(self, input_size, hidden_size, bias=True, dtype=facula.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def _get_name(self):
        return "DynamicQuantizedGRUCell"

    def forward(self, input, hx=None):
        """The next hidden state (N, hidden)."""
        self.check_forward_input(input)
        run = facula.ops.quantized.quantized_gru_cell_dynamic
        return run(input, self._state(input, hx), *self._weights())

"""Cases of quantized tensors: each a name and a function of `Inputs` of facula or PyTorch."""

import pickle


class Inputs:
    """A tensor, and what it is quantized by, in one library."""

    def __init__(self, lib):
        self.lib = lib
        self.x = lib.tensor([[-1.0, 0.0, 1.2], [3.0, 2.6, -7.0]])
        self.scale, self.zero = lib.tensor(0.1), lib.tensor(3)
        self.scales = lib.tensor([0.1, 0.2], dtype=lib.double)
        self.zeros = lib.tensor([0, 3])
        self.whole = lib.quantize_per_tensor(self.x, 0.1, 10, lib.quint8)
        self.by_channel = lib.quantize_per_channel(self.x, self.scales, self.zeros, 0, lib.qint8)
        self.bytes = lib.tensor([[0, 10, 22], [40, 36, 0]], dtype=lib.uint8)


def _module(x, module):
    """A module of quantized weights, with the table's numbers."""
    weight = x.x.unsqueeze(1) / 7 if hasattr(module, "kernel_size") else x.x / 7
    integers = x.lib.quantize_per_tensor(weight, 0.01, 0, x.lib.qint8)
    module.set_weight_bias(integers, x.lib.tensor([0.5, -0.5]))
    module.scale, module.zero_point = 0.2, 5
    return module


CASES = {
    "per tensor": lambda x: x.whole,
    "per tensor, by tensors": lambda x: x.lib.quantize_per_tensor(
        x.x, x.scale, x.zero, x.lib.qint8
    ),
    "per tensor, a list": lambda x: x.lib.quantize_per_tensor(
        [x.x, x.x + 1], x.scales.float(), x.zeros, x.lib.quint8
    ),
    "per tensor, found": lambda x: x.lib.quantize_per_tensor_dynamic(x.x, x.lib.quint8, False),
    "per channel": lambda x: x.by_channel,
    "int_repr": lambda x: (x.whole.int_repr(), x.by_channel.int_repr()),
    "dequantize": lambda x: (x.whole.dequantize(), x.lib.dequantize(x.by_channel)),
    "dequantize a list": lambda x: x.lib.dequantize([x.whole, x.by_channel]),
    "q_scale": lambda x: (x.whole.q_scale(), x.whole.q_zero_point()),
    "q_per_channel": lambda x: (
        x.by_channel.q_per_channel_scales(),
        x.by_channel.q_per_channel_zero_points(),
        x.by_channel.q_per_channel_axis(),
    ),
    "choose_qparams": lambda x: x.lib._choose_qparams_per_tensor(x.x),
    "made per tensor": lambda x: x.lib._make_per_tensor_quantized_tensor(x.bytes, 0.5, 3),
    "made per channel": lambda x: x.lib._make_per_channel_quantized_tensor(
        x.bytes, x.scales, x.zeros, 0
    ),
    "empty per tensor": lambda x: x.lib._empty_affine_quantized(
        (2, 3), scale=0.5, zero_point=1, dtype=x.lib.qint8
    ).q_scale(),
    "empty per channel": lambda x: x.lib._empty_per_channel_affine_quantized(
        (2, 3), scales=x.scales, zero_points=x.zeros, axis=0, dtype=x.lib.qint8
    ).q_per_channel_axis(),
    "qscheme": lambda x: (str(x.whole.qscheme()), str(x.by_channel.qscheme())),
    "views": lambda x: (x.whole.t(), x.whole[0], x.whole.reshape(3, 2)),
    "linear": lambda x: _module(x, x.lib.ao.nn.quantized.Linear(3, 2))(x.whole),
    "linear, found": lambda x: _module(x, x.lib.ao.nn.quantized.dynamic.Linear(3, 2))(x.x),
    "convolution": lambda x: _module(x, x.lib.ao.nn.quantized.Conv1d(1, 2, 3))(
        x.whole.unsqueeze(1)
    ),
    "added": lambda x: x.lib.ops.quantized.add(x.whole, x.whole, 0.2, 5),
    "saved": lambda x: pickle.loads(pickle.dumps([x.whole, x.by_channel])),
    "int_mm": lambda x: x.lib._int_mm(
        x.lib.arange(17 * 8).reshape(17, 8).to(x.lib.int8),
        x.lib.arange(8 * 8).reshape(8, 8).to(x.lib.int8),
    ),
}

"""Programs with reference modules of quantization, for facula alone and beside PyTorch."""

from importlib import import_module

from pruning_cases import filled, spread


def reference(lib):
    return import_module(f"{lib.__name__}.ao.nn.quantized.reference")


def qparams(lib, kind, channels=3):
    """How a weight is rounded, by name."""
    scales = lib.tensor([0.02, 0.03, 0.01][:channels])
    points = lib.tensor([3, 0, -2][:channels])
    tensor = {"scale": lib.tensor(0.02), "zero_point": lib.tensor(3)}
    return {
        "tensor": {"qscheme": lib.per_tensor_affine, "dtype": lib.qint8, **tensor},
        "channel": {
            "qscheme": lib.per_channel_affine,
            "dtype": lib.qint8,
            "scale": scales,
            "zero_point": points,
            "axis": 0,
        },
        "float": {
            "qscheme": lib.per_channel_affine_float_qparams,
            "dtype": lib.quint8,
            "scale": scales,
            "zero_point": points + 20.5,
            "axis": 0,
        },
        "half": {"qscheme": None, "dtype": lib.float16},
        "default": None,
    }[kind]


# By class: arguments of the float class, the input's shape, and how the weight is rounded.
MODULES = {
    "Linear": ((4, 3), (2, 4), ("tensor", "channel", "float", "half", "default")),
    "Conv1d": ((2, 3, 2), (1, 2, 5), ("tensor", "channel")),
    "Conv2d": ((2, 3, 2), (1, 2, 5, 5), ("tensor", "channel")),
    "Conv3d": ((2, 3, 2), (1, 2, 4, 4, 4), ("tensor", "channel")),
    "ConvTranspose1d": ((3, 2, 2), (1, 3, 5), ("tensor", "channel")),
    "ConvTranspose2d": ((3, 2, 2), (1, 3, 5, 5), ("tensor", "channel")),
    "ConvTranspose3d": ((3, 2, 2), (1, 3, 4, 4, 4), ("tensor", "channel")),
    "Embedding": ((3, 4), None, ("float",)),
    "EmbeddingBag": ((3, 4), None, ("float",)),
}
CELLS = ("RNNCell", "LSTMCell", "GRUCell")
LAYERS = ("LSTM", "GRU")


def made(lib, name, kind):
    """A reference module, its input, and the float module that it is made from."""
    arguments, shape, _ = MODULES[name]
    mod = filled(lib, getattr(lib.nn, name)(*arguments))
    x = lib.tensor([[0, 2], [1, 1]]) if shape is None else spread(lib, *shape)
    return getattr(reference(lib), name).from_float(mod, qparams(lib, kind)), x, mod


def plain_state(module):
    return {
        key: value.tolist() if hasattr(value, "tolist") else str(value)
        for key, value in module.state_dict().items()
    }


def integers(tensor):
    return tensor.int_repr().tolist() if tensor.is_quantized else tensor.tolist()


def run_module(lib, name, kind):
    module, x, _ = made(lib, name, kind)
    weight = module.get_weight().tolist()
    return module, plain_state(module), weight, integers(module.get_quantized_weight()), module(x)


def run_cell(lib, name):
    rounded = {key: qparams(lib, "tensor") for key in ("weight_ih", "weight_hh")}
    mod = filled(lib, getattr(lib.nn, name)(4, 3))
    cell = getattr(reference(lib), name).from_float(mod, {**rounded, "is_decomposed": False})
    weights = cell.get_weight_ih().tolist(), integers(cell.get_quantized_weight_hh())
    return cell, plain_state(cell), weights, cell(spread(lib, 2, 4))


def run_layer(lib, name):
    mod = filled(lib, getattr(lib.nn, name)(4, 3, 2, bidirectional=True))
    weights = [key for key, _ in mod.named_parameters() if key.startswith("weight")]
    rounded = {key: qparams(lib, "tensor") for key in weights}
    layer = getattr(reference(lib), name).from_float(mod, {**rounded, "is_decomposed": False})
    kept = {k: integers(v) for k, v in layer.get_quantized_weight_bias_dict().items()}
    return layer, list(plain_state(layer))[:20], kept, layer(spread(lib, 5, 2, 4))


def converted(lib):
    ao = import_module(f"{lib.__name__}.ao.quantization")

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
            self.conv, self.linear = lib.nn.Conv2d(1, 2, 3), lib.nn.Linear(8, 3)

        def forward(self, x):
            return self.linear(self.conv(self.quant(x)).flatten(1))

    model = filled(lib, Net()).eval()
    model.qconfig = ao.default_qconfig
    prepared = ao.prepare(model)
    prepared(spread(lib, 1, 1, 4, 4))
    model = ao.convert(prepared, is_reference=True)
    return model, plain_state(model), model.conv(spread(lib, 1, 1, 4, 4))


def mapped(lib):
    ao = import_module(f"{lib.__name__}.ao.quantization")
    found = ao.get_default_static_quant_reference_module_mappings()
    one = ao.get_static_quant_module_class(lib.nn.Linear, None, True)
    return sorted((kind.__name__, str(made)) for kind, made in found.items()), one


def programs():
    """Functions of the library by name."""
    found = {"converted": converted, "mapped": mapped}
    for name, (_, _, kinds) in MODULES.items():
        for kind in kinds:
            found[f"{name} {kind}"] = lambda lib, n=name, k=kind: run_module(lib, n, k)
    for name in CELLS:
        found[name] = lambda lib, n=name: run_cell(lib, n)
    for name in LAYERS:
        found[name] = lambda lib, n=name: run_layer(lib, n)
    return found

"""Functions that cut masked channels out of modules that follow each other.

Each takes the modules of one pattern, in the order of the call. The outputs of the first are cut,
and the inputs of the last where they come from the first. What a cut channel would still add, its
bias behind the activation, goes into the bias of the last one.
"""

from __future__ import annotations

import facula
from facula import nn
from facula.nn.utils import parametrize

from .parametrization import BiasHook, FakeStructuredSparsity

__all__ = [
    "prune_conv2d",
    "prune_conv2d_activation_conv2d",
    "prune_conv2d_activation_pool_conv2d",
    "prune_conv2d_conv2d",
    "prune_conv2d_padded",
    "prune_conv2d_pool_activation_conv2d",
    "prune_conv2d_pool_flatten_linear",
    "prune_linear",
    "prune_linear_activation_linear",
    "prune_linear_linear",
    "prune_lstm_output_layernorm_linear",
    "prune_lstm_output_linear",
]

# The sizes of a module's outputs and inputs, by its class.
_SIZES = {nn.Linear: ("out_features", "in_features"), nn.Conv2d: ("out_channels", "in_channels")}


def _sizes(module):
    return _SIZES[parametrize.type_before_parametrizations(module)]


def _mask_of(module, name="weight"):
    """The mask of a tensor, or None where it has none."""
    if not parametrize.is_parametrized(module, name):
        return None
    found = (p for p in module.parametrizations[name] if isinstance(p, FakeStructuredSparsity))
    param = next(found, None)
    return None if param is None else param.mask


def _take_back_bias(module):
    """The bias that the pruner took away from a module, which is forgotten; None: it had none."""
    for key, hook in list(module._forward_hooks.items()):
        if isinstance(hook, BiasHook):
            del module._forward_hooks[key]
    bias = module._parameters.pop("_bias", None)
    return module.bias if bias is None else bias


def _check_groups(conv):
    if isinstance(conv, nn.Conv2d) and conv.groups != 1:
        raise NotImplementedError(
            f"prune(): channels of a grouped convolution cannot be cut; got groups={conv.groups}"
        )


def _is_padded(conv):
    if isinstance(conv.padding, str):
        return conv.padding != "valid"
    return any(conv.padding)


def _cut_outputs(module):
    """Cut the masked rows out of a module's weight and bias.

    Returns:
        (Tensor, Tensor): the mask, and the biases of the cut rows; None for these where they are
        pruned, too, or where there are none.
    """
    _check_groups(module)
    mask = _mask_of(module)
    parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
    module.weight = nn.Parameter(module.weight.detach()[mask])
    setattr(module, _sizes(module)[0], module.weight.shape[0])
    bias = _take_back_bias(module)
    if bias is None:
        return mask, None
    module.bias = nn.Parameter(bias.detach()[mask])
    return mask, None if getattr(module, "prune_bias", False) else bias.detach()[~mask]


def _cut_inputs(module, mask, constants):
    """Cut the masked columns out of a module's weight.

    Args:
        module (Module). mask (Tensor): a bool for each input.
        constants (Tensor): what the cut inputs always are; None: zero.
    """
    _check_groups(module)
    if constants is not None:
        cut = module.weight.detach()[:, ~mask]
        _add_to_bias(module, cut.flatten(2).sum(2) @ constants if cut.ndim > 2 else cut @ constants)
    if _mask_of(module) is None:
        module.weight = nn.Parameter(module.weight.detach()[:, mask])
    else:
        behind = module.parametrizations.weight
        behind.original = nn.Parameter(behind.original.detach()[:, mask])
    setattr(module, _sizes(module)[1], int(mask.sum()))


def _add_to_bias(module, more):
    name = "_bias" if getattr(module, "_bias", None) is not None else "bias"
    bias = getattr(module, name)
    setattr(module, name, nn.Parameter(more if bias is None else bias.detach() + more))


def _cut_between(first, activation, last, inputs_of_output=1):
    with facula.no_grad():
        mask, constants = _cut_outputs(first)
        if constants is not None:
            constants = constants if activation is None else activation(constants)
            constants = constants.repeat_interleave(inputs_of_output)
        _cut_inputs(last, mask.repeat_interleave(inputs_of_output), constants)


def prune_linear(linear):
    """Cut the outputs of a Linear whose result is the model's."""
    with facula.no_grad():
        _cut_outputs(linear)


def prune_linear_linear(linear1, linear2):
    """Cut between two Linear modules."""
    _cut_between(linear1, None, linear2)


def prune_linear_activation_linear(linear1, activation, linear2):
    """Cut between two Linear modules with an activation between them."""
    _cut_between(linear1, activation, linear2)


def prune_conv2d_padded(conv2d_1):
    """Make the masked channels of a Conv2d zero without cutting them.

    For one whose result the next one pads: a constant channel with a border of zeros is no bias.
    """
    with facula.no_grad():
        mask = _mask_of(conv2d_1)
        parametrize.remove_parametrizations(conv2d_1, "weight", leave_parametrized=True)
        bias = _take_back_bias(conv2d_1)
        if bias is not None:
            keeps = not getattr(conv2d_1, "prune_bias", False)
            conv2d_1.bias = nn.Parameter(bias.detach() if keeps else bias.detach() * mask)


def prune_conv2d(conv2d):
    """Cut the outputs of a Conv2d whose result is the model's."""
    with facula.no_grad():
        _cut_outputs(conv2d)


def prune_conv2d_conv2d(conv2d_1, conv2d_2):
    """Cut between two Conv2d modules."""
    prune_conv2d_activation_conv2d(conv2d_1, None, conv2d_2)


def prune_conv2d_activation_conv2d(conv2d_1, activation, conv2d_2):
    """Cut between two Conv2d modules with an activation between them."""
    has_bias = conv2d_1.bias is not None or getattr(conv2d_1, "_bias", None) is not None
    if has_bias and _is_padded(conv2d_2):
        prune_conv2d_padded(conv2d_1)
    else:
        _cut_between(conv2d_1, activation, conv2d_2)


def prune_conv2d_activation_pool_conv2d(c1, activation, pool, c2):
    """Cut between two Conv2d modules with an activation and pooling between them."""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_pool_activation_conv2d(c1, pool, activation, c2):
    """Cut between two Conv2d modules with pooling and an activation between them."""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_pool_flatten_linear(conv2d, pool, flatten, linear):
    """Cut between a Conv2d and a Linear, of whose inputs several come from each channel."""
    _cut_between(conv2d, None, linear, linear.in_features // conv2d.out_channels)


def _check_lstm(lstm):
    """Raise where what would be left is no LSTM."""
    if lstm.bidirectional or lstm.proj_size:
        raise NotImplementedError(
            "prune(): an LSTM in both directions or with projections cannot be cut"
        )
    sizes = set()
    for layer in range(lstm.num_layers):
        for kind in ("ih", "hh"):
            mask = _mask_of(lstm, f"weight_{kind}_l{layer}")
            gates = [lstm.hidden_size] if mask is None else mask.view(4, -1).sum(1).tolist()
            sizes.update(gates)
    if len(sizes) > 1:
        raise ValueError(
            "prune(): expected as many rows left in all gates of an LSTM, of weight_ih and "
            f"weight_hh in every layer; got {sorted(sizes)}"
        )


def _cut_lstm_weight(lstm, kind, layer):
    """Cut the masked rows out of one weight and its bias.

    Args:
        lstm (LSTM). kind (str): "ih" or "hh". layer (int).

    Returns:
        Tensor: the mask of the rows, or None where there is none.
    """
    name = f"{kind}_l{layer}"
    mask = _mask_of(lstm, f"weight_{name}")
    if mask is None:
        return None
    parametrize.remove_parametrizations(lstm, f"weight_{name}", leave_parametrized=True)
    setattr(lstm, f"weight_{name}", nn.Parameter(getattr(lstm, f"weight_{name}").detach()[mask]))
    if lstm.bias:
        bias = getattr(lstm, f"bias_{name}")
        setattr(lstm, f"bias_{name}", nn.Parameter(bias.detach()[mask]))
    return mask


def _cut_lstm(lstm):
    """Cut the masked rows out of all gates of an LSTM.

    Returns:
        Tensor: the mask of its outputs, or None where they are all left.
    """
    _check_lstm(lstm)
    outputs = None
    for layer in range(lstm.num_layers):
        _cut_lstm_weight(lstm, "ih", layer)
        if outputs is not None:  # of the layer before
            _cut_columns(lstm, f"weight_ih_l{layer}", outputs)
        mask = _cut_lstm_weight(lstm, "hh", layer)
        outputs = None
        if mask is None:
            continue
        gates = mask.chunk(4)
        name = f"weight_hh_l{layer}"
        rows = getattr(lstm, name).detach().split([int(gate.sum()) for gate in gates])
        cut = [row[:, gate] for row, gate in zip(rows, gates, strict=True)]
        setattr(lstm, name, nn.Parameter(facula.cat(cut)))
        outputs = gates[3]  # the output gate multiplies what the layer hands on
    if outputs is not None:
        lstm.hidden_size = int(outputs.sum())
    return outputs


def _cut_columns(lstm, name, mask):
    setattr(lstm, name, nn.Parameter(getattr(lstm, name).detach()[:, mask]))


def prune_lstm_output_linear(lstm, getitem, linear):
    """Cut between an LSTM and a Linear that takes its output."""
    prune_lstm_output_layernorm_linear(lstm, getitem, None, linear)


def prune_lstm_output_layernorm_linear(lstm, getitem, layernorm, linear):
    """Cut between an LSTM and a Linear with a LayerNorm between them."""
    with facula.no_grad():
        mask = _cut_lstm(lstm)
        if mask is None:
            return
        if layernorm is not None:
            layernorm.normalized_shape = (int(mask.sum()),)
            for name, tensor in list(layernorm.named_parameters(recurse=False)):
                setattr(layernorm, name, nn.Parameter(tensor.detach()[mask]))
        _cut_inputs(linear, mask, None)

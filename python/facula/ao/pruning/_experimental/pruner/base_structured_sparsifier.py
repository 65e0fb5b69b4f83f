"""What all pruners of output channels share: masks of rows, biases apart, and the cutting."""

from __future__ import annotations

import functools
import operator
from itertools import product

import facula
from facula import nn
from facula.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from facula.fx import symbolic_trace
from facula.nn import functional as F

from . import prune_functions as cut
from .match_utils import apply_match
from .parametrization import BiasHook, FakeStructuredSparsity, module_contains_param

__all__ = ["BaseStructuredSparsifier"]

# Activations of single numbers: a class of modules and a function of the same meaning.
_ACTIVATIONS = {
    nn.CELU: F.celu,
    nn.ELU: F.elu,
    nn.GELU: F.gelu,
    nn.Hardshrink: F.hardshrink,
    nn.Hardsigmoid: F.hardsigmoid,
    nn.Hardswish: F.hardswish,
    nn.Hardtanh: F.hardtanh,
    nn.LeakyReLU: F.leaky_relu,
    nn.LogSigmoid: F.logsigmoid,
    nn.Mish: F.mish,
    nn.PReLU: F.prelu,
    nn.RReLU: F.rrelu,
    nn.ReLU: F.relu,
    nn.ReLU6: F.relu6,
    nn.SELU: F.selu,
    nn.SiLU: F.silu,
    nn.Sigmoid: F.sigmoid,
    nn.Softplus: F.softplus,
    nn.Softsign: F.softsign,
    nn.Tanh: F.tanh,
    nn.Tanhshrink: F.tanhshrink,
}


def _get_supported_structured_pruning_modules():
    return {nn.Linear, nn.Conv2d, nn.LSTM}


def _get_supported_activation_modules():
    return set(_ACTIVATIONS)


def _get_supported_activation_functions():
    return set(_ACTIVATIONS.values())


def _get_default_structured_pruning_patterns():
    """Functions of `prune_functions` by the rows of modules and functions that they cut.

    Returns:
        dict: keys are tuples of classes of modules, functions and "output".
    """
    patterns = {
        (nn.Linear, "output"): cut.prune_linear,
        (nn.Linear, nn.Linear): cut.prune_linear_linear,
        (nn.Conv2d, "output"): cut.prune_conv2d,
        (nn.Conv2d, nn.Conv2d): cut.prune_conv2d_conv2d,
        (nn.LSTM, operator.getitem, nn.Linear): cut.prune_lstm_output_linear,
        (nn.LSTM, operator.getitem, nn.LayerNorm, nn.Linear): (
            cut.prune_lstm_output_layernorm_linear
        ),
    }
    pools = (nn.MaxPool2d, F.max_pool2d, nn.AvgPool2d, F.avg_pool2d)
    for pair in _ACTIVATIONS.items():
        for activation in pair:
            patterns[nn.Linear, activation, nn.Linear] = cut.prune_linear_activation_linear
            patterns[nn.Conv2d, activation, nn.Conv2d] = cut.prune_conv2d_activation_conv2d
            for pool in pools:
                after = (nn.Conv2d, activation, pool, nn.Conv2d)
                before = (nn.Conv2d, pool, activation, nn.Conv2d)
                patterns[after] = cut.prune_conv2d_activation_pool_conv2d
                patterns[before] = cut.prune_conv2d_pool_activation_conv2d
    adaptive = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)
    for pool, flatten in product(adaptive, (nn.Flatten, facula.flatten)):
        row = (nn.Conv2d, pool, flatten, nn.Linear)
        patterns[row] = cut.prune_conv2d_pool_flatten_linear
    return patterns


class BaseStructuredSparsifier(BaseSparsifier):
    """A pruner of output channels. Subclasses say in `update_mask` which ones.

    `prepare` gives the weights of Linear, Conv2d and LSTM modules a mask with a bool for each row,
    `step` updates the masks, and `prune` cuts the masked rows out: out of the weights and biases,
    and out of the inputs of the modules behind, which it finds by tracing the model.

    An option `prune_bias` of a group (True by default) says whether masked channels lose their
    bias as well; if not, `prune` moves what they contribute into the bias of the module behind.

    Args:
        defaults (dict): options of all groups.
        patterns (dict): functions that cut by rows of modules, instead of the known ones.

    Example:
        >>> from facula.ao.pruning._experimental.pruner import SaliencyPruner
        >>> model = facula.nn.Sequential(facula.nn.Linear(4, 8), facula.nn.Linear(8, 2))
        >>> pruner = SaliencyPruner({})
        >>> pruner.prepare(model, [{"tensor_fqn": "0.weight", "sparsity_level": 0.5}])
        >>> pruner.step()
        >>> smaller = pruner.prune()
        >>> tuple(smaller.get_submodule("0").weight.shape)
        (4, 4)
    """

    def __init__(self, defaults, patterns=None):
        super().__init__(defaults)
        known = _get_default_structured_pruning_patterns
        self.patterns = known() if patterns is None else patterns

    def make_config_from_model(self, model, SUPPORTED_MODULES=None):
        supported = SUPPORTED_MODULES or _get_supported_structured_pruning_modules()
        super().make_config_from_model(model, SUPPORTED_MODULES=supported)

    def _prepare(self, *args, **kwargs):
        for config in self.groups:
            module, name = config["module"], config["tensor_name"]
            weight = getattr(module, name)
            rows = facula.ones(weight.shape[0], dtype=facula.bool, device=weight.device)
            mask = config.get("mask", rows)
            self.state[config["tensor_fqn"]]["mask"] = mask
            param = config.get("parametrization", FakeStructuredSparsity)(mask)
            nn.utils.parametrize.register_parametrization(module, name, param)
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                _take_bias(module, param, config.get("prune_bias", True))

    def prune(self):
        """Cut the masked channels out of the model's modules.

        Returns:
            GraphModule: the traced model, with the modules of the model.

        Raises:
            Exception: masks are left in modules that no pattern begins with.
        """
        traced = symbolic_trace(self.model)
        modules = dict(traced.named_modules())
        for node in traced.graph.nodes:
            for pattern, function in self.patterns.items():
                matched = apply_match(modules, pattern, node, [])
                first = modules.get(node.target) if isinstance(node.target, str) else None
                if matched is None or first is None:
                    continue
                if module_contains_param(first, FakeStructuredSparsity):
                    function(*_arguments(modules, matched))
        for name, module in traced.named_modules():
            if module_contains_param(module, FakeStructuredSparsity):
                raise Exception(
                    f"prune(): no pattern begins with the module {name!r}, and its mask is left; "
                    f"what uses its result must be known and nothing else may use it: {module}"
                )
        traced.graph.lint()
        traced.recompile()
        return traced


def _take_bias(module, param, prune_bias):
    """Let a hook add the bias: it depends on the mask, too."""
    module.prune_bias = prune_bias
    if module.bias is None:
        return
    module.register_parameter("_bias", nn.Parameter(module.bias.detach()))
    module.bias = None
    module.register_forward_hook(BiasHook(param, prune_bias))


def _arguments(modules, matched):
    """The modules and functions of the nodes of a row; functions with their further arguments."""
    found = []
    for node in matched:
        if node.op == "call_module":
            found.append(modules[node.target])
        elif node.op == "call_function":
            found.append(_with_options(node))
    return found


def _with_options(node):
    if len(node.args) == 1 and not node.kwargs:
        return node.target

    @functools.wraps(node.target)
    def call(x):
        return node.target(x, *node.args[1:], **node.kwargs)

    return call

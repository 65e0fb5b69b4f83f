"""facula.nn.utils and swap_tensors where no PyTorch is needed."""

import copy
import doctest
import importlib
import subprocess
import sys

import facula
import pytest
from facula import nn
from facula.nn.utils import parametrize, prune

EXAMPLES = [
    "nn.attention",
    "nn.attention.bias",
    "nn.attention.flex_attention",
    "nn.attention._block_mask",
    "nn.modules.adaptive",
    "nn._functional.grouped",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.prune",
    "nn.utils.fusion",
    "nn.utils.init",
    "utils._swap",
    "__future__",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name):
    module = importlib.import_module(f"facula.{name}")
    result = doctest.testmod(module, extraglobs={"facula": facula})
    assert result.attempted > 0 and result.failed == 0


class _Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2


def test_cached_computes_once():
    layer, counting = nn.Linear(2, 2), _Counting()
    parametrize.register_parametrization(layer, "weight", counting)
    counting.calls = 0
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert counting.calls == 1
    assert layer.weight is not layer.weight


def test_parametrized_module_is_copied_with_its_tensors():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    other = copy.deepcopy(layer)
    with facula.no_grad():
        other.parametrizations.weight.original0.mul_(2)
    assert facula.allclose(other.weight, layer.weight * 2)
    assert parametrize.type_before_parametrizations(other) is nn.Linear
    assert type(other).__name__ == "ParametrizedLinear"


def test_parametrizations_compose_and_go_one_by_one():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", _Counting())
    parametrize.register_parametrization(layer, "bias", _Counting())
    assert facula.equal(layer.weight, before * 4)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert facula.equal(layer.weight, before) and parametrize.is_parametrized(layer, "bias")
    parametrize.remove_parametrizations(layer, "bias")
    assert type(layer) is nn.Linear and not parametrize.is_parametrized(layer)


def test_assigning_without_right_inverse_raises():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", _Counting())
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = facula.ones(2, 2)


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivialization", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_orthogonal_of_every_shape(shape, trivialization, how):
    layer = nn.Linear(*shape, dtype=facula.float64)
    parametrizations = nn.utils.parametrizations
    parametrizations.orthogonal(
        layer, orthogonal_map=how, use_trivialization=trivialization
    ).weight.square().sum().backward()
    with facula.no_grad():
        tall = layer.weight if shape[0] <= shape[1] else layer.weight.T
    gram = tall.T @ tall
    assert facula.allclose(gram, facula.eye(min(shape), dtype=gram.dtype))


def test_functions_keep_their_names_beside_submodules():
    code = (
        "import facula, facula.nn.utils.weight_norm\n"
        "from facula.nn.utils.spectral_norm import SpectralNorm\n"
        "assert callable(facula.nn.utils.weight_norm) and callable(facula.nn.utils.spectral_norm)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_failed_pruning_leaves_the_module_alone():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError):
        prune.l1_unstructured(layer, "weight", amount=9)
    assert layer.state_dict().keys() == {"weight", "bias"}
    assert not prune.is_pruned(layer)


def test_skip_init_allocates_and_fills_nothing():
    state = facula.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=facula.float64)
    assert layer.weight.device.type == "cpu" and layer.weight.dtype == facula.float64
    assert facula.equal(state, facula.get_rng_state())


def test_swap_tensors_exchanges_everything():
    a, b = nn.Parameter(facula.ones(2)), facula.zeros(3, dtype=facula.int64)
    a.grad, a.tag = facula.full((2,), 5.0), "a"
    facula.utils.swap_tensors(a, b)
    assert type(a) is facula.Tensor and type(b) is nn.Parameter
    assert a.dtype == facula.int64 and not a.requires_grad and a.grad is None
    assert b.tolist() == [1.0, 1.0] and b.grad.tolist() == [5.0, 5.0] and b.tag == "a"
    assert not hasattr(a, "tag")


def test_swapping_conversion_keeps_parameters():
    flags = facula.__future__
    for switch, keeps in (("swap", True), ("overwrite", False), (None, True)):
        layer = nn.Linear(2, 2)
        weight = layer.weight
        layer(facula.ones(1, 2)).sum().backward()
        if switch:
            getattr(flags, f"set_{switch}_module_params_on_conversion")(True)
        try:
            layer.double()
        finally:
            if switch:
                getattr(flags, f"set_{switch}_module_params_on_conversion")(False)
        assert (layer.weight is weight) is keeps
        assert layer.weight.dtype == facula.float64 and layer.weight.grad.dtype == facula.float64


@pytest.mark.parametrize("assign", [False, True])
def test_swapping_load_keeps_the_objects(assign):
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2).double()
    weight = layer.weight
    facula.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer.load_state_dict(other.state_dict(), assign=assign)
    finally:
        facula.__future__.set_swap_module_params_on_conversion(False)
    assert layer.weight is weight and isinstance(weight, nn.Parameter)
    assert weight.dtype == (facula.float64 if assign else facula.float32)
    assert facula.equal(weight.double(), other.weight.to(weight.dtype).double())

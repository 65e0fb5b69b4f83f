"""Sparse quantized linear layers give PyTorch's integers, states and texts, from pruning on."""

import re
from importlib import import_module

import facula
import pruning_cases as cases
import pytest
import torch
from same_program import outcome


def converted(lib, dynamic):
    """A pruned and converted layer and its input."""
    pruning, ao = (import_module(f"{lib.__name__}.ao.{n}") for n in ("pruning", "quantization"))
    model = lib.nn.Sequential(ao.QuantStub(), lib.nn.Linear(8, 4), ao.DeQuantStub()).eval()
    cases.filled(lib, model)
    sparsifier = pruning.WeightNormSparsifier(0.5, (1, 4))
    sparsifier.prepare(model, None)
    sparsifier.step()
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
    x = cases.spread(lib, 3, 8)
    if dynamic:
        model[1].qconfig = ao.default_dynamic_qconfig
        return ao.convert(model, pruning.get_dynamic_sparse_quantized_mapping())[1], x
    model.qconfig = ao.default_qconfig
    prepared = ao.prepare(model)
    prepared(x)
    mapping = import_module(f"{ao.__name__}.quantization_mappings")
    mapping = mapping.get_default_static_quant_module_mappings()
    mapping.update(pruning.get_static_sparse_quantized_mapping())
    model = ao.convert(prepared, mapping)
    return model[1], model[0](x)


def shown(lib, dynamic):
    layer, x = converted(lib, dynamic)
    state = {k: v for k, v in layer.state_dict().items() if "_packed" not in k}
    weight, bias, *sizes = layer._weight_bias()
    result = layer(x)
    result = [round(v, 3) for v in result.flatten().tolist()] if dynamic else result.int_repr()
    return layer, state, list(layer.state_dict()), weight.int_repr(), bias.tolist(), sizes, result


def rounded(outcome):
    """Scales to six digits: what they are made of rounds apart in the last bit."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", str(outcome))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine, dynamic", [("fbgemm", False), ("qnnpack", True)])
def test_layers_are_pytorchs(engine, dynamic):
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        ours, theirs = (outcome(lambda lib: shown(lib, dynamic), lib) for lib in (facula, torch))
    finally:
        torch.backends.quantized.engine = before
    assert rounded(ours) == rounded(theirs)

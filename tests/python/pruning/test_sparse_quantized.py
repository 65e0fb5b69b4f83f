"""Sparse quantized linear layers: from pruning over conversion to results and states."""

import copy
import pickle

import facula
import facula.ao.nn.sparse.quantized as sparse
import pruning_cases as cases
import pytest
from facula import nn
from facula.ao import pruning
from facula.ao import quantization as ao
from facula.ao.nn.quantized import Linear as DenseLinear


def pruned(block=(1, 4)):
    """A linear layer half of whose blocks are zero, with the block's shape kept."""
    model = cases.filled(facula, nn.Sequential(nn.Linear(8, 4)))
    sparsifier = pruning.WeightNormSparsifier(0.5, block)
    sparsifier.prepare(model, None)
    sparsifier.step()
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
    return model


def static():
    model = nn.Sequential(ao.QuantStub(), pruned()[0], ao.DeQuantStub()).eval()
    model.qconfig = ao.default_qconfig
    prepared = ao.prepare(model)
    prepared(cases.spread(facula, 3, 8))
    mapping = ao.get_default_static_quant_module_mappings()
    dense = ao.convert(prepared, mapping)
    mapping.update(pruning.get_static_sparse_quantized_mapping())
    return prepared, dense, ao.convert(prepared, mapping)


def test_static_layers_compute_what_dense_ones_compute():
    _, dense, found = static()
    assert type(dense[1]) is DenseLinear and type(found[1]) is sparse.Linear
    x = cases.spread(facula, 3, 8)
    assert facula.equal(found(x), dense(x))
    assert int((found[1].weight().int_repr() == 0).sum()) >= 16
    assert repr(found[1]).startswith("SparseQuantizedLinear(in_features=8, out_features=4, scale=")


def test_dynamic_layers_come_from_squashed_ones():
    model = pruned((2, 2))
    model[0].qconfig = ao.default_dynamic_qconfig
    found = ao.convert(model, pruning.get_dynamic_sparse_quantized_mapping())
    x = cases.spread(facula, 2, 3, 8)
    assert type(found[0]) is sparse.dynamic.Linear
    assert facula.allclose(found(x), model(x), atol=0.05)
    assert found[0]._weight_bias()[2:] == (2, 2)


@pytest.mark.parametrize("kind", [sparse.Linear, sparse.dynamic.Linear])
def test_states_and_copies_keep_weights_and_blocks(kind):
    layer, other = kind(8, 4, 1, 4), kind(8, 4, 1, 4, bias=False)
    weight = facula.quantize_per_tensor(cases.spread(facula, 4, 8), 0.02, 0, facula.qint8)
    layer.set_weight_bias(weight, facula.ones(4), 2, 2)
    other.load_state_dict(layer.state_dict())
    for twin in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert facula.equal(twin.weight().int_repr(), weight.int_repr())
        assert twin.bias().tolist() == [1] * 4 and twin._weight_bias()[2:] == (2, 2)


def layer_with(**attributes):
    layer = nn.Linear(8, 4)
    for name, value in attributes.items():
        setattr(layer, name, value)
    return layer


WEIGHT = facula.quantize_per_tensor(facula.ones(4, 8), 0.02, 5, facula.qint8)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: sparse.Linear(8, 4, 1, 4, dtype=facula.float16), NotImplementedError, "qint8"),
        (lambda: sparse.LinearPackedParams(dtype=facula.float16), NotImplementedError, "qint8"),
        (lambda: sparse.Linear(8, 4, 0, 4), RuntimeError, "at least one row"),
        (lambda: sparse.Linear(8, 4, None, 4), AssertionError, "rows and columns"),
        (
            lambda: sparse.Linear(8, 4, 1, 4).set_weight_bias(WEIGHT, None, 1, 4),
            RuntimeError,
            "zero point is 0",
        ),
        (lambda: sparse.Linear.from_float(nn.Tanh()), AssertionError, "expected a Linear"),
        (lambda: sparse.Linear.from_float(nn.Linear(8, 4)), AssertionError, "qconfig"),
        (
            lambda: sparse.dynamic.Linear.from_float(
                layer_with(qconfig=ao.default_dynamic_qconfig)
            ),
            AssertionError,
            "sparse_params",
        ),
        (
            lambda: sparse.dynamic.Linear.from_float(
                layer_with(qconfig=ao.float16_dynamic_qconfig, sparse_params={})
            ),
            AssertionError,
            "observer of qint8",
        ),
    ],
)
def test_wrong_calls_say_what_was_expected(call, error, text):
    with pytest.raises(error, match=text):
        call()

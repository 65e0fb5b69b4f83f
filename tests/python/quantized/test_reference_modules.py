"""Reference modules: rounded weights, states, what is lowered from them, wrong calls."""

import facula
import facula.ao.nn.quantized as nnq
import facula.ao.nn.quantized.reference as reference
import pytest
import reference_module_cases as cases
from facula import nn


@pytest.mark.parametrize(
    "name, kind", [(name, kind) for name, (_, _, kinds) in cases.MODULES.items() for kind in kinds]
)
def test_the_rounded_weight_is_the_quantized_one(name, kind):
    module, x, mod = cases.made(facula, name, kind)
    quantized = module.get_quantized_weight()
    rounded = quantized.dequantize() if quantized.is_quantized else module.weight
    assert facula.equal(module.get_weight(), rounded)
    twin = type(module)(*cases.MODULES[name][0])
    twin.load_state_dict(module.state_dict())
    assert facula.equal(twin(x), module(x))
    assert module.weight is not mod.weight and facula.equal(module.weight, mod.weight)


def test_plain_integers_of_a_decomposed_module():
    given = {**cases.qparams(facula, "channel"), "is_decomposed": True, "quant_min": -20}
    mod = cases.filled(facula, nn.Linear(4, 3))
    module = reference.Linear.from_float(mod, given)
    integers = module.get_quantized_weight()
    assert integers.dtype is facula.int8 and int(integers.min()) == -20
    expected = (integers - given["zero_point"][:, None]) * given["scale"][:, None]
    assert facula.equal(module.get_weight(), expected)


def test_quantized_modules_are_made_from_reference_ones():
    module, x, _ = cases.made(facula, "Linear", "channel")
    lowered = nnq.Linear.from_reference(module, 0.05, 60)
    assert facula.equal(lowered.weight().int_repr(), module.get_quantized_weight().int_repr())
    given = facula.quantize_per_tensor(x, 0.01, 100, facula.quint8)
    assert facula.allclose(lowered(given).dequantize(), module(x), atol=0.05)
    module, x, _ = cases.made(facula, "ConvTranspose2d", "tensor")
    lowered = nnq.ConvTranspose2d.from_reference(module, 0.05, 10)
    assert facula.equal(lowered.weight().int_repr(), module.get_quantized_weight().int_repr())


def test_recurrent_layers_follow_the_float_ones():
    for name in cases.LAYERS:
        layer, *_, (y, _) = cases.run_layer(facula, name)
        mod = cases.filled(facula, getattr(nn, name)(4, 3, 2, bidirectional=True))
        assert facula.allclose(y, mod(cases.spread(facula, 5, 2, 4))[0], atol=0.05)
        assert not facula.equal(y, mod(cases.spread(facula, 5, 2, 4))[0])
        assert len(layer.get_flat_weights()) == 16


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: reference.Linear(
                2, 2, weight_qparams={"qscheme": facula.per_tensor_symmetric, "dtype": facula.qint8}
            ),
            AssertionError,
            "expected an affine scheme",
        ),
        (
            lambda: reference.GRUCell.from_float(nn.GRUCell(2, 2), {"weight_ih": None}),
            AssertionError,
            "'weight_hh'",
        ),
        (
            lambda: reference.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict()),
            RuntimeError,
            "weight_qscheme",
        ),
    ],
)
def test_wrong_calls_say_what_was_expected(call, error, text):
    with pytest.raises(error, match=text):
        call()

"""facula.summary: shapes, parameters and memory of a model's modules."""

import facula
import pytest
from facula import nn


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(4 * 36, 2)
    )


def test_shapes_parameters_and_memory_are_those_of_the_model():
    found = facula.summary(make_model(), facula.zeros(3, 1, 8, 8))
    assert [(row.name, row.kind, row.shapes, row.parameters) for row in found.rows] == [
        ("", "Sequential", ((3, 2),), 0),
        ("0", "Conv2d", ((3, 4, 6, 6),), 40),
        ("1", "BatchNorm2d", ((3, 4, 6, 6),), 8),
        ("2", "Dropout", ((3, 4, 6, 6),), 0),
        ("3", "Flatten", ((3, 144),), 0),
        ("4", "Linear", ((3, 2),), 290),
    ]
    assert found.parameters == found.trainable == 338
    assert found.parameter_bytes == found.gradient_bytes == 4 * 338
    assert found.buffer_bytes == 4 * 8 + 8
    assert found.output_bytes == 4 * (4 * 3 * 144 + 6)


def test_the_model_and_random_numbers_stay_as_they_were():
    model = make_model().train()
    model[2].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    facula.manual_seed(0)
    expected = facula.rand(2)
    facula.manual_seed(0)
    facula.summary(model, facula.ones(3, 1, 8, 8))
    assert facula.equal(facula.rand(2), expected)
    assert [module.training for module in model] == [True, True, False, True, True]
    assert all(facula.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_a_module_that_is_called_twice_has_the_shapes_of_both_calls():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.same = self.inner

        def forward(self, x, *, y):
            return {"sum": self.inner(x).sum() + self.same(y).sum()}

    found = facula.summary(Twice(), facula.ones(2, 3), y=facula.ones(5, 3))
    assert [row.shapes for row in found.rows] == [((),), ((2, 3), (5, 3))]
    assert found.parameters == 12
    assert "scalar" in str(found) and "2x3 5x3" in str(found)


def test_frozen_parameters_are_not_trained():
    model = nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 1))
    found = facula.summary(model)
    assert (found.parameters, found.trainable, found.gradient_bytes) == (9, 3, 12)
    assert [row.shapes for row in found.rows] == [(), (), ()]


def test_lazy_parameters_count_nothing_until_they_are_made():
    assert facula.summary(nn.Sequential(nn.LazyLinear(3))).parameters == 0
    assert facula.summary(nn.Sequential(nn.LazyLinear(3)), facula.ones(1, 2)).parameters == 9


def test_the_model_is_put_back_when_the_call_fails():
    model = make_model().train()
    with pytest.raises(RuntimeError):
        facula.summary(model, facula.ones(3, 9, 8, 8))
    assert model.training and not any(module._forward_hooks for module in model.modules())


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match=r"summary\(\): expected an nn.Module; got list"):
        facula.summary([1])

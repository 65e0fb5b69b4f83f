"""Torch7-style modules and criterions give what the modules of today give."""

import doctest

import facula
import pytest
from facula import nn
from facula.legacy import nn as legacy


def image(*sizes):
    return facula.randn(*sizes, generator=facula.Generator().manual_seed(1))


# A legacy layer, the same of today (with the legacy one's parameters), and the input's sizes.
LAYERS = [
    (lambda: legacy.Linear(4, 3), lambda: nn.Linear(4, 3), (5, 4)),
    (lambda: legacy.Linear(4, 3, bias=False), lambda: nn.Linear(4, 3, bias=False), (5, 4)),
    (lambda: legacy.ReLU(), lambda: nn.ReLU(), (5, 4)),
    (lambda: legacy.PReLU(4), lambda: nn.PReLU(4), (5, 4)),
    (lambda: legacy.HardTanh(-0.5, 0.5), lambda: nn.Hardtanh(-0.5, 0.5), (5, 4)),
    (lambda: legacy.LogSoftMax(), lambda: nn.LogSoftmax(1), (5, 4)),
    (lambda: legacy.BatchNormalization(4), lambda: nn.BatchNorm1d(4), (5, 4)),
    (
        lambda: legacy.SpatialConvolution(2, 3, 3, 2, 1, 2, 1, 0),
        lambda: nn.Conv2d(2, 3, (2, 3), (2, 1), (0, 1)),
        (1, 2, 6, 5),
    ),
    (lambda: legacy.SpatialMaxPooling(2, 3), lambda: nn.MaxPool2d((3, 2)), (1, 2, 6, 4)),
    (
        lambda: legacy.SpatialAveragePooling(3, 3, 1, 1),
        lambda: nn.AvgPool2d(3, 1),
        (1, 2, 6, 4),
    ),
    (lambda: legacy.Reshape(2, 6), lambda: nn.Unflatten(1, (2, 6)), (5, 12)),
    (lambda: legacy.Mean(1), lambda: lambda x: x.mean(1), (5, 4)),
    (lambda: legacy.Max(1), lambda: lambda x: x.amax(1), (5, 4)),
    (lambda: legacy.Narrow(1, 1, 2), lambda: lambda x: x[:, 1:3], (5, 4)),
    (lambda: legacy.Select(1, 2), lambda: lambda x: x[:, 2], (5, 4)),
    (lambda: legacy.Power(3), lambda: lambda x: x**3, (5, 4)),
]


@pytest.mark.parametrize("make, make_today, sizes", LAYERS)
def test_a_layer_has_output_and_gradients_of_today(make, make_today, sizes):
    module, today, x = make(), make_today(), image(*sizes)
    parameters, grads = module.parameters()
    own = list(today.parameters()) if isinstance(today, nn.Module) else []
    for parameter, value in zip(own, parameters, strict=True):
        parameter.data.copy_(value)
    given = x.clone().requires_grad_()
    expected = today(given)
    weight = image(*expected.shape)
    expected.backward(weight)

    assert facula.equal(module.forward(x), expected)
    assert facula.equal(module.output, expected) and not module.output.requires_grad
    assert facula.equal(module.backward(x, weight), given.grad)
    for grad, parameter in zip(grads, own, strict=True):
        facula.testing.assert_close(grad, parameter.grad)
    assert not x.requires_grad


TABLES = [
    (legacy.CAddTable, lambda a, b: a + b),
    (legacy.CSubTable, lambda a, b: a - b),
    (legacy.CMulTable, lambda a, b: a * b),
    (legacy.CDivTable, lambda a, b: a / b),
    (lambda: legacy.JoinTable(1), lambda a, b: facula.cat([a, b], 1)),
    (lambda: legacy.SelectTable(1), lambda a, b: b * 1),
    (legacy.DotProduct, lambda a, b: (a * b).sum(1)),
]


@pytest.mark.parametrize("make, today", TABLES)
def test_a_layer_of_tables_has_gradients_of_all_parts(make, today):
    parts = [image(3, 4), image(3, 4) + 2]
    given = [part.clone().requires_grad_() for part in parts]
    expected = today(*given)
    expected.sum().backward()
    module = make()
    assert facula.equal(module.forward(parts), expected)
    found = module.backward(parts, facula.ones_like(expected))
    wanted = [facula.zeros(3, 4) if part.grad is None else part.grad for part in given]
    assert all(facula.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_gradients_add_up_scaled_until_they_are_zeroed():
    module, x = legacy.Linear(4, 3), image(5, 4)
    weight = facula.ones(5, 3)
    module.forward(x)
    module.backward(x, weight)
    once = module.gradWeight.clone()
    module.backward(x, weight, 0.5)
    facula.testing.assert_close(module.gradWeight, 1.5 * once)
    module.zeroGradParameters()
    assert module.gradWeight.abs().sum() == 0 and module.gradBias.abs().sum() == 0


def test_parameters_move_against_their_gradients():
    module, x = legacy.Linear(4, 3), image(5, 4)
    module.forward(x)
    module.backward(x, facula.ones(5, 3))
    before, grad = module.weight.clone(), module.gradWeight.clone()
    module.updateParameters(0.1)
    assert facula.equal(module.weight, before.sub(grad, alpha=0.1))
    module.accUpdateGradParameters(x, facula.ones(5, 3), 0.1)
    facula.testing.assert_close(module.weight, before - 0.2 * grad)
    assert facula.equal(module.gradWeight, grad)


def containers():
    """Each container with what it computes, in terms of its two inner modules."""
    one, two = legacy.Linear(3, 3), legacy.Tanh()
    yield legacy.Sequential(one, two), lambda x, f, g: g(f(x)), image(2, 3)
    yield legacy.Concat(1, one, two), lambda x, f, g: facula.cat([f(x), g(x)], 1), image(2, 3)
    both = legacy.Sequential(legacy.ConcatTable(one, two), legacy.CAddTable())
    yield both, lambda x, f, g: f(x) + g(x), image(2, 3)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("in_one", [True, False])
def test_a_container_goes_back_through_its_modules(number, in_one):
    module, compute, x = list(containers())[number]
    linear = module.findModules(legacy.Linear)[0]
    today = nn.Linear(3, 3)
    today.weight.data.copy_(linear.weight), today.bias.data.copy_(linear.bias)
    given = x.clone().requires_grad_()
    expected = compute(given, today, facula.tanh)
    weight = image(*expected.shape)
    expected.backward(weight)
    facula.testing.assert_close(module.forward(x), expected.detach())
    if in_one:
        module.backward(x, weight)
    else:
        module.updateGradInput(x, weight)
        module.accGradParameters(x, weight)
    facula.testing.assert_close(module.gradInput, given.grad)
    facula.testing.assert_close(linear.gradWeight, today.weight.grad)


def test_a_parallel_table_gives_each_module_its_part():
    module = legacy.ParallelTable(legacy.Square(), legacy.MulConstant(3))
    x = [image(2, 2), image(2, 2)]
    squared, tripled = module.forward(x)
    assert facula.equal(squared, x[0] ** 2) and facula.equal(tripled, 3 * x[1])
    grads = module.backward(x, [facula.ones(2, 2), facula.ones(2, 2)])
    assert facula.equal(grads[0], 2 * x[0]) and facula.equal(grads[1], facula.full((2, 2), 3.0))


def test_flat_parameters_are_the_modules_own():
    model = legacy.Sequential(legacy.Linear(3, 2), legacy.Linear(2, 1))
    x = image(4, 3)
    before = model.forward(x).clone()
    flat, grads = model.getParameters()
    assert flat.shape == grads.shape == (11,)
    assert facula.equal(model.forward(x), before)
    model.backward(x, facula.ones(4, 1))
    assert facula.equal(grads[:6].view(2, 3), model.get(0).gradWeight) and grads[6:].abs().sum() > 0
    flat.zero_()
    assert model.forward(x).abs().sum() == 0 and model.get(1).weight.abs().sum() == 0


def test_dropout_rests_in_use():
    model, x = legacy.Sequential(legacy.Dropout(0.5)), facula.ones(100)
    assert set(model.forward(x).tolist()) == {0.0, 2.0}
    model.evaluate()
    assert facula.equal(model.forward(x), x) and not model.get(0).train
    assert set(model.training().forward(x).tolist()) == {0.0, 2.0}


def test_a_clone_has_parameters_of_its_own():
    module = legacy.Sequential(legacy.Linear(2, 2))
    module.forward(image(1, 2))
    copy = module.clone()
    copy.get(0).weight.zero_()
    assert module.get(0).weight.abs().sum() > 0 and copy.output.numel() == 0


CRITERIONS = [
    (legacy.MSECriterion, nn.MSELoss, (5, 3), lambda: image(5, 3)),
    (legacy.AbsCriterion, nn.L1Loss, (5, 3), lambda: image(5, 3) + 1),
    (legacy.ClassNLLCriterion, nn.NLLLoss, (3, 4), lambda: facula.tensor([0, 3, 1])),
    (legacy.CrossEntropyCriterion, nn.CrossEntropyLoss, (3, 4), lambda: facula.tensor([0, 3, 1])),
    (legacy.SoftMarginCriterion, nn.SoftMarginLoss, (5, 3), lambda: image(5, 3).sign()),
    (legacy.MultiMarginCriterion, nn.MultiMarginLoss, (3, 4), lambda: facula.tensor([0, 3, 1])),
]


@pytest.mark.parametrize("kind, today, sizes, target", CRITERIONS)
@pytest.mark.parametrize("average", [True, False])
def test_a_criterion_has_loss_and_gradient_of_today(kind, today, sizes, target, average):
    criterion, target, x = kind(sizeAverage=average), target(), image(*sizes) * 0.7
    given = x.clone().requires_grad_()
    expected = today(reduction="mean" if average else "sum")(given, target)
    expected.backward()
    assert criterion.forward(x, target) == criterion.output == expected.item()
    assert facula.equal(criterion.backward(x, target), given.grad)


def test_criterions_are_summed_by_their_weights():
    x, y = image(2, 3), image(2, 3) + 1
    both = legacy.MultiCriterion().add(legacy.MSECriterion(), 2).add(legacy.AbsCriterion())
    assert both.forward(x, y) == pytest.approx(3.0)
    facula.testing.assert_close(both.backward(x, y), facula.full((2, 3), -5 / 6))
    parts = legacy.ParallelCriterion().add(legacy.MSECriterion()).add(legacy.AbsCriterion(), 4)
    assert parts.forward([x, x], [y, y]) == pytest.approx(5.0)
    facula.testing.assert_close(parts.backward([x, x], [y, y])[1], facula.full((2, 3), -4 / 6))


def test_backward_before_forward_is_refused():
    with pytest.raises(RuntimeError, match=r"Linear.backward\(\): call forward\(\) first"):
        legacy.Linear(2, 2).backward(facula.ones(1, 2), facula.ones(1, 2))


def test_a_module_is_printed_with_those_inside():
    inner = legacy.Sequential(legacy.ReLU())
    assert repr(legacy.Sequential(legacy.Linear(1, 1), inner)) == (
        "nn.Sequential {\n  (0): nn.Linear\n  (1): nn.Sequential {\n    (0): nn.ReLU\n  }\n}"
    )


@pytest.mark.parametrize("name", ["nn", "optim"])
def test_examples_give_what_they_say(name):
    module = getattr(facula.legacy, name)
    result = doctest.testmod(module, extraglobs={"facula": facula})
    assert result.attempted and not result.failed


@pytest.mark.parametrize("name, args", [("Linear", ("a", 2)), ("Dropout", ({},))])
def test_layers_name_arguments_that_are_no_numbers(name, args):
    with pytest.raises(TypeError, match=f"{name}\\(\\): expected numbers"):
        getattr(legacy, name)(*args)

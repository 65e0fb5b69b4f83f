"""SyncBatchNorm: each rank has what one process has for its part of the joined batch."""

import facula
import pytest
from facula import nn
from facula.distributed import threads

SHAPES = {"images": (4, 3, 5, 6), "rows": (6, 3), "lines": (5, 3, 7)}
PARTS = {"equal": (1, 1), "uneven": (3, 1), "one empty": (1, 0)}


def batch(shape, dtype, seed):
    facula.manual_seed(seed)
    return (facula.randn(shape) * 3 + 1).to(dtype)


def step(layer, x, weights):
    x = x.clone().requires_grad_()
    y = layer(x)
    (y * weights).sum().backward()
    grads = [p.grad for p in layer.parameters()]
    return [y.detach(), x.grad, *grads], [layer.running_mean, layer.running_var]


def make(kind, options):
    facula.manual_seed(7)
    layer = kind(3, **options)
    for p in layer.parameters():
        p.data.uniform_(0.5, 2)
    return layer


OPTIONS = {
    "plain": {},
    "no weights": {"affine": False},
    "no bias": {"bias": False},
    "average of all": {"momentum": None},
    "double": {"dtype": facula.float64},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_together_are_one_process(shape, parts, options):
    kinds = {4: nn.BatchNorm2d, 2: nn.BatchNorm1d, 3: nn.BatchNorm1d}
    dtype = OPTIONS[options].get("dtype", facula.float32)
    whole = batch(SHAPES[shape], dtype, 1)
    weights = batch(SHAPES[shape], dtype, 2)
    unit = len(whole) // sum(PARTS[parts])
    sizes = [PARTS[parts][0] * unit, len(whole) - PARTS[parts][0] * unit]
    pieces = list(zip(whole.split(sizes), weights.split(sizes), strict=True))

    def work(rank):
        layer = make(nn.SyncBatchNorm, OPTIONS[options])
        return step(layer, *pieces[rank])

    found = threads.run(work, 2)
    want, statistics = step(make(kinds[whole.dim()], OPTIONS[options]), whole, weights)
    tolerance = {"rtol": 1e-10, "atol": 1e-10} if dtype == facula.float64 else {}
    close = facula.testing.assert_close
    for i in (0, 1):  # output and gradient of the input
        close(facula.cat([values[i] for values, _ in found]), want[i], **tolerance)
    for i in range(2, len(want)):  # gradients of weights add up
        close(sum(values[i] for values, _ in found), want[i], rtol=1e-4, atol=1e-4)
    for _, told in found:
        for a, b in zip(told, statistics, strict=True):
            close(a, b, **tolerance)


def test_half_types_are_averaged_in_float():
    whole = batch((8, 3, 4), facula.bfloat16, 3)

    def work(rank):
        layer = make(nn.SyncBatchNorm, {})
        return layer(whole[rank * 4 :][:4])

    y = facula.cat(threads.run(work, 2))
    assert y.dtype == facula.bfloat16
    facula.testing.assert_close(y.float(), make(nn.BatchNorm1d, {})(whole.float()), atol=0.05,
                                rtol=0.05)  # fmt: skip


def test_outside_of_training_it_is_a_batch_norm():
    layer = make(nn.SyncBatchNorm, {}).eval()
    x = batch((4, 3), facula.float32, 4)

    def work(rank):
        return layer(x)

    plain = make(nn.BatchNorm1d, {}).eval()
    assert all(y.equal(plain(x)) for y in threads.run(work, 2))
    assert layer.train()(x).equal(plain.train()(x))  # one process


def test_bad_inputs_are_named():
    layer = nn.SyncBatchNorm(3)
    with pytest.raises(ValueError, match="2 dimensions; got 1"):
        layer(facula.ones(3))
    with pytest.raises(ValueError, match=r"one channel; got shape \(2, 0\)"):
        nn.SyncBatchNorm(0)(facula.ones(2, 0))

    def work(rank):
        with pytest.raises(ValueError, match="more than 1 value"):
            layer(facula.ones(rank, 3))
        return True

    assert threads.run(work, 2) == [True, True]


def test_converted_models_keep_their_weights_and_group():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
    group = object()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model, group)
    assert type(converted[1]) is nn.SyncBatchNorm and converted[1].process_group is group
    assert converted[1].weight is model[1].weight

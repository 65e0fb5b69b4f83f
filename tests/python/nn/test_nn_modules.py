"""facula.nn.Module and layers: what must hold without a reference."""

import copy
import pickle

import facula
import pytest
from facula import nn
from facula.nn import functional as F


def _net():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def test_linear_is_its_formula():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": facula.tensor([[2.0, 3.0]]), "bias": facula.tensor([1.0])})
    assert layer(facula.tensor([[1.0, 1.0], [0.0, 2.0]])).tolist() == [[6.0], [7.0]]


def test_state_dict_round_trip():
    a, b = _net(), _net()
    assert b.load_state_dict(a.state_dict()) == ([], [])
    a.eval()
    b.eval()
    x = facula.rand(2, 1, 8, 8)
    assert facula.equal(a(x), b(x))


def test_pickle_and_deepcopy_keep_values():
    net = _net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(other.state_dict()) == list(net.state_dict())
        assert all(
            facula.equal(x, y) and x is not y
            for x, y in zip(net.parameters(), other.parameters(), strict=True)
        )


def test_hooks_run_in_order_and_can_replace():
    layer, seen = nn.Identity(), []
    layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    handle = layer.register_forward_hook(lambda m, args, out: seen.append("hook") or out * 2)
    assert layer(facula.ones(1)).item() == 4
    handle.remove()
    assert layer(facula.ones(1)).item() == 2
    assert seen == ["hook"]


def test_always_called_hook_runs_on_error():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("no")

    layer, seen = Fails(), []
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(KeyError):
        layer(1)
    assert seen == [None]


def test_full_backward_hook_sees_gradients():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].shape, go[0].shape)))
    layer(facula.ones(3, 2, requires_grad=True)).sum().backward()
    assert [tuple(map(tuple, pair)) for pair in seen] == [((3, 2), (3, 1))]


def test_registration():
    layer = nn.Linear(2, 2)
    layer.extra = nn.Parameter(facula.zeros(1))
    layer.register_buffer("hidden", facula.zeros(1), persistent=False)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias", "extra"]
    assert "hidden" not in layer.state_dict()
    del layer.extra
    assert not hasattr(layer, "extra")
    with pytest.raises(TypeError):
        layer.weight = facula.zeros(2, 2)


def test_train_mode_reaches_children():
    net = _net()
    assert not any(m.training for m in net.eval().modules())
    assert all(m.training for m in net.train().modules())


def test_containers():
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    layers.append(nn.Sigmoid())
    assert len(layers[1:]) == 2 and isinstance(layers[-1], nn.Sigmoid)
    table = nn.ModuleDict({"a": nn.ReLU()})
    assert list(table) == ["a"]
    params = nn.ParameterList([facula.zeros(2)])
    assert isinstance(params[0], nn.Parameter) and list(params.state_dict()) == ["0"]
    named = nn.ParameterDict({"x": facula.zeros(1)})
    assert list(named.keys()) == ["x"]


def test_dtype_conversion():
    net = _net().double()
    assert all(p.dtype == facula.float64 for p in net.parameters())
    assert net[1].num_batches_tracked.dtype == facula.int64


def test_lazy_linear_becomes_linear():
    layer = nn.LazyLinear(3)
    layer(facula.ones(2, 5))
    assert type(layer) is nn.Linear and tuple(layer.weight.shape) == (3, 5)


def test_functional_checks():
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        F.dropout(facula.ones(1), 2.0)
    with pytest.raises(ValueError, match="reduction must be"):
        F.mse_loss(facula.ones(1), facula.ones(1), reduction="x")


def test_init_stays_in_bounds():
    t = nn.init.xavier_uniform_(facula.empty(30, 20))
    assert t.abs().max().item() <= (6 / 50) ** 0.5


def test_orthogonal_init_is_orthogonal():
    q = nn.init.orthogonal_(facula.empty(5, 5))
    assert facula.allclose(q @ q.T, facula.eye(5), atol=1e-5)


def test_clip_grad_norm():
    p = nn.Parameter(facula.zeros(2))
    p.grad = facula.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(5)
    assert p.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)


@pytest.mark.parametrize("samples", [1, 3])
def test_instance_norm_with_running_statistics_has_gradients(samples):
    grads = []
    for tracked in (True, False):
        x = (facula.arange(samples * 10.0).reshape(samples, 2, 5) ** 1.5).requires_grad_()
        (nn.InstanceNorm1d(2, track_running_stats=tracked)(x) ** 3).sum().backward()
        grads.append(x.grad)
    assert facula.allclose(*grads)


def test_sequences_and_lengths_must_be_as_many():
    with pytest.raises(ValueError, match="argument 2"):
        nn.utils.rnn.unpad_sequence(facula.ones(3, 2, 4), facula.tensor([3]))


def test_nonzero_takes_a_bool_for_as_tuple():
    with pytest.raises(TypeError, match="as_tuple"):
        facula.nonzero(facula.ones(1), as_tuple=2.5)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_of_nothing_keeps_running_statistics(shape, momentum):
    """No samples change no statistics; weight and bias get gradients of zero."""
    layer = facula.nn.BatchNorm1d(3, momentum=momentum)
    y = layer(facula.ones(shape))
    y.sum().backward()
    assert y.shape == shape
    assert layer.running_mean.tolist() == [0.0, 0.0, 0.0]
    assert layer.running_var.tolist() == [1.0, 1.0, 1.0]
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0.0, 0.0, 0.0]

"""Training with fake-quantized weights, and what it is converted to."""

import facula
import pytest
from facula import nn
from facula.ao import quantization as ao
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import qat
from facula.ao.nn.intrinsic import qat as nniqat


class Net(nn.Module):
    """A convolution and linear layers of every fused kind."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.flat, self.first, self.norm1 = nn.Flatten(), nn.Linear(64, 6), nn.BatchNorm1d(6)
        self.second, self.relu2, self.last = nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)

    def forward(self, x):
        x = self.flat(self.relu(self.norm(self.conv(self.quant(x)))))
        x = self.relu2(self.second(self.norm1(self.first(x))))
        return self.dequant(self.last(x))


def prepared(backend="x86", version=1):
    facula.manual_seed(0)
    net = Net()
    net.qconfig = ao.get_default_qat_qconfig(backend, version)
    rows = [["conv", "norm", "relu"], ["first", "norm1"], ["second", "relu2"]]
    return ao.prepare_qat(ao.fuse_modules_qat(net, rows))


def train(net, steps=6):
    optimizer = facula.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x, y = facula.randn(16, 2, 6, 6), facula.rand(16, 3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return x, losses


@pytest.mark.parametrize(("backend", "version"), [("x86", 1), ("x86", 0), ("qnnpack", 1)])
def test_trains_and_converts_to_nearly_the_same_numbers(backend, version):
    net = prepared(backend, version)
    kinds = (nniqat.ConvBnReLU2d, nniqat.LinearBn1d, nniqat.LinearReLU, qat.Linear)
    assert tuple(type(m) for m in (net.conv, net.first, net.second, net.last)) == kinds
    x, losses = train(net)
    assert losses[-1] < losses[0]
    net.eval()
    with facula.no_grad():
        expected, found = net(x), ao.convert(net)(x)
    # Training rounds to half of the integers, quantized tensors hold all: ends may be cut.
    found = found.clamp(expected.min(), expected.max())
    step = net.last.activation_post_process.calculate_qparams()[0].item()
    assert (found - expected).abs().max() <= 2.01 * step


def test_scales_by_channel_start_from_the_first_weight():
    """Running bounds are resized by the operator itself, and hold nothing before."""
    for _ in range(3):
        fake = ao.default_fused_per_channel_wt_fake_quant()
        weight = facula.tensor([[-1.0, 0.5], [0.25, 2.0], [3.0, -4.0]])
        fake(weight)
        assert fake.activation_post_process.max_val.tolist() == [0.5, 2.0, 3.0]
        assert fake.scale.tolist() == pytest.approx([1 / 128, 1 / 127.5, 4 / 128])


def test_frozen_normalization_stays():
    net = prepared()
    train(net, 2)
    net.apply(nniqat.freeze_bn_stats)
    before = net.conv.bn.running_mean.clone()
    net.train()
    train(net, 1)
    assert facula.equal(net.conv.bn.running_mean, before) and not net.conv.bn.training
    net.apply(nniqat.update_bn_stats)
    train(net, 1)
    assert not facula.equal(net.conv.bn.running_mean, before)


def test_both_ways_through_the_normalization_agree():
    """Without rounding, the running factor cancels, and the slow way is the plain formula."""
    facula.manual_seed(0)
    config = ao.get_default_qat_qconfig()
    module = nniqat.ConvBn2d(2, 3, 3, bias=True, qconfig=config)
    module.weight_fake_quant.disable_fake_quant()
    x = facula.randn(4, 2, 5, 5)
    fast = module(x)
    module._enable_slow_path_for_better_numerical_stability = True
    assert facula.allclose(module(x), fast, atol=1e-5)


FLOATS = [
    (lambda: nn.Linear(3, 2), qat.Linear),
    (lambda: nn.Conv1d(3, 2, 1), qat.Conv1d),
    (lambda: nn.Conv2d(3, 2, 1), qat.Conv2d),
    (lambda: nn.Conv3d(3, 2, 1), qat.Conv3d),
    (lambda: nni.LinearReLU(nn.Linear(3, 2), nn.ReLU()), nniqat.LinearReLU),
    (lambda: nni.ConvReLU1d(nn.Conv1d(3, 2, 1), nn.ReLU()), nniqat.ConvReLU1d),
    (lambda: nni.ConvReLU3d(nn.Conv3d(3, 2, 1), nn.ReLU()), nniqat.ConvReLU3d),
]


@pytest.mark.parametrize(("make", "kind"), FLOATS)
def test_from_float_shares_parameters_and_to_float_copies_them(make, kind):
    module = make()
    module.qconfig = ao.get_default_qat_qconfig()
    made = kind.from_float(module)
    inner = module[0] if isinstance(module, nn.Sequential) else module
    assert made.weight is inner.weight
    back = made.to_float()
    inner_back = back[0] if isinstance(back, nn.Sequential) else back
    assert type(back) is type(module) and facula.equal(inner_back.weight, inner.weight)
    without = make()
    with pytest.raises(AssertionError, match="qconfig"):
        kind.from_float(without)
    with pytest.raises(AssertionError, match=r"from_float\(\): expected a"):
        kind.from_float(nn.Tanh())


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_embeddings_train_with_rounded_rows(name):
    facula.manual_seed(0)
    module = getattr(nn, name)(10, 4)
    net = nn.Sequential(module)
    module.qconfig = ao.default_embedding_qat_qconfig
    made = ao.prepare_qat(net, ao.get_embedding_qat_module_mappings())
    assert type(made[0]) is getattr(qat, name)
    rows = facula.tensor([[1, 2], [3, 4]])
    made(rows).sum().backward()
    assert made[0].weight.grad.abs().sum() > 0
    converted = ao.convert(made.eval(), ao.get_embedding_static_quant_module_mappings())
    assert repr(converted[0]).startswith(f"Quantized{name}(")


def test_configurations_for_a_whole_model():
    mapping = ao.get_default_qat_qconfig_mapping("x86")
    assert mapping.to_dict()[""] is mapping.global_qconfig
    sigmoid = mapping.object_type_qconfigs[nn.Sigmoid].activation()
    assert sigmoid.calculate_qparams()[0].item() == 1 / 256
    own = ao.QConfigMapping.from_dict({"": None, "module_name": [("head", mapping.global_qconfig)]})
    assert own.module_name_qconfigs["head"] is mapping.global_qconfig
    assert len(ao.get_default_qconfig_mapping().object_type_qconfigs) == 23

"""Models quantized after training: observers, fused modules, static and dynamic quantization."""

import facula
import pytest
from facula import nn
from facula.ao import quantization as ao


def test_observers_give_scale_and_zero_point():
    x = facula.tensor([-1.0, 0.5, 3.0])
    observer = ao.MinMaxObserver()
    observer(x)
    scale, zero_point = observer.calculate_qparams()
    assert scale.item() == pytest.approx(4 / 255) and zero_point.item() == 64
    by_row = ao.PerChannelMinMaxObserver(dtype=facula.qint8, qscheme=facula.per_channel_symmetric)
    by_row(facula.tensor([[-1.0, 0.5], [2.0, 3.0]]))
    assert by_row.calculate_qparams()[0].tolist() == pytest.approx([1 / 127.5, 3 / 127.5])
    average = ao.MovingAverageMinMaxObserver(averaging_constant=0.5)
    average(x)
    average(x + 2)
    assert (average.min_val.item(), average.max_val.item()) == (0, 4)


def test_histogram_leaves_out_far_values():
    observer = ao.HistogramObserver()
    observer(facula.linspace(-1, 1, 10001))
    observer(facula.tensor([100.0]))
    assert observer.histogram.sum().item() == 10002
    assert observer.max_val.item() == 100


def test_fake_quantize_follows_its_switches():
    fake = ao.FakeQuantize(quant_min=0, quant_max=3)
    x = facula.tensor([0.0, 0.4, 1.0, 3.0])
    assert fake(x).tolist() == [0, 0, 1, 3]
    fake.disable_fake_quant()
    assert fake(x) is x


def small_net():
    facula.manual_seed(0)
    layers = (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    return nn.Sequential(*layers).eval()


def test_static_quantization_stays_near_the_floats():
    net = small_net()
    wrapped = ao.QuantWrapper(ao.fuse_modules(net, ["0", "1", "2"]))
    wrapped.qconfig = ao.get_default_qconfig("x86")
    prepared = ao.prepare(wrapped)
    x = facula.randn(16, 1, 8, 8)
    prepared(x)
    converted = ao.convert(prepared)
    assert "QuantizedConvReLU2d" in repr(converted)
    y, expected = converted(x), net(x)
    assert (y - expected).abs().mean() < 0.03 * expected.abs().max()


def test_dynamic_quantization_stays_near_the_floats():
    facula.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    quantized = ao.quantize_dynamic(net)
    x = facula.randn(8, 20)
    assert (quantized(x) - net(x)).abs().max() < 0.03 * net(x).abs().max()


@pytest.mark.parametrize(
    "name",
    ["prepare", "prepare_qat", "convert", "quantize_dynamic", "propagate_qconfig_"],
)
def test_what_is_no_module_is_named(name):
    with pytest.raises(AttributeError, match=rf"{name}\(\): expected a Module; got int"):
        getattr(ao, name)(3)


def test_wrong_models_say_so():
    with pytest.raises(AssertionError, match="training mode"):
        ao.prepare_qat(small_net())
    with pytest.raises(AssertionError, match="no function fuses"):
        ao.fuse_modules(small_net(), ["3", "4"])
    with pytest.raises(ValueError, match="give a qconfig_spec"):
        ao.quantize_dynamic(small_net(), dtype=facula.int8)
    with pytest.raises(AssertionError, match="expected a qconfig"):
        facula.ao.nn.qat.Linear(2, 2)
    with pytest.raises(AssertionError, match="expected a Linear or"):
        facula.ao.nn.quantized.Linear.from_float(nn.Tanh())
    net = nn.Sequential(nn.ConvTranspose2d(2, 2, 1))
    net.qconfig = ao.get_default_qconfig("x86")
    with pytest.raises(AssertionError, match="got one by channels"):
        ao.prepare(net)


def test_older_names_forward():
    assert facula.quantization.MinMaxObserver is ao.MinMaxObserver
    assert facula.quantization.quantize_dynamic is ao.quantize_dynamic
    assert not hasattr(facula.quantization, "no_such_name")


def converted_net(seed):
    facula.manual_seed(seed)
    layers = (nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    wrapped = ao.QuantWrapper(ao.fuse_modules(nn.Sequential(*layers).eval(), ["0", "1"]))
    wrapped.qconfig = ao.get_default_qconfig("x86")
    prepared = ao.prepare(wrapped)
    prepared(facula.randn(16, 1, 8, 8))
    return ao.convert(prepared)


def test_states_of_quantized_layers_go_through_a_file(tmp_path):
    """Under PyTorch's names; a model of another seed gives the same numbers once it has them."""
    net, other = converted_net(0), converted_net(1)
    assert list(net.state_dict()) == [
        "quant.scale",
        "quant.zero_point",
        "module.0.weight",
        "module.0.bias",
        "module.0.scale",
        "module.0.zero_point",
        "module.3.scale",
        "module.3.zero_point",
        "module.3._packed_params.dtype",
        "module.3._packed_params._packed_params",
    ]
    x = facula.randn(3, 1, 8, 8)
    assert not facula.equal(net(x), other(x))
    facula.save(net.state_dict(), tmp_path / "net.pt")
    other.load_state_dict(facula.load(tmp_path / "net.pt"))
    assert facula.equal(net(x), other(x))


def test_states_that_do_not_fit_say_so():
    net, states = converted_net(0), converted_net(1).state_dict()
    del states["module.0.bias"]
    states["module.3.else"] = facula.ones(1)
    with pytest.raises(
        RuntimeError, match=r"(?s)Missing.*module.0.bias.*Unexpected.*module.3.else"
    ):
        net.load_state_dict(states)
    wrong = ao.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear}).state_dict()
    with pytest.raises(RuntimeError, match=r"\(2, 3\) in the checkpoint and \(2, 4\)"):
        ao.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear}).load_state_dict(wrong)

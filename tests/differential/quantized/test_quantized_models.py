"""Models are trained, converted and run by both libraries from the same seed."""

import warnings

import facula
import facula.ao.nn.quantized
import facula.ao.nn.quantized.dynamic
import facula.ao.quantization
import pytest
import torch
import torch.ao.nn.intrinsic.qat
import torch.ao.nn.quantized
import torch.ao.nn.quantized.dynamic
import torch.ao.quantization

pytestmark = pytest.mark.filterwarnings("ignore")


def both(run, *args):
    """What `run` gives with each library."""
    results = []
    for library in (facula, torch):
        library.manual_seed(0)
        results.append(run(library, *args))
    return results


def plain(value):
    """Numbers and texts that can be compared, of tensors and what holds them."""
    if isinstance(value, (facula.Tensor, torch.Tensor)):
        value = value.dequantize() if value.is_quantized else value
        return value.detach().double().flatten().tolist()
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value


def near(ours, theirs, tolerance=2e-6):
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            near(a, b, tolerance)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=tolerance, rel=1e-5)
    else:
        assert ours == theirs


def network(library):
    nn, ao = library.nn, library.ao.quantization

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
            self.c, self.b, self.r = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
            self.c2, self.b2 = nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4)
            self.c3, self.r3, self.c4 = nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1)
            self.f, self.l, self.b1 = nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8)
            self.l2, self.r2, self.l3 = nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)
            self.s = nn.Sigmoid()

        def forward(self, x):
            x = self.r(self.b(self.c(self.quant(x))))
            x = self.c4(self.r3(self.c3(self.b2(self.c2(x)))))
            x = self.r2(self.l2(self.b1(self.l(self.f(x)))))
            return self.dequant(self.s(self.l3(x)))

    return Net()


ROWS = [["c", "b", "r"], ["c2", "b2"], ["c3", "r3"], ["l", "b1"], ["l2", "r2"]]


def trained(library, backend, version):
    """(losses, states after 20 steps, results after conversion, text of the converted model)"""
    ao = library.ao.quantization
    net = network(library)
    net.qconfig = ao.get_default_qat_qconfig(backend, version)
    net = ao.prepare_qat(ao.fuse_modules_qat(net, ROWS))
    optimizer = library.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x, y, losses = library.randn(20, 16, 2, 8, 8), library.rand(20, 16, 3), []
    for i in range(20):
        optimizer.zero_grad()
        loss = ((net(x[i]) - y[i]) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if i == 14:
            net.apply(ao.disable_observer)
        if i == 16:
            net.apply(library.ao.nn.intrinsic.qat.freeze_bn_stats)
    states = [[name, plain(state)] for name, state in net.state_dict().items()]
    converted = ao.convert(net.eval())
    names = [list(net.state_dict()), list(converted.state_dict())]
    kinds = [type(m).__name__ for m in converted.modules()]
    return losses, states, plain(converted(x[0])), [*names, kinds]


@pytest.mark.parametrize(("backend", "version"), [("x86", 1), ("x86", 0), ("qnnpack", 1)])
def test_training_gives_the_same_losses_states_and_converted_model(backend, version):
    ours, theirs = both(trained, backend, version)
    near(ours[0], theirs[0], 2e-4)
    near(ours[1], theirs[1], 2e-4)
    assert ours[3] == theirs[3]
    steps = [abs(a - b) for a, b in zip(ours[2], theirs[2], strict=True)]
    assert max(steps) <= 1.01 / 256 and sum(s > 1e-6 for s in steps) <= 2


def rows(library):
    return library.randn(6, 3, 5)


def batch(library):
    return library.randn(6, 5)


DYNAMIC = [
    ("Linear", (5, 3), {}, batch),
    ("LSTM", (5, 4, 2), {"bidirectional": True}, rows),
    ("LSTM", (5, 4), {"batch_first": True}, rows),
    ("GRU", (5, 4, 2), {"bidirectional": True, "dropout": 0.5}, rows),
    ("LSTMCell", (5, 4), {}, batch),
    ("GRUCell", (5, 4), {}, batch),
    ("RNNCell", (5, 4), {}, batch),
    ("RNNCell", (5, 4), {"nonlinearity": "relu"}, batch),
]


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize(("name", "sizes", "options", "data"), DYNAMIC)
def test_dynamic_modules_agree(name, sizes, options, data, dtype):
    def run(library):
        net = library.nn.ModuleList([getattr(library.nn, name)(*sizes, **options)])
        small = library.ao.quantization.quantize_dynamic(net, dtype=getattr(library, dtype))
        return plain(small[0](data(library))), repr(small).replace("facula.", "torch.")

    ours, theirs = both(run)
    assert ours[1] == theirs[1]
    near(ours[0], theirs[0])


# PyTorch's embedding of 4 bits gives nothing for indices of two dimensions.
EMBEDDINGS = [
    ("Embedding", "float_qparams_weight_only_qconfig"),
    ("EmbeddingBag", "float_qparams_weight_only_qconfig"),
    ("EmbeddingBag", "float_qparams_weight_only_qconfig_4bit"),
]


@pytest.mark.parametrize(("name", "config"), EMBEDDINGS)
def test_embeddings_agree(name, config):
    def run(library):
        module = getattr(library.nn, name)(10, 8)
        module.qconfig = getattr(library.ao.quantization.qconfig, config)
        made = getattr(library.ao.nn.quantized, name).from_float(module)
        return plain(made(library.tensor([[1, 2], [3, 9]])))

    near(*both(run))


def quantized(library, *sizes):
    return library.quantize_per_tensor(library.randn(*sizes), 0.03, 110, library.quint8)


def parameter(library, n):
    return library.nn.Parameter(library.randn(n))


MODULES = [
    ("ELU", (0.03, 100), 0, (3, 4)),
    ("Hardswish", (0.03, 100), 0, (3, 4)),
    ("LeakyReLU", (0.03, 100, 0.2), 0, (3, 4)),
    ("Sigmoid", (1 / 256, 0), 0, (3, 4)),
    ("Softmax", (1, 1 / 256, 0), 0, (3, 4)),
    ("ReLU6", (), 0, (3, 4)),
    ("LayerNorm", (4, None, None, 0.03, 100), 2, (3, 4)),
    ("GroupNorm", (2, 4, None, None, 0.03, 100), 2, (3, 4, 5, 5)),
    ("InstanceNorm2d", (4, None, None, 0.03, 100), 0, (3, 4, 5, 5)),
    ("BatchNorm2d", (4,), 0, (3, 4, 5, 5)),
    ("BatchNorm3d", (4,), 0, (3, 4, 2, 5, 5)),
]


@pytest.mark.parametrize(("name", "args", "parameters", "sizes"), MODULES)
def test_quantized_modules_agree(name, args, parameters, sizes):
    def run(library):
        given = [parameter(library, 4) if parameters and a is None else a for a in args]
        module = getattr(library.ao.nn.quantized, name)(*given)
        text = repr(module).replace("facula.", "torch.")
        return plain(module(quantized(library, *sizes))), text

    ours, theirs = both(run)
    assert ours[1] == theirs[1]
    near(ours[0], theirs[0])


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_quantized_convolutions_agree(kind, dims):
    def run(library):
        transposed = kind == "ConvTranspose"
        options = {"stride": 2, "padding": 1, **({"output_padding": 1} if transposed else {})}
        module = getattr(library.ao.nn.quantized, f"{kind}{dims}d")(2, 4, 3, **options)
        shape = ((2, 4) if transposed else (4, 2)) + (3,) * dims
        weight = library.quantize_per_tensor(library.randn(*shape), 0.02, 0, library.qint8)
        module.scale, module.zero_point = 0.05, 100
        module.set_weight_bias(weight, library.randn(4))
        return plain(module(quantized(library, 2, 2, *[5] * dims)))

    near(*both(run))


@pytest.mark.parametrize("operation", ["add", "mul", "add_relu", "matmul"])
def test_arithmetic_agrees(operation):
    def run(library):
        module = library.ao.nn.quantized.QFunctional()
        module.scale, module.zero_point = 0.06, 120
        x, y = quantized(library, 4, 4), quantized(library, 4, 4)
        return plain(getattr(module, operation)(x, y))

    near(*both(run))


def test_a_histogram_chooses_the_same_range():
    def run(library):
        found = []
        for reduce_range in (False, True):
            for spread in (1.0, 5.0):
                observer = library.ao.quantization.HistogramObserver(reduce_range=reduce_range)
                for i in range(4):
                    observer(library.randn(500) * spread * (1 + i))
                found.append(plain(list(observer.calculate_qparams())))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near(*both(run))

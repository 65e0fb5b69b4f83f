"""Modules of quantized numbers: dynamic ones, arithmetic, transposed convolutions, recurrent ones."""  # noqa: E501

import facula
import pytest
from facula import nn
from facula.ao import quantization as ao
from facula.ao.nn import quantized as nnq
from facula.ao.nn.quantized import dynamic as nnqd
from facula.ao.nn.quantized import functional as qF


def quantized(*sizes, scale=0.03, zero_point=110):
    return facula.quantize_per_tensor(facula.randn(*sizes), scale, zero_point, facula.quint8)


RECURRENT = [
    (lambda: nn.LSTM(5, 4, 2, bidirectional=True), lambda: facula.randn(6, 3, 5), nnqd.LSTM),
    (lambda: nn.LSTM(5, 4, batch_first=True), lambda: facula.randn(6, 3, 5), nnqd.LSTM),
    (lambda: nn.GRU(5, 4, 2), lambda: facula.randn(6, 3, 5), nnqd.GRU),
    (lambda: nn.LSTMCell(5, 4), lambda: facula.randn(6, 5), nnqd.LSTMCell),
    (lambda: nn.GRUCell(5, 4), lambda: facula.randn(6, 5), nnqd.GRUCell),
    (lambda: nn.RNNCell(5, 4, nonlinearity="relu"), lambda: facula.randn(6, 5), nnqd.RNNCell),
]


def first(result):
    while not isinstance(result, facula.Tensor):
        result = result[0]
    return result


@pytest.mark.parametrize("dtype", [facula.qint8, facula.float16])
@pytest.mark.parametrize(("make", "data", "kind"), RECURRENT)
def test_dynamic_recurrent_modules_stay_near_the_floats(make, data, kind, dtype, tmp_path):
    facula.manual_seed(0)
    net = nn.ModuleList([make()]).eval()
    small, x = ao.quantize_dynamic(net, dtype=dtype), data()
    assert type(small[0]) is kind
    expected, found = first(net[0](x)), first(small[0](x))
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < (0.05 if dtype is facula.qint8 else 2e-3)
    other = ao.quantize_dynamic(nn.ModuleList([make()]), dtype=dtype)
    facula.save(small.state_dict(), tmp_path / "net.pt")
    other.load_state_dict(facula.load(tmp_path / "net.pt", weights_only=False))
    assert facula.equal(first(other[0](x)), found)


def test_packed_sequences_give_each_row_its_own_result():
    facula.manual_seed(0)
    net = ao.quantize_dynamic(nn.ModuleList([nn.LSTM(5, 4, bidirectional=True)]))[0]
    rows = [facula.randn(n, 5) for n in (3, 5, 2)]
    packed = nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
    output, lengths = nn.utils.rnn.pad_packed_sequence(net(packed)[0])
    assert lengths.tolist() == [3, 5, 2]
    for i, row in enumerate(rows):
        alone = net(row.unsqueeze(1))[0].squeeze(1)
        assert (output[: len(row), i] - alone).abs().max() < 0.03


def test_wrong_sizes_of_recurrent_modules_raise():
    layer, cell = nnqd.LSTM(3, 4), nnqd.LSTMCell(3, 4)
    zeros = facula.zeros
    for call, text in (
        (lambda: layer(zeros(2, 2)), "must have 3 dimensions"),
        (lambda: layer(zeros(2, 2, 5)), "Expected 3, got 5"),
        (lambda: layer(zeros(2, 2, 3), (zeros(1, 2, 5),) * 2), r"Expected hidden\[0\] size"),
        (lambda: cell(zeros(2, 5)), "inconsistent input_size"),
        (lambda: cell(zeros(2, 3), (zeros(3, 4),) * 2), "batch size"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize("dtype", [facula.quint8, facula.quint4x2])
def test_embeddings_become_rows_of_bytes(dtype):
    facula.manual_seed(0)
    net = nn.Sequential(nn.EmbeddingBag(10, 8, mode="sum"))
    small = ao.quantize_dynamic(net, dtype=dtype)
    rows = facula.tensor([[1, 2], [3, 9]])
    assert (small[0](rows) - net[0](rows)).abs().max() < (0.02 if dtype is facula.quint8 else 0.4)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_are_those_of_the_rounded_numbers(dims):
    facula.manual_seed(0)
    options = {"stride": 2, "padding": 1, "output_padding": 1}
    module = getattr(nnq, f"ConvTranspose{dims}d")(2, 4, 3, **options)
    weight = facula.quantize_per_tensor(facula.randn(2, 4, *[3] * dims), 0.02, 0, facula.qint8)
    bias, x = facula.randn(4), quantized(2, 2, *[5] * dims)
    module.set_weight_bias(weight, bias)
    module.scale, module.zero_point = 0.05, 100
    convolve = getattr(nn.functional, f"conv_transpose{dims}d")
    exact = convolve(x.dequantize(), weight.dequantize(), bias, 2, 1, 1)
    expected = facula.quantize_per_tensor(exact, 0.05, 100, facula.quint8)
    difference = module(x).int_repr().int() - expected.int_repr().int()
    assert difference.abs().max() <= 1 and (difference != 0).float().mean() < 0.01


def test_arithmetic_is_observed_and_quantized():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
            self.sum, self.join = nnq.FloatFunctional(), nnq.FloatFunctional()

        def forward(self, x):
            x = self.quant(x)
            return self.dequant(self.join.cat([self.sum.add_relu(x, x), x], 1))

    facula.manual_seed(0)
    net, x = Net().eval(), facula.randn(8, 4)
    net.qconfig = ao.default_qconfig
    prepared = ao.prepare(net)
    prepared(x)
    converted = ao.convert(prepared)
    assert type(converted.sum) is nnq.QFunctional and type(converted.join) is nnq.QFunctional
    assert (converted(x) - net(x)).abs().max() < 0.15
    assert set(converted.state_dict()) >= {"sum.scale", "sum.zero_point"}
    with pytest.raises(RuntimeError, match="one of its methods"):
        nnq.FloatFunctional()(x)


@pytest.mark.filterwarnings("ignore:.*has seen no values")
@pytest.mark.parametrize("make", [lambda: nn.LSTM(3, 4), lambda: nn.MultiheadAttention(4, 2)])
def test_recurrent_layers_and_attention_are_quantized_by_their_parts(make):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant, self.part = ao.QuantStub(), ao.DeQuantStub(), make()

        def forward(self, x):
            x = self.quant(x)
            args = (
                (x,)
                if isinstance(self.part, (nn.LSTM, facula.ao.nn.quantizable.LSTM))
                else (x,) * 3
            )
            return self.dequant(self.part(*args)[0])

    facula.manual_seed(0)
    net = Net().eval()
    net.qconfig = ao.get_default_qconfig("x86")
    x = facula.randn(5, 2, 3 if isinstance(net.part, nn.LSTM) else 4)
    prepared = ao.prepare(net)
    assert facula.allclose(prepared(x), net(x), atol=1e-6)
    converted = ao.convert(prepared)
    assert repr(converted.part).startswith("Quantized")
    assert (converted(x) - net(x)).abs().max() < 0.1


def test_functions_of_quantized_tensors():
    facula.manual_seed(0)
    x = quantized(2, 3, 6, 6)
    means = qF.avg_pool2d(x, 2)
    assert (means.dequantize() - nn.functional.avg_pool2d(x.dequantize(), 2)).abs().max() < 0.016
    assert qF.max_pool1d(quantized(2, 3, 6), 2).shape == (2, 3, 3)
    with pytest.raises(ValueError, match="must be quantized"):
        qF.hardtanh(facula.ones(2))


def test_older_packages_forward():
    assert nn.quantized.Linear is nnq.Linear
    assert nn.quantized.dynamic.LSTM is nnqd.LSTM
    assert nn.quantized.functional.linear is qF.linear
    assert nn.intrinsic.qat.ConvBn2d is facula.ao.nn.intrinsic.qat.ConvBn2d
    assert nn.qat.Linear is facula.ao.nn.qat.Linear
    assert nn.quantizable.LSTM is facula.ao.nn.quantizable.LSTM


@pytest.mark.parametrize("sizes", [(3, 4, 5), (17, 32, 40), (1, 1, 1), (2, 0, 3), (0, 4, 3)])
@pytest.mark.parametrize("dtype", [facula.int8, facula.uint8])
def test_products_of_bytes_are_exact(sizes, dtype):
    m, k, n = sizes
    facula.manual_seed(0)
    low = -128 if dtype is facula.int8 else 0
    a = facula.randint(low, low + 256, (m, k)).to(dtype)
    b = facula.randint(-128, 128, (k, n)).to(facula.int8)
    expected = (a.double() @ b.double()).int()
    assert facula.equal(facula._int_mm(a, b), expected)
    assert facula.equal(facula._int_mm(a, b.T.contiguous().T), expected)


def test_products_of_bytes_check_their_arguments():
    a = facula.ones(3, 4, dtype=facula.int8)
    for call, text in (
        (lambda: facula._int_mm(a, a), "cannot be multiplied"),
        (lambda: facula._int_mm(a.float(), a.T), "int8 or uint8"),
        (lambda: facula._int_mm(a, a.T.float()), "int8"),
        (lambda: facula._int_mm(a[0], a.T), "must be a matrix"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()

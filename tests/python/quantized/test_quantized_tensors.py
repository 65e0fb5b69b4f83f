"""Quantized tensors: their integers, quantizers, views, copies, comparisons and files."""

import copy
import io
import pickle

import facula
import pytest

VALUES = [[-1.0, 0.0, 1.2], [3.0, 2.6, -7.0]]
DTYPES = [facula.qint8, facula.quint8, facula.qint32, facula.quint4x2, facula.quint2x4]


def whole(dtype=facula.quint8, scale=0.1, zero_point=10):
    return facula.quantize_per_tensor(facula.tensor(VALUES), scale, zero_point, dtype)


def by_channel(dtype=facula.qint8):
    scales = facula.tensor([0.1, 0.2], dtype=facula.double)
    return facula.quantize_per_channel(
        facula.tensor(VALUES), scales, facula.tensor([0, 3]), 0, dtype
    )


def test_integers_are_rounded_to_even_and_clamped():
    assert whole().int_repr().tolist() == [[0, 10, 22], [40, 36, 0]]
    halves = facula.tensor([0.05, 0.15, 0.25, -0.05, float("nan"), float("inf")])
    q = facula.quantize_per_tensor(halves, 0.1, 0, facula.qint8)
    assert q.int_repr().tolist() == [0, 2, 2, 0, 127, 127]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_come_back_within_half_a_step(dtype):
    x = facula.tensor([0.0, 0.5, 1.0, 1.5, 0.7])
    q = facula.quantize_per_tensor(x, 0.5, 0, dtype)
    assert (q.dequantize() - x).abs().max() <= 0.25
    assert q.clone().equal(q) and q.is_quantized and q.element_size() == dtype.itemsize


def test_packed_elements_begin_in_the_lowest_bits():
    q = facula.quantize_per_tensor(facula.tensor([1.0, 2.0, 3.0]), 1.0, 0, facula.quint4x2)
    assert q.int_repr().tolist() == [0x21, 0x03]
    with pytest.raises(NotImplementedError, match="share bytes"):
        q[0]


def test_text_names_the_quantizer():
    assert "quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10" in repr(whole())
    assert repr(by_channel()).endswith("zero_point=tensor([0, 3]), axis=0)")


VIEWS = [
    lambda q: q.view(3, 2),
    lambda q: q.t(),
    lambda q: q[0],
    lambda q: q[:, 1],
    lambda q: q.unsqueeze(0),
    lambda q: q.expand(2, 2, 3),
    lambda q: q.flatten(),
    lambda q: facula.cat([q, q]),
    lambda q: facula.stack([q, q]),
    lambda q: q.repeat(2, 1),
    lambda q: q[facula.tensor([1, 0])],
    lambda q: q.contiguous(),
    lambda q: q.max(),
    lambda q: q.sort()[0],
]


@pytest.mark.parametrize("case", range(len(VIEWS)))
def test_views_and_choices_give_what_the_values_give(case):
    q = whole()
    got = VIEWS[case](q)
    assert got.is_quantized and got.q_scale() == 0.1
    assert got.dequantize().equal(VIEWS[case](q.dequantize()))


def test_a_view_shares_memory_and_versions():
    q = whole()
    q[0].fill_(2.0)
    assert q.int_repr()[0].tolist() == [30, 30, 30]
    assert q._version == 1 and q[1].data_ptr() == q.data_ptr() + 3


def test_channels_follow_their_dimension():
    c = by_channel()
    assert c.unsqueeze(0).q_per_channel_axis() == 1
    assert c[1].q_scale() == 0.2 and c[1].q_zero_point() == 3
    with pytest.raises(RuntimeError, match="uniformly quantized"):
        c.t()
    with pytest.raises(RuntimeError, match="length of scales must equal to channel"):
        c.view(3, 2)


def test_comparisons_are_of_values():
    q = whole()
    assert (q == q).all() and not (q > q).any() and not q.equal(whole(scale=0.2))
    assert q[0, 2].item() == pytest.approx(1.2)


def test_copies_take_floats_and_quantizers():
    q = whole()
    q.copy_(facula.ones(2, 3))
    assert q.int_repr().unique().tolist() == [20]
    q.copy_(whole(scale=0.5, zero_point=3))
    assert (q.q_scale(), q.q_zero_point()) == (0.5, 3)
    plain = facula.zeros(2, 3)
    assert plain.copy_(q).equal(q.dequantize())


def _saved(t):
    file = io.BytesIO()
    facula.save(t, file)
    file.seek(0)
    return facula.load(file)


@pytest.mark.parametrize("make", [whole, by_channel, lambda: whole(facula.quint4x2, 0.5, 2)])
@pytest.mark.parametrize("keep", [copy.deepcopy, _saved, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_and_files_keep_everything(make, keep):
    q = make()
    again = keep(q)
    assert again.equal(q) and again.qscheme() is q.qscheme() and again.dtype is q.dtype


REFUSED = [
    (lambda: whole() + whole(), NotImplementedError, "QuantizedCPU"),
    (lambda: whole().float(), RuntimeError, "requires quantized dtype"),
    (lambda: whole(zero_point=300), RuntimeError, "above upper bound"),
    (lambda: whole(facula.float32), RuntimeError, "not supported"),
    (lambda: facula.ones(2).q_scale(), NotImplementedError, "quantized tensor"),
    (lambda: facula.ones(2).int_repr(), NotImplementedError, "quantized tensor"),
    (lambda: by_channel().q_scale(), RuntimeError, "kPerTensorAffine"),
    (lambda: whole().tolist(), RuntimeError, "data pointer"),
    (lambda: whole().numpy(), TypeError, "convert"),
    (lambda: facula.empty(3, dtype=facula.qint8), RuntimeError, "scale and a zero point"),
    (lambda: facula.frombuffer(b"1234", dtype=facula.qint8), ValueError, "worth"),
    (lambda: facula.ones(4).view(facula.qint8), RuntimeError, "plain bytes"),
    (lambda: facula.promote_types(facula.qint8, facula.float32), RuntimeError, "quantized"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_makes_no_sense_raises(case):
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


def test_range_gives_scale_and_zero_point():
    x = facula.tensor(VALUES)
    q = facula.quantize_per_tensor_dynamic(x, facula.quint8, False)
    assert q.q_zero_point() == 178 and q.q_scale() == pytest.approx(10 / 255)
    halved = facula.quantize_per_tensor_dynamic(x, facula.quint8, True)
    assert halved.q_zero_point() == 89 and halved.q_scale() == pytest.approx(10 / 127)

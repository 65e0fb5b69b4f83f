"""facula.nn.attention where no PyTorch is needed."""

import facula
import pytest
from facula import nn
from facula.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel
from facula.nn.attention.flex_attention import create_block_mask, flex_attention


def test_gradients_of_flex_attention_are_those_of_plain_attention():
    q, k, v = (facula.randn(1, 2, 5, 8, dtype=facula.float64, requires_grad=True) for _ in range(3))
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 5, 5)
    plain = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    ours = flex_attention(q, k, v, block_mask=mask)
    assert facula.allclose(ours, plain)
    weights = facula.randn_like(plain)
    expected = facula.autograd.grad((plain * weights).sum(), (q, k, v))
    got = facula.autograd.grad((ours * weights).sum(), (q, k, v))
    for a, b in zip(got, expected, strict=True):
        assert facula.allclose(a, b)


def test_gradients_reach_what_a_score_function_uses():
    q = facula.randn(1, 2, 3, 4)
    slope = facula.zeros(2, requires_grad=True)
    flex_attention(q, q, q, lambda s, b, h, i, j: s + slope[h] * (i - j)).square().sum().backward()
    assert slope.grad.abs().min() > 0


def test_a_query_that_sees_nothing_gives_zero():
    q = facula.randn(1, 1, 2, 4)
    mask = create_block_mask(lambda b, h, q, kv: q > 0, None, None, 2, 2)
    assert flex_attention(q, q, q, block_mask=mask)[0, 0, 0].tolist() == [0.0] * 4


def test_a_block_mask_for_shorter_sequences_raises():
    q = facula.randn(1, 1, 4, 4)
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 4)
    with pytest.raises(RuntimeError, match="length 2"):
        flex_attention(q, q, q, block_mask=mask)


def test_sdpa_kernel_restores_the_choice():
    before = _cur_sdpa_kernel_backends()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
        with pytest.raises(KeyError):
            with sdpa_kernel(SDPBackend.MATH):
                raise KeyError
        assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
    assert _cur_sdpa_kernel_backends() == before


def test_register_buffer_refuses_taken_and_dotted_names():
    layer = nn.Linear(1, 1)
    for name in ("weight", "a.b", ""):
        with pytest.raises(KeyError):
            layer.register_buffer(name, facula.ones(1))
    layer.register_buffer("mean", facula.ones(1))
    layer.register_buffer("mean", facula.zeros(1))
    assert layer.mean.item() == 0


def test_a_replaced_buffer_keeps_its_place_in_the_state():
    layer = nn.BatchNorm1d(2)
    names = list(layer.state_dict())
    layer.running_mean = nn.Buffer(facula.ones(2))
    assert list(layer.state_dict()) == names


def test_the_backward_operator_takes_results_of_any_strides():
    """A cotangent that was expanded from one number, and a result in another layout."""
    forward = facula.ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = facula.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    q, k, v = (facula.randn(2, 4, 16, 8) for _ in range(3))
    out, sums = forward(q, k, v)
    want = backward(facula.ones(out.shape), q, k, v, out, sums, 0.0, False)
    expanded, turned = facula.ones(1).expand_as(out), out.mT.contiguous().mT
    got = backward(expanded, q, k, v, turned, sums, 0.0, False)
    assert all(g.equal(w) for g, w in zip(got, want, strict=True))


def test_weights_of_far_keys_are_exponentials():
    """The first key's weight is 1, and so is the sum in float32: weights can be read off."""
    q, k = facula.zeros(1, 1, 400, 16), facula.zeros(1, 1, 16, 16)
    q[0, 0, :, 0] = facula.linspace(17, 105, 400)
    k[0, 0, 1:, 0] = -facula.linspace(1, 1.5, 15)
    values = facula.eye(16).reshape(1, 1, 16, 16)
    got = nn.functional.scaled_dot_product_attention(q, k, values, scale=1.0)[0, 0]
    scores = (q @ k.mT)[0, 0]
    want = scores.double().exp()
    unit = facula.exp2(want.log2().floor().clamp(min=-126) - 23)
    assert got.count_nonzero() > 3000
    assert ((got.double() - want).abs() / unit).max() < 1

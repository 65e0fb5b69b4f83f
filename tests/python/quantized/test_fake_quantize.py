"""Fake quantization: values, masks, gradients."""

import facula
import pytest


def test_values_are_those_of_a_quantized_tensor():
    x = facula.linspace(-2, 2, 41)
    fake = facula.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
    q = (x / 0.1).round() + 3
    assert facula.allclose(fake, (q.clamp(0, 15) - 3) * 0.1)


def test_gradients_pass_where_nothing_was_clamped():
    x = facula.tensor([-5.0, -0.1, 0.0, 0.2, 5.0], requires_grad=True)
    y = facula.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7)
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 0]
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskBackward0"


def test_channels_have_scales_of_their_own():
    x = facula.tensor([[0.24, 0.26], [0.24, 0.26]])
    zeros = facula.zeros(2, dtype=facula.int32)
    y = facula.fake_quantize_per_channel_affine(x, facula.tensor([0.1, 0.5]), zeros, 0, -8, 7)
    assert facula.allclose(y, facula.tensor([[0.2, 0.3], [0.0, 0.5]]))


def test_learned_scale_gets_the_error_of_rounding():
    x = facula.tensor([0.24, -3.0, 3.0], requires_grad=True)
    scale = facula.tensor([0.1], requires_grad=True)
    zero = facula.tensor([0.0], requires_grad=True)
    y = facula._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -8, 7, 1.0)
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 0]
    assert scale.grad.item() == pytest.approx((2 - 2.4) - 8 + 7, abs=1e-5)
    assert zero.grad.item() == pytest.approx(-0.2)


def test_observing_moves_the_bounds_and_rounds():
    one = facula.tensor([1])
    low, high = facula.tensor(float("inf")), facula.tensor(float("-inf"))
    scale, zero = facula.tensor([1.0]), facula.tensor([0], dtype=facula.int32)

    def observe(x):
        return facula.fused_moving_avg_obs_fake_quant(
            x, one, one, low, high, scale, zero, 0.5, 0, 255, -1
        )

    observe(facula.tensor([-1.0, 1.0]))
    assert (low.item(), high.item()) == (-1, 1)
    observe(facula.tensor([-3.0, 1.0]))
    assert (low.item(), high.item()) == (-2, 1)
    assert scale.item() == pytest.approx(3 / 255) and zero.item() == 170


@pytest.mark.parametrize("bounds", [(10, 5), (5, 10)])
def test_bounds_are_checked(bounds):
    with pytest.raises(RuntimeError, match="quant_min|zero_point"):
        facula.fake_quantize_per_tensor_affine(facula.ones(2), 0.1, 0, *bounds)

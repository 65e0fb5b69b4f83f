"""Samples of backward operators of src/ops/elementwise: cotangents, then what was saved."""

from samples.common import Sample, T, aten

FEWER = "its kernels take fewer dtypes, and some of them have no derivative"
GRAD, X = T(2, 3), T(2, 3)
UNIT = T(2, 3, low=0.1, high=0.9)
NOISE, KEPT = T(2, 3, low=0.1, high=0.3, grad=False), T(2, 3, grad=False)


def saved_input(*settings, x=X, **keywords):
    """The usual call: cotangent, saved tensor, settings of the forward operator."""
    return Sample(GRAD, x, *settings, **keywords)


# PyTorch computes it with the sixth part as a float.
ROUGH = {"hardsigmoid_backward": 100}
BACKWARD = {
    "gelu_backward": [saved_input(), saved_input(approximate="tanh")],
    "hardshrink_backward": [saved_input(0.5)],
    "hardsigmoid_backward": [saved_input(x=T(2, 3, low=-5, high=5))],
    "hardswish_backward": [saved_input(x=T(2, 3, low=-5, high=5))],
    "hardtanh_backward": [saved_input(-1.0, 1.0)],
    "leaky_relu_backward": [saved_input(0.1, False), saved_input(0.1, True)],
    "logit_backward": [saved_input(x=UNIT), saved_input(0.2, x=UNIT)],
    "mish_backward": [saved_input()],
    "sigmoid_backward": [saved_input(x=UNIT)],
    "silu_backward": [saved_input()],
    "softplus_backward": [saved_input(1.0, 20.0), saved_input(2.0, 1.0)],
    "softshrink_backward": [saved_input(0.5)],
    "tanh_backward": [saved_input(x=UNIT)],
    "threshold_backward": [saved_input(0.5)],
    "elu_backward": [
        Sample(GRAD, 1.0, 1.0, 1.0, False, X),
        Sample(GRAD, 1.5, 2.0, 0.5, False, X),
        Sample(GRAD, 1.5, 2.0, 0.5, True, X),
    ],
    "glu_backward": [Sample(GRAD, T(4, 3), 0), Sample(GRAD, T(2, 6), -1)],
    "rrelu_with_noise_backward": [
        saved_input(NOISE, 0.1, 0.3, False, False),
        *(saved_input(NOISE, 0.1, 0.3, True, known, x=KEPT) for known in (False, True)),
    ],
    "_prelu_kernel": [Sample(X, T(2, 3)), Sample(X, T(1, 3))],
    "_prelu_kernel_backward": [Sample(GRAD, X, T(2, 3)), Sample(GRAD, X, T(1, 3))],
}

OPS = [
    *[
        aten(name, samples, beyond_torch=FEWER, tolerance=ROUGH.get(name, 1))
        for name, samples in BACKWARD.items()
    ],
    aten("log_sigmoid_forward", [Sample(X), Sample(T(0))]),
    # The buffer holds exp(-|self|), which a sample of its own cannot say: both come from ones.
    aten(
        "log_sigmoid_backward",
        [Sample(GRAD, T(2, 3, low=0, high=0), T(2, 3, low=1, high=1, grad=False))],
    ),
]

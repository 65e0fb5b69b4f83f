"""Samples of src/ops/random: draws from gamma distributions, and derivatives of draws."""

from samples.common import Sample, T, aten

ABOVE = T(3, 4, low=0.5, high=3)
FIXED = T(3, 4, low=0.5, high=3, grad=False)
SHARES = T(3, 4, low=0.1, high=0.9, grad=False)

OPS = [
    aten("_standard_gamma", [Sample(ABOVE)], dtypes="full", nondeterministic=True),
    aten("_sample_dirichlet", [Sample(ABOVE)], dtypes="full", nondeterministic=True),
    aten("_standard_gamma_grad", [Sample(FIXED, FIXED)], dtypes="float32", grad=False, tolerance=8),
    aten(
        "_dirichlet_grad",
        [Sample(SHARES, FIXED, T(3, 4, low=4, high=8, grad=False))],
        dtypes="float32",
        grad=False,
        tolerance=100,  # approximations of their own around the ends
    ),
    aten(
        "native_dropout_backward",
        [Sample(T(3, 4), T(3, 4, dtype="bool"), 2.0)],
        dtypes="full complex",
        beyond_torch="it has no derivative of complex masks",
    ),
]

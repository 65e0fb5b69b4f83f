"""Transforms are inverted, and their Jacobians are those of finite differences."""

import facula
import pytest
from transform_cases import TRANSFORMS, make_transform

# Not one-to-one, or without a Jacobian.
NO_JACOBIAN = ("abs", "softmax", "lower cholesky", "positive definite")
# Of a simplex of exponentials no coordinate can be left out: the differential suite has it.
NO_JACOBIAN += ("compose of elements and vectors",)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_inverses(name):
    t, x = make_transform(facula, name)
    y = t(x)
    assert t.codomain.check(y).all()
    back = t.inv(y)
    if name != "softmax":  # which loses the sum
        is_triangle = name in ("lower cholesky", "positive definite")
        assert facula.allclose(back, x.tril() if is_triangle else x)
    assert facula.allclose(t(back), y)
    assert tuple(t.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(t.inverse_shape(y.shape)) == tuple(x.shape)


def free_coordinates(t, y):
    """What determines a point of the codomain: as many numbers as the domain has."""
    names = repr(t.codomain)
    if "Simplex" in names or "stick" in repr(t).lower():
        return y[..., :-1]
    if "CorrCholesky" in names:
        rows, columns = facula.tril_indices(y.shape[-1], y.shape[-1], offset=-1).unbind(0)
        return y[..., rows, columns]
    return y


@pytest.mark.parametrize("name", [n for n in TRANSFORMS if n not in NO_JACOBIAN])
def test_jacobians(name):
    t, x = make_transform(facula, name)
    y = t(x)
    got = t.log_abs_det_jacobian(x, y)
    assert facula.allclose(t.inv.log_abs_det_jacobian(y, x), -got)
    if got.shape == x.shape:
        # Numbers: the derivative of each.
        step = 1e-5
        slope = (t(x + step) - t(x - step)) / (2 * step)
        assert facula.allclose(got, slope.abs().log(), atol=1e-6)
        return
    for row, wanted in zip(x.reshape(-1, x.shape[-1]), got.reshape(-1), strict=True):
        assert abs(log_det(numeric_jacobian(t, row)) - wanted) < 1e-5


def numeric_jacobian(t, point):
    step, columns = 1e-5, []
    for i in range(len(point)):
        shift = facula.zeros_like(point)
        shift[i] = step
        ahead, behind = (free_coordinates(t, t(point + s)) for s in (shift, -shift))
        columns.append(((ahead - behind) / (2 * step)).reshape(-1))
    return facula.stack(columns, -1)


def log_det(matrix):
    """log |det| by the Cholesky factor of M^T M."""
    factor = facula.linalg.cholesky(matrix.T @ matrix)
    return factor.diagonal().log().sum()

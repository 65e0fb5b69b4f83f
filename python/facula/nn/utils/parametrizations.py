"""Parametrizations of weights: orthogonal, weight norm, spectral norm."""

from __future__ import annotations

from enum import Enum, auto

import facula
from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.utils import parametrize
from facula.nn.utils.weight_norm import norm_of_slices, scaled_to_norm

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

# Steps of the power method that make the first vectors good ones.
_FIRST_ITERATIONS = 15


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(Q, eps=None):
    n, k = Q.shape[-2:]
    if eps is None:
        eps = 10.0 * n * facula.finfo(Q.dtype).eps
    return facula.allclose(Q.mH @ Q, facula.eye(k, dtype=Q.dtype, device=Q.device), atol=eps)


def _make_orthogonal(A):
    """The Q of the QR decomposition whose R has a positive diagonal."""
    reflectors, tau = facula.geqrf(A)
    Q = facula.linalg.householder_product(reflectors, tau)
    return Q * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """From any matrix to one with orthonormal columns (rows, where it is wide).

    Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds".
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("orthogonal(): householder needs a real weight; got a complex one")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        """The orthogonal matrix of the parameters `X`."""
        is_wide = X.size(-2) < X.size(-1)
        X = X.mT if is_wide else X
        if self.orthogonal_map == _OrthMaps.householder:
            Q = _product_of_reflections(X)
        else:
            Q = self._from_skew(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if is_wide else Q

    def _from_skew(self, X):
        n, k = X.shape[-2:]
        A = X.tril()
        if n != k:
            rest = A.new_zeros(n, n - k).expand(*A.shape[:-2], -1, -1)
            A = facula.cat([A, rest], dim=-1)
        A = A - A.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            Q = facula.linalg.matrix_exp(A)
        else:
            identity = facula.eye(n, dtype=A.dtype, device=A.device)
            Q = facula.linalg.solve(
                facula.add(identity, A, alpha=-0.5), facula.add(identity, A, alpha=0.5)
            )
        return Q[..., :k] if n != k else Q

    @facula.no_grad()
    def right_inverse(self, Q):
        """Parameters that give `Q`, where that is orthogonal; else a matrix made of it."""
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal(): expected a value of shape {tuple(self.shape)}; got {tuple(Q.shape)}"
            )
        first = Q
        is_wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if is_wide else Q
        if not hasattr(self, "base"):
            return self._parameters_of(Q, is_wide)
        n, k = Q.shape[-2:]
        if n != k:
            further = facula.randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(facula.cat([Q, further], dim=-1))
        else:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        self.base = Q
        # With -1 on the diagonal Householder's product is the identity, as are the other maps.
        start = facula.zeros_like(first)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _parameters_of(self, Q, is_wide):
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                "orthogonal(): a value can be assigned with use_trivialization=True or with the "
                f"map householder; got {self.orthogonal_map.name}"
            )
        A, tau = facula.geqrf(Q)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1
        return A.mT if is_wide else A


def _product_of_reflections(X):
    """Householder's product; the diagonal of `X` holds the signs of the columns."""
    A = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
    Q = facula.linalg.householder_product(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a weight orthogonal (in batches: of matrices).

    Args:
        module: the Module. name: of its parameter, of at least 2 dimensions.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; when None the first for square
            and complex weights, else the last.
        use_trivialization: start at the present weight made orthogonal, and move relative to it.

    Returns:
        `module`.

    Raises:
        ValueError: no such parameter, too few dimensions, or another map.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, facula.Tensor):
        raise ValueError(
            f"orthogonal(): {type(module).__name__} has no parameter or buffer {name!r}"
        )
    if weight.ndim < 2:
        raise ValueError(
            f"orthogonal(): the weight must have at least 2 dimensions; got {weight.ndim}"
        )
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            f"orthogonal(): orthogonal_map must be one of {list(_OrthMaps.__members__)}; got "
            f"{orthogonal_map!r}"
        )
    orth = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, orth, unsafe=True)
    return module


class _WeightNorm(Module):
    """A weight as norms and directions."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        """Directions `weight_v` scaled to the norms `weight_g`."""
        return scaled_to_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        """Norms of `weight`, and itself."""
        return norm_of_slices(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Keep a weight as norms and directions: w = g * v / |v|.

    Salimans and Kingma, "Weight Normalization".

    Args:
        module: the Module. name: of its parameter.
        dim: the dimension whose slices have norms of their own; None: one norm for all.

    Returns:
        `module`; the parts are `parametrizations.<name>.original0` (g) and `original1` (v).

    Example:
        >>> layer = facula.nn.utils.parametrizations.weight_norm(facula.nn.Linear(3, 2))
        >>> layer.parametrizations.weight.original0.shape
        facula.Size([2, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_old_names(state_dict, prefix, *rest):
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if not all(key in state_dict for key in old):
            return
        for i, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(read_old_names)
    return module


class _SpectralNorm(Module):
    """A weight divided by its greatest singular value, which the power method estimates."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"spectral_norm(): dim must be in [{-ndim}, {ndim - 1}]; got {dim}")
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm(): n_power_iterations must be above 0; got {n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim == 1:
            return
        self.n_power_iterations = n_power_iterations
        matrix = self._reshape_weight_to_matrix(weight)
        rows, cols = matrix.size()
        for vector, size in (("_u", rows), ("_v", cols)):
            draw = matrix.new_empty(size).normal_(0, 1)
            self.register_buffer(vector, F.normalize(draw, dim=0, eps=eps))
        self._power_method(matrix, _FIRST_ITERATIONS)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.flatten(1)

    @facula.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        for _ in range(n_power_iterations):
            self._u = F.normalize(weight_mat.mv(self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(weight_mat.mH.mv(self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        """`weight` divided by its spectral norm; a vector by its norm."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copied, so that a later iteration does not change what this graph needs.
        u = self._u.clone(memory_format=facula.contiguous_format)
        v = self._v.clone(memory_format=facula.contiguous_format)
        return weight / facula.vdot(u, matrix.mv(v))

    def right_inverse(self, value):
        """The value itself: it is assumed to have norm 1."""
        return value


def is_transposed_convolution(module):
    """Whether the output channels of a weight are in its second dimension; returns a bool."""
    return isinstance(
        module,
        (facula.nn.ConvTranspose1d, facula.nn.ConvTranspose2d, facula.nn.ConvTranspose3d),
    )


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Keep the greatest singular value of a weight at 1.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks".

    Args:
        module: the Module. name: of its parameter.
        n_power_iterations: of the power method, at each call in training.
        eps: least norm that is divided by.
        dim: the dimension of the output; when None 1 for transposed convolutions, else 0.

    Returns:
        `module`.

    Raises:
        ValueError: no such parameter, or no iterations.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, facula.Tensor):
        raise ValueError(
            f"spectral_norm(): {type(module).__name__} has no parameter or buffer {name!r}"
        )
    if dim is None:
        dim = 1 if is_transposed_convolution(module) else 0
    normed = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, normed)
    return module

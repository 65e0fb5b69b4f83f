"""Kullback-Leibler divergences: closed forms by pairs of classes, and how they are found.

The forms follow from E_p[log p] = -entropy(p) and E_p[log q], in which the moments of p stand for
the powers that log q has. Where draws of p may be outside of q's support it is infinite.
"""

from __future__ import annotations

import math
import warnings
from functools import total_ordering

import facula
import facula.nn.functional as F
from facula.distributions.bernoulli import Bernoulli
from facula.distributions.beta import Beta
from facula.distributions.binomial import Binomial
from facula.distributions.categorical import Categorical
from facula.distributions.cauchy import Cauchy
from facula.distributions.continuous_bernoulli import ContinuousBernoulli
from facula.distributions.dirichlet import Dirichlet
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.exponential import Exponential
from facula.distributions.gamma import Gamma
from facula.distributions.geometric import Geometric
from facula.distributions.gumbel import Gumbel
from facula.distributions.half_normal import HalfNormal
from facula.distributions.independent import Independent
from facula.distributions.laplace import Laplace
from facula.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_mahalanobis,
)
from facula.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from facula.distributions.normal import Normal
from facula.distributions.one_hot_categorical import OneHotCategorical
from facula.distributions.pareto import Pareto
from facula.distributions.poisson import Poisson
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.uniform import Uniform
from facula.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}  # (class of p, class of q) -> function
_KL_MEMOIZE = {}  # the same for classes that were asked for, subclasses resolved


def register_kl(type_p, type_q):
    """Decorator that states the divergence of two classes and their subclasses.

    Where several pairs fit, the one that is nearest in the class of p and in that of q is taken;
    an ambiguity is settled by registering that very pair.

    Args:
        type_p: a subclass of Distribution, or a class that such ones have among their bases.
        type_q: the same.

    Raises:
        TypeError: one is not a class.

    Example:
        >>> class Standard(Normal):
        ...     def __init__(self):
        ...         super().__init__(0.0, 1.0)
        >>> @register_kl(Standard, Standard)
        ... def nothing(p, q):
        ...     return facula.zeros(())
        >>> kl_divergence(Standard(), Standard())
        tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        # A class may stand for distributions without being a subclass: a mixin that they share.
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


@total_ordering
class _Match:
    """Classes that fit others, ordered by how near they are: subclasses before their bases."""

    __slots__ = ("types",)

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    __hash__ = None

    def __le__(self, other):
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p, type_q):
    """The function of the nearest pair of classes; NotImplemented where there is none."""
    matches = [
        pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not matches:
        return NotImplemented
    # Once seen from p's side and once from q's: where they differ, neither is better.
    left = min(_Match(*pair) for pair in matches).types
    right = min(_Match(*reversed(pair)) for pair in matches).types[::-1]
    function = _KL_REGISTRY[left]
    if function is not _KL_REGISTRY[right]:
        asked, other = ", ".join(kind.__name__ for kind in (type_p, type_q)), right[1].__name__
        warnings.warn(
            f"Ambiguous kl_divergence({asked}). Please register_kl({left[0].__name__}, {other})",
            RuntimeWarning,
            stacklevel=3,
        )
    return function


def kl_divergence(p, q):
    """The divergence KL(p || q), the mean of log p(x) - log q(x) over draws x of p.

    Args:
        p: a Distribution.
        q: a Distribution.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: no form is registered for the classes.

    Example:
        >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return function(p, q)


def _infinite_like(tensor):
    return facula.full_like(tensor, facula.inf)


def _register_infinite(type_p, type_q, like):
    """A pair where p always has draws outside of q's support; like(p) has the batch shape."""
    register_kl(type_p, type_q)(lambda p, q: _infinite_like(like(p)))


def _x_log_x(tensor):
    return facula.special.xlogy(tensor, tensor)


def _batch_trace_XXT(bmat):
    """The traces of X X^T: sums of squares."""
    return bmat.pow(2).sum((-2, -1))


def _outside(low, high, least, most):
    """Whether [low, high] reaches out of [least, most]."""
    return (low < least) | (high > most)


# --- a class with itself


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    hit = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    hit = facula.where(q.probs == 0, facula.inf, hit)
    hit = facula.where(p.probs == 0, 0.0, hit)
    miss = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    miss = facula.where(q.probs == 1, facula.inf, miss)
    miss = facula.where(p.probs == 1, 0.0, miss)
    return hit + miss


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    p_sum, q_sum = (d.concentration1 + d.concentration0 for d in (p, q))
    of_q = q.concentration1.lgamma() + q.concentration0.lgamma() + p_sum.lgamma()
    of_p = p.concentration1.lgamma() + p.concentration0.lgamma() + q_sum.lgamma()
    ones = (p.concentration1 - q.concentration1) * facula.digamma(p.concentration1)
    zeros = (p.concentration0 - q.concentration0) * facula.digamma(p.concentration0)
    return of_q - of_p + ones + zeros + (q_sum - p_sum) * facula.digamma(p_sum)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    # The binomial coefficients differ where the counts do; more draws than q has are impossible.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    log_odds = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    divergence = p.total_count * log_odds
    more, divergence = facula.broadcast_tensors(p.total_count > q.total_count, divergence)
    return facula.where(more, facula.inf, divergence)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = facula.where((q.probs == 0).expand_as(t), facula.inf, t)
    t = facula.where((p.probs == 0).expand_as(t), 0.0, t)
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # Chyzak and Nielsen, A closed-form formula for the KL divergence between Cauchy distributions
    # (2019).
    square = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return square.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    of_mean = p.mean * (p.logits - q.logits)
    of_p = p._cont_bern_log_norm() + facula.log1p(-p.probs)
    of_q = q._cont_bern_log_norm() + facula.log1p(-q.probs)
    return of_mean + of_p - of_q


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    p_sum, q_sum = p.concentration.sum(-1), q.concentration.sum(-1)
    of_sums = p_sum.lgamma() - q_sum.lgamma()
    of_parts = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    mean_logs = p.concentration.digamma() - p_sum.digamma().unsqueeze(-1)
    return of_sums - of_parts + ((p.concentration - q.concentration) * mean_logs).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the log normalizer at the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    p_params = [v.detach().requires_grad_() for v in p._natural_params]
    q_params = q._natural_params
    normalizer = p._log_normalizer(*p_params)
    gradients = facula.autograd.grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - normalizer
    for of_p, of_q, gradient in zip(p_params, q_params, gradients, strict=True):
        term = (of_q - of_p) * gradient
        result = result - _sum_rightmost(term, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    rates = q.concentration * (p.rate / q.rate).log()
    normalizers = facula.lgamma(q.concentration) - facula.lgamma(p.concentration)
    shapes = (p.concentration - q.concentration) * facula.digamma(p.concentration)
    means = (q.rate - p.rate) * (p.concentration / p.rate)
    return rates + normalizers + shapes + means


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - facula.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio = p.scale / q.scale
    p_loc, q_loc = p.loc / q.scale, q.loc / q.scale
    offset = p_loc - q_loc + ratio * euler_constant
    tail = facula.exp(q_loc + (1 + ratio).lgamma() - p_loc)
    return offset - ratio.log() + tail - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    reached = ratio * facula.exp(-distance / p.scale)
    return -ratio.log() + distance / q.scale + reached - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    alphas = q.alpha / p.alpha
    scales = q.alpha * (p.scale / q.scale).log()
    return facula.where(
        p.support.lower_bound < q.support.lower_bound,
        facula.inf,
        scales - alphas.log() + alphas - 1,
    )


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return facula.where(_outside(p.low, p.high, q.low, q.high), facula.inf, result)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    """Equal bijections cancel."""
    if p.transforms != q.transforms:
        raise NotImplementedError("KL(p || q) of different transforms is not implemented")
    if p.event_shape != q.event_shape:
        raise NotImplementedError("KL(p || q) of different event shapes is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL(p || q) of different reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# --- multivariate normal distributions: half of tr(Q^-1 P) + distance - n + log det Q - log det P


def _check_events(p, q, name):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {name} with different event shapes")


def _batch_solve(factor, matrix):
    """factor^-1 matrix for lower triangular factors, batches broadcast."""
    return facula.linalg.solve_triangular(factor, matrix, upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "Multivariate Normals")
    p_factor, q_factor = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    half_log_det = q._half_log_det() - p._half_log_det()
    trace = _batch_trace_XXT(_batch_solve(q_factor, p_factor))
    distance = _batch_mahalanobis(q_factor, q.loc - p.loc)
    return half_log_det + 0.5 * (trace + distance - p.event_shape[0])


def _lowrank_precision_trace(q, covariance_diag, *factors):
    """tr(Q^-1 P) for a low-rank Q, where P is diag(covariance_diag) plus factors F F^T."""
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    A = _batch_solve(q._capacitance_tril, W.mT / D.unsqueeze(-2))
    scaled = A * covariance_diag.sqrt().unsqueeze(-2)
    trace = (covariance_diag / D).sum(-1) - _batch_trace_XXT(scaled)
    for factor in factors:
        scaled = factor / D.sqrt().unsqueeze(-1)
        trace = trace + _batch_trace_XXT(scaled) - _batch_trace_XXT(A.matmul(factor))
    return trace


def _lowrank_distance(p, q):
    return _batch_lowrank_mahalanobis(
        q._unbroadcasted_cov_factor,
        q._unbroadcasted_cov_diag,
        q.loc - p.loc,
        q._capacitance_tril,
    )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "Low Rank Multivariate Normals")
    trace = _lowrank_precision_trace(q, p._unbroadcasted_cov_diag, p._unbroadcasted_cov_factor)
    distance = _lowrank_distance(p, q)
    return 0.5 * (q._log_det() - p._log_det() + distance + trace - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    nothing = facula.zeros_like(q._unbroadcasted_cov_diag)
    trace = _lowrank_precision_trace(q, nothing, p._unbroadcasted_scale_tril)
    log_det = q._log_det() - 2 * p._half_log_det()
    return 0.5 * (log_det + _lowrank_distance(p, q) + trace - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    diagonal = facula.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    trace = _batch_trace_XXT(_batch_solve(factor, p._unbroadcasted_cov_factor))
    trace = trace + _batch_trace_XXT(_batch_solve(factor, diagonal))
    distance = _batch_mahalanobis(factor, q.loc - p.loc)
    log_det = 2 * q._half_log_det() - p._log_det()
    return 0.5 * (log_det + distance + trace - p.event_shape[0])


# --- discrete distributions


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


_register_infinite(Poisson, Bernoulli, lambda p: p.rate)
_register_infinite(Poisson, Binomial, lambda p: p.rate)


# --- p on [0, 1]


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    of_q = p.mean * q.logits + facula.log1p(-q.probs) + q._cont_bern_log_norm()
    return -p.entropy() - of_q


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normalizer - (q.concentration - 1) * mean_log + q.rate * p.mean


def _normal_cross_entropy(p, q):
    """-E_p[log q] for a normal q, from the mean and the variance of p."""
    square = p.variance + (p.mean - q.loc).pow(2)
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * square / q.scale.pow(2)


def _kl_moments_normal(p, q):
    return -p.entropy() + _normal_cross_entropy(p, q)


for _class in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_class, Normal)(_kl_moments_normal)


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return facula.where(_outside(0.0, 1.0, q.low, q.high), facula.inf, result)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    # As PyTorch has it, q must reach beyond both ends.
    return facula.where((q.low >= 0.0) | (q.high <= 1.0), facula.inf, result)


# --- p on the positive numbers


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio = q.rate / p.rate
    shape = q.concentration * ratio.log() - q.concentration.lgamma()
    return ratio - shape + (q.concentration - 1) * euler_constant - 1


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    scaled = p.rate * q.scale
    location = q.loc / q.scale
    tail = facula.exp(location) * scaled / (scaled + 1)
    return scaled.log() - location + scaled.reciprocal() - 1 + tail


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    scaled = p.rate * q.scale
    location = q.loc / q.scale
    own = (p.concentration - 1) * p.concentration.digamma()
    own = own - p.concentration.lgamma() - p.concentration
    tail = facula.exp(location) * (1 + scaled.reciprocal()).pow(-p.concentration)
    return own + scaled.log() + p.concentration / scaled - location + tail


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() - 1
    result = result + p.alpha * product / (p.alpha - 1)
    return facula.where(p.alpha <= 1, facula.inf, result)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    own = p.alpha.log() - p.scale.log() - p.alpha.reciprocal() - 1
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    tail = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = own + normalizer + (1 - q.concentration) * mean_log + tail
    return facula.where(p.alpha <= 1, facula.inf, result)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    return facula.where(p.alpha <= 2, facula.inf, _kl_moments_normal(p, q))


# --- p on all numbers


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    offset = (p.loc - q.loc) / q.scale
    square = (p.scale / q.scale).pow(2)
    tail = facula.exp(-offset + 0.5 * square)
    return offset + tail - 0.5 * (square.log() + 1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    offset = p.loc - q.loc
    scaled = offset / p.scale
    # The mean distance of a normal number from q.loc.
    near = math.sqrt(2 / math.pi) * p.scale * facula.exp(-0.5 * scaled.pow(2))
    distance = near + offset * facula.erf(math.sqrt(0.5) * scaled)
    own = (p.scale / q.scale).log() + 0.5 * (1 + math.log(2 * math.pi)) - math.log(2)
    return distance / q.scale - own


# --- p on an interval


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    width = p.high - p.low
    low, high = p.low, p.high
    log_x = (_x_log_x(high) - _x_log_x(low)) / width - 1
    log_rest = (_x_log_x(1 - low) - _x_log_x(1 - high)) / width - 1
    log_beta = q.concentration1.lgamma() + q.concentration0.lgamma()
    log_beta = log_beta - (q.concentration1 + q.concentration0).lgamma()
    density = (q.concentration1 - 1) * log_x + (q.concentration0 - 1) * log_rest
    result = -width.log() - density + log_beta
    return facula.where(_outside(low, high, 0.0, 1.0), facula.inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    of_q = p.mean * q.logits + facula.log1p(-q.probs) + q._cont_bern_log_norm()
    result = -p.entropy() - of_q
    # As PyTorch has it, p must keep away from both ends.
    return facula.where((p.high >= 1.0) | (p.low <= 0.0), facula.inf, result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return facula.where(p.low < 0.0, facula.inf, result)


def _uniform_mean_log(p):
    """The mean of log x over [low, high]."""
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean_log = _uniform_mean_log(p)
    result = -p.entropy() + normalizer + (1 - q.concentration) * mean_log + q.rate * p.mean
    return facula.where(p.low < 0.0, facula.inf, result)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    width = (p.high - p.low) / q.scale
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    tail = (facula.exp(-low) - facula.exp(-high)) / width
    return 0.5 * (low + high) + tail - width.log()


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    density = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _uniform_mean_log(p)
    result = -p.entropy() - density
    return facula.where(p.low < q.support.lower_bound, facula.inf, result)


# --- draws of p outside of q's support


for _q in (Beta, ContinuousBernoulli, Pareto, Uniform):
    _register_infinite(Exponential, _q, lambda p: p.rate)
    _register_infinite(Gamma, _q, lambda p: p.concentration)
for _q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform):
    for _p in (Gumbel, Laplace, Normal):
        _register_infinite(_p, _q, lambda p: p.loc)
for _q in (Beta, ContinuousBernoulli, Uniform):
    _register_infinite(Pareto, _q, lambda p: p.scale)
_register_infinite(Beta, Pareto, lambda p: p.concentration1)
_register_infinite(ContinuousBernoulli, Pareto, lambda p: p.probs)
del _class, _p, _q

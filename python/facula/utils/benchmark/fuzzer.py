"""Sizes, layouts and tensors drawn at random, to time operators on.

Draws come from NumPy's RandomState in PyTorch's order, so that a seed gives the same ones.
"""

from __future__ import annotations

import math

import facula

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_NAMED = ("loguniform", "uniform")


def _numpy():
    try:
        import numpy
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Fuzzer.take(): expected NumPy, whose random numbers it draws; it is not installed"
        ) from None
    return numpy


class ParameterAlias:
    """A value that another parameter of the same draw has.

    Args:
        alias_to (str): the other parameter's name.
    """

    def __init__(self, alias_to):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn.

    Args:
        name (str): by which sizes and steps of tensors refer to it.
        minval, maxval (int or float): the bounds, both included; ints give ints.
        distribution (str or dict): "uniform" or "loguniform"; or the values, which may be
            `ParameterAlias`, with their probabilities.
        strict (bool): kept for who reads it.

    Raises:
        AssertionError: another distribution, or probabilities that do not add up to 1.

    Example:
        >>> FuzzedParameter("n", minval=2, maxval=2, distribution="uniform").name
        'n'
    """

    def __init__(self, name, minval=None, maxval=None, distribution=None, strict=False):
        self._name = name
        self._minval, self._maxval = minval, maxval
        self.strict = strict
        if isinstance(distribution, dict):
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError(
                    "FuzzedParameter(): expected probabilities that add up to 1; got "
                    f"{sum(distribution.values())}"
                )
        elif distribution not in _NAMED:
            raise AssertionError(
                f"FuzzedParameter(): expected a distribution of {_NAMED} or a dict; got "
                f"{distribution!r}"
            )
        self._distribution = distribution

    @property
    def name(self):
        """The name."""
        return self._name

    def sample(self, state):
        """One value, drawn from a numpy.random.RandomState."""
        if isinstance(self._distribution, dict):
            values, weights = list(self._distribution), list(self._distribution.values())
            return values[state.choice(_numpy().arange(len(values)), p=tuple(weights))]
        whole = isinstance(self._minval, int) and isinstance(self._maxval, int)
        if self._distribution == "uniform":
            if whole:
                return int(state.randint(low=self._minval, high=self._maxval + 1))
            return state.uniform(low=self._minval, high=self._maxval)
        bounds = math.log2(self._minval), math.log2(self._maxval)
        value = 2 ** state.uniform(*bounds)
        return max(min(int(value), self._maxval), self._minval)


class FuzzedTensor:
    """A tensor whose geometry is drawn.

    Args:
        name (str): by which `Fuzzer.take` gives it.
        size (tuple of int or str): the sizes; a str names a parameter.
        steps (tuple of int or str, optional): as sizes; the tensor is every so manieth element of
            a larger one.
        probability_contiguous (float): how often its dimensions are in order in memory.
        min_elements, max_elements (int, optional): other draws are rejected.
        max_allocation_bytes (int, optional): draws with more memory are rejected.
        dim_parameter (str, optional): a parameter that says how many of the sizes are used.
        roll_parameter (str, optional): a parameter that says how far sizes and steps are rotated.
        dtype (facula.dtype): of the elements.
        cuda (bool): whether it is on the accelerator.
        tensor_constructor (callable, optional): makes it from size, dtype and the parameters.
    """

    def __init__(
        self,
        name,
        size,
        steps=None,
        probability_contiguous=0.5,
        min_elements=None,
        max_elements=None,
        max_allocation_bytes=None,
        dim_parameter=None,
        roll_parameter=None,
        dtype=facula.float32,
        cuda=False,
        tensor_constructor=None,
    ):
        self._name = name
        self._size = size
        self._steps = steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._dtype = dtype
        self._cuda = cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self):
        """The name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        """A tensor of random numbers: from 0 to 1, or whole ones from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return facula.rand(size=size, dtype=dtype, device="cpu")
        return facula.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def satisfies_constraints(self, params):
        """Whether a draw has no more and no fewer elements and bytes than asked for."""
        size, _, allocated = self._geometry(params)
        elements = math.prod(size)
        if self._max_elements is not None and elements > self._max_elements:
            return False
        if self._min_elements is not None and elements < self._min_elements:
            return False
        most = self._max_allocation_bytes
        return most is None or math.prod(allocated) * self._dtype.itemsize <= most

    def _geometry(self, params):
        """Size, steps, and the size of what the tensor is cut from."""
        dim = params[self._dim_parameter] if self._dim_parameter else len(self._size)

        def resolved(values):
            values = (values or ())[:dim]
            numbers = [params.get(v, v) if isinstance(v, str) else v for v in values]
            return tuple(numbers + [1] * (dim - len(numbers)))

        size, steps = resolved(self._size), resolved(self._steps)
        if self._roll_parameter is not None:
            by = params[self._roll_parameter] % max(dim, 1)
            size, steps = (tuple(x[len(x) - by :] + x[: len(x) - by]) for x in (size, steps))
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def _make_tensor(self, params, state):
        """The tensor of one draw, and what is to be known of it."""
        numpy = _numpy()
        size, steps, allocated = self._geometry(params)
        construct = self._tensor_constructor or self.default_tensor_constructor
        raw = construct(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            raw = raw.cuda()
        dim = len(size)
        order = numpy.arange(dim)
        if state.rand() > self._probability_contiguous:
            while dim > 1 and numpy.all(order == numpy.arange(dim)):
                order = state.permutation(dim)
            raw = raw.permute(tuple(order)).contiguous()
            raw = raw.permute(tuple(numpy.argsort(order)))
        tensor = raw[
            tuple(slice(None, n * step, step) for n, step in zip(size, steps, strict=True))
        ]
        properties = {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return tensor, properties


class Fuzzer:
    """Draws parameters, and tensors whose geometry depends on them.

    Args:
        parameters (list of FuzzedParameter): or lists of them.
        tensors (list of FuzzedTensor): or lists of them.
        constraints (list of callable, optional): of a dict of parameters; draws for which one is
            false are rejected.
        seed (int, optional): of the draws.

    Raises:
        ValueError: two of the same name.
    """

    def __init__(self, parameters, tensors, constraints=None, seed=None):
        if seed is None:
            seed = int(facula.Generator().seed() % 2**32)
        self._seed = seed
        self._parameters = _flat(parameters)
        self._tensors = _flat(tensors)
        self._constraints = constraints or ()
        names = [one.name for one in (*self._parameters, *self._tensors)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"Fuzzer(): expected names that differ; got {sorted(twice)} twice")
        self._rejections = self._total_generated = 0

    def take(self, n):
        """Yields `n` draws: tensors by name, what is to be known of them, parameters by name."""
        state = _numpy().random.RandomState(self._seed)
        state.rand()  # PyTorch's draws begin with the second number
        for _ in range(n):
            params = self._generate(state)
            made = {one.name: one._make_tensor(params, state) for one in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: properties for name, (_, properties) in made.items()}, params

    @property
    def rejection_rate(self):
        """The share of draws that were rejected; 0 before any."""
        if not self._total_generated:
            return 0.0
        return self._rejections / self._total_generated

    def _generate(self, state):
        for _ in range(1000):
            drawn = {one.name: one.sample(state) for one in self._parameters}
            params = {name: _resolved(value, drawn) for name, value in drawn.items()}
            self._total_generated += 1
            if all(fits(params) for fits in self._constraints) and all(
                one.satisfies_constraints(params) for one in self._tensors
            ):
                return params
            self._rejections += 1
        raise ValueError(
            "Fuzzer.take(): expected constraints that draws can meet; none of 1000 did"
        )


def _flat(nested):
    return [one for item in nested for one in (item if isinstance(item, list) else [item])]


def _resolved(value, drawn):
    """What a parameter's value means: aliases are followed."""
    while isinstance(value, ParameterAlias):
        value = drawn[value.alias_to]
    return value

"""Gradients compared with finite differences, for derivatives of first and second order.

Everything is seen as functions between real vectors: a complex number is two reals. A cotangent of
1 at a complex result asks for the gradient of its real part, one of 1j for that of its imaginary
part, and the gradient that comes back holds the derivatives by both parts of the input.
"""

import contextlib
import math
import random
import sys
import types
import warnings

import facula
from facula.autograd import grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]

# The fast check projects on this many pairs of random directions.
_DIRECTIONS = 2


class GradcheckError(RuntimeError):
    """The gradient of a function differs from finite differences."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compare the gradient of `func` at `inputs` with finite differences.

    Args:
        func (callable): takes the inputs, returns a Tensor or a tuple of Tensors.
        inputs (Tensor or tuple): floating point or complex ones that require grad are checked; use
            double precision.
        eps (float): step of the differences.
        atol, rtol (float): tolerances of the comparison.
        raise_exception (bool): raise when the check fails; otherwise return False.
        nondet_tol (float): how much two backward passes may differ.
        check_undefined_grad (bool): undefined cotangents and cotangents of zero must give
            gradients that are undefined or zero.
        check_grad_dtypes (bool): gradients must have their inputs' dtypes.
        check_batched_grad (bool): cotangents batched by vmap must give the gradients of a loop.
        check_batched_forward_grad (bool): tangents batched by vmap must give those of a loop.
        check_forward_ad (bool): compare derivatives of forward mode, too.
        check_backward_ad (bool): compare derivatives of backward mode.
        fast_mode (bool): compare random projections of the Jacobian instead of each element.
        masked (bool): for sparse tensors; dense ones have nothing to mask.

    Returns:
        bool: whether the gradients agree.

    Raises:
        GradcheckError: they do not, and `raise_exception` is set.
        ValueError: no input requires grad.
        AssertionError: no mode is to be checked, or a batched one without its mode.

    Example::

        >>> x = facula.randn(3, dtype=facula.double, requires_grad=True)
        >>> facula.autograd.gradcheck(facula.sin, (x,))
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "gradcheck(): expected at least one of check_forward_ad and "
            "check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("gradcheck(): check_batched_grad=True needs check_backward_ad=True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "gradcheck(): check_batched_forward_grad=True needs check_forward_ad=True"
        )
    inputs = _as_tuple(inputs)
    checker = _Checker(func, inputs, eps, atol, rtol, fast_mode)
    try:
        checker.check_inputs()
        if check_forward_ad:
            checker.check_forward()
        if check_batched_forward_grad:
            checker.check_batched_forward()
        if check_backward_ad:
            checker.check_backward(
                nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad
            )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Compare the gradient of the gradient of `func` with finite differences of the gradient.

    Args:
        func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad,
            check_grad_dtypes, check_batched_grad, fast_mode: as for :func:`gradcheck`.
        grad_outputs (Tensor or tuple): cotangents of the results; random ones by default.
        gen_non_contig_grad_outputs (bool): lay the random cotangents out with steps in memory.
        check_fwd_over_rev (bool): differentiate the gradient by forward mode.
        check_rev_over_rev (bool): differentiate the gradient by backward mode.

    Returns:
        bool: whether the second derivatives agree.

    Raises:
        GradcheckError: they do not, and `raise_exception` is set.
        AssertionError: no way of differentiating twice is to be checked.
    """
    if not (check_rev_over_rev or check_fwd_over_rev):
        raise AssertionError(
            "gradgradcheck(): expected check_rev_over_rev or check_fwd_over_rev to be True"
        )
    inputs = _as_tuple(inputs)
    results = _differentiable(func(*inputs))
    if grad_outputs is None:
        rng = random.Random(0)
        cotangents = [_random_like(r, rng, gen_non_contig_grad_outputs) for r in results]
    else:
        cotangents = list(_as_tuple(grad_outputs))
    cotangents = tuple(c.detach().requires_grad_() for c in cotangents)
    count = len(inputs)

    def gradient(*values):
        values, weights = values[:count], values[count:]
        wanted = [v for v in values if _is_checked(v)]
        grads = grad(
            _differentiable(func(*values)), wanted, weights, create_graph=True, allow_unused=True
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        inputs + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


@contextlib.contextmanager
def _moved(x, by):
    """Changes an input in its memory, for functions that have it from elsewhere, too."""
    before = x.detach().clone()
    # Through .data the change counts as none: graphs that saved the input stay valid.
    x.data.copy_(before + by)
    try:
        yield
    finally:
        x.data.copy_(before)


class _Checker:
    """One function at one point: its results, and its Jacobian computed in two ways."""

    def __init__(self, func, inputs, eps, atol, rtol, fast):
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol, self.fast = eps, atol, rtol, fast
        self.checked = [i for i, x in enumerate(inputs) if _is_checked(x)]
        self.leaves = [inputs[i] for i in self.checked]
        self.results = None
        self.places = []  # of the results that are checked, among all

    def check_inputs(self):
        if not self.checked:
            raise ValueError(
                "gradcheck(): expected at least one floating point or complex input "
                "that requires grad; got none"
            )
        for i in self.checked:
            x = self.inputs[i]
            steps = zip(x.shape, x.stride(), strict=True)
            if x.numel() and any(step == 0 and size > 1 for size, step in steps):
                raise RuntimeError(
                    f"gradcheck(): input {i} has a stride of 0, so that elements "
                    "share memory; pass a contiguous copy"
                )
            if x.dtype not in (facula.float64, facula.complex128):
                warnings.warn(
                    f"gradcheck(): input {i} is not of double precision, where differences say "
                    "little",
                    stacklevel=3,
                )
        results = self.func(*self.inputs)
        if not isinstance(results, (facula.Tensor, tuple, list)):
            raise AttributeError(
                "gradcheck(): expected a function that returns Tensors; it gave "
                f"{type(results).__name__}"
            )
        every = _as_tuple(results)
        self.places = [k for k, r in enumerate(every) if _is_checked(r)]
        self.results = [every[k] for k in self.places]
        if not self.results:
            self._check_constant()

    def _check_constant(self):
        """Without a result that requires grad, differences must be zero."""
        rng = random.Random(0)
        before = self._numbers(self.inputs)
        for i in self.checked:
            with _moved(self.inputs[i], _random_like(self.inputs[i], rng) * self.eps):
                after = self._numbers(self.inputs)
            if after != before:
                raise GradcheckError(
                    f"gradcheck(): no result requires grad, yet results depend on input {i}"
                )

    def _numbers(self, inputs):
        return [_components(r) for r in _as_tuple(self.func(*inputs)) if _is_number_tensor(r)]

    def check_backward(self, nondet_tol, undefined, dtypes, batched):
        """The Jacobian by backward mode, and what else is asked of it."""
        self.check_jacobian()
        self.check_repeatable(nondet_tol)
        if undefined:
            self.check_zero_cotangents()
            self.check_undefined_cotangents()
        if dtypes:
            self.check_dtypes()
        if batched:
            self.check_batched()

    def check_forward(self):
        """Tangents by forward mode against differences: each direction, or random ones."""
        rng = random.Random(0)
        for i, x in zip(self.checked, self.leaves, strict=True):
            directions = (
                [_random_like(x, rng) for _ in range(_DIRECTIONS)] if self.fast else _basis(x)
            )
            for direction in directions:
                changes = self._difference(i, direction)
                for number, (tangent, change) in enumerate(
                    zip(self._tangents(i, direction), changes, strict=True)
                ):
                    got, wanted = _components(tangent), _components(change)
                    if not self._all_close(got, wanted, 1.0):
                        self._fail(number, i, "all, by forward mode", got, wanted)

    def _tangents(self, i, direction):
        """The results' tangents as input i moves along a direction; zeros where there is none."""
        from facula.autograd import forward_ad

        with forward_ad.dual_level():
            moved = list(self.inputs)
            # Still requiring grad: the function may be a gradient itself.
            moved[i] = forward_ad.make_dual(self.inputs[i], direction)
            results = _as_tuple(self.func(*moved))
            pairs = [forward_ad.unpack_dual(results[k]) for k in self.places]
            return [
                facula.zeros_like(pair.primal) if pair.tangent is None else pair.tangent.detach()
                for pair in pairs
            ]

    def check_batched_forward(self):
        """Tangents batched by vmap give the tangents of a loop."""
        rng = random.Random(0)
        for i, x in zip(self.checked, self.leaves, strict=True):
            several = [_random_like(x, rng) for _ in range(2)]
            loop = [self._tangents(i, direction) for direction in several]

            def tangents(direction, i=i):
                return tuple(self._tangents(i, direction))

            batched = _under_vmap(tangents, several)
            for number, got in enumerate(batched):
                wanted = [c for found in loop for c in _components(found[number])]
                if not self._all_close(_components(got), wanted, 1.0):
                    self._fail(number, i, "under vmap, by forward mode", _components(got), wanted)

    def check_undefined_cotangents(self):
        """Backward takes undefined cotangents, and gives gradients that are undefined or zero."""
        if not self.results:
            return
        for chosen in [range(len(self.results)), *([k] for k in range(len(self.results)))]:
            results = _differentiable(self.func(*self.inputs))
            for k in chosen:
                results[k] = _Undefined.apply(results[k])
            cotangents = [facula.zeros_like(r) for r in results]
            try:
                grads = grad(results, self.leaves, cotangents, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError(
                    "gradcheck(): backward does not take an undefined cotangent; it must be "
                    f"treated as zero. It raised: {error}"
                ) from error
            for i, g in zip(self.checked, grads, strict=True):
                if g is not None and any(c != 0 for c in _components(g)):
                    raise GradcheckError(
                        f"gradcheck(): an undefined cotangent gives a gradient by "
                        f"input {i} that is not zero"
                    )

    def check_jacobian(self):
        if self.fast:
            self._check_projections()
        else:
            self._check_elements()

    def _check_elements(self):
        """Every element of the Jacobian."""
        expected = {i: self._numeric_columns(i) for i in self.checked}
        for number, result in enumerate(self.results):
            for row, cotangent in enumerate(_basis(result)):
                grads = self._gradients(number, cotangent)
                for i, g in zip(self.checked, grads, strict=True):
                    got = _components(g)
                    wanted = [column[number][row] for column in expected[i]]
                    if not self._all_close(got, wanted, 1.0):
                        self._fail(number, i, row, got, wanted)

    def _check_projections(self):
        """Derivatives along random directions of the inputs, weighted by random cotangents."""
        rng = random.Random(0)
        for i, x in zip(self.checked, self.leaves, strict=True):
            for _ in range(_DIRECTIONS):
                direction = _random_like(x, rng)
                change = self._difference(i, direction)
                for number, result in enumerate(self.results):
                    cotangent = _random_like(result, rng)
                    grads = self._gradients(number, cotangent)
                    got = _inner(grads[self.checked.index(i)], direction)
                    wanted = _inner(change[number], cotangent)
                    size = math.sqrt(max(1, x.numel() * result.numel()))
                    if not self._all_close([got], [wanted], size):
                        self._fail(number, i, "along a random direction", [got], [wanted])

    def _gradients(self, number, cotangent):
        """Gradients of one result, zeros where the graph has none."""
        found = grad(
            self.results[number], self.leaves, cotangent, retain_graph=True, allow_unused=True
        )
        return [
            facula.zeros_like(x) if g is None else g.detach()
            for g, x in zip(found, self.leaves, strict=True)
        ]

    def _difference(self, i, direction):
        """Central difference of the results as input i moves along a direction."""
        ends = []
        for step in (self.eps, -self.eps):
            with _moved(self.inputs[i], direction * step):
                found = _differentiable(self.func(*self.inputs))
                ends.append([r.detach().clone() for r in found])
        return [(above - below) / (2 * self.eps) for above, below in zip(*ends, strict=True)]

    def _numeric_columns(self, i):
        """By real component of input i: for each result the derivatives of its components."""
        columns = [
            [_components(change) for change in self._difference(i, direction)]
            for direction in _basis(self.inputs[i])
        ]
        for column in columns:
            if len(column) != len(self.results):
                raise GradcheckError(
                    "gradcheck(): the function gave another number of results "
                    "when it was called again"
                )
        return columns

    def _all_close(self, got, wanted, scale):
        return all(
            math.isclose(g, w, rel_tol=0, abs_tol=self.atol * scale + self.rtol * abs(w))
            or (math.isnan(g) and math.isnan(w))
            for g, w in zip(got, wanted, strict=True)
        )

    def _fail(self, number, i, where, got, wanted):
        raise GradcheckError(
            f"gradcheck(): the gradient of result {number} by input {i} differs from finite "
            f"differences (component {where} of the result):\n"
            f"  differences: {wanted}\n  gradient:    {got}"
        )

    def check_repeatable(self, tolerance):
        """Two backward passes give the same gradients."""
        for number, result in enumerate(self.results):
            weight = facula.ones_like(result)
            first, second = self._gradients(number, weight), self._gradients(number, weight)
            for i, a, b in zip(self.checked, first, second, strict=True):
                pairs = zip(_components(a), _components(b), strict=True)
                apart = max((abs(x - y) for x, y in pairs if x != y), default=0.0)
                if apart > tolerance:
                    raise GradcheckError(
                        f"gradcheck(): the backward pass is not reproducible: gradients by input "
                        f"{i} differ by up to {apart}; nondet_tol is {tolerance}"
                    )

    def check_zero_cotangents(self):
        """Cotangents of zero give zero."""
        for number, result in enumerate(self.results):
            for i, g in zip(
                self.checked, self._gradients(number, facula.zeros_like(result)), strict=True
            ):
                if any(component != 0 for component in _components(g)):
                    raise GradcheckError(
                        f"gradcheck(): a zero cotangent of result {number} gives "
                        f"a gradient by input {i} that is not zero"
                    )

    def check_dtypes(self):
        """Gradients have the dtypes of their inputs."""
        for number, result in enumerate(self.results):
            for i, g, x in zip(
                self.checked,
                self._gradients(number, facula.ones_like(result)),
                self.leaves,
                strict=True,
            ):
                if g.dtype != x.dtype:
                    raise GradcheckError(
                        f"gradcheck(): the gradient by input {i} has dtype "
                        f"{g.dtype}; expected {x.dtype}"
                    )

    def check_batched(self):
        """Cotangents batched by vmap give the gradients of a loop."""
        rng = random.Random(0)
        for number, result in enumerate(self.results):
            several = [_random_like(result, rng) for _ in range(2)]
            loop = [self._gradients(number, c) for c in several]

            def gradients(cotangent, result=result):
                return grad(
                    result, self.leaves, cotangent, retain_graph=True, materialize_grads=True
                )

            batched = _under_vmap(gradients, several)
            for place, i in enumerate(self.checked):
                got = _components(batched[place])
                wanted = [c for grads in loop for c in _components(grads[place])]
                if not self._all_close(got, wanted, 1.0):
                    self._fail(number, i, "under vmap", got, wanted)


def _under_vmap(function, several):
    """The function of several tensors at once, which only vmap may refuse."""
    try:
        return facula.func.vmap(function)(facula.stack(several))
    except RuntimeError as error:
        raise GradcheckError(f"gradcheck(): vmap cannot batch the derivative: {error}") from error


class _Undefined(facula.autograd.Function):
    """Passes a value on, and no gradient back."""

    @staticmethod
    def forward(ctx, value):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        return None


def _as_tuple(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _is_number_tensor(x):
    return isinstance(x, facula.Tensor) and (x.is_floating_point() or x.is_complex())


def _is_checked(x):
    return _is_number_tensor(x) and x.requires_grad


def _differentiable(results):
    return [r for r in _as_tuple(results) if _is_number_tensor(r) and r.requires_grad]


def _components(t):
    """The real components of a tensor as a flat list; (real, imaginary) for complex elements."""
    flat = t.detach().reshape(-1)
    if flat.is_complex():
        return facula.view_as_real(flat.resolve_conj()).reshape(-1).tolist()
    return flat.tolist()


def _of_components(components, like):
    """A tensor of like's shape and dtype out of its real components."""
    if like.is_complex():
        pairs = zip(components[::2], components[1::2], strict=True)
        components = [complex(real, imaginary) for real, imaginary in pairs]
    return facula.tensor(components, dtype=like.dtype, device=like.device).reshape(like.shape)


def _count(t):
    return t.numel() * (2 if t.is_complex() else 1)


def _basis(t):
    """Unit vectors along each real component of a tensor."""
    count = _count(t)
    for i in range(count):
        yield _of_components([float(i == j) for j in range(count)], t)


def _random_like(t, rng, strided=False):
    """Uniform components in [-1, 1], away from 0, so that no projection hides an element."""
    components = [rng.choice((-1, 1)) * rng.uniform(0.25, 1) for _ in range(_count(t))]
    values = _of_components(components, t)
    if not strided or values.dim() == 0:
        return values
    return facula.stack((values, values), -1)[..., 0]


def _inner(a, b):
    """The inner product of two tensors as real vectors."""
    return math.fsum(x * y for x, y in zip(_components(a), _components(b), strict=True))


# --- Jacobians by PyTorch's names of old


def _warn_old(name):
    warnings.warn(
        f"{name}() is deprecated, in PyTorch as well: use autograd.functional.jacobian()",
        FutureWarning,
        stacklevel=3,
    )


def _check_old(name, grad_out, results):
    if grad_out != 1.0:
        raise ValueError(f"{name}(): grad_out must be 1.0; got {grad_out}")
    if any(r.is_complex() for r in results):
        raise ValueError(f"{name}(): complex results are not supported")


def _columns(rows, source, count):
    """Rows of a Jacobian with a row for each component of `source`."""
    shape = source.numel(), count
    if not rows:
        return facula.zeros(shape, dtype=source.dtype)
    return facula.stack(rows).reshape(shape).to(source.dtype)


def _difference_rows(call, x, eps):
    """Central differences along each element of x; complex ones as d/dx + i d/dy.

    x itself is moved and put back, since it may be no argument of the function at all.
    """
    rows, kept = [], x.detach().clone()
    for direction in _basis(kept):
        ends = []
        for sign in (1, -1):
            with facula.no_grad():
                x.copy_(kept + sign * eps * direction)
            ends.append([r.detach().clone().reshape(-1) for r in call()])
        with facula.no_grad():
            x.copy_(kept)
        rows.append([(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)])
    if not x.is_complex():
        return rows
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return [[a + 1j * b for a, b in zip(*pair, strict=True)] for pair in pairs]


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """The Jacobian of fn's first result by central differences.

    Args:
        fn: takes the tuple of inputs.
        target: tensors that are moved; None: the inputs that require grad.
        eps: how far.
        grad_out: 1.0.

    Returns:
        A tuple with a matrix (elements of the target, elements of the result) for each target.

    Raises:
        ValueError: a complex result; grad_out is not 1.0.
    """
    _warn_old("get_numerical_jacobian")
    first = _as_tuple(fn(inputs))[:1]
    _check_old("get_numerical_jacobian", grad_out, first)
    targets = [x for x in _as_tuple(inputs if target is None else target) if _is_checked(x)]
    made = []
    for x in targets:
        rows = _difference_rows(lambda: _as_tuple(fn(inputs))[:1], x, eps)
        made.append(_columns([row[0] for row in rows], x, first[0].numel()))
    return tuple(made)


def get_numerical_jacobian_wrt_specific_input(
    fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad=False
):
    """The Jacobians of all results by one input, by central differences.

    Args:
        fn: takes the inputs as arguments.
        input_idx: which input, or `input` in its place.
        outputs: fn's results; their number and sizes count.
        eps: how far the input is moved.
        is_forward_ad: accepted for PyTorch's sake; differences are the same.

    Returns:
        A tuple with a matrix (elements of the input, elements of the result) for each result.
    """
    x = inputs[input_idx] if input is None else input
    rows = _difference_rows(lambda: _as_tuple(fn(*inputs)), x, eps)
    return tuple(
        _columns([row[k] for row in rows], x, out.numel()) for k, out in enumerate(outputs)
    )


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """The Jacobian of a result by backward.

    Args:
        inputs: what requires grad among them is differentiated.
        output: the result.
        nondet_tol: how much two passes may differ.
        grad_out: 1.0.

    Returns:
        (matrices (elements of the input, elements of the result), whether two passes agree, whether
        gradients have their inputs' sizes, whether they have their dtypes).

    Raises:
        ValueError: a complex result; grad_out is not 1.0.
    """
    _warn_old("get_analytical_jacobian")
    _check_old("get_analytical_jacobian", grad_out, [output])
    leaves = [x for x in _as_tuple(inputs) if _is_checked(x)]
    passes = [_backward_rows(leaves, output) for _ in range(2)]
    matrices = tuple(
        _columns([row[i].reshape(-1) for row in passes[0]], output, x.numel()).T.to(x.dtype)
        for i, x in enumerate(leaves)
    )
    pairs = [(g, x) for row in passes[0] for g, x in zip(row, leaves, strict=True)]
    repeated = all(
        facula.allclose(a, b, rtol=0, atol=nondet_tol)
        for one, other in zip(*passes, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return (
        matrices,
        repeated,
        all(g.shape == x.shape for g, x in pairs),
        all(g.dtype == x.dtype for g, x in pairs),
    )


def _backward_rows(leaves, output):
    """For each element of a result the gradients of the leaves; zeros for what has none."""
    rows = []
    for direction in _basis(output.detach()):
        grads = facula.autograd.grad(
            output, leaves, direction, retain_graph=True, allow_unused=True
        )
        rows.append(
            [facula.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True)]
        )
    return rows


class _CallableModule(types.ModuleType):
    """`facula.autograd.gradcheck` is this module and the function: importing the module by its
    path puts it into the package under the function's name."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

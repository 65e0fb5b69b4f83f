"""Derivatives of functions as functions."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import facula
from facula import _C, _capture
from facula.func._vmap import vmap
from facula.utils._pytree import tree_flatten, tree_map, tree_unflatten

_levels = _C._functorch


@contextmanager
def _grad_level():
    _capture.finish("a function transform")
    level = _levels._grad_increment_nesting()
    try:
        with facula.enable_grad():
            yield level
    finally:
        _levels._decrement_nesting(level)


@contextmanager
def _jvp_level():
    _capture.finish("a function transform")
    level = _levels._jvp_increment_nesting()
    try:
        yield level
    finally:
        _levels._decrement_nesting(level)


def _is_tensor(value):
    return isinstance(value, _C.Tensor)


def _wrapped(tree, level):
    """Every Tensor of a nest as one of this level; differentiable() asks for gradients as well."""
    return tree_map(lambda t: _levels._wrap_for_grad(t, level) if _is_tensor(t) else t, tree)


def _unwrapped(tree, level):
    return tree_map(lambda t: _levels._unwrap_for_grad(t, level) if _is_tensor(t) else t, tree)


def _differentiable(tree):
    def ask(t):
        if not _is_tensor(t):
            raise ValueError(f"expected Tensors to differentiate by; got {type(t).__name__}")
        return t.requires_grad_()

    return tree_map(ask, tree)


def _gradients(outputs, inputs, cotangents, retain_graph, create_graph):
    """Gradients with zeros where an input does not matter."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=False) if o.requires_grad]
    if not pairs:
        return [facula.zeros_like(t) for t in inputs]
    grads = _C._run_backward(
        [o for o, _ in pairs],
        [c for _, c in pairs],
        retain_graph,
        create_graph,
        inputs,
        True,
        False,
    )
    return [facula.zeros_like(t) if g is None else g for g, t in zip(grads, inputs, strict=False)]


def _checked_argnums(argnums, count):
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple):
        raise RuntimeError(f"argnums must be an int or a tuple of ints; got {argnums!r}")
    if len(numbers) == 0:
        raise RuntimeError("argnums must name at least one argument; got ()")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnums must hold ints; got {n!r}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    wrapped = tuple(n % count for n in numbers)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"argnums must name each argument once; got {argnums}")
    return wrapped


def _pick(args, argnums):
    numbers = _checked_argnums(argnums, len(args))
    return args[numbers[0]] if isinstance(argnums, int) else tuple(args[n] for n in numbers)


def _put(args, argnums, values):
    numbers = _checked_argnums(argnums, len(args))
    new = list(args)
    for n, v in zip(numbers, (values,) if isinstance(argnums, int) else values, strict=False):
        new[n] = v
    return tuple(new)


def _split_aux(output, has_aux, where):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{where}: with has_aux=True the function must return a tuple of two, (output, aux)"
        )
    return output


def _check_tensors(leaves, where):
    if not leaves:
        raise RuntimeError(f"{where}: the function must return at least one tensor; got none")
    for leaf in leaves:
        if not _is_tensor(leaf):
            raise RuntimeError(
                f"{where}: the function must return Tensors; got {type(leaf).__name__}"
            )


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, and its value.

    Args:
        func (callable): returns a scalar Tensor, or (scalar Tensor, aux) with has_aux.
        argnums (int or tuple of ints): the arguments to differentiate.
        has_aux (bool): whether func returns further results that are not differentiated.

    Returns:
        callable that returns (gradient, value), or (gradient, (value, aux)).

    Raises:
        RuntimeError: func does not return a scalar Tensor.
    """

    def both(*args, **kwargs):
        with _grad_level() as level:
            args = _wrapped(args, level)
            kwargs = _wrapped(kwargs, level)
            wanted = _pick(args, argnums)
            _differentiable(wanted)
            output, aux = _split_aux(func(*args, **kwargs), has_aux, "grad_and_value(f)(*args)")
            if not _is_tensor(output):
                raise RuntimeError(
                    f"the function must return a single Tensor; got {type(output).__name__}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(): the function must return a 0-dim tensor; got "
                    f"{output.dim()} dimensions (vjp and jacrev take any)"
                )
            if output.is_complex():
                raise RuntimeError(
                    f"grad_and_value(): the function must return a real number; got {output.dtype}"
                )
            leaves, spec = tree_flatten(wanted)
            grads = _gradients(
                [output],
                leaves,
                [facula.ones_like(output, memory_format=facula.preserve_format)],
                True,
                True,
            )
            gradient = _unwrapped(tree_unflatten(grads, spec), level)
            value = _unwrapped(output, level)
            aux = _unwrapped(aux, level)
        return gradient, ((value, aux) if has_aux else value)

    return _capture.transform("grad_and_value", argnums, has_aux)(both, func)


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func.

    Args:
        func (callable): returns a scalar Tensor, or (scalar Tensor, aux) with has_aux.
        argnums (int or tuple of ints): the arguments to differentiate.
        has_aux (bool): whether func returns further results, returned beside the gradient.

    Raises:
        RuntimeError: func does not return a scalar Tensor.

    Example:
        >>> facula.func.grad(facula.func.grad(lambda x: x ** 3))(facula.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient_of(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient_of


def vjp(func, *primals, has_aux=False):
    """The value of func at primals, and a function from a cotangent to gradients.

    Args:
        func (callable): of Tensors; returns a Tensor or a nest of them.
        primals (Tensors or nests of them): where to differentiate; all are.
        has_aux (bool): whether func returns (output, aux).

    Returns:
        (output, vjp_fn) or (output, vjp_fn, aux). vjp_fn(cotangents) gives a tuple with one
        gradient for each of primals.

    Raises:
        RuntimeError: func returns anything but Tensors, or cotangents of another structure.
    """
    with _grad_level() as level:
        inputs = _wrapped(primals, level)
        leaves, in_spec = tree_flatten(inputs)
        _differentiable(inputs)
        output, aux = _split_aux(func(*inputs), has_aux, "vjp(f, *primals)")
        outs, out_spec = tree_flatten(output)
        _check_tensors(outs, "vjp(f, *primals)")
        result, aux = _unwrapped(output, level), _unwrapped(aux, level)

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        create = facula.is_grad_enabled() if create_graph is None else create_graph
        given, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                f"cotangents must be nested as the function's outputs are, {out_spec}; got {spec}"
            )
        grads = _gradients(outs, leaves, given, retain_graph, create)
        grads = [_levels._unwrap_for_grad(g, level) for g in grads]
        return tree_unflatten(grads, in_spec)

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


def linearize(func, *primals):
    """The value of func at primals, and a function from tangents to the output's tangent.

    func runs once; its derivative can then be had along many directions. The tangent map is the
    transpose of the vjp, which is linear in the cotangent.

    Args:
        func (callable): of Tensors; returns a Tensor or a nest of them.
        primals (Tensors or nests of them): where to differentiate.

    Returns:
        (output, jvp_fn): jvp_fn(*tangents) takes tangents of the structure of primals.

    Raises:
        RuntimeError: tangents differ from primals in structure, shape or dtype.
    """
    output, vjp_fn = vjp(func, *primals)
    flat_primals, in_spec = tree_flatten(primals)

    def jvp_fn(*tangents):
        flat, spec = tree_flatten(tangents)
        if spec != in_spec:
            raise RuntimeError(
                f"linearize(): tangents must be nested as the primals are, {in_spec}; got {spec}"
            )
        _check_like_primals(flat, flat_primals)
        zero = tree_map(facula.zeros_like, output)
        with facula.enable_grad():
            _, transposed = vjp(lambda u: vjp_fn(u, create_graph=True), zero)
        return transposed(tuple(tangents))[0]

    return output, jvp_fn


def _check_like_primals(tangents, primals):
    for i, (t, p) in enumerate(zip(tangents, primals, strict=True)):
        for what in ("shape", "device", "dtype"):
            if getattr(t, what) != getattr(p, what):
                raise RuntimeError(
                    f"linearize(): tangent {i} must have its primal's {what}, {getattr(p, what)}; "
                    f"got {getattr(t, what)}"
                )


_JVP = "jvp()"


def _checked_directions(primals, tangents):
    """Flat primals and tangents, and the TreeSpec of both."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: primals must be a tuple, one for each argument; got {type(primals).__name__}"
        )
    flat, spec = tree_flatten(primals)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{_JVP}: tangents must be nested as the primals are, {spec}; got {tangent_spec}"
        )
    for what, leaves in (("primals", flat), ("tangents", flat_tangents)):
        if not leaves:
            raise RuntimeError(f"{_JVP}: {what} must hold at least one Tensor; got none")
        for leaf in leaves:
            if not _is_tensor(leaf):
                raise RuntimeError(
                    f"{_JVP}: {what} must hold Tensors alone; got {type(leaf).__name__}"
                )
    return flat, flat_tangents, spec


def _dual_at(primal, tangent, level):
    for what, t in (("primal", primal), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"{_JVP}: {what} must be floating point or complex; got {t.dtype}")
    return _C._make_dual(_levels._wrap_for_grad(primal, level), tangent)


def _tangent_of_output(out, strict):
    primal, tangent = _C._unpack_dual(out)
    if tangent is not None:
        return primal, tangent
    if strict:
        raise RuntimeError(
            f"{_JVP}: strict=True requires outputs that depend on the inputs; one does not"
        )
    return primal, facula.zeros_like(primal)


def _aux_outside(aux, level):
    for leaf in tree_flatten(aux)[0]:
        if not _is_tensor(leaf):
            raise RuntimeError(f"{_JVP}: aux must hold Tensors alone; got {type(leaf).__name__}")
    return _unwrapped(aux, level)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of func at primals, and its derivative along tangents, by forward mode.

    Args:
        func (callable): of Tensors; returns a Tensor or a nest of them.
        primals (tuple of Tensors): where to differentiate.
        tangents (tuple of Tensors): directions, of the structure of primals.
        strict (bool): raise where an output does not depend on the inputs, in place of zeros.
        has_aux (bool): whether func returns (output, aux).

    Returns:
        (output, tangent) or (output, tangent, aux).

    Raises:
        RuntimeError: tangents do not have the structure or shapes of primals.

    Example:
        >>> facula.func.jvp(facula.sin, (facula.tensor(0.0),), (facula.tensor(2.0),))
        (tensor(0.), tensor(2.))
    """
    flat, flat_tangents, spec = _checked_directions(primals, tangents)
    with _jvp_level() as level:
        duals = [_dual_at(p, t, level) for p, t in zip(flat, flat_tangents, strict=True)]
        output, aux = _split_aux(func(*tree_unflatten(duals, spec)), has_aux, _JVP)
        outs, out_spec = tree_flatten(output)
        _check_tensors(outs, _JVP)
        pairs = [_tangent_of_output(out, strict) for out in outs]
        values = _unwrapped(tree_unflatten([p for p, _ in pairs], out_spec), level)
        derivatives = _unwrapped(tree_unflatten([t for _, t in pairs], out_spec), level)
        if not has_aux:
            return values, derivatives
        return values, derivatives, _aux_outside(_without_tangents(aux), level)


def _without_tangents(tree):
    return tree_map(lambda t: _C._unpack_dual(t)[0] if _is_tensor(t) else t, tree)


def _basis(outputs):
    """For each output, one-hot cotangents: as many as all outputs have elements, in order."""
    total = sum(t.numel() for t in outputs)
    parts, start = [], 0
    for t in outputs:
        rows = facula.zeros(total, t.numel(), dtype=t.dtype, device=t.device)
        rows[start : start + t.numel()] = facula.eye(t.numel(), dtype=t.dtype, device=t.device)
        parts.append(rows.view(total, *t.shape))
        start += t.numel()
    return parts


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that returns the Jacobian of func, by reverse mode.

    Args:
        func (callable): returns a Tensor or a nest of them, or (output, aux) with has_aux.
        argnums (int or tuple of ints): the arguments to differentiate.
        has_aux (bool): whether func returns further results that are not differentiated.
        chunk_size (int): rows of the Jacobian at a time; None: all.

    Returns:
        callable; its result has output.shape + input.shape for each output and input.

    Raises:
        ValueError: chunk_size is not positive.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev(): chunk_size must be positive; got {chunk_size}")

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        in_leaves, in_spec = tree_flatten(_pick(args, argnums))
        _check_real(in_leaves, "jacrev", "inputs")

        def of_leaves(*leaves):
            return func(*_put(args, argnums, tree_unflatten(leaves, in_spec)), **kwargs)

        output, vjp_fn, *aux = vjp(of_leaves, *in_leaves, has_aux=has_aux)
        outs, out_spec = tree_flatten(output)
        _check_real(outs, "jacrev", "outputs")

        def rows_of(*cotangents):
            return vjp_fn(tree_unflatten(cotangents, out_spec))

        rows = vmap(rows_of, chunk_size=chunk_size)(*_basis(outs))
        per_output, start = [], 0
        for out in outs:
            n = out.numel()
            jacs = [
                r[start : start + n].reshape(tuple(out.shape) + tuple(t.shape))
                for r, t in zip(rows, in_leaves, strict=False)
            ]
            per_output.append(tree_unflatten(jacs, in_spec))
            start += n
        result = tree_unflatten(per_output, out_spec)
        return (result, aux[0]) if has_aux else result

    return jacobian


def _check_real(leaves, where, what):
    for i, leaf in enumerate(leaves):
        if _is_tensor(leaf) and leaf.is_complex():
            raise RuntimeError(f"{where}(): all {what} must be real; number {i} is complex")


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that returns the Jacobian of func, by forward mode: column by column.

    Args:
        func (callable): returns a Tensor or a nest of them, or (output, aux) with has_aux.
        argnums (int or tuple of ints): the arguments to differentiate.
        has_aux (bool): whether func returns further results that are not differentiated.
        randomness (str): of vmap over the directions: "error", "different" or "same".

    Returns:
        callable; its result has output.shape + input.shape for each output and input.

    Raises:
        RuntimeError: an input or output is complex.
    """
    return _by_columns(func, argnums, has_aux, randomness, real=True)


def _by_columns(func, argnums, has_aux, randomness, real):
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        in_leaves, in_spec = tree_flatten(_pick(args, argnums))
        if real:
            _check_real(in_leaves, "jacfwd", "inputs")

        def of_leaves(*leaves):
            return func(*_put(args, argnums, tree_unflatten(leaves, in_spec)), **kwargs)

        def along(*directions):
            _, tangent, *aux = jvp(of_leaves, tuple(in_leaves), directions, has_aux=has_aux)
            return (tangent, *aux)

        tangents, *aux = vmap(along, randomness=randomness)(*_basis(in_leaves))
        outs, out_spec = tree_flatten(tangents)
        if real:
            _check_real(outs, "jacfwd", "outputs")
        per_output = [tree_unflatten(_columns(out, in_leaves), in_spec) for out in outs]
        result = tree_unflatten(per_output, out_spec)
        return (result, tree_map(lambda t: t[0], aux[0])) if has_aux else result

    return jacobian


def _columns(tangents, inputs):
    """The Jacobian by each input out of tangents along every direction, stacked in front."""
    columns, parts, start = tangents.movedim(0, -1), [], 0
    for t in inputs:
        part = columns[..., start : start + t.numel()]
        parts.append(part.reshape(tuple(tangents.shape[1:]) + tuple(t.shape)))
        start += t.numel()
    return parts


def hessian(func, argnums=0):
    """A function that returns the Hessian of func: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)

"""Derivatives of functions as functions."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import facula
from facula import _C
from facula.func._pytree import tree_flatten, tree_map, tree_unflatten
from facula.func._vmap import vmap

_levels = _C._functorch


@contextmanager
def _grad_level():
    level = _levels._grad_increment_nesting()
    try:
        with facula.enable_grad():
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


def _differentiable(tree, where):
    def ask(t):
        if not _is_tensor(t):
            raise ValueError(
                f"{where}: Expected all inputs to be differentiated to be Tensors, got {type(t)}"
            )
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
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f"argnum must be int or tuple of ints, got {type(argnums)}")
    if len(numbers) == 0:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
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
        raise RuntimeError(
            f"{where}: the function must return at least one tensor; got ()"
        )
    for leaf in leaves:
        if not _is_tensor(leaf):
            raise RuntimeError(
                f"{where}: Expected f to return only tensors, got unsupported type {type(leaf)}"
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

    @functools.wraps(func)
    def both(*args, **kwargs):
        with _grad_level() as level:
            args = _wrapped(args, level)
            kwargs = _wrapped(kwargs, level)
            wanted = _pick(args, argnums)
            _differentiable(wanted, "grad_and_value")
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
            leaves, spec = tree_flatten(wanted)
            grads = _gradients([output], leaves, [facula.ones_like(output)], True, True)
            gradient = _unwrapped(tree_unflatten(grads, spec), level)
            value = _unwrapped(output, level)
            aux = _unwrapped(aux, level)
        return gradient, ((value, aux) if has_aux else value)

    return both


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
        (output, vjp_fn) or (output, vjp_fn, aux). vjp_fn(cotangents) gives one gradient for each of
        primals; a single one is not put into a tuple.

    Raises:
        RuntimeError: func returns anything but Tensors, or cotangents of another structure.
    """
    with _grad_level() as level:
        inputs = _wrapped(primals, level)
        leaves, in_spec = tree_flatten(inputs)
        _differentiable(inputs, "vjp(f, *primals)")
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
        tree = tree_unflatten(grads, in_spec)
        return tree[0] if len(primals) == 1 else tree

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


def linearize(func, *primals):
    """The value of func at primals, and a function from tangents to the output's tangent.

    The tangent map is the vjp of the vjp, which is linear in the cotangent.
    """
    output, vjp_fn = vjp(func, *primals)

    def gradients(cotangent):
        result = vjp_fn(cotangent, create_graph=True)
        return result if len(primals) > 1 else (result,)

    def jvp_fn(*tangents):
        if len(tangents) != len(primals):
            raise RuntimeError(f"Expected {len(primals)} tangents; got {len(tangents)}")
        zero = tree_map(facula.zeros_like, output)
        with facula.enable_grad():
            _, transposed = vjp(gradients, zero)
        return transposed(tuple(tangents))

    return output, jvp_fn


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of func at primals, and its derivative along tangents.

    Args:
        func (callable): of Tensors; returns a Tensor or a nest of them.
        primals (tuple of Tensors): where to differentiate.
        tangents (tuple of Tensors): directions, of the structure of primals.
        strict (bool): not supported; must be False.
        has_aux (bool): whether func returns (output, aux).

    Returns:
        (output, tangent) or (output, tangent, aux).

    Raises:
        RuntimeError: tangents do not have the structure of primals.
    """
    if strict:
        raise NotImplementedError("jvp(): strict=True is not implemented")
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(): primals must be a tuple, one for each argument; got {type(primals).__name__}"
        )
    if tree_flatten(primals)[1] != tree_flatten(tangents)[1]:
        raise RuntimeError(
            "jvp(): primals and tangents must be nested alike"
        )
    kept = []

    def alone(*args):
        output, aux = _split_aux(func(*args), has_aux, "jvp(f, primals, tangents)")
        kept[:] = [aux]
        return output

    output, jvp_fn = linearize(alone, *primals)
    tangent = jvp_fn(*tangents)
    if not has_aux:
        return output, tangent
    return output, tangent, tree_map(_without_ended_levels, kept[0])


def _without_ended_levels(value):
    while _is_tensor(value) and _levels.is_gradtrackingtensor(value):
        if _levels._level_of(value) <= _levels.maybe_current_level():
            break
        value = _levels.get_unwrapped(value)
    return value


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
        primals = _pick(args, argnums)
        in_leaves, in_spec = tree_flatten(primals)

        def of_leaves(*leaves):
            return func(*_put(args, argnums, tree_unflatten(leaves, in_spec)), **kwargs)

        output, vjp_fn, *aux = vjp(of_leaves, *in_leaves, has_aux=has_aux)
        outs, out_spec = tree_flatten(output)

        def rows_of(*cotangents):
            grads = vjp_fn(tree_unflatten(cotangents, out_spec))
            return grads if isinstance(grads, tuple) else (grads,)

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


def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """A function that returns the Jacobian of func, as jacrev does: by rows, not by columns."""
    if randomness != "error":
        raise NotImplementedError("jacfwd(): only randomness='error' is implemented")
    return jacrev(func, argnums, has_aux=has_aux, chunk_size=chunk_size)


def hessian(func, argnums=0):
    """A function that returns the Hessian of func: the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)

"""Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

import facula
from facula import _C, _capture

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

_FORWARD = "forward-mode"
_REVERSE = "reverse-mode"


# --- arguments and results


def _as_tuple(value, what, function):
    """(whether value is a tuple, value as one), all of it Tensors."""
    is_tuple = isinstance(value, tuple)
    for i, element in enumerate(value if is_tuple else (value,)):
        if isinstance(element, _C.Tensor):
            continue
        place = f" at {i}" if is_tuple else ""
        raise TypeError(
            f"{function}(): {what} must be a Tensor or a tuple of Tensors; got "
            f"{type(element).__name__}{place}"
        )
    return is_tuple, value if is_tuple else (value,)


def _outputs(value, function):
    return _as_tuple(value, "what the function returns", function)


def _shaped(values, is_tuple):
    return values if is_tuple else values[0]


def _leaves(tensors, create_graph, differentiable):
    """Tensors to differentiate by, which keep their history only where a graph is wanted."""

    def prepared(t):
        if create_graph and t.requires_grad:
            return t.view_as(t)
        return t.detach().requires_grad_(differentiable)

    return tuple(prepared(t) for t in tensors)


def _finished(tensors, create_graph):
    return tensors if create_graph else tuple(t.detach() for t in tensors)


def _direction(v, function, like, create_graph, none_allowed_for):
    """The checked vector of a product; ones where it is None and `like` has one element."""
    if v is None:
        if len(like) != 1 or like[0].nelement() != 1:
            raise RuntimeError(
                f"v may be None only where {none_allowed_for} one Tensor with one element"
            )
        return tuple(facula.ones_like(t) for t in like)
    _, v = _as_tuple(v, "v", function)
    v = _leaves(v, create_graph, False)
    if len(v) != len(like):
        if len(like) == 1:
            raise RuntimeError(f"v must be a single Tensor; got {len(v)}")
        raise RuntimeError(f"v must hold {len(like)} Tensors; got {len(v)}")
    for i, (given, wanted) in enumerate(zip(v, like, strict=True)):
        if given.shape != wanted.shape:
            entry = f"[{i}]" if len(like) > 1 else ""
            raise RuntimeError(
                f"v{entry} must have sizes {list(wanted.shape)}; got {list(given.shape)}"
            )
    return v


_BY_INPUT = "the function takes"
_BY_OUTPUT = "the function returns"


# --- strict mode


def _check_outputs_depend(outputs, strict):
    for i, out in enumerate(outputs if strict else ()):
        if not out.requires_grad:
            raise RuntimeError(
                f"strict: output {i} of the function does not require grad, so it is no "
                "differentiable function of the inputs"
            )


def _independent(stage, i):
    if stage == "hessian":
        return (
            f"strict: the Jacobian by input {i} does not depend on the inputs, as that of a linear "
            "function"
        )
    return f"strict: the output of the function does not depend on input {i}"


def _check_graph_depends(grads, strict, create_graph, stage):
    """With create_graph the derivative itself must depend on the inputs."""
    if not (strict and create_graph):
        return
    for i, g in enumerate(grads):
        if g.requires_grad:
            continue
        raise RuntimeError(
            f"strict: with create_graph=True the {stage} must depend on input {i}, and does not"
        )


# --- gradients


def _gradients(outputs, inputs, cotangents, create_graph):
    """Gradients, None where an input does not matter."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, weights = zip(*pairs, strict=True)
    return facula.autograd.grad(
        roots, inputs, weights, create_graph=create_graph, retain_graph=True, allow_unused=True
    )


def _filled(grads, like, strict, stage):
    """Zeros in place of None, which strict mode does not allow."""
    full = []
    for i, (g, t) in enumerate(zip(grads, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(_independent(stage, i))
        full.append(facula.zeros_like(t) if g is None else g)
    return tuple(full)


def _scalar_outputs(outputs, is_tuple, function):
    if is_tuple:
        raise RuntimeError(f"{function}(): the function must return a single Tensor; got a tuple")
    if outputs[0].nelement() != 1:
        raise RuntimeError(
            f"{function}(): the function must return one element; got {outputs[0].nelement()}"
        )


@_capture.not_captured("autograd.functional.vjp()")
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of func, and the product of a vector with its Jacobian.

    Args:
        func (callable): of Tensors; returns a Tensor or a tuple of them.
        inputs (Tensor or tuple of Tensors): where to differentiate.
        v (Tensor or tuple of Tensors): of the shapes of the outputs; may be None for one number.
        create_graph (bool): record the computation of the result.
        strict (bool): raise where an output does not depend on an input, in place of zeros.

    Returns:
        (outputs, products): products have the structure of inputs.

    Raises:
        RuntimeError: v does not fit the outputs, or strict finds independence.
        TypeError: inputs, v or outputs are no Tensors.

    Example:
        >>> facula.autograd.functional.vjp(facula.sin, facula.tensor(0.0))
        (tensor(0.), tensor(1.))
    """
    with facula.enable_grad():
        in_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _leaves(inputs, create_graph, True)
        out_tuple, outputs = _outputs(func(*inputs), "vjp")
        _check_outputs_depend(outputs, strict)
        v = _direction(v, "vjp", outputs, create_graph, _BY_OUTPUT)
        record = facula.is_grad_enabled() and create_graph
        grads = _filled(_gradients(outputs, inputs, v, record), inputs, strict, "output")
        _check_graph_depends(grads, strict, create_graph, "jacobian")
    return (
        _shaped(_finished(outputs, create_graph), out_tuple),
        _shaped(_finished(grads, create_graph), in_tuple),
    )


@_capture.not_captured("autograd.functional.jvp()")
def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of func, and the product of its Jacobian with a vector.

    The product is the gradient of the vjp, which is linear in its vector.

    Args:
        func, inputs, create_graph, strict: as for :func:`vjp`.
        v (Tensor or tuple of Tensors): of the shapes of inputs; may be None for one number.

    Returns:
        (outputs, products): products have the structure of outputs.

    Raises:
        RuntimeError: v does not fit the inputs, or strict finds independence.
        TypeError: inputs, v or outputs are no Tensors.
    """
    with facula.enable_grad():
        _, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _leaves(inputs, create_graph, True)
        v = _direction(v, "jvp", inputs, create_graph, _BY_INPUT)
        out_tuple, outputs = _outputs(func(*inputs), "jvp")
        _check_outputs_depend(outputs, strict)
        dummies = tuple(facula.zeros_like(out).requires_grad_() for out in outputs)
        pulled = _filled(_gradients(outputs, inputs, dummies, True), inputs, strict, "output")
        products = _gradients(pulled, dummies, v, create_graph)
        products = _filled(products, outputs, strict, "output")
        _check_graph_depends(products, strict, create_graph, "jacobian")
    return (
        _shaped(_finished(outputs, create_graph), out_tuple),
        _shaped(_finished(products, create_graph), out_tuple),
    )


# --- Jacobians


def _check_strategy(strategy, strict, create_graph):
    if strategy not in (_FORWARD, _REVERSE):
        raise AssertionError(
            f"jacobian(): strategy must be {_FORWARD!r} or {_REVERSE!r}; got {strategy!r}"
        )
    if strategy == _FORWARD and create_graph:
        raise NotImplementedError(
            "jacobian(): create_graph=True is implemented for strategy='reverse-mode' alone"
        )
    if strategy == _FORWARD and strict:
        raise RuntimeError("jacobian(): strict=True needs strategy='reverse-mode'")


def _arranged(table, in_tuple, out_tuple):
    """A table of Jacobians by output and input, without the tuples that were not given."""
    rows = tuple(_shaped(tuple(row), in_tuple) for row in table)
    return _shaped(rows, out_tuple)


@_capture.not_captured("autograd.functional.jacobian()")
def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """The Jacobian of func.

    Args:
        func (callable): of Tensors; returns a Tensor or a tuple of them.
        inputs (Tensor or tuple of Tensors): where to differentiate.
        create_graph (bool): record the computation of the result.
        strict (bool): raise where an output does not depend on an input, in place of zeros.
        vectorize (bool): compute all rows (or columns) at once, by vmap.
        strategy (str): "reverse-mode": row by row, or "forward-mode": column by column.

    Returns:
        Tensor of output.shape + input.shape; a tuple of them for several inputs, and a tuple of
        those for several outputs.

    Raises:
        RuntimeError: options that exclude each other, or strict finds independence.
        NotImplementedError: "forward-mode" without vectorize or with create_graph.
        TypeError: inputs or outputs are no Tensors.

    Example:
        >>> facula.autograd.functional.jacobian(lambda x: x * x, facula.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check_strategy(strategy, strict, create_graph)
    if strategy == _FORWARD:
        return _jacobian_by_columns(func, inputs, vectorize)
    with facula.enable_grad():
        in_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _leaves(inputs, create_graph, True)
        out_tuple, outputs = _outputs(func(*inputs), "jacobian")
        _check_outputs_depend(outputs, strict)
        if strict and vectorize:
            raise RuntimeError("jacobian(): strict=True and vectorize=True exclude each other")
        rows = _rows_at_once if vectorize else _rows_in_turn
        table = [
            _finished(rows(i, out, inputs, create_graph, strict), create_graph)
            for i, out in enumerate(outputs)
        ]
    return _arranged(table, in_tuple, out_tuple)


def _rows_in_turn(number, output, inputs, create_graph, strict):
    """The Jacobian of one output by each input."""
    columns = [[] for _ in inputs]
    for element in output.reshape(-1):
        grads = _gradients((element,), inputs, (None,), create_graph)
        for j, (g, t) in enumerate(zip(grads, inputs, strict=True)):
            if strict and g is None:
                raise RuntimeError(
                    f"strict: output {number} of the function does not depend on input {j}"
                )
            if strict and create_graph and not g.requires_grad:
                _check_graph_depends(
                    [*[t.requires_grad_() for t in inputs[:j]], g], True, True, "jacobian"
                )
            columns[j].append(facula.zeros_like(t) if g is None else g)
    return tuple(
        facula.stack(c).view(output.shape + t.shape) if c else t.new_zeros(output.shape + t.shape)
        for c, t in zip(columns, inputs, strict=True)
    )


def _rows_at_once(_number, output, inputs, create_graph, _strict):
    if not output.requires_grad:
        return tuple(t.new_zeros(output.shape + t.shape) for t in inputs)
    basis = facula.eye(output.numel(), dtype=output.dtype, device=output.device)
    basis = basis.view(output.numel(), *output.shape)

    def row(cotangent):
        grads = _gradients((output,), inputs, (cotangent,), create_graph)
        return _filled(grads, inputs, False, "output")

    rows = facula.func.vmap(row)(basis)
    return tuple(r.view(output.shape + t.shape) for r, t in zip(rows, inputs, strict=True))


def _jacobian_by_columns(func, inputs, vectorize):
    from facula.func._grad import _by_columns

    in_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "jacobian(): strategy='forward-mode' is implemented for vectorize=True alone"
        )
    out_tuple = None

    def checked(*values):
        nonlocal out_tuple
        out_tuple, outputs = _outputs(func(*values), "jacobian")
        return outputs

    argnums = tuple(range(len(inputs)))
    columns = _by_columns(checked, argnums, False, "error", real=False)(*inputs)
    # Lists where the other strategy gives tuples, as PyTorch has it.
    rows = [list(row) if in_tuple else row[0] for row in columns]
    if not out_tuple:
        return rows[0]
    return rows if in_tuple else tuple(rows)


# --- Hessians


@_capture.not_captured("autograd.functional.hessian()")
def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """The Hessian of a scalar function: the Jacobian of its Jacobian.

    Args:
        func (callable): of Tensors; returns a Tensor with one element.
        inputs, create_graph, strict, vectorize: as for :func:`jacobian`.
        outer_jacobian_strategy (str): how the Jacobian of the gradient is computed.

    Returns:
        Tensor of input.shape + input.shape; a tuple of tuples of them for a tuple of inputs.

    Raises:
        RuntimeError: func returns more than one number, or strict finds independence.
        NotImplementedError: "forward-mode" without vectorize.
        TypeError: inputs or outputs are no Tensors.
    """
    in_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in (_FORWARD, _REVERSE):
        raise AssertionError(
            f"hessian(): outer_jacobian_strategy must be {_FORWARD!r} or {_REVERSE!r}; got "
            f"{outer_jacobian_strategy!r}"
        )

    def scalar(*values):
        out_tuple, outputs = _outputs(func(*values), "hessian")
        _scalar_outputs(outputs, out_tuple, "hessian")
        return outputs[0].squeeze()

    def gradient(*values):
        if outer_jacobian_strategy == _FORWARD:
            values = tuple(t.requires_grad_() for t in values)
        grads = jacobian(scalar, values, create_graph=True)
        for i, g in enumerate(grads if strict else ()):
            if not g.requires_grad:
                raise RuntimeError(_independent("hessian", i))
        return grads

    if strict:
        with facula.enable_grad():
            _check_outputs_depend((scalar(*_leaves(inputs, False, True)),), strict)
    table = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return table if in_tuple else table[0][0]


@_capture.not_captured("autograd.functional.vhp()")
def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a scalar function, and the product of a vector with its Hessian.

    Args:
        func (callable): of Tensors; returns a Tensor with one element.
        inputs, create_graph, strict: as for :func:`vjp`.
        v (Tensor or tuple of Tensors): of the shapes of inputs; may be None for one number.

    Returns:
        (output, products): products have the structure of inputs.

    Raises:
        RuntimeError: v does not fit, func returns more than one number, strict finds independence.
        TypeError: inputs, v or outputs are no Tensors.
    """
    with facula.enable_grad():
        in_tuple, inputs, v, outputs, grads = _value_and_gradient(
            func, inputs, v, create_graph, strict, "vhp"
        )
        found = _gradients(grads, inputs, v, create_graph)
        products = _filled(found, inputs, strict, "hessian")
        _check_graph_depends(products, strict, create_graph, "hessian")
    return (
        _finished(outputs, create_graph)[0],
        _shaped(_finished(products, create_graph), in_tuple),
    )


@_capture.not_captured("autograd.functional.hvp()")
def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of a scalar function, and the product of its Hessian with a vector.

    Args:
        func, inputs, v, create_graph, strict: as for :func:`vhp`, which is faster.

    Returns:
        (output, products): products have the structure of inputs.

    Raises:
        RuntimeError: v does not fit, func returns more than one number, strict finds independence.
        TypeError: inputs, v or outputs are no Tensors.
    """
    with facula.enable_grad():
        in_tuple, inputs, v, outputs, grads = _value_and_gradient(
            func, inputs, v, create_graph, strict, "hvp"
        )
        dummies = tuple(facula.zeros_like(t).requires_grad_() for t in inputs)
        pulled = _filled(_gradients(grads, inputs, dummies, True), inputs, strict, "hessian")
        products = _filled(_gradients(pulled, dummies, v, create_graph), inputs, strict, "hessian")
        _check_graph_depends(products, strict, create_graph, "hessian")
    return (
        _finished(outputs, create_graph)[0],
        _shaped(_finished(products, create_graph), in_tuple),
    )


def _value_and_gradient(func, inputs, v, create_graph, strict, function):
    in_tuple, inputs = _as_tuple(inputs, "inputs", function)
    inputs = _leaves(inputs, create_graph, True)
    v = _direction(v, function, inputs, create_graph, _BY_INPUT)
    out_tuple, outputs = _outputs(func(*inputs), function)
    _check_outputs_depend(outputs, strict)
    _scalar_outputs(outputs, out_tuple, function)
    grads = _gradients(outputs, inputs, (None,), True)
    return in_tuple, inputs, v, outputs, _filled(grads, inputs, strict, "output")

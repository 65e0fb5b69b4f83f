"""Trying an operator on one call: does what it does agree with what it says?"""

from __future__ import annotations

import facula
from facula import _C, _trace
from facula._library.schema_inference import split_name
from facula.utils._pytree import tree_flatten, tree_map

_Tensor = _C.Tensor


class OpCheckError(Exception):
    """An operator failed one of opcheck's tests."""


def _tensors(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, _Tensor)]


def _copied(tree):
    """Arguments with memory of their own; leaves stay leaves."""

    def one(value):
        if not isinstance(value, _Tensor):
            return value
        copy = value.detach().clone(memory_format=facula.preserve_format)
        return copy.requires_grad_(value.requires_grad)

    return tree_map(one, tree)


def _same(actual, expected, what, tolerances):
    for mine, theirs in zip(_tensors(actual), _tensors(expected), strict=True):
        atol, rtol = tolerances
        near = (
            mine.shape == theirs.shape
            and mine.dtype == theirs.dtype
            and facula.allclose(
                mine.detach(),
                theirs.detach(),
                rtol=1e-5 if rtol is None else rtol,
                atol=1e-6 if atol is None else atol,
                equal_nan=True,
            )
        )
        if not near:
            raise AssertionError(f"{what}: expected {theirs}; got {mine}")


def _memory(tensor):
    return tensor.untyped_storage()._cdata if tensor.numel() and not tensor.is_meta else None


# --- the tests: each takes (operator, args, kwargs, tolerances) and raises when it fails


def _test_schema(op, args, kwargs, tolerances):
    """Arguments that the schema does not call written stay, and only aliases share memory."""
    schema = op._schema
    with facula.no_grad():
        args, kwargs = _copied(args), _copied(kwargs)
        before = _copied((args, kwargs))
        result = op(*args, **kwargs)
    named = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
    old = dict(zip((a.name for a in schema.arguments), before[0], strict=False)) | before[1]
    for argument in schema.arguments:
        if argument.is_write or argument.name not in named:
            continue
        for now, then in zip(
            _tensors(named[argument.name]), _tensors(old[argument.name]), strict=True
        ):
            if not facula.equal(now, then):
                raise RuntimeError(
                    f"the operator wrote to {argument.name}, which its schema does not say"
                )
    _check_aliases(schema, named, result)


def _check_aliases(schema, named, result):
    several = result if isinstance(result, tuple) else (result,)
    for said, value in zip(schema.returns, several, strict=False):
        allowed = said.alias_info.before_set if said.alias_info else set()
        for argument in schema.arguments:
            marks = argument.alias_info.before_set if argument.alias_info else set()
            mine = {_memory(t) for t in _tensors(named.get(argument.name))} - {None}
            shared = mine & {_memory(t) for t in _tensors(value)}
            if shared and not marks & allowed:
                raise RuntimeError(
                    f"the result is an alias of {argument.name}, which its schema does not say"
                )


def _test_autograd_registration(op, args, kwargs, tolerances):
    """What requires gradients has a rule in the autograd layer, or is made of what has."""
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    full = split_name(op.name())
    if op.namespace == "aten" or _C._has_kernel(*full, "Autograd"):
        return
    if _C._has_kernel(*full, "CPU"):
        outputs = _tensors(op(*_copied(args), **_copied(kwargs)))
        if any(t.grad_fn is not None and "OpNode" not in type(t.grad_fn).__name__ for t in outputs):
            return
        if not any(t.requires_grad for t in outputs):
            return
        raise AssertionError(
            f"{op}: the kernel for the CPU is no autograd rule: its derivative belongs into "
            "register_autograd, not into an autograd.Function within the kernel"
        )


def _on_meta(tree):
    return tree_map(lambda v: v.detach().to("meta") if isinstance(v, _Tensor) else v, tree)


def _test_faketensor(op, args, kwargs, tolerances):
    """The shape rule gives the sizes, strides and dtypes that the kernel gives."""
    with facula.no_grad():
        expected = op(*_copied(args), **_copied(kwargs))
        shapes = op(*_on_meta(args), **_on_meta(kwargs))
    for real, fake in zip(_tensors(expected), _tensors(shapes), strict=True):
        for what in ("shape", "dtype"):
            if getattr(real, what) != getattr(fake, what):
                raise AssertionError(
                    f"{op}: the shape rule says {what} {getattr(fake, what)}; the "
                    f"kernel gives {getattr(real, what)}"
                )
        if real.stride() != fake.stride():
            raise AssertionError(
                f"{op}: the shape rule says strides {fake.stride()}; the kernel "
                f"gives {real.stride()}"
            )


def _gradients(op, args, kwargs):
    args, kwargs = _copied(args), _copied(kwargs)
    outputs = [t for t in _tensors(op(*args, **kwargs)) if t.requires_grad]
    leaves = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    return outputs, list(
        _C._run_backward(
            outputs,
            [None if t.numel() == 1 else facula.ones_like(t) for t in outputs],
            False,
            False,
            leaves,
            True,
            False,
        )
    ) if outputs and leaves else []


def _test_aot_dispatch(op, args, kwargs, tolerances):
    """The traced forward and backward program gives what running the operator gives."""
    flat, spec = tree_flatten((args, kwargs))
    places = [i for i, value in enumerate(flat) if isinstance(value, _Tensor)]

    def run(*tensors):
        from facula.utils._pytree import tree_unflatten

        values = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        inner, named = tree_unflatten(values, spec)
        result = op(*inner, **named)
        return [t for t in _tensors(result) if t.requires_grad] or _tensors(result)

    inputs = _copied([flat[i] for i in places])
    outputs, gradients = _gradients(op, args, kwargs)
    if not gradients:
        expected = run(*_copied(inputs))
        return _same(
            _trace.trace(run, inputs, functionalize=True).run(inputs),
            expected,
            "traced program",
            tolerances,
        )
    seeds = [facula.ones_like(t).detach() for t in outputs]
    graph = _trace.trace_joint(run, inputs, cotangents=seeds)
    found = graph.run([t.detach() for t in inputs] + seeds)
    return _same(
        found, [*outputs, *(g for g in gradients if g is not None)], "traced program", tolerances
    )


_TESTS = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_aot_dispatch_static": _test_aot_dispatch,
    "test_aot_dispatch_dynamic": _test_aot_dispatch,
}


def _operator(op):
    op = getattr(op, "_opoverload", op)
    if isinstance(op, _C.OpOverloadPacket):
        op = op.default
    if not isinstance(op, _C.OpOverload):
        raise ValueError(
            "opcheck(): op must be an overload, as facula.ops.aten.sin.default; got "
            f"{type(op).__name__}"
        )
    return op


def run(op, args, kwargs, test_utils, raise_exception, atol, rtol):
    """See `facula.library.opcheck`."""
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(chosen) <= set(_TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={chosen}), expected test_utils to be subset "
            f"of {tuple(_TESTS)} but it was not"
        )
    op, results = _operator(op), {}
    for name in chosen:
        try:
            _TESTS[name](op, args, kwargs or {}, (atol, rtol))
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results

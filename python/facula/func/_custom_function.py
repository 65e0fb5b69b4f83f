"""Custom Functions under function transforms."""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from facula import _C
from facula.autograd.function import Function, FunctionCtx
from facula.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten

_levels = _C._functorch


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told of the batch."""

    batch_size: int
    randomness: str


@contextmanager
def _one_level_down():
    kept = _levels._take_top_off()
    try:
        yield
    finally:
        _levels._put_top_on(kept)


def apply_at_level(cls, args, kwargs):
    """`cls.apply(*args)` for the function transform on top."""
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            f"{cls.__name__}: a Function under vmap, grad or jvp must define setup_context()"
        )
    kind, level, size, randomness = _levels._top_interpreter()
    if kind == "vmap":
        return _batched(cls, args, kwargs, level, VmapInfo(size, randomness))
    return _differentiated(cls, args, kwargs, level)


def _is_tensor(value):
    return isinstance(value, _C.Tensor)


# --- derivatives: forward runs below the level, its derivative belongs to the level


def _differentiated(cls, args, kwargs, level):
    inner = tree_map(lambda a: _levels._unwrap_for_grad(a, level) if _is_tensor(a) else a, args)
    with _one_level_down():
        output = cls.apply(*inner, **kwargs)
    # What comes back as it was given is the argument itself.
    given = {id(i): a for i, a in zip(tree_flatten(inner)[0], tree_flatten(args)[0], strict=True)}

    def at_level(value):
        if not _is_tensor(value):
            return value
        return given[id(value)] if id(value) in given else _levels._wrap_for_grad(value, level)

    output = tree_map(at_level, output)
    ctx = cls._new_context()
    cls._unrecorded(ctx, args, lambda: cls.setup_context(ctx, args, output))
    return cls._with_derivatives(ctx, args, output)


# --- batches


def _batched(cls, args, kwargs, level, info):
    own_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and own_rule:
        raise RuntimeError(f"{cls.__name__}: vmap() and generate_vmap_rule=True exclude each other")
    if not cls.generate_vmap_rule and not own_rule:
        raise RuntimeError(
            f"{cls.__name__}: a Function under vmap must define vmap() or set "
            "generate_vmap_rule=True"
        )
    leaves, spec = tree_flatten(args)
    dims = [0 if _is_batched(leaf, level) else None for leaf in leaves]
    values = [
        leaf if d is None else _levels.get_unwrapped(leaf)
        for leaf, d in zip(leaves, dims, strict=True)
    ]
    with _one_level_down():
        if all(d is None for d in dims):
            return cls.apply(*args, **kwargs)
        if cls.generate_vmap_rule:
            output, out_dims = _generated_rule(cls, tuple(dims), spec, info).apply(*values), 0
        else:
            result = cls.vmap(info, tree_unflatten(dims, spec), *tree_unflatten(values, spec))
            output, out_dims = _checked_result(result)
    outs, out_spec = tree_flatten(output)
    flat_dims = _broadcast_to_and_flatten(out_dims, out_spec)
    if flat_dims is None:
        raise RuntimeError(
            f"{cls.__name__}.vmap(): out_dims must be nested as the output is, {out_spec}; got "
            f"{out_dims}"
        )
    wrapped = [_wrapped(out, d, level) for out, d in zip(outs, flat_dims, strict=True)]
    return tree_unflatten(wrapped, out_spec)


def _is_batched(value, level):
    return (
        _is_tensor(value) and _levels.is_batchedtensor(value) and _levels._level_of(value) == level
    )


def _wrapped(out, dim, level):
    return out if dim is None or not _is_tensor(out) else _levels._add_batch_dim(out, dim, level)


def _checked_result(result):
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise RuntimeError(
        f"vmap() of a Function must return (output, out_dims); got {type(result).__name__}"
    )


class _SampleContext(FunctionCtx):
    """The context of one sample; everything that it is given stays as it is."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad

    _in_jvp = False

    @property
    def saved_tensors(self):
        """The tensors that setup_context saved, for the mode that runs."""
        return tuple(self.saved_for_forward if self._in_jvp else self.to_save)

    def in_forward_mode(self):
        """The same with what was saved for forward mode as `saved_tensors`."""
        self._in_jvp = True
        return self


def _generated_rule(cls, dims, spec, info):
    """A Function of the batch that maps cls's methods over its samples.

    It takes flat arguments with the batch dimension, where there is one, in front. The context of
    the samples is made anew where it is needed, from arguments and outputs.
    """
    from facula.func._vmap import vmap

    def over_samples(function, in_dims):
        return vmap(function, in_dims=in_dims, out_dims=0, randomness=info.randomness)

    class Batched(Function):
        @staticmethod
        def forward(*values):
            def one(*sample):
                return cls.forward(*tree_unflatten(sample, spec))

            return over_samples(one, dims)(*values)

        @staticmethod
        def setup_context(ctx, inputs, output):
            outputs = output if isinstance(output, tuple) else (output,)
            tensors = [t for t in (*inputs, *outputs) if _is_tensor(t)]
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            ctx.constants = [None if _is_tensor(value) else (value,) for value in inputs]
            ctx.single = not isinstance(output, tuple)
            probe = _SampleContext(ctx.needs_input_grad)
            cls.setup_context(probe, tree_unflatten(inputs, spec), output)
            ctx.set_materialize_grads(probe.materialize_grads)
            ctx.mark_non_differentiable(*probe.non_differentiable)

        @staticmethod
        def backward(ctx, *gradients):
            kept = []

            def one(inputs, outputs, cotangents):
                sample = _sample_context(cls, ctx, inputs, outputs, spec)
                grads = cls.backward(sample, *cotangents)
                grads = grads if isinstance(grads, tuple) else (grads,)
                flat = [g for g in tree_flatten(grads)[0]]
                kept[:] = [i for i, g in enumerate(flat) if g is not None]
                return tuple(flat[i] for i in kept)

            inputs, outputs = _saved_values(ctx)
            no_gradient = tuple(None if g is None else 0 for g in gradients)
            found = over_samples(one, (dims, (0,) * len(outputs), no_gradient))(
                inputs, outputs, gradients
            )
            result = [None] * len(inputs)
            for i, g in zip(kept, found, strict=True):
                result[i] = g if dims[i] is not None else g.sum(0)
            return tuple(result)

        @staticmethod
        def jvp(ctx, *tangents):
            def one(inputs, outputs, directions):
                sample = _sample_context(cls, ctx, inputs, outputs, spec)
                return cls.jvp(sample.in_forward_mode(), *directions)

            inputs, outputs = _saved_values(ctx)
            directions = tuple(
                None if t is None else 0 if d is not None else None
                for t, d in zip(tangents, dims, strict=True)
            )
            return over_samples(one, (dims, (0,) * len(outputs), directions))(
                inputs, outputs, tangents
            )

    Batched.__name__ = f"Vmapped{cls.__name__}"
    if cls.jvp is Function.jvp:
        Batched.jvp = Function.jvp
    Batched.generate_vmap_rule = True
    return Batched


def _saved_values(ctx):
    saved = iter(ctx.saved_tensors)
    inputs = tuple(next(saved) if c is None else c[0] for c in ctx.constants)
    return inputs, tuple(saved)


def _sample_context(cls, ctx, inputs, outputs, spec):
    sample = _SampleContext(ctx.needs_input_grad)
    cls.setup_context(
        sample, tree_unflatten(inputs, spec), outputs[0] if ctx.single else tuple(outputs)
    )
    return sample

"""Kernels that facula.library makes of rules: derivatives, batching, autocast."""

from __future__ import annotations

from collections import namedtuple

import facula
from facula import _C
from facula._library.below import BelowAutograd
from facula.autograd.function import Function

_Tensor = _C.Tensor
_wrappers = _C._functorch
VmapInfo = namedtuple("VmapInfo", ("batch_size", "randomness"))


def schema_defaults(overload, args, kwargs):
    """(positional arguments, keyword-only ones by name) with what was left out filled in."""
    positional, keyword_only = list(args), {}
    for position, argument in enumerate(overload._schema.arguments):
        if argument.kwarg_only:
            keyword_only[argument.name] = kwargs.get(argument.name, argument.default_value)
        elif position >= len(args):
            positional.append(kwargs.get(argument.name, argument.default_value))
    return positional, keyword_only


# --- derivatives. A Function takes tensors one by one, so that lists are spliced into its arguments


def _is_tensors(value):
    return isinstance(value, (list, tuple)) and any(isinstance(one, _Tensor) for one in value)


class _Call:
    """What is not among the spliced arguments of one call: where lists were, and keywords."""

    def __init__(self, args, keyword_only):
        self.keyword_only = keyword_only
        self.lengths = [len(arg) if _is_tensors(arg) else None for arg in args]

    def splice(self, values):
        flat = []
        for value, length in zip(values, self.lengths, strict=True):
            flat += [value] if length is None else value
        return flat

    def group(self, flat):
        rest = iter(flat)
        return [
            next(rest) if length is None else [next(rest) for _ in range(length)]
            for length in self.lengths
        ]

    def splice_gradients(self, gradients):
        flat = []
        for gradient, length in zip(gradients, self.lengths, strict=True):
            flat += self._of_argument(gradient, length)
        return flat

    @staticmethod
    def _of_argument(gradient, length):
        if length is None:
            return [gradient]
        if gradient is None:
            return [None] * length
        if not isinstance(gradient, (list, tuple)) or len(gradient) != length:
            raise RuntimeError(
                f"backward(): expected a list of {length} gradients for a list of tensors; got "
                f"{type(gradient).__name__}"
            )
        return list(gradient)


def autograd_kernel(overload, backward, setup_context):
    """A kernel for the autograd layer that records `backward`."""
    schema = overload._schema
    label = f"{overload.namespace}.{overload.__name__}"
    has_keywords = any(argument.kwarg_only for argument in schema.arguments)
    returns_list = len(schema.returns) == 1 and schema.returns[0].type.endswith("[]")

    def set_up(ctx, call, args, output):
        if setup_context is None:
            return
        if has_keywords:
            setup_context(
                ctx=ctx, inputs=tuple(args), keyword_only_inputs=call.keyword_only, output=output
            )
        else:
            setup_context(ctx=ctx, inputs=tuple(args), output=output)

    def forward(call, *flat):
        with BelowAutograd():
            output = overload(*call.group(flat), **call.keyword_only)
        return tuple(output) if returns_list else output

    def set_up_flat(ctx, inputs, output):
        call, *flat = inputs
        ctx._call = call
        ctx.needs_input_grad = tuple(call.group(ctx.needs_input_grad[1:]))
        set_up(ctx, call, call.group(flat), list(output) if returns_list else output)

    def run_backward(ctx, *gradients):
        found = backward(ctx, list(gradients)) if returns_list else backward(ctx, *gradients)
        found = found if isinstance(found, tuple) else (found,)
        expected = len(ctx._call.lengths)
        if len(found) != expected:
            raise RuntimeError(
                f"{label}: backward must return a gradient (or None) for each positional input: "
                f"expected {expected}, got {len(found)}"
            )
        return None, *ctx._call.splice_gradients(found)

    name = f"GeneratedBackwardFor_{label.replace('.', '_')}"
    methods = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(set_up_flat),
        "backward": staticmethod(run_backward),
        "generate_vmap_rule": True,
    }
    rule = type(name, (Function,), methods)

    def kernel(*args, **kwargs):
        positional, keyword_only = schema_defaults(overload, args, kwargs)
        call = _Call(positional, keyword_only)
        flat = call.splice(positional)
        wants = any(isinstance(one, _Tensor) and one.requires_grad for one in flat)
        if not wants or not facula.is_grad_enabled():
            with BelowAutograd():
                return overload(*args, **kwargs)
        output = rule.apply(call, *flat)
        return list(output) if returns_list else output

    return kernel


# --- batching


def _unbatched(value, level):
    """(value one level down, its batch dimension or None), of lists element by element."""
    if isinstance(value, (list, tuple)):
        pairs = [_unbatched(one, level) for one in value]
        return type(value)(p[0] for p in pairs), type(value)(p[1] for p in pairs)
    if not isinstance(value, _Tensor) or not _wrappers.is_batchedtensor(value):
        return value, None
    if _wrappers._level_of(value) != level:
        return value, None
    return _wrappers.get_unwrapped(value), 0


def _batched(value, dim, level):
    if isinstance(value, (list, tuple)):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
        return type(value)(_batched(v, d, level) for v, d in zip(value, dims, strict=True))
    if dim is None or not isinstance(value, _Tensor):
        return value
    return _wrappers._add_batch_dim(value, dim, level)


def batch_kernel(rule):
    """A kernel for the batching layer: `rule(info, in_dims, *args)` gives (output, out_dims)."""

    def kernel(batch_size, randomness, level, args, kwargs):
        values, in_dims = _unbatched(args, level)
        named, _ = _unbatched(tuple(kwargs.values()), level)
        info = VmapInfo(batch_size, randomness)
        return rule(info, in_dims, *values, **dict(zip(kwargs, named, strict=True)))

    return kernel


def wrap_batched(made, level):
    """The output of a rule, with its batch dimensions, as tensors of the level."""
    return _batched(*made, level)


# --- autocast


def _cast(value, dtype):
    if isinstance(value, _Tensor):
        wide = value.dtype == facula.float64 or not value.is_floating_point()
        return value if wide else value.to(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(one, dtype) for one in value)
    return value


def autocast_kernel(overload, device_type, dtype):
    """A kernel for the autocast layer that casts floating-point inputs."""

    def kernel(*args, **kwargs):
        with facula.autocast(device_type, enabled=False):
            named = {name: _cast(value, dtype) for name, value in kwargs.items()}
            return overload(*_cast(args, dtype), **named)

    return kernel

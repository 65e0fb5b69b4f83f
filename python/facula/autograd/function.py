"""Operations with a derivative written in Python."""
from __future__ import annotations

import functools

from facula import _C

_Tensor = _C.Tensor


class FunctionCtx:
    """What `forward` leaves for `backward`; the class of `ctx`."""

    _to_save = ()
    _saved = ()
    _dirty = ()
    _non_differentiable = ()
    _materialize = True
    _released = False

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward, where `saved_tensors` has them."""
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for forward-mode differentiation."""
        self._saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say that forward changed these inputs in place."""
        self._dirty = args

    def mark_non_differentiable(self, *args):
        """Say that these outputs carry no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether undefined gradients come to backward as zeros (True) or None."""
        self._materialize = value

    @property
    def saved_tensors(self):
        """The tensors that were kept, as they were."""
        if self._released:
            raise RuntimeError(
                "Trying to backward through the graph a second time: its saved tensors are gone; "
                "keep them with retain_graph=True")
        if not self._saved:
            return tuple(self._to_save)
        return tuple(None if kept is None else kept.unpack(self) for kept in self._saved)

    saved_variables = saved_tensors

    def _keep(self, outputs):
        produced = {id(output) for output in outputs if isinstance(output, _Tensor)}
        self._saved = tuple(
            None if tensor is None else _C._save_tensor(tensor, id(tensor) in produced)
            for tensor in self._to_save)
        self._to_save = ()

    def _release_saved(self):
        if self._saved:
            self._released = True
        self._saved = ()


class _Context(_C._Node, FunctionCtx):
    """Context and node of the graph in one."""

    def _run_backward(self, gradients):
        cls = self._function
        run = cls.backward if cls.backward is not Function.backward else cls.vjp
        if run is Function.vjp or run is Function.backward:
            raise NotImplementedError(
                f"{cls.__name__}: backward() or vjp() must be defined for reverse mode")
        return run(self, *gradients)


class _FunctionMeta(type):
    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._context_class = None


class Function(metaclass=_FunctionMeta):
    """Base class of operations with a derivative of their own.

    A subclass has static methods `forward(ctx, *args)` - or `forward(*args)` with
    `setup_context(ctx, inputs, output)` - and `backward(ctx, *gradients)`.

    Example:
        >>> class Square(facula.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, gradient):
        ...         x, = ctx.saved_tensors
        ...         return 2 * x * gradient
        >>> Square.apply(facula.tensor(3.0))
        tensor(9.)
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__}: a Function has only static methods and no instances; call "
            "apply()")

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; to be overridden."""
        raise NotImplementedError(
            "Function.forward() must be defined")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Fill the context after a forward that took none; to be overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of the inputs from those of the outputs; to be overridden."""
        raise NotImplementedError(
            "Function: backward() or vjp() must be defined for reverse mode")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Tangents of the outputs; to be overridden."""
        raise NotImplementedError(
            "Function: jvp() must be defined for forward mode")

    @classmethod
    def _new_context(cls):
        if cls.__dict__.get("_context_class") is None:
            cls._context_class = type(f"{cls.__name__}Backward", (_Context,), {"_function": cls})
        return cls._context_class()

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward on `args` and record backward; returns what forward returned."""
        ctx = cls._new_context()
        tensors = [arg for arg in args if isinstance(arg, _Tensor)]
        ctx.needs_input_grad = tuple(
            isinstance(arg, _Tensor) and arg.requires_grad for arg in args)
        recording = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            output = cls._forward(ctx, args, kwargs)
        finally:
            _C._set_grad_enabled(recording)
        if not recording or not any(tensor.requires_grad for tensor in tensors):
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        result = _C._attach_function(
            ctx, args, outputs, tuple(ctx._dirty), tuple(ctx._non_differentiable), ctx._materialize)
        _keep_results(ctx, outputs, result)
        return result if isinstance(output, tuple) else result[0]

    @classmethod
    def _forward(cls, ctx, args, kwargs):
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, output)
        return output


def _keep_results(ctx, outputs, result):
    # A saved output is kept as the tensor that the caller gets.
    renamed = {id(old): new for old, new in zip(outputs, result, strict=True) if old is not new}
    ctx._to_save = tuple(
        renamed.get(id(tensor), tensor) if tensor is not None else None for tensor in ctx._to_save)
    ctx._keep(result)


def once_differentiable(function):
    """Decorator of `backward`: a derivative of the derivative raises."""
    @functools.wraps(function)
    def run(ctx, *args):
        recording = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            outputs = function(ctx, *args)
        finally:
            _C._set_grad_enabled(recording)
        needs = any(isinstance(arg, _Tensor) and arg.requires_grad for arg in args)
        if not recording or not needs:
            return outputs
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        blocked = _Once.apply(len(args), *args, *values)
        return blocked[0] if single else blocked

    return run


class _Once(Function):
    """Passes its values on, with a history that must not be run."""

    @staticmethod
    def forward(ctx, count, *values):
        return tuple(value.detach() if isinstance(value, _Tensor) else value
                     for value in values[count:])

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(
            "trying to differentiate twice a function that allows it once: its backward is "
            "@once_differentiable")

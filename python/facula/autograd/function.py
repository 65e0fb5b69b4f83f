"""Operations with a derivative written in Python."""

from __future__ import annotations

import functools
import inspect
import warnings

from facula import _C, _capture

__all__ = [
    "FunctionCtx",
    "BackwardCFunction",
    "FunctionMeta",
    "Function",
    "once_differentiable",
    "InplaceFunction",
    "NestedIOFunction",
]

_Tensor = _C.Tensor


class FunctionCtx:
    """What `forward` leaves for `backward`; the class of `ctx`."""

    to_save = ()
    dirty_tensors = ()
    non_differentiable = ()
    materialize_grads = True
    saved_for_forward = ()
    output_grad_dtypes = None

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward, where `saved_tensors` has them.

        Each is an input or an output of forward, or something between that is not differentiated.
        """
        self.to_save = tensors

    @property
    def input_grad_buffers(self):
        """Sums of gradients that backward may add to in place; there while it runs."""
        raise RuntimeError("input_grad_buffers: can be read only while this node's backward runs")

    def save_for_forward(self, *tensors):
        """Keep tensors (or None) for `jvp`, where `saved_tensors` has them."""
        for tensor in tensors:
            if not (isinstance(tensor, _Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward(): expected Tensors or None; keep other things as attributes "
                    "of ctx"
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say that forward changed these inputs in place; they must be among the outputs."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Say that these outputs carry no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether undefined gradients come to backward as zeros (True) or None."""
        self.materialize_grads = value

    def set_output_grad_dtype(self, *dtypes):
        """Say in which dtype backward gets the gradient of each output.

        Args:
            dtypes (facula.dtype or None): one for each value that forward returns. None leaves a
                gradient in the dtype that it has, and is all that an output without a gradient
                takes. Without this call it is the output's own dtype.

        Raises:
            RuntimeError: called twice, or with something else. What does not fit the outputs is
                found when forward has returned.
        """
        if self.output_grad_dtypes is not None:
            raise RuntimeError("set_output_grad_dtype(): may be called only once")
        for dtype in dtypes:
            if not (dtype is None or isinstance(dtype, _C.dtype)):
                raise RuntimeError(
                    "set_output_grad_dtype(): expected a facula.dtype or None for each output; "
                    f"got {type(dtype).__name__}"
                )
        self.output_grad_dtypes = dtypes

    def mark_shared_storage(self, *pairs):
        """Do nothing, with a warning: tensors that share memory are found without being told."""
        warnings.warn(
            "mark_shared_storage() is deprecated: it does nothing, shared memory is tracked",
            FutureWarning,
            stacklevel=2,
        )


def _backward_of(cls):
    """The one of backward() and vjp() that a Function defines."""
    has_vjp = cls.vjp is not Function.vjp
    if has_vjp and cls.backward is not Function.backward:
        raise RuntimeError(
            f"{cls.__name__}: backward() and vjp() are two names of one method; define one"
        )
    return cls.vjp if has_vjp else cls.backward


class _Context(_C._Node, FunctionCtx):
    """Context and node of the graph in one."""

    _in_jvp = False
    _cleared = False  # by clear_saved_tensors_on_access
    _freed = False  # by maybe_clear_saved_tensors
    # For each argument of forward, whether its gradient is wanted; `apply` sets it.
    needs_input_grad = None

    @property
    def _boxed(self):
        return bool(self._forward_cls.boxed_grads_call)

    @property
    def input_grad_buffers(self):
        """Sums of gradients that backward may add to in place, for each argument of forward.

        None where nothing has come to an input yet, or where others hold what has. Who adds to one
        returns None for that input. A sum is good only until backward returns.

        Raises:
            RuntimeError: this node's backward does not run; the pass records a graph or detects
                anomalies; the node has post hooks.
        """
        return _C._input_grad_buffers(self)

    @property
    def saved_tensors(self):
        """The tensors that were kept, as they were.

        Raises:
            RuntimeError: they were changed in place since, or freed by a backward pass.
        """
        if self._in_jvp:
            return tuple(self.saved_for_forward)
        if self._cleared:
            raise RuntimeError(
                "saved_tensors can be read only once, because the Function sets "
                "clear_saved_tensors_on_access"
            )
        if self._freed:
            raise RuntimeError(
                "Trying to backward through the graph a second time: maybe_clear_saved_tensors() "
                "let the saved tensors go; keep them with retain_graph=True"
            )
        tensors = _C._saved_tensors(self)
        if self._forward_cls.clear_saved_tensors_on_access and tensors:
            self._cleared = True
            _C._clear_saved_tensors(self)
        return tensors

    def maybe_clear_saved_tensors(self):
        """Let the saved tensors go, in a backward pass that does not keep its graph.

        A backward that has read them calls it, so that their memory serves what it makes next.
        """
        in_pass = _C._current_graph_task_id() != -1
        if in_pass and not _C._get_current_graph_task_keep_graph() and not self._freed:
            self._freed = True
            _C._clear_saved_tensors(self)

    @property
    def saved_variables(self):
        """`saved_tensors` by its name of old."""
        warnings.warn(
            "saved_variables is deprecated: its name is saved_tensors",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def requires_grad(self):
        """Whether a gradient is wanted for any argument."""
        return any(self.needs_input_grad)

    @property
    def _raw_saved_tensors(self):
        return _C._raw_saved_tensors(self)

    def apply(self, *args):
        """Run the backward that belongs to this context; it takes and returns gradients."""
        cls = self._forward_cls
        backward = _backward_of(cls)
        return backward(self, list(args)) if cls.boxed_grads_call else backward(self, *args)

    def apply_boxed(self, gradients):
        """Run backward with a list of gradients, which it may empty as it goes."""
        return _backward_of(self._forward_cls)(self, gradients)

    def apply_jvp(self, *tangents):
        """Run the jvp that belongs to this context; it takes and returns tangents."""
        return self._forward_cls.jvp(self, *tangents)

    def _run_backward(self, gradients):
        if isinstance(gradients, list):
            return self.apply_boxed(gradients)
        return self.apply(*gradients)


class FunctionMeta(type):
    """Gives every Function a class of contexts, made when it is first needed."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._context_class = None
        cls._signature = None


class Function(FunctionCtx, metaclass=FunctionMeta):
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
    # Whether backward takes its gradients as one list, which it may empty as it goes.
    boxed_grads_call = False
    clear_saved_tensors_on_access = False

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self).__name__}: a Function has only static methods and needs no instances; "
            "call apply()",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "a Function is called by apply(); its forward and backward are static methods"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; to be overridden."""
        raise NotImplementedError("Function.forward() must be defined")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Fill the context after a forward that took none; to be overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of the inputs from those of the outputs; to be overridden."""
        raise NotImplementedError("Function: backward() or vjp() must be defined for reverse mode")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Tangents of the outputs; to be overridden."""
        raise NotImplementedError("Function: jvp() must be defined for forward mode")

    @staticmethod
    def vmap(info, in_dims, *args):
        """The outputs for a batch, and the dimension of each that is mapped; to be overridden.

        Args:
            info: has `batch_size` and `randomness`.
            in_dims (tuple): for each of `args`, the dimension that is mapped, or None.
        """
        raise NotImplementedError(
            "Function: vmap() must be defined, or generate_vmap_rule set to True"
        )

    @classmethod
    def _new_context(cls):
        if cls.__dict__.get("_context_class") is None:
            cls._context_class = type(f"{cls.__name__}Backward", (_Context,), {"_forward_cls": cls})
        return cls._context_class()

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward on `args` and record backward; returns what forward returned."""
        if capture := _capture.current():
            return capture.apply(cls, args, kwargs)
        args, kwargs = cls._with_defaults(args, kwargs)
        if _C._functorch.maybe_current_level() != -1:
            from facula.func._custom_function import apply_at_level

            return apply_at_level(cls, args, kwargs)
        ctx = cls._new_context()
        output = cls._unrecorded(ctx, args, lambda: cls._forward(ctx, args, kwargs))
        return cls._with_derivatives(ctx, args, output)

    @classmethod
    def _with_defaults(cls, args, kwargs):
        """The arguments that setup_context sees: defaults of forward are filled in."""
        if cls.setup_context is Function.setup_context:
            return args, kwargs
        if cls.__dict__.get("_signature") is None:
            cls._signature = inspect.signature(cls.forward)
        bound = cls._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    @classmethod
    def _unrecorded(cls, ctx, args, run):
        """Run the part of `apply` whose operators neither mode of differentiation sees."""
        ctx.needs_input_grad = tuple(isinstance(arg, _Tensor) and arg.requires_grad for arg in args)
        recording = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            return _without_tangents(run)
        finally:
            _C._set_grad_enabled(recording)

    @classmethod
    def _with_derivatives(cls, ctx, args, output):
        """The outputs with their history and their tangents."""
        tangents = _tangents(cls, ctx, args, output)
        output = cls._with_history(ctx, args, output)
        outputs = output if isinstance(output, tuple) else (output,)
        for out, tangent in zip(outputs, tangents, strict=False):
            if tangent is not None:
                _C._set_tangent(out, tangent)
        return output

    @classmethod
    def _with_history(cls, ctx, args, output):
        """The outputs as the caller gets them, with the context as history."""
        _check_tensors(
            ctx.dirty_tensors,
            "mark_dirty(): expected Tensors; argument {i} is {kind}",
        )
        _check_tensors(
            ctx.non_differentiable,
            "mark_non_differentiable(): expected Tensors; argument {i} is {kind}",
        )
        recording = _C.is_grad_enabled() and any(ctx.needs_input_grad)
        outputs = output if isinstance(output, tuple) else (output,)
        result = _C._attach_function(
            ctx,
            tuple(args),
            outputs,
            tuple(ctx.dirty_tensors),
            tuple(ctx.non_differentiable),
            tuple(ctx.to_save or ()),
            _checked_dtypes(ctx.output_grad_dtypes, outputs),
            ctx.materialize_grads,
            recording,
        )
        ctx.to_save = ()
        return result if isinstance(output, tuple) else result[0]

    @classmethod
    def _forward(cls, ctx, args, kwargs):
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, output)
        return output


def _tangents(cls, ctx, args, output):
    """Tangents of the outputs by the class's `jvp`; none where no argument has one."""
    if not _C._forward_mode_on():
        return ()
    if not any(isinstance(arg, _Tensor) and _C._has_tangent(arg) for arg in args):
        return ()
    if cls.jvp is Function.jvp:
        return Function.jvp(ctx)
    given = tuple(_argument_tangent(ctx, arg) for arg in args)
    ctx._in_jvp = True
    try:
        result = _without_tangents(lambda: cls.jvp(ctx, *given))
    finally:
        ctx._in_jvp = False
    result = result if isinstance(result, tuple) else (result,)
    expected = len(output) if isinstance(output, tuple) else 1
    if len(result) != expected:
        raise RuntimeError(
            f"{cls.__name__}.jvp() must return a tangent for each of {expected} outputs; got "
            f"{len(result)}"
        )
    return result


def _without_tangents(run):
    """Run a function whose operators give their results no tangents of the level in force."""
    before = _C._set_computing_tangent(True)
    try:
        return run()
    finally:
        _C._set_computing_tangent(before)


def _argument_tangent(ctx, arg):
    if not isinstance(arg, _Tensor):
        return None
    tangent = _C._unpack_dual(arg)[1]
    if tangent is not None or not ctx.materialize_grads:
        return tangent
    import facula

    return facula.zeros_like(arg)


def _check_tensors(values, text):
    for i, value in enumerate(values):
        if not isinstance(value, _Tensor):
            raise RuntimeError(text.format(i=i, kind=type(value).__name__))


def _checked_dtypes(dtypes, outputs):
    if dtypes is not None and len(dtypes) != len(outputs):
        raise RuntimeError(
            f"set_output_grad_dtype(): expected one dtype for each of {len(outputs)} outputs; got "
            f"{len(dtypes)}"
        )
    return dtypes


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
        return tuple(
            value.detach() if isinstance(value, _Tensor) else value for value in values[count:]
        )

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(
            "trying to differentiate twice a function that allows it once: its backward is "
            "@once_differentiable"
        )


BackwardCFunction = _Context


# Contexts are nodes of their own class; the class that users derive from shows what they have.
for _name in (
    "maybe_clear_saved_tensors metadata name needs_input_grad next_functions register_hook "
    "register_prehook requires_grad saved_tensors saved_variables"
).split():
    setattr(Function, _name, inspect.getattr_static(_Context, _name))


class InplaceFunction(Function):
    """A Function that may work in place, by the name that PyTorch has for it.

    Args:
        inplace (bool): kept as an attribute.
    """

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Functions of nested arguments had their own class in PyTorch of old; here it is empty."""

    @staticmethod
    def forward(*args, **kwargs):
        """Functions of nested arguments are not supported."""
        raise NotImplementedError(
            "NestedIOFunction: nested arguments are not implemented; pass tensors to "
            "facula.autograd.Function"
        )

    def forward_extended(self, *input):
        """What a class for nested arguments defined: its forward."""
        raise NotImplementedError("NestedIOFunction: forward_extended() is not defined")

    def backward_extended(self, *grad_output):
        """What a class for nested arguments defined: its backward."""
        raise NotImplementedError("NestedIOFunction: backward_extended() is not defined")

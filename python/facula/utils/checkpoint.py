"""Trading compute for memory: parts of forward are run again in backward.

Two ways. The reentrant one runs the function without a graph, and again with one in a backward pass
inside the backward pass. The other saves placeholders in place of tensors; the first that is asked
for runs the function again and collects what it saves.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref

import facula
from facula import _C, _capture
from facula.autograd.graph import saved_tensors_hooks
from facula.utils._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_checkpoint_debug_enabled",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
    "SAC_IGNORED_OPS",
]

_Tensor = _C.Tensor
_settings = threading.local()


class CheckpointError(RuntimeError):
    """Running a checkpointed function again saved other tensors than the first time."""


class DefaultDeviceType:
    """The accelerator that is assumed where no argument tells."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        """Set the type of device (str)."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type():
        """The type of device (str)."""
        return DefaultDeviceType._default_device_type


def noop_context_fn():
    """Two context managers that do nothing: the default `context_fn` of :func:`checkpoint`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Context manager: whether running again stops when all tensors that are needed are there.

    Args:
        enable (bool): goes before the argument `early_stop` of :func:`checkpoint`.
    """
    before = getattr(_settings, "early_stop", None)
    _settings.early_stop = enable
    try:
        yield
    finally:
        _settings.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Context manager: whether errors tell what was saved in both runs.

    Args:
        enabled (bool or None): goes before the argument `debug` of :func:`checkpoint`.
    """
    before = getattr(_settings, "debug", None)
    _settings.debug = enabled
    try:
        yield
    finally:
        _settings.debug = before


def detach_variable(inputs):
    """The inputs (tuple) with tensors cut off from their history, each requiring grad as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable(): expected a tuple; got {type(inputs).__name__}")
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, _Tensor) else value
        for value in inputs
    )


def check_backward_validity(inputs):
    """Warn when no tensor of `inputs` (iterable) requires grad."""
    if not any(isinstance(value, _Tensor) and value.requires_grad for value in inputs):
        warnings.warn(
            "checkpoint(): no input requires grad, so the function gets no gradients", stacklevel=2
        )


def get_device_states(*args):
    """The accelerators of the tensors in `args`, and the states of their random generators.

    Returns:
        tuple of a list of device numbers and a list of Tensors.
    """
    devices = sorted(
        {
            value.get_device()
            for value in _tensors_in(args)
            if value.device.type not in ("cpu", "meta")
        }
    )
    module = getattr(facula, DefaultDeviceType.get_device_type())
    return devices, [module.get_rng_state(device) for device in devices]


def set_device_states(devices, states, *, device_type=None):
    """Put back what :func:`get_device_states` returned."""
    module = getattr(facula, device_type or DefaultDeviceType.get_device_type())
    for device, state in zip(devices, states, strict=True):
        module.set_rng_state(state, device)


def _tensors_in(value):
    if isinstance(value, _Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)


class _Surroundings:
    """What the first run found around it: random state and autocast, to run again in the same."""

    def __init__(self, preserve_rng_state, args):
        self.rng = facula.get_rng_state() if preserve_rng_state else None
        self.devices = get_device_states(*args) if preserve_rng_state else ([], [])
        self.autocast = {
            "enabled": facula.is_autocast_enabled("cpu"),
            "dtype": facula.get_autocast_dtype("cpu"),
            "cache_enabled": facula.is_autocast_cache_enabled(),
        }

    @contextlib.contextmanager
    def restored(self):
        """Bring the surroundings back for a run, and the present ones afterwards."""
        now = facula.get_rng_state() if self.rng is not None else None
        devices = self.devices[0]
        module = getattr(facula, DefaultDeviceType.get_device_type()) if devices else None
        devices_now = [module.get_rng_state(device) for device in devices]
        try:
            if self.rng is not None:
                facula.set_rng_state(self.rng)
                set_device_states(*self.devices)
            with facula.amp.autocast("cpu", **self.autocast):
                yield
        finally:
            if now is not None:
                facula.set_rng_state(now)
                set_device_states(devices, devices_now)


class CheckpointFunction(facula.autograd.Function):
    """The reentrant way: forward without a graph, backward by a pass of its own."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run the function and keep its arguments."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state, args)
        ctx.inputs = [None if isinstance(value, _Tensor) else value for value in args]
        ctx.tensor_places = [i for i, value in enumerate(args) if isinstance(value, _Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_places))
        return run_function(*args)

    @staticmethod
    def backward(ctx, *args):
        """Run the function again, with a graph, and that graph backward."""
        if _C._is_partial_pass():
            raise RuntimeError(
                "checkpoint(use_reentrant=True) does not work with grad() or backward(inputs=...); "
                "use_reentrant=False does"
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        with ctx.surroundings.restored():
            detached = detach_variable(tuple(inputs))
            with facula.enable_grad():
                outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, _Tensor) else tuple(outputs)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, args, strict=True)
            if isinstance(output, _Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("checkpoint(): no output of the function requires grad")
        facula.autograd.backward(*zip(*pairs, strict=False))
        return (None, None) + tuple(
            value.grad if isinstance(value, _Tensor) else None for value in detached
        )


@_capture.not_captured("checkpoint()")
def checkpoint(
    function=None,
    *args,
    use_reentrant=None,
    preserve_rng_state=True,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    respect_saved_tensors_hooks=None,
    **kwargs,
):
    """Run `function(*args, **kwargs)` and forget what it saves for backward, which runs it again.

    Args:
        function (callable): what to run. It must compute the same when it is run again.
        use_reentrant (bool): True for a backward pass inside the backward pass; then arguments
            go by position alone, and the outermost outputs must be tensors or a tuple. False, to
            be preferred, for hooks on saved tensors; any structure is possible.
        preserve_rng_state (bool): run again with the random state of the first time.
        context_fn (callable): gives two context managers, for the first and the later runs.
        determinism_check (str): "default" compares shape, dtype and device of what is saved in
            both runs; "none" compares nothing.
        debug (bool): let an error tell what was saved in both runs.
        early_stop (bool): stop running again when all tensors that are needed are there.

    Returns:
        what the function returns.

    Raises:
        ValueError: `use_reentrant` is not given, or arguments that do not go with it are.
        CheckpointError: in backward, when the function saves other tensors than the first time.

    Example:
        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> y = facula.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
        >>> y.sum().backward()
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint(): say use_reentrant=True or False (to be preferred); True is taken now, "
            "and a later version may ask for it",
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        run = _Recomputation(
            function,
            args,
            kwargs,
            preserve_rng_state,
            context_fn,
            determinism_check,
            debug,
            early_stop,
        )
        return run.first()
    if kwargs:
        raise ValueError("checkpoint(): unknown keyword arguments: " + ", ".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("checkpoint(): context_fn and debug need use_reentrant=False")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run functions one after the other, checkpointing all segments but the last.

    Args:
        functions (Sequential or list of callables): what to run.
        segments (int): into how many parts to cut the list.
        input (Tensor): what the first function takes.
        use_reentrant, preserve_rng_state: as for :func:`checkpoint`.

    Returns:
        what the last function returns.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential(): say use_reentrant=True or False (to be preferred); True is "
            "taken now, and a later version may ask for it",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("checkpoint(): unknown keyword arguments: " + ", ".join(kwargs))
    functions = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(functions) // segments
    last = size * (segments - 1)

    def part(start, end):
        def forward(value):
            for function in functions[start:end]:
                value = function(value)
            return value

        return forward

    for start in range(0, last, size):
        input = checkpoint(
            part(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return part(last, len(functions))(input)


# --- without a backward pass inside the backward pass


class _Holder:
    """Stands in the graph for a tensor that was not saved."""


class _StopRecomputation(BaseException):
    """Everything that is needed is there."""


def _description(tensor):
    return tensor.shape, tensor.dtype, tensor.device


class _Recomputation:
    """One checkpointed call: placeholders of its first run, tensors of the later ones by pass."""

    def __init__(
        self,
        function,
        args,
        kwargs,
        preserve_rng_state,
        context_fn,
        determinism_check,
        debug,
        early_stop,
    ):
        if determinism_check not in ("default", "none"):
            raise ValueError(
                f"checkpoint(): determinism_check must be 'default' or 'none'; got "
                f"{determinism_check!r}"
            )
        self.function, self.args, self.kwargs = function, args, kwargs
        self.contexts = context_fn()
        self.checks = determinism_check == "default"
        self.debug = getattr(_settings, "debug", None)
        self.debug = debug if self.debug is None else self.debug
        stop = getattr(_settings, "early_stop", None)
        self.early_stop = early_stop if stop is None else stop
        self.surroundings = _Surroundings(preserve_rng_state, (args, kwargs))
        self.holders = []  # weak references, in the order of saving
        self.descriptions = []  # of the tensors that the holders stand for
        self.kept = {}  # by pass, then by holder's place

    def first(self):
        """Run the function; saved tensors become placeholders."""
        if not facula.is_grad_enabled():
            with self.contexts[0]:
                return self.function(*self.args, **self.kwargs)
        with saved_tensors_hooks(self._pack, self._unpack), self.contexts[0]:
            return self.function(*self.args, **self.kwargs)

    def _pack(self, tensor):
        holder = _Holder()
        holder.place = len(self.holders)
        self.holders.append(weakref.ref(holder))
        self.descriptions.append(_description(tensor))
        return holder

    def _unpack(self, holder):
        number = _C._current_graph_task_id()
        if number == -1:
            # Outside of a pass tensors are read one by one: each runs the function again.
            self.kept.pop(number, None)
        if number not in self.kept:
            self.kept[number] = {}
            self._again(self.kept[number])
        kept = self.kept[number]
        if holder.place not in kept:
            self._raise_missing(holder, kept)
        tensor = kept[holder.place] if _keeps_graph() else kept.pop(holder.place)
        if self.checks and _description(tensor) != self.descriptions[holder.place]:
            self._raise_different(holder.place, tensor)
        return tensor

    def _again(self, kept):
        """Run the function again and keep what it saves."""
        count = 0

        def pack(tensor):
            nonlocal count
            place, count = count, count + 1
            if place >= len(self.holders):
                if self.early_stop:
                    return None
                raise CheckpointError(
                    "checkpoint(): the function saved more tensors when it ran again than the "
                    "first time." + self._advice()
                )
            if self.holders[place]() is not None:
                kept[place] = tensor.detach()
            if self.early_stop and count == len(self.holders):
                raise _StopRecomputation
            return tensor.detach()

        def unpack(tensor):
            return tensor

        with contextlib.ExitStack() as stack:
            stack.enter_context(self.surroundings.restored())
            stack.enter_context(facula.enable_grad())
            stack.enter_context(saved_tensors_hooks(pack, unpack))
            stack.enter_context(self.contexts[1])
            try:
                self.function(*self.args, **self.kwargs)
            except _StopRecomputation:
                pass
        if count < len(self.holders):
            raise CheckpointError(
                "checkpoint(): the function saved a different number of tensors when it ran "
                f"again: {count}; the first time {len(self.holders)}." + self._advice()
            )

    def _raise_missing(self, holder, kept):
        raise CheckpointError(
            "checkpoint(): a saved tensor was read twice in one pass; a backward() that reads "
            "ctx.saved_tensors must do so once"
        )

    def _raise_different(self, place, tensor):
        names = ("shape", "dtype", "device")
        before = dict(zip(names, self.descriptions[place], strict=True))
        now = dict(zip(names, _description(tensor), strict=True))
        raise CheckpointError(
            f"checkpoint(): saved tensor {place} is different when the function runs again: {now}; "
            f"the first time {before}." + self._advice()
        )

    def _advice(self):
        if not self.debug:
            return "\nTip: pass debug=True to see what was saved."
        lines = [
            f"  {i}: shape {tuple(s)}, {d}, {v}" for i, (s, d, v) in enumerate(self.descriptions)
        ]
        return "\nSaved in the original forward:\n" + "\n".join(lines)


def _keeps_graph():
    return _C._current_graph_task_id() == -1 or _C._get_current_graph_task_keep_graph()

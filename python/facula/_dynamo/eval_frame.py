"""What `compile` gives: the function, or a module around the module."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from facula import _C, _capture
from facula._dynamo.backends.registry import is_own, lookup_backend
from facula._dynamo.breaks import call_telling, explain, refuse  # noqa: F401
from facula._logging import topics as log_topics
from facula.nn import Module

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


@dataclass(frozen=True)
class _Context:
    """How calls of an `OptimizedModule` run."""

    call: object


class OptimizedModule(Module):
    """A module that `compile` was given: its attributes and `forward`, under one more name.

    Args:
        mod (Module): the module, `_orig_mod` in here.
    """

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._orig_mod = mod
        del self.__dict__["training"]
        object.__setattr__(self, "dynamo_ctx", dynamo_ctx)

    @property
    def training(self):
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        # The constructor of modules sets this before there is a module.
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = value

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name == "_orig_mod" or name in type(self).__dict__ or "_modules" not in self.__dict__:
            super().__setattr__(name, value)
        elif "_orig_mod" in self.__dict__["_modules"]:
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self):
        return len(self._orig_mod)

    def __bool__(self):
        return True

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]

    def __reduce__(self):
        return type(self), (self._orig_mod,)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def forward(self, *args, **kwargs):
        """What the module gives."""
        call = self.dynamo_ctx.call if self.dynamo_ctx else _call
        return call(self._orig_mod, *args, **kwargs)


def _check_options(options):
    from facula._inductor import config

    known = config.get_config_copy()
    for name, value in options.items():
        key = str(name).replace("-", "_")
        if key not in known:
            raise RuntimeError(
                f"Unexpected optimization option {name}, known options are {sorted(known)}"
            )
        if known[key] is not None and type(value) is not type(known[key]):
            raise RuntimeError(
                f"compile(): expected the option {name} as {type(known[key]).__name__}; got "
                f"{type(value).__name__}"
            )


def _check(dynamic, backend, mode, options):
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    own = is_own(backend)
    if backend in (None, "inductor"):
        if mode is not None and mode not in _MODES:
            raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
        _check_options(options or {})
    return own


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    dynamic_shapes=None,
):
    """A function or module that does the same, faster.

    It runs its own Python code at each call. Operators are recorded, and run where a value is
    needed: when Python asks for a number, and at the end.

    Args:
        model (callable or Module): what to compile; without it, a decorator is returned.
        fullgraph (bool): raise where the program needs a value before its end.
        dynamic (bool): for other backends than the default one: whether graphs take any sizes at
            once, never, or (None) after sizes have changed.
        recompile_limit (int): how many graphs a backend is called with for one place of a program.
        mode, options: checked, and passed on to a backend of yours. `options={"skip_python": True}`
            lets calls skip the function's Python code where it is known to do what it did.
        backend (str or callable): a name of `list_backends`, or a function of a GraphModule and a
            list of example inputs, which returns a callable that takes such inputs. It is called
            for each graph, within the first call.
        disable (bool): return `model` itself.

    Returns:
        OptimizedModule for a module, a function for a function.

    Raises:
        RuntimeError: an unknown backend, mode or option.
        Unsupported: with `fullgraph`, at a call of the function.

    Example:
        >>> @facula.compile
        ... def f(x):
        ...     return x.sin() + 1
        >>> f(facula.zeros(2))
        tensor([1., 1.])
    """
    options_of_compiler = {
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "backend": backend,
        "mode": mode,
        "options": options,
        "disable": disable,
    }
    if model is None:
        return lambda function: compile(function, **options_of_compiler)
    own = _check(dynamic, backend, mode, options)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    is_module = isinstance(model, Module)
    skips = own and not fullgraph and _skips_python(options)
    if own and not fullgraph and not is_module and not skips:
        return _recorded(model)
    if not own:
        call = _captured(options_of_compiler, recompile_limit)
    elif skips:
        call = _skipping(model)
    else:
        call = functools.partial(_C._recorded_telling, refuse) if fullgraph else _call_recorded
    return OptimizedModule(model, _Context(call)) if is_module else _passed_on(model, call)


def _call_recorded(function, /, *args, **kwargs):
    if log_topics and not _C._is_recording():
        return call_telling(function, *args, **kwargs)
    return _C._recorded(function, *args, **kwargs)


def _recorded(function):
    """The function that calls another, recorded: what `_passed_on` makes, with a frame less."""
    call = _C._recorded

    @functools.wraps(function)
    def run(*args, **kwargs):
        if log_topics and not _C._is_recording():
            return call_telling(function, *args, **kwargs)
        return call(function, *args, **kwargs)

    return _marked(run, function)


def _skips_python(options):
    """Whether calls may skip the function's Python: as options say, or the setting for all."""
    from facula._inductor import config

    given = {str(name).replace("-", "_"): value for name, value in (options or {}).items()}
    if not given.get("skip_python", config.skip_python):
        return False
    from facula._dynamo.skip import is_available

    return is_available()


def _skipping(model):
    """What calls a function or module by its stored programs, or else recorded."""
    from facula._dynamo.skip import Skipping

    site, call = Skipping(model).site, _C._recorded_skipping

    def run(function, /, *args, **kwargs):
        if log_topics - {"skip"} and not _C._is_recording():
            return call_telling(function, *args, **kwargs)
        return call(site, function, *args, **kwargs)

    run.skip_site = site
    return run


def _captured(options, recompile_limit):
    """The function that calls another, whose graphs a backend compiles."""
    from facula._dynamo.captured import Captured

    backend = options["backend"]
    function = lookup_backend(backend)
    name = backend if isinstance(backend, str) else getattr(backend, "__name__", repr(backend))
    wanted = {k: options[k] for k in ("mode", "options") if options[k] not in (None, "default")}
    if wanted:
        function = functools.partial(function, **wanted)
    return Captured(function, name, options["fullgraph"], options["dynamic"], recompile_limit)


def _call(function, *args, **kwargs):
    return function(*args, **kwargs)


def _passed_on(function, call):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return call(function, *args, **kwargs)

    run.skip_site = getattr(call, "skip_site", None)
    return _marked(run, function)


def _marked(run, function):
    run._torchdynamo_orig_callable = function
    run._is_torch_compile = True
    run.get_compiler_config = dict
    return run


def optimize(backend="inductor", *, nopython=False, disable=False, dynamic=None, **options):
    """A decorator that compiles, by its name of old."""
    return lambda model: compile(
        model, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
    )


def optimize_assert(backend, *, dynamic=None, **options):
    """A decorator that compiles a function without breaks, by its name of old."""
    return optimize(backend, nopython=True, dynamic=dynamic)


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """A function that no compiler is to look into; a decorator with or without arguments."""
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason, wrapping=wrapping)
    if isinstance(fn, Module):
        return OptimizedModule(fn) if wrapping else fn
    if isinstance(fn, type) or not wrapping:
        return fn
    if not callable(fn):
        raise AssertionError(f"disable(): expected a callable; got {type(fn)}")

    @functools.wraps(fn)
    def run(*args, **kwargs):
        capture = _capture.current()
        if capture is None:
            return fn(*args, **kwargs)
        text = reason or f"{getattr(fn, '__name__', fn)}() is disabled"
        return capture.run_outside(text, fn, args, kwargs)

    run._torchdynamo_disable = True
    run._torchdynamo_disable_msg = reason
    run._torchdynamo_disable_recursive = recursive
    run._torchdynamo_orig_callable = fn
    return run


def run(fn=None):
    """A function that uses what was compiled before: here, the function."""
    return (lambda function: function) if fn is None else fn


def reset():
    """Forget what backends have compiled."""
    from facula._dynamo import captured, decorators

    captured.forget_everything()
    decorators.set_stance("default")


reset_code_caches = reset


def is_dynamo_supported():
    """Whether functions can be compiled: True."""
    return True


is_inductor_supported = is_dynamo_supported


def export(f, *extra_args, **extra_kwargs):
    """The graph of a function: NotImplementedError, which nothing makes yet."""
    raise NotImplementedError("_dynamo.export(): facula makes no graph of a function yet")

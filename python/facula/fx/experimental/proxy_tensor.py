"""make_fx: the graph of the operators that a function calls, recorded while it runs.

A dispatch mode below autograd sees every call and keeps, for each tensor that the function meets, a
proxy: the node of the graph that made it. Derivative formulas run above the mode, and so a
function that calls `autograd.grad` gives the graph of its backward pass as well.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import threading

import facula
from facula import _C
from facula._symbolic import SymBool, SymFloat, SymInt
from facula.fx._codegen import _snake_case
from facula.fx.experimental._proxies import (  # noqa: F401  (names that PyTorch has here)
    PythonKeyTracer,
    _GraphAppendingTracerEx,
    _memory_key,
    _no_modes,
    _ProxyTensor,
    extract_val,
    fetch_object_proxy,
    get_proxy_slot,
    has_proxy_slot,
    no_default,
    set_meta,
    set_proxy_slot,
    snapshot_fake,
    track_tensor,
    track_tensor_tree,
)
from facula.fx.experimental._recorded_calls import as_recorded
from facula.fx.experimental._unbacked import reads_data, reads_int, refuse, run
from facula.fx.graph_module import GraphModule
from facula.fx.proxy import Proxy
from facula.overrides import TorchFunctionMode
from facula.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
)
from facula.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = [
    "DecompositionInterpreter",  # noqa: F822  (found when it is asked for)
    "PythonKeyTracer",
    "dispatch_trace",
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "handle_sym_dispatch",
    "make_fx",
    "maybe_disable_thunkify",
    "maybe_enable_thunkify",
    "py_sym_types",
    "selective_decompose",  # noqa: F822
]

py_sym_types = (SymInt, SymFloat, SymBool)
CONSTANT_NUMEL_LIMIT = 1  # of a constant whose value may be asked for while it is traced

_thread = threading.local()
_current_table = contextvars.ContextVar("decomposition_table", default=None)


# --- the mode


@contextlib.contextmanager
def decompose(decomposition_table):
    """Context manager: calls that are recorded in it are taken apart by this table."""
    before = _current_table.set(decomposition_table or {})
    try:
        yield _current_table.get()
    finally:
        _current_table.reset(before)


def maybe_handle_decomp(proxy_mode, op, args, kwargs):
    """What an operator's decomposition gives, recorded; NotImplemented where the table has none."""
    table = proxy_mode.decomposition_table
    function = (table if table is not None else _current_table.get() or {}).get(op)
    if function is None:
        return NotImplemented
    with proxy_mode:
        proxy_mode.tracer.decomp_layers += 1
        try:
            return function(*args, **kwargs)
        finally:
            proxy_mode.tracer.decomp_layers -= 1


def _known(value, tracer):
    return get_proxy_slot(value, tracer, None) if isinstance(value, facula.Tensor) else None


def _constant_of(value, tracer):
    """A tensor's value as far as it is known: a constant's, or that of a tensor from outside."""
    if not isinstance(value, facula.Tensor):
        return value
    known = _known(value, tracer)
    return value if known is None else known.constant


def _all_constant(leaves, tracer):
    tensors = [leaf for leaf in leaves if isinstance(leaf, facula.Tensor)]
    return all(_constant_of(t, tracer) is not None for t in tensors)


def _is_random(func):
    return facula.Tag.nondeterministic_seeded in func.tags


def _value_of_constant(func, leaves, spec, tracer, mode):
    """What an operator gives that reads a number out of a tensor, where the number is known."""
    if not _all_constant(leaves, tracer):
        if not mode._error_on_data_dependent_ops:
            return NotImplemented
        if tracer.numbers is None or not reads_int(func, leaves):
            refuse(func)
        args, kwargs = tree_unflatten(leaves, spec)
        given = tree_map(tracer.unwrap_proxy, (args, kwargs))
        if mode.pre_dispatch:
            func = facula.ops.aten.item.default
        return tracer.numbers.item(tracer, (func, *given))
    with _no_modes():
        args, kwargs = tree_unflatten([_constant_of(leaf, tracer) for leaf in leaves], spec)
        return func(*args, **kwargs)


def _is_in_place(func):
    name = func.overloadpacket.__name__
    return name.endswith("_") and not name.startswith("_")


def _retarget(args, proxy, tracer):
    """A tensor that an operator changed in place is from then on what the call gave."""
    first = args[0]
    if isinstance(first, (list, tuple)):
        for i, one in enumerate(first):
            if _known(one, tracer) is not None:
                _known(one, tracer).proxy = proxy[i]
    elif _known(first, tracer) is not None:
        _known(first, tracer).proxy = proxy


def _result_constant(func, leaves, spec, result, tracer):
    """The values of a call's results, where all that it was given is known and small."""
    results = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, facula.Tensor)]
    small = all(t.numel() <= CONSTANT_NUMEL_LIMIT for t in results)
    tensors = [leaf for leaf in leaves if isinstance(leaf, facula.Tensor)]
    if not (results and small and tensors and _all_constant(leaves, tracer)) or _is_random(func):
        return None
    if func is facula.ops.aten.lift_fresh_copy.default and _known(leaves[0], tracer) is None:
        with _no_modes():
            return leaves[0].clone()
    values = [_constant_of(leaf, tracer) for leaf in leaves]
    if any(isinstance(v, facula.Tensor) and _C._is_fake(v) for v in values):
        return None
    with _no_modes(), facula.no_grad():
        args, kwargs = tree_unflatten(values, spec)
        return func(*args, **kwargs)


def _forget_written(func, args, kwargs, tracer):
    """Constants that an operator writes with what is not known are no constants any more."""
    for value, argument in zip(args, func._schema.arguments, strict=False):
        if argument.is_write:
            for one in tree_flatten(value)[0]:
                if isinstance(one, facula.Tensor) and _known(one, tracer) is not None:
                    _known(one, tracer).constant = None


def proxy_call(proxy_mode, func, pre_dispatch, args, kwargs):
    """Run a call and add it to the graph; returns what the call gives."""
    tracer = proxy_mode.tracer
    named, named_args, named_kwargs = as_recorded(func, args, kwargs, proxy_mode.detach_is_alias)
    taken_apart = maybe_handle_decomp(proxy_mode, named, named_args, named_kwargs)
    if taken_apart is NotImplemented and named is not func:
        taken_apart = maybe_handle_decomp(proxy_mode, func, args, kwargs)
    if taken_apart is not NotImplemented:
        return taken_apart
    if func.overloadpacket.__name__ == "where" and named is not func:
        with proxy_mode:
            return named(*args, **kwargs)
    leaves, spec = tree_flatten((args, kwargs))
    if reads_data(func):
        value = _value_of_constant(func, leaves, spec, tracer, proxy_mode)
        if value is not NotImplemented:
            return value
    if pre_dispatch and func.overloadpacket is facula.ops.aten.to:
        _note_metadata(tracer, args[0])
    proxy_args, proxy_kwargs = tree_map(tracer.unwrap_proxy, (named_args, named_kwargs))
    proxy = tracer.create_proxy(
        "call_function",
        named,
        proxy_args,
        proxy_kwargs,
        name=_snake_case(named.overloadpacket.__name__),
    )
    constant = None
    result = run(func, args, kwargs, tracer.numbers)
    if func._schema.is_mutable if hasattr(func._schema, "is_mutable") else _writes(func):
        in_place_of_constant = _all_constant(leaves, tracer) and not _is_random(func)
        if in_place_of_constant:
            constant = _result_constant(func, leaves, spec, result, tracer)
        else:
            _forget_written(func, args, kwargs, tracer)
    else:
        constant = _result_constant(func, leaves, spec, result, tracer)
    if _is_in_place(func):
        _retarget(args, proxy, tracer)
    track_tensor_tree(result, proxy, constant=constant, tracer=tracer)
    if tracer.numbers is not None:
        tracer.numbers.note_results(_tensors_in(result))
    return result


def _tensors_in(result):
    return [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, facula.Tensor)]


def _note_metadata(tracer, tensor):
    """A check of what a conversion is given, which decides whether it copies."""
    metadata = {"dtype": tensor.dtype, "device": tensor.device, "layout": tensor.layout}
    tracer.create_proxy(
        "call_function",
        facula.ops.aten._assert_tensor_metadata.default,
        (tracer.unwrap_proxy(tensor),),
        metadata,
        name="_assert_tensor_metadata_default",
    )


def _writes(func):
    return any(argument.is_write for argument in func._schema.arguments)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Context manager that adds every operator called within it to a tracer's graph.

    While `detach_is_alias` is set, `detach` stands in the graph as `alias`: there is no autograd
    in it.

    Args:
        tracer (PythonKeyTracer): has the graph and the proxies.
        tracing_mode (str): "real" or "fake".
        pre_dispatch (bool): record calls above autograd, where composite operators are whole.
        decomposition_table (dict): OpOverload to a function that is traced in its place.
    """

    def __init__(
        self,
        tracer,
        tracing_mode="real",
        pre_dispatch=False,
        _allow_fake_constant=False,
        _error_on_data_dependent_ops=True,
        decomposition_table=None,
    ):
        super().__init__()
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self.decomposition_table = decomposition_table
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.enable_tracing, self.detach_is_alias = True, not pre_dispatch
        self._is_at_work = False

    def __enter__(self):
        if not self.pre_dispatch:
            return super().__enter__()
        _C._push_dispatch_mode_above_autograd(self)
        _modes_above_autograd().append(self)
        return self

    def __exit__(self, *exception):
        if not self.pre_dispatch:
            return super().__exit__(*exception)
        _modes_above_autograd().pop()
        _C._pop_dispatch_mode_above_autograd()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        before, self._is_at_work = self._is_at_work, True
        try:
            # A backward pass calls operators below the modes that see the program's own calls.
            with _C.DisableTorchFunction():
                return proxy_call(self, func, self.pre_dispatch, args, kwargs)
        finally:
            self._is_at_work = before

    @classmethod
    def is_infra_mode(cls):
        """Whether this is a mode of the framework's own: True."""
        return True


class _ConstantsMode(TorchFunctionMode):
    """Records tensors that a program makes of numbers, which no operator makes."""

    def __init__(self, mode):
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", None) == "tolist" and _C._is_fake(args[0]):
            return _listed(args[0])
        result = func(*args, **(kwargs or {}))
        if func is not facula.tensor or not self._mode.enable_tracing:
            return result
        if has_proxy_slot(result, self._mode.tracer) or not _is_on(self._mode):
            return result
        return _lifted(self._mode, result)


def _listed(tensor):
    """The numbers of a tensor, read one by one."""
    return [_listed(row) for row in tensor.unbind()] if tensor.dim() else tensor.item()


def _modes_above_autograd():
    """This thread's modes that record above autograd, the innermost last."""
    if not hasattr(_thread, "modes"):
        _thread.modes = []
    return _thread.modes


def _is_on(mode):
    if mode.pre_dispatch:
        return not mode._is_at_work and any(one is mode for one in _modes_above_autograd())
    return any(one is mode for one in _get_current_dispatch_mode_stack())


def _lifted(mode, constant):
    """A tensor from outside as a tensor of the program."""
    from facula._subclasses.fake_tensor import is_fake

    tracer, op = mode.tracer, facula.ops.aten.lift_fresh_copy.default
    proxy = tracer.create_proxy("call_function", op, (constant,), {}, name="lift_fresh_copy")
    if mode.pre_dispatch:
        set_meta(proxy, constant)
        detach = facula.ops.aten.detach_.default
        proxy = tracer.create_proxy("call_function", detach, (proxy,), {}, name="detach_")
    requires_grad = constant.requires_grad
    with _no_modes(), facula.no_grad():
        value = constant.detach().clone()
        result = _C._make_fake(value) if mode.tracing_mode != "real" else constant.detach().clone()
    known = value if value.numel() <= CONSTANT_NUMEL_LIMIT and not is_fake(value) else None
    track_tensor_tree(result, proxy, constant=known, tracer=tracer)
    return result.requires_grad_() if requires_grad else result


def get_innermost_proxy_mode():
    """The innermost mode that adds calls to a graph, or None.

    Example:
        >>> get_innermost_proxy_mode() is None
        True
    """
    for mode in reversed(_modes_above_autograd() + _get_current_dispatch_mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


def get_proxy_mode():
    """The mode that adds this thread's calls to a graph, or None.

    Example:
        >>> get_proxy_mode() is None
        True
    """
    return get_innermost_proxy_mode()


def get_torch_dispatch_modes():
    """The dispatch modes of this thread that are written in Python, the innermost last."""
    return _get_current_dispatch_mode_stack()


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """Context manager: calls within it are run and stay out of graphs; gives the mode, or None."""
    mode = get_innermost_proxy_mode()
    if mode is None:
        yield None
        return
    before, mode.enable_tracing = mode.enable_tracing, False
    try:
        yield mode
    finally:
        mode.enable_tracing = before


def handle_sym_dispatch(func, args, kwargs):
    """Record arithmetic of symbolic numbers: facula's sizes are plain, so it is just done."""
    return func(*args, **kwargs)


# --- values that are made when they are asked for


class Thunk:
    """A function without arguments that is called once, when its value is asked for."""

    __slots__ = ("f", "r")

    def __init__(self, f):
        self.f, self.r = f, None

    def force(self):
        """The value."""
        if self.f is not None:
            self.r, self.f = self.f(), None
        return self.r


_thunks_on = contextvars.ContextVar("thunkify", default=False)


def thunkify(tracer, f, *args, **kwargs):
    """A Thunk of the call; within `maybe_enable_thunkify` it is made when it is asked for."""
    thunk = Thunk(functools.partial(f, *args, **kwargs))
    if not _thunks_on.get():
        thunk.force()
    return thunk


@contextlib.contextmanager
def _thunks(on):
    before = _thunks_on.set(on)
    try:
        yield
    finally:
        _thunks_on.reset(before)


def maybe_enable_thunkify():
    """Context manager: symbolic arithmetic is recorded when it is used."""
    return _thunks(get_proxy_mode() is not None)


def maybe_disable_thunkify():
    """Context manager: symbolic arithmetic is recorded at once."""
    return _thunks(False)


# --- tracing a function


def fake_signature(fn, nargs):
    """A function of `nargs` arguments without `*`, for one that has it."""
    names = [f"arg{i}" for i in range(nargs)]
    function = lambda *args: fn(*args)  # noqa: E731
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return function


def _named(f, count):
    """The function, or one that calls it, whose signature names its arguments."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return fake_signature(f, count)
    return f


def _argument_names(f, count):
    """The names of the arguments that are given by position.

    Raises:
        RuntimeError: the function takes another number of arguments.
    """
    parameters = list(inspect.signature(f).parameters.values())
    if len(parameters) != count:
        raise RuntimeError(
            f"make_fx(): {getattr(f, '__name__', f)!s} takes {len(parameters)} arguments; got "
            f"{count}"
        )
    return [parameter.name for parameter in parameters]


def _placeholders(tracer, names, args):
    """A placeholder for each leaf of the arguments; returns their proxies and names."""
    proxies = []
    for name, arg in zip(names, args, strict=True):
        for number, _ in enumerate(tree_flatten(arg)[0], 1):
            target = f"{name}_{number}"
            proxies.append(tracer.create_proxy("placeholder", target, (), {}, name=target))
    return proxies


def wrap_key(f, tensors, tracer, pre_dispatch=False):
    """A function of proxies and tensors: runs `f` on the tensors, and gives proxies of its results.

    Args:
        f (callable): what is traced.
        tensors (nest of Tensors): its arguments.
        tracer (PythonKeyTracer): takes the proxies.
    """
    leaves, _ = tree_flatten(tensors)

    @functools.wraps(f)
    def wrapped(*proxies):
        given, _ = tree_flatten(proxies)
        seen = set()
        with disable_proxy_modes_tracing():
            for leaf, proxy in zip(leaves, given, strict=True):
                if isinstance(leaf, facula.Tensor) and isinstance(proxy, Proxy):
                    seen.add(id(leaf))
                    track_tensor_tree(leaf, proxy, constant=None, tracer=tracer)
                elif isinstance(proxy, Proxy):
                    set_meta(proxy, leaf)
        result = f(*tensors)
        known = (facula.Tensor, *py_sym_types)
        return tree_map(lambda r: tracer.unwrap_proxy(r) if isinstance(r, known) else r, result)

    return wrapped


def dispatch_trace(root, tracer, concrete_args=None):
    """The module of a graph that a function of proxies writes.

    Args:
        root (callable): takes proxies, one for each leaf of `concrete_args`.
        tracer (PythonKeyTracer): the graph is its.
        concrete_args (tuple): nests whose leaves are the arguments.

    Returns:
        GraphModule
    """
    concrete_args = concrete_args or ()
    named = _named(root, len(concrete_args))
    proxies = _placeholders(tracer, _argument_names(named, len(concrete_args)), concrete_args)
    nest = tree_unflatten(proxies, tree_flatten(tuple(concrete_args))[1])
    tracer.output(root(*nest))
    return GraphModule(tracer.root, tracer.graph, getattr(root, "__name__", "GraphModule"))


def _is_flat(args):
    """Whether the arguments are leaves."""
    return not any(isinstance(arg, (list, tuple, dict)) for arg in args)


class _MakefxTracer:
    """One run of make_fx: the modes that it enters and the module that it gives."""

    def __init__(
        self,
        table,
        tracing_mode,
        allow_non_fake_inputs,
        error_on_data,
        pre_dispatch=False,
        sizes=None,
    ):
        from facula.fx.experimental._symbolic_tracing import SymbolicTracer

        self.tracer = PythonKeyTracer() if sizes is None else SymbolicTracer(sizes)
        self.sizes = sizes
        self.table, self.tracing_mode = table, tracing_mode
        self.allow_non_fake_inputs, self.error_on_data = allow_non_fake_inputs, error_on_data
        self.pre_dispatch = pre_dispatch

    def _fake_arguments(self, args):
        known = {}

        def fake(leaf):
            if not isinstance(leaf, facula.Tensor) or _C._is_fake(leaf):
                return leaf
            if id(leaf) not in known:
                known[id(leaf)] = _C._make_fake(leaf)
            return known[id(leaf)]

        return tree_map(fake, args)

    def _modes(self):
        mode = ProxyTorchDispatchMode(
            self.tracer,
            self.tracing_mode,
            self.pre_dispatch,
            _error_on_data_dependent_ops=self.error_on_data,
            decomposition_table=self.table,
        )
        stack = contextlib.ExitStack()
        if self.tracing_mode == "fake" and not _in_fake_mode():
            stack.enter_context(_C._FakeMode(self.allow_non_fake_inputs))
        stack.enter_context(decompose(self.table))
        stack.enter_context(mode)
        stack.enter_context(_ConstantsMode(mode))
        return stack

    def _with_symbols(self, f):
        """The function, run where the sizes that it reads are symbols."""
        if self.sizes is None:
            return f

        def run(*args):
            with self.sizes.tracing(self.tracer):
                return f(*args)

        return run

    def trace(self, f, args):
        """The GraphModule of a function."""
        if self.tracing_mode == "fake":
            args = self._fake_arguments(args)
        named = _named(f, len(args))
        names = _argument_names(named, len(args))
        proxies = _placeholders(self.tracer, names, args)
        leaves, spec = tree_flatten(tuple(args))
        nest = tree_unflatten(proxies, spec)
        if self.sizes is not None:
            self.sizes.starts_at(self.tracer, proxies)
        with self._modes():
            result = wrap_key(self._with_symbols(f), args, self.tracer)(*nest)
        return self._module(f, names, args, spec, result)

    def _module(self, f, names, args, spec, result):
        graph = self.tracer.graph
        if _is_flat(args):
            self.tracer.output(result)
        else:
            flat, out_spec = tree_flatten(result)
            self.tracer.output(flat)
            graph.set_codegen(_nested_codegen(names, spec, out_spec))
        name = f.__class__.__name__ if isinstance(f, facula.nn.Module) else f.__name__
        return GraphModule(self.tracer.root, graph, name)


def _nested_codegen(names, spec, out_spec):
    """How the code of a function of nests is written: it takes and gives nests."""
    from facula.fx import graph

    info = graph._PyTreeInfo(list(names), spec, out_spec)
    return graph._PyTreeCodeGen(info)


def _in_fake_mode():
    probe = _C._dispatch_mode_depth() and facula.empty(())
    return isinstance(probe, facula.Tensor) and _C._is_fake(probe)


def make_fx(
    f,
    decomposition_table=None,
    tracing_mode="real",
    _allow_non_fake_inputs=False,
    *,
    pre_dispatch=False,
    record_module_stack=False,
    _allow_fake_constant=False,
    _error_on_data_dependent_ops=True,
    record_stack_traces=False,
    proxy_module_inputs=False,
    _disable_torch_fn_metadata_mode=False,
    dynamic_shapes=None,
):
    """A function that runs `f` on its arguments and returns the graph of the operators called.

    In-place changes, random numbers and backward passes stand in the graph as they ran; what does
    not depend on the arguments stays in it, too. Tensors that `f` has from elsewhere become
    attributes of the module.

    Args:
        f (callable): of Tensors, nests of them, and other values, which become constants.
        decomposition_table (dict): OpOverload to a function that is traced in its place.
        tracing_mode (str): "real" runs `f`; "fake" computes shapes alone; "symbolic" as well, and
            sizes above 1 stand in the graph as what they are read from. `f` runs several times.
        _allow_non_fake_inputs (bool): with "fake", whether tensors from elsewhere are taken.
        pre_dispatch (bool): record calls above autograd, where composite operators are whole.
        _error_on_data_dependent_ops (bool): raise where a number is read out of a tensor.

    Returns:
        callable: gives a GraphModule; `meta["val"]` of its nodes are fake tensors.

    Raises:
        RuntimeError: `f` asks for a number out of a tensor that depends on its arguments.

    Example:
        >>> traced = make_fx(lambda x: x.sin() + 1)(facula.ones(2))
        >>> [str(node.target) for node in traced.graph.nodes]
        ['x_1', 'aten.sin.default', 'aten.add.Tensor', 'output']
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f"make_fx(): expected tracing_mode 'real', 'fake' or 'symbolic'; got {tracing_mode!r}"
        )

    def run(mode, sizes=None):
        return _MakefxTracer(
            dict(decomposition_table or {}),
            mode,
            _allow_non_fake_inputs,
            _error_on_data_dependent_ops,
            pre_dispatch,
            sizes,
        )

    def traced(args, sizes, limit, numbers=None):
        one = run("fake", sizes)
        one.tracer.numbers = sizes or numbers
        one.tracer.limit = limit
        return one.trace(f, args)

    @functools.wraps(f)
    def wrapped(*args):
        if tracing_mode != "symbolic":
            return run(tracing_mode).trace(f, args)
        from facula.fx.experimental._symbolic_tracing import trace_with_symbols

        return trace_with_symbols(traced, args)

    return wrapped


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """The graph of a call, traced apart from a trace that is under way.

    Args:
        func (callable): what is traced.
        args (tuple), kwargs (dict): what it is called with.
        tracing_mode (str), decomposition_table (dict): as `make_fx` takes them.

    Returns:
        GraphModule: its arguments are the leaves of `(args, kwargs)`.
    """
    leaves, spec = tree_flatten((args, kwargs))

    def of_leaves(*given):
        new_args, new_kwargs = tree_unflatten(given, spec)
        return func(*new_args, **new_kwargs)

    with disable_proxy_modes_tracing():
        return make_fx(
            of_leaves, decomposition_table=decomposition_table, tracing_mode=tracing_mode
        )(*leaves)


def __getattr__(name):
    if name not in ("DecompositionInterpreter", "selective_decompose"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from facula.fx.experimental import _decomposition

    return getattr(_decomposition, name)

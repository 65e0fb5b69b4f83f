"""Operators of one's own, and kernels for existing ones."""

from __future__ import annotations

import contextlib
import weakref

from facula import _C
from facula._library import below as _below  # noqa: F401  (makes _C._AutoDispatchBelowAutograd)
from facula._library.custom_op import CustomOpDef, custom_op
from facula._library.fake_context import current_context, shape_rule
from facula._library.schema_inference import infer_schema, overload_of, split_name

__all__ = [
    "Library",
    "define",
    "fallthrough_kernel",
    "impl",
    "register_autocast",
    "register_fake",
    "register_torch_dispatch",
    "register_vmap",
    "get_ctx",
    "get_kernel",
    "layout",
    "custom_op",
    "triton_op",
    "wrap_triton",
    "infer_schema",
    "impl_abstract",
    "register_kernel",
    "register_autograd",
    "opcheck",
    "CustomOpDef",
]

_RESERVED = frozenset(("prim",))
# PyTorch's dispatch keys that facula's layers have no place for.
_OTHER_KEYS = frozenset(
    "Undefined FPGA MAIA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr "
    "NestedTensor BackendSelect Fake FuncTorchDynamicLayerBackMode Functionalize Named "
    "ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor Tracer "
    "AutocastXPU AutocastMPS FuncTorchBatchedDecomposition FuncTorchVmapMode Batched VmapMode "
    "FuncTorchGradWrapper DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode "
    "PreDispatch PythonDispatcher HIP XLA MPS IPU XPU HPU VE Lazy MTIA".split()
)
_KEYS = frozenset(
    "CPU CUDA Meta PrivateUse1 Autograd AutogradCPU AutogradCUDA Autocast AutocastCPU AutocastCUDA "
    "Conjugate Negative Python FuncTorchBatched CompositeImplicitAutograd "
    "CompositeExplicitAutograd".split()
)


def fallthrough_kernel():
    """Given to `Library.impl`: calls pass that layer by; never called itself."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _check_key(key):
    if key in _KEYS:
        return key
    if key in _OTHER_KEYS:
        raise NotImplementedError(f"impl(): the dispatch key {key!r} is not supported")
    raise RuntimeError(f"could not parse dispatch key: {key}")


class _Record:
    """What a library put in, for taking it out; lives longer than the Library object."""

    def __init__(self, namespace, is_whole):
        self.namespace, self.is_whole = namespace, is_whole
        self.registrations, self.overloads, self.fallbacks, self.rules = [], [], [], []
        self.waiting = []

    def take_out(self):
        for number in self.registrations:
            _C._library_remove(number)
        for key in self.fallbacks:
            _C._library_fallback(None, key)
        for overload, cls in self.rules:
            _C._register_torch_dispatch_rule(overload, cls, None)
        for overload in self.overloads:
            _C._library_undefine(overload)
        if self.is_whole:
            _whole.discard(self.namespace)
        for entry in self.waiting:
            if entry in _waiting.get(entry[0], ()):
                _waiting[entry[0]].remove(entry)
        self.__init__(self.namespace, False)


_whole = {"aten"}  # namespaces that a library of kind DEF has
_waiting = {}  # (namespace, name, overload) -> kernels put in before the operator was defined


class Library:
    """Definitions and kernels in a namespace, taken out when the object dies.

    Args:
        ns (str): the namespace.
        kind (str): "DEF" (one for a namespace), "FRAGMENT" (both define), or "IMPL".
        dispatch_key (str): the default key of `impl`.

    Raises:
        ValueError: another kind, a reserved namespace.
        RuntimeError: a second library of kind DEF for the namespace.

    Example:
        >>> lib = facula.library.Library("mine", "DEF")
        >>> op = lib.define("twice(Tensor x) -> Tensor")
        >>> lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        if kind != "IMPL" and ns in _RESERVED:
            raise ValueError(
                f"Library(): the namespace {ns} is reserved; operators of one's own need another"
            )
        if kind == "DEF" and ns in _whole:
            raise RuntimeError(
                f"Library(): {ns} has its library of kind DEF, of which there is one for each "
                "namespace; FRAGMENT adds to it"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._record = _Record(ns, kind == "DEF")
        if kind == "DEF":
            _whole.add(ns)
        self._finalizer = weakref.finalize(self, self._record.take_out)
        self._finalizer.atexit = False

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema without the namespace; returns its name.

        Raises:
            RuntimeError: a malformed schema, a name that is taken, a library of kind IMPL.
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema}"): Cannot define an operator inside of a library of kind IMPL'
            )
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        overload = _C._library_define(f"{self.ns}::{schema.strip()}")
        self._record.overloads.append(overload)
        full = split_name(overload.name())
        for _, record, function, key in _waiting.pop(full, ()):
            record.registrations.append(_C._library_impl(*full, function, key))
        return overload.name().partition("::")[2]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Put in a kernel for a dispatch key ("CPU", "Meta", "Autograd", ...).

        A kernel for an operator that is not there yet waits until it is defined.

        Args:
            op_name: its name, with or without the namespace, or an OpOverload.
            fn: the kernel, or `fallthrough_kernel`.
            dispatch_key (str): the library's own when empty; else CompositeImplicitAutograd.

        Raises:
            TypeError: `fn` cannot be called.
            RuntimeError: no such dispatch key.
            NotImplementedError: a dispatch key that facula has no layer for; `with_keyset`.
        """
        if with_keyset:
            raise NotImplementedError(
                "impl(): with_keyset=True is not supported: facula has no DispatchKeySet"
            )
        if not callable(fn):
            raise TypeError(f"impl(): fn must be callable; got {type(fn).__name__}")
        full = self._full_name(op_name)
        key = _check_key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        function = None if fn is fallthrough_kernel else fn
        if _C._overload(*full) is None:
            entry = (full, self._record, function, key)
            _waiting.setdefault(full, []).append(entry)
            self._record.waiting.append(entry)
            return
        self._record.registrations.append(_C._library_impl(*full, function, key))

    def _full_name(self, op):
        if isinstance(op, _C.OpOverload):
            return split_name(op.name())
        if not isinstance(op, str):
            raise RuntimeError(
                f"impl(): op_name must be a name or an overload; got {type(op).__name__}"
            )
        return split_name(op if "::" in op else f"{self.ns}::{op}")

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Put in a kernel for all operators that a backend has none for.

        Args:
            fn: called as fn(op, *args, **kwargs).
            dispatch_key (str): "CPU", "CUDA", "Meta" or "PrivateUse1".

        Raises:
            RuntimeError: the library's namespace is not "_".
            NotImplementedError: a key that is no backend; `with_keyset`.
        """
        key = dispatch_key or self.dispatch_key
        assert key, "dispatch_key must not be empty for fallback"
        if self.ns != "_":
            raise RuntimeError(
                f'fallback(): the library must be of the namespace "_"; got {self.ns}'
            )
        if with_keyset:
            raise NotImplementedError(
                "fallback(): with_keyset=True is not supported: facula has no DispatchKeySet"
            )
        _C._library_fallback(fn, _check_key(key))
        self._record.fallbacks.append(key)

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        self.impl(op_name, shape_rule(fn), "Meta")

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        overload = _C._overload(*self._full_name(op_name))
        _C._register_torch_dispatch_rule(overload, torch_dispatch_class, fn)
        self._record.rules.append((overload, torch_dispatch_class))

    def _destroy(self):
        self._finalizer()


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


_kept = {}


def _library_of(namespace, lib=None):
    if lib is not None:
        return lib
    if namespace not in _kept:
        _kept[namespace] = Library(namespace, "FRAGMENT")
    return _kept[namespace]


def _library_for(overload, lib=None):
    return _library_of(overload.namespace, lib)


def define(qualname, schema, alias_analysis="", *, lib=None, tags=()):
    """Define an operator: `define("mine::twice", "(Tensor x) -> Tensor")`.

    In the form of old, `@define(lib, "twice(Tensor x) -> Tensor")` defines it and puts the
    decorated function in as its kernel.

    Raises:
        ValueError: a name without a namespace.
        RuntimeError: a malformed schema, a name that is taken.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis)

        def register(function):
            qualname.impl(name, function)
            return function

        return register
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name, overload = split_name(qualname)
    _library_of(namespace, lib).define(f"{name}{'.' if overload else ''}{overload}{schema}")
    return None


def _key_of(device_type):
    if device_type == "default":
        return "CompositeExplicitAutograd"
    import facula

    kind = facula.device(device_type).type
    return {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(kind, "PrivateUse1")


def impl(qualname, types, func=None, *, lib=None):
    """Put in a kernel for device types ("cpu", ["cpu", "cuda"], "default"); or decorate one.

    In the form of old, `@impl(lib, "twice", "CPU")` names a dispatch key.

    Raises:
        RuntimeError: no such device type.
    """
    if isinstance(qualname, Library):

        def put(function):
            qualname.impl(types, function, func or "")
            return function

        return put
    keys = {_key_of(one) for one in ([types] if isinstance(types, str) else types)}
    library = _library_of(split_name(qualname)[0], lib)

    def register(function):
        for key in keys:
            library.impl(qualname, function, key)

    if func is None:
        return register
    register(func)
    return None


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Put in a kernel for some device types (None: for all); or decorate one.

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: no such device type.
    """
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    if not isinstance(op, (str, _C.OpOverload)):
        raise ValueError(f"register_kernel({op}): got unexpected type for op: {type(op)}")
    name = op.name() if isinstance(op, _C.OpOverload) else op
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """Put in the shape rule of an operator, run on meta tensors; or decorate one.

    A rule for an operator that is not there yet waits until it is defined, as kernels do: a
    package's Python parts can be used where its compiled operators cannot be loaded. (PyTorch
    raises here.)

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: it is a name of `aten` that is not there.
    """
    may_wait = isinstance(op, str) and not op.startswith("aten::")
    name = op if may_wait else overload_of(op, "register_fake").name()
    library = _library_of(split_name(name)[0], lib)

    def register(function):
        library._register_fake(name, function)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The name of `register_fake` in PyTorch 2.3 and before; warns."""
    import warnings

    warnings.warn(
        "impl_abstract() is the old name of register_fake()",
        DeprecationWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


def _check_functional(overload, shown):
    schema = overload._schema
    if schema.is_mutable or overload.is_view or not schema.returns:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema "
            f"{schema}. Please create a functional operator and register an autograd formula for "
            "that."
        )


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Put in the derivative of an operator.

    Args:
        op: "ns::name", an OpOverload or a custom operator.
        backward: called as backward(ctx, *gradients); returns the gradients of all arguments.
        setup_context: called as setup_context(ctx, inputs, output) after the forward; with
            keyword-only arguments as setup_context(ctx, inputs, keyword_only_inputs, output).

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: no such operator, or one that writes its arguments or returns views.
    """
    from facula._library.rules import autograd_kernel

    overload = overload_of(op, "register_autograd")
    _check_functional(overload, op)
    kernel = autograd_kernel(overload, backward, setup_context)
    _library_for(overload, lib).impl(overload, kernel, "Autograd")


def register_vmap(op, func=None, /, *, lib=None):
    """Put in the batching rule of an operator; or decorate one.

    Args:
        op: "ns::name", an OpOverload or a custom operator.
        func: called as func(info, in_dims, *args) with `info.batch_size` and `info.randomness`;
            returns (output, out_dims). Batch dimensions of its arguments are 0, or None.

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: there is no such operator.
    """
    from facula._library.rules import batch_kernel

    overload = overload_of(op, "register_vmap")

    def register(function):
        _library_for(overload, lib).impl(overload, batch_kernel(function), "FuncTorchBatched")
        return function

    return register if func is None else register(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Say that an operator's floating-point inputs become `cast_inputs` (dtype) under autocast.

    Raises:
        ValueError: `device_type` is no str, `op` neither a name nor an operator.
        RuntimeError: no such device type or operator.
    """
    from facula._library.rules import autocast_kernel

    overload = overload_of(op, "register_autocast")
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if _key_of(device_type) not in ("CPU", "CUDA"):
        raise ValueError(f"Unknown device type: {device_type}")
    kernel = autocast_kernel(overload, device_type, cast_inputs)
    _library_for(overload, lib).impl(overload, kernel, f"Autocast{_key_of(device_type)}")
    return kernel


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Put in what an operator does under a subclass's or mode's `__torch_dispatch__`.

    Args:
        op: "ns::name", an OpOverload or a custom operator.
        torch_dispatch_class: the subclass of Tensor or TorchDispatchMode.
        func: called as func(class or mode, op, types, args, kwargs).

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: there is no such operator.
    """
    overload = overload_of(op, "register_torch_dispatch")

    def register(function):
        library = _library_for(overload, lib)
        library._register_torch_dispatch_rule(overload, torch_dispatch_class, function)
        return function

    return register if func is None else register(func)


def get_ctx():
    """The context of the shape rule that is running; None outside of any."""
    return current_context()


class _Kernel:
    """One kernel of an operator: the layers above it are passed by."""

    def __init__(self, overload, key):
        self._overload, self._key = overload, key

    def __call__(self, *args, **kwargs):
        before = _C._set_excluded_layers(_C._layers_above(self._key))
        try:
            return self._overload(*args, **kwargs)
        finally:
            _C._set_excluded_layers(before)

    def call_boxed(self, keyset, *args, **kwargs):
        """Call the kernel; the key set is not looked at."""
        return self(*args, **kwargs)

    def __repr__(self):
        return f"<kernel of {self._overload.name()} for {self._key}>"


def get_kernel(op, dispatch_key):
    """The kernel of an operator for a dispatch key, callable.

    Raises:
        ValueError: `op` is neither a name nor an operator.
        RuntimeError: no such operator, or it has no kernel for the key.
    """
    overload = overload_of(op, "get_kernel")
    key = _check_key(str(dispatch_key).rpartition(".")[2])
    if not _C._has_kernel(*split_name(overload.name()), key):
        raise RuntimeError(f"no kernel for {dispatch_key} for {overload.name()}")
    return _Kernel(overload, key)


def layout(name):
    """The `facula.layout` of this name: a built-in one, or what a library registered.

    Raises:
        TypeError: `name` is no str.
        RuntimeError: there is no such layout.

    Example:
        >>> facula.library.layout("sparse_csr")
        facula.sparse_csr
    """
    return _C._layout_named(name)


def opcheck(
    op,
    args,
    kwargs=None,
    *,
    test_utils=(
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception=True,
    atol=None,
    rtol=None,
):
    """Try a custom operator's schema, derivative and shape rule on one call.

    Args:
        op: an OpOverload, OpOverloadPacket or custom operator.
        args, kwargs: what it is called with.
        test_utils: which of the tests to run, a name or several.
        raise_exception: whether the first failure is raised; else it stands in the result.
        atol, rtol: tolerances of comparisons.

    Returns:
        dict: "SUCCESS" or an exception for each test.

    Raises:
        OpCheckError: a test failed.
        ValueError: unknown tests, or `op` is no operator.
    """
    from facula._library.opcheck import run

    return run(op, args, kwargs, test_utils, raise_exception, atol, rtol)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """Not supported: facula runs no Triton kernels."""
    raise NotImplementedError("triton_op(): Triton kernels are not supported")


def wrap_triton(triton_kernel, /):
    """Not supported: facula runs no Triton kernels."""
    raise NotImplementedError("wrap_triton(): Triton kernels are not supported")

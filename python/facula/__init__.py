"""Facula: a deep-learning framework with PyTorch's API.

Names are found when they are first asked for: the compiled core's own, operators, functions written
in Python, submodules. Nothing else is imported at start.

The package may be loaded under the name torch (docs/internals/running_unmodified.md): what it says
of itself begins with `__name__`.
"""

import sys as _sys

from facula import _C

_C._lazy_module(__name__)


class _MissingModules:
    """The last finder of modules: for a module of this package that no other finder has found."""

    @staticmethod
    def find_spec(full_name, path=None, target=None):
        if full_name.partition(".")[0] in ("facula", __name__):
            _import("facula._missing").raise_for_import(full_name, _sys._getframe(1))


_sys.meta_path.append(_MissingModules)

# Numbers that torch offers beside its functions; from here on `float` and its like are dtypes.
e, pi, inf, nan, newaxis = 2.718281828459045, 3.141592653589793, float("inf"), float("nan"), None
legacy_contiguous_format = _C.contiguous_format

globals().update({name: value for name, value in vars(_C).items() if not name.startswith("_")})

# Functions and classes written in Python: module -> names.
_PYTHON_NAMES = {
    "facula.autograd.grad_mode": ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled"),
    "facula._tensor_str": ("set_printoptions", "get_printoptions"),
    "facula.serialization": ("save", "load"),
    "facula.jit": ("ScriptFunction", "ScriptModule"),
    "facula.jit._types": (
        "AnyType",
        "AwaitType",
        "BoolType",
        "ClassType",
        "ComplexType",
        "DeviceObjType",
        "DictType",
        "EnumType",
        "FloatType",
        "FutureType",
        "InferredType",
        "IntType",
        "InterfaceType",
        "ListType",
        "NoneType",
        "NumberType",
        "OptionalType",
        "PyObjectType",
        "RRefType",
        "StreamObjType",
        "StringType",
        "SymBoolType",
        "SymIntType",
        "TensorType",
        "TupleType",
        "Type",
        "UnionType",
    ),
    "facula.futures": ("Future",),
    "facula.serialization.archive": ("PyTorchFileReader",),
    "facula.random": (
        "manual_seed",
        "seed",
        "initial_seed",
        "get_rng_state",
        "set_rng_state",
        "fork_rng",
        "thread_safe_generator",
    ),
    "facula.functional": (
        "broadcast_tensors",
        "broadcast_shapes",
        "split",
        "norm",
        "nonzero",
        "unique",
        "unique_consecutive",
        "meshgrid",
        "tensordot",
        "cartesian_prod",
        "block_diag",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "einsum",
        "stft",
        "istft",
        "cdist",
        "unravel_index",
        "chain_matmul",
        "lu",
        "asarray",
        "from_dlpack",
        "is_nonzero",
        "is_same_size",
        "detach_",
        "typename",
        "is_storage",
        "set_default_dtype",
        "set_default_device",
        "set_default_tensor_type",
        "get_device",
        "set_warn_always",
        "is_warn_always_enabled",
        "is_conj",
        "is_neg",
        "is_inference",
        "_assert",
    ),
    "facula._checks": (
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_tensor_all_with",
        "_check_type",
        "_check_value",
        "_check_with",
    ),
    "facula._library.python_operators": (
        "_assert_async",
        "_is_all_true",
        "_is_any_true",
        "_scaled_mm",
        "_shape_as_tensor",
    ),
    "facula._higher_order_ops.cond": ("cond",),
    "facula._higher_order_ops.while_loop": ("while_loop",),
    "facula._tags": ("Tag",),
    "facula._lobpcg": ("lobpcg",),
    "facula._lowrank": ("svd_lowrank", "pca_lowrank"),
    "facula.nested._internal.private_names": (
        "_nested_from_padded",
        "_nested_from_padded_tensor",
        "_nested_get_jagged_dummy",
        "_nested_get_lengths",
        "_nested_get_max_seqlen",
        "_nested_get_min_seqlen",
        "_nested_get_offsets",
        "_nested_get_ragged_idx",
        "_nested_get_values",
        "_nested_tensor_from_mask",
        "_nested_tensor_from_mask_left_aligned",
        "_nested_view_from_jagged",
    ),
    "facula.utils.dlpack": ("to_dlpack",),
    "facula._precision": (
        "get_float32_matmul_precision",
        "set_float32_matmul_precision",
        "set_flush_denormal",
    ),
    "facula.amp.autocast_mode": (
        "is_autocast_cpu_enabled",
        "set_autocast_cpu_enabled",
        "get_autocast_cpu_dtype",
        "set_autocast_cpu_dtype",
        "get_autocast_gpu_dtype",
        "set_autocast_gpu_dtype",
        "autocast",
        "is_autocast_enabled",
        "set_autocast_enabled",
        "get_autocast_dtype",
        "set_autocast_dtype",
        "is_autocast_available",
    ),
    "facula._devices": ("_register_device_module", "get_device_module"),
    "facula.func": ("vmap",),
    "facula._dynamo.eval_frame": ("compile",),
    "facula._determinism": (
        "use_deterministic_algorithms",
        "are_deterministic_algorithms_enabled",
        "is_deterministic_algorithms_warn_only_enabled",
        "set_deterministic_debug_mode",
        "get_deterministic_debug_mode",
    ),
    "facula.version": ("__version__",),
    "facula.utils.summary": ("summary",),
    "facula._symbolic": (
        "SymBool",
        "SymFloat",
        "SymInt",
        "sym_float",
        "sym_int",
        "sym_ite",
        "sym_max",
        "sym_min",
        "sym_not",
        "sym_sqrt",
        "sym_sum",
    ),
    "facula.storage": (
        "TypedStorage",
        "from_file",
        "FloatStorage",
        "DoubleStorage",
        "HalfStorage",
        "BFloat16Storage",
        "ByteStorage",
        "CharStorage",
        "ShortStorage",
        "IntStorage",
        "LongStorage",
        "BoolStorage",
        "ComplexFloatStorage",
        "ComplexDoubleStorage",
        "QInt8Storage",
        "QUInt8Storage",
        "QInt32Storage",
        "QUInt4x2Storage",
        "QUInt2x4Storage",
    ),
    "facula._linalg_utils": ("cholesky", "eig", "lstsq", "matrix_rank", "qr", "solve", "symeig"),
    "facula._qscheme": (
        "per_channel_affine",
        "per_channel_affine_float_qparams",
        "per_channel_symmetric",
        "per_tensor_affine",
        "per_tensor_symmetric",
        "qscheme",
    ),
    "facula.sparse._construct": (
        "sparse_coo_tensor",
        "sparse_compressed_tensor",
        "sparse_csr_tensor",
        "sparse_csc_tensor",
        "sparse_bsr_tensor",
        "sparse_bsc_tensor",
    ),
    "facula._legacy": (
        "FloatTensor",
        "DoubleTensor",
        "HalfTensor",
        "BFloat16Tensor",
        "ByteTensor",
        "CharTensor",
        "ShortTensor",
        "IntTensor",
        "LongTensor",
        "BoolTensor",
    ),
}
_LIBRARY = "libfacula"  # and others that begin so: they look like extension modules, and are none
_HOME = {name: module for module, names in _PYTHON_NAMES.items() for name in names}


def _import(name):
    from importlib import import_module

    return import_module(name)


def _find(name):
    if name in _HOME:
        return getattr(_import(_HOME[name]), name)
    if name == "Storage":
        return _find("FloatStorage")
    if name == "torch":  # the package has itself as an attribute
        return _import(__name__)
    if name == "default_generator":
        return _C._default_generator()
    if name in ("__config__", "__future__"):
        return _import("facula._missing").submodule(__name__, name)
    if name.startswith(("__", _LIBRARY)):
        raise _import("facula._missing").attribute(__name__, name)
    try:
        return _C._function("", name)
    except AttributeError:
        pass
    if hasattr(_C, name):
        return getattr(_C, name)
    return _import("facula._missing").submodule(__name__, name)


def __getattr__(name):
    value = _find(name)
    globals()[name] = value
    return value


def __dir__():
    from pkgutil import iter_modules

    modules = {module.name for module in iter_modules(__path__) if not module.name.startswith("_")}
    names = {*globals(), *_HOME, *modules, *_C._function_names("")}
    return sorted(name for name in names if not name.startswith(_LIBRARY))


if __name__ == "torch":
    _import("facula._core_names")

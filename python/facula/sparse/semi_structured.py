"""Semi-structured sparse tensors: matrices of which two of each four neighbours are zero.

Products of these are made by tensor cores of NVIDIA's devices, so a matrix is compressed where it
stands on one. On the CPU the classes exist, hold parts that were compressed elsewhere, and give
the strided matrix back (Mishra et al., "Accelerating sparse deep neural networks", 2021).
"""

from __future__ import annotations

import warnings
from collections import namedtuple

import facula
from facula.sparse import _semi_structured_conversions as conversions

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]

# Sizes must be multiples of these: of the sparse matrix, and of the strided one beside it.
_SEMI_STRUCTURED_SPARSE_CONFIG = namedtuple(
    "_SEMI_STRUCTURED_SPARSE_CONFIG",
    "sparse_min_rows sparse_min_cols dense_min_rows dense_min_cols",
)
_PARTS = ("packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask")


class SparseSemiStructuredTensor(facula.Tensor):
    """A matrix with half of its elements kept, as one of the backends stores it.

    Args:
        shape (Size): (m, k) of the whole matrix.
        packed (Tensor): the kept elements, with the metadata behind them where `meta` is None.
        meta (Tensor): which elements are kept.
        packed_t (Tensor): the same of the transpose, or None.
        meta_t (Tensor): likewise.
        compressed_swizzled_bitmask (Tensor): a bit for each element, for pruning; or None.
        fuse_transpose_cusparselt (bool): whether the backend transposes results of products.
        alg_id_cusparselt (int): which algorithm the backend takes.
        requires_grad (bool): whether the result collects gradients.

    Raises:
        ValueError: with neither `packed` nor `packed_t`.

    Example:
        >>> x = facula.tensor([0.0, 1.0, 0.0, 2.0]).half().repeat(32, 16)
        >>> from facula.sparse import _semi_structured_conversions as conversions
        >>> parts = conversions.sparse_semi_structured_from_dense_cutlass(x)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # of the prototype
        ...     s = SparseSemiStructuredTensorCUTLASS(x.shape, *parts, None, None, None)
        >>> facula.equal(s.to_dense(), x)
        True
    """

    BACKEND = "abstract"
    SPARSE_DISPATCH = {}
    _DEFAULT_ALG_ID = 0
    _DTYPE_SHAPE_CONSTRAINTS = {}
    _FORCE_CUTLASS = False
    _FUSE_TRANSPOSE = False
    _PROTOTYPE_WARNING_SHOWN = False

    @staticmethod
    def __new__(
        cls,
        shape,
        packed,
        meta,
        packed_t,
        meta_t,
        compressed_swizzled_bitmask,
        fuse_transpose_cusparselt=False,
        alg_id_cusparselt=0,
        requires_grad=False,
    ):
        cls._load_dispatch_table()
        if not SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN:
            SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN = True
            warnings.warn(
                "semi-structured sparse tensors are a prototype: their interface may change",
                UserWarning,
                stacklevel=2,
            )
        like = packed if packed is not None else packed_t
        if like is None:
            raise ValueError(f"{cls.__name__}(): expected packed or packed_t; got neither")
        made = facula.Tensor._make_wrapper_subclass(
            cls, shape, device=like.device, dtype=like.dtype, requires_grad=requires_grad
        )
        parts = packed, meta, packed_t, meta_t, compressed_swizzled_bitmask
        for name, part in zip(_PARTS, parts, strict=True):
            setattr(made, name, part)
        made.fuse_transpose_cusparselt = fuse_transpose_cusparselt
        made.alg_id_cusparselt = alg_id_cusparselt
        return made

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape})"

    def __tensor_flatten__(self):
        names = [name for name in _PARTS if getattr(self, name) is not None]
        return names, (
            self.shape,
            self.fuse_transpose_cusparselt,
            self.alg_id_cusparselt,
            self.requires_grad,
        )

    @classmethod
    def __tensor_unflatten__(cls, inner_tensors, tensor_meta, outer_size=None, outer_stride=None):
        shape, fuse, algorithm, requires_grad = tensor_meta
        parts = [inner_tensors.get(name) for name in _PARTS]
        return cls(shape, *parts, fuse, algorithm, requires_grad)

    __torch_function__ = facula._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        function = cls.SPARSE_DISPATCH.get(func.overloadpacket)
        if function is None:
            known = ", ".join(sorted(str(packet) for packet in cls.SPARSE_DISPATCH))
            raise NotImplementedError(
                f"{func}: not implemented for {cls.__name__}, which knows {known}"
            )
        return function(func, types, args, kwargs or {})

    @classmethod
    def _load_dispatch_table(cls, custom_dispatch_table=None):
        """Fills the class's table of functions by operator once; others may be added to it."""
        if "SPARSE_DISPATCH" not in cls.__dict__:
            cls.SPARSE_DISPATCH = {
                getattr(facula.ops.aten, name): _of_arguments(function)
                for name, function in _FUNCTIONS.items()
            }
        cls.SPARSE_DISPATCH.update(custom_dispatch_table or {})

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor):
        what = f"{cls.__name__}: expected a tensor"
        if not original_tensor.is_cuda:
            raise RuntimeError(f"{what} on a CUDA device; got one on {original_tensor.device}")
        if original_tensor.dim() != 2:
            raise RuntimeError(f"{what} of 2 dimensions; got {original_tensor.dim()}")
        if not original_tensor.is_contiguous():
            raise RuntimeError(f"{what} that is contiguous")
        limits = cls._DTYPE_SHAPE_CONSTRAINTS.get(original_tensor.dtype)
        if limits is None:
            known = ", ".join(map(str, cls._DTYPE_SHAPE_CONSTRAINTS))
            raise RuntimeError(f"{what} of {known}; got {original_tensor.dtype}")
        m, n = original_tensor.shape
        rows, columns = limits.sparse_min_rows, limits.sparse_min_cols
        if m < rows or n < columns or m % rows or n % columns:
            raise RuntimeError(
                f"{what} of a multiple of {rows} rows and of {columns} columns; got {m} by {n}"
            )

    @classmethod
    def from_dense(cls, original_tensor):
        """Compresses a strided matrix; a backend's business."""
        raise NotImplementedError(f"{cls.__name__}.from_dense()")

    def to_dense(self):
        """The strided matrix (m, k)."""
        raise NotImplementedError(f"{type(self).__name__}.to_dense(): needs cuSPARSELt's products")

    def _with(self, shape, parts):
        return type(self)(
            shape,
            *parts,
            self.fuse_transpose_cusparselt,
            self.alg_id_cusparselt,
            self.requires_grad,
        )


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """A matrix as CUTLASS stores it: kept elements and metadata apart."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS = {
        facula.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 128, 16, 16),
        facula.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        facula.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        facula.float32: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 4, 4),
    }

    @classmethod
    def from_dense(cls, original_tensor):
        """Compresses a strided matrix on a CUDA device.

        Args:
            original_tensor (Tensor): (m, k), half of each group of four zero.

        Returns:
            SparseSemiStructuredTensorCUTLASS

        Raises:
            RuntimeError: for tensors elsewhere, other dtypes and sizes.
        """
        cls._validate_device_dim_dtype_shape(original_tensor)
        parts = conversions.sparse_semi_structured_from_dense_cutlass(original_tensor)
        return cls(original_tensor.shape, *parts, None, None, None)

    def to_dense(self):
        """The strided matrix (m, k).

        Returns:
            Tensor

        Raises:
            AssertionError: without `packed` or `meta`, as a transpose has it.
        """
        if self.packed is None or self.meta is None:
            raise AssertionError("to_dense(): expected packed and meta; one of them is None")
        if self.meta.dim() == 2:
            return conversions.sparse_semi_structured_to_dense_cutlass(self.packed, self.meta)
        return super().to_dense()


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """A matrix as cuSPARSELt stores it: metadata behind the kept elements."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS = {
        facula.float8_e4m3fn: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        facula.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        facula.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
        facula.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
    }

    @classmethod
    def from_dense(cls, original_tensor, alg_id=0):
        """Compresses a strided matrix on a CUDA device.

        Args:
            original_tensor (Tensor): (m, k), half of each group of four zero.
            alg_id (int): which algorithm products take.

        Returns:
            SparseSemiStructuredTensorCUSPARSELT

        Raises:
            RuntimeError: for tensors elsewhere, other dtypes and sizes.
            NotImplementedError: on CUDA devices, for cuSPARSELt is not called by facula.
        """
        cls._validate_device_dim_dtype_shape(original_tensor)
        raise NotImplementedError("cuSPARSELt's compression is missing; CUTLASS's layout is there")


def to_sparse_semi_structured(original_tensor, transposed=False, alg_id=0):
    """Compresses a matrix of which two of each four neighbours in a row are zero.

    Args:
        original_tensor (Tensor): (m, k) on a CUDA device.
        transposed (bool): deprecated, without effect.
        alg_id (int): which algorithm cuSPARSELt takes.

    Returns:
        SparseSemiStructuredTensor: of the backend in force.

    Raises:
        RuntimeError: for a tensor that is not on a CUDA device, of another dtype, or of sizes that
            the backend does not take.

    Example:
        >>> try:
        ...     to_sparse_semi_structured(facula.ones(64, 64))
        ... except RuntimeError as error:
        ...     print(str(error).partition(": ")[2])
        expected a tensor on a CUDA device; got one on cpu
    """
    if transposed:
        warnings.warn(
            "to_sparse_semi_structured(): transposed is deprecated and has no effect",
            FutureWarning,
            stacklevel=2,
        )
    if SparseSemiStructuredTensor._FORCE_CUTLASS:
        return SparseSemiStructuredTensorCUTLASS.from_dense(original_tensor)
    return SparseSemiStructuredTensorCUSPARSELT.from_dense(original_tensor, alg_id)


# --- what is known of operators


def _of_arguments(function):
    """A function of a call's arguments, called as an entry of the table is."""
    return lambda func, types, args, kwargs: function(*args, **kwargs)


def _parts(t):
    return [getattr(t, name) for name in _PARTS]


def _detach(t):
    return t._with(t.shape, _parts(t))


def _clone(t, *, memory_format=None):
    return t._with(t.shape, [part if part is None else part.clone() for part in _parts(t)])


def _turned(t):
    packed, meta, packed_t, meta_t, bits = _parts(t)
    bits = bits if bits is None else bits.transpose(0, 1)
    return t._with(facula.Size(reversed(t.shape)), (packed_t, meta_t, packed, meta, bits))


def _view(t, shape):
    if tuple(shape) != tuple(t.shape):
        raise NotImplementedError(
            f"view(): a semi-structured sparse tensor keeps its shape {tuple(t.shape)}; "
            f"got {tuple(shape)}"
        )
    return _detach(t)


def _kept(t):
    """How many numbers of `packed` are elements, where metadata stands behind them."""
    return t.shape[0] * t.shape[1] // 2


def _values(t):
    if t.packed is None:
        raise RuntimeError("values(): expected a tensor with packed elements")
    if t.meta is not None:
        return t.packed.detach()
    return t.packed.reshape(-1)[: _kept(t)].reshape(t.shape[0], -1)


def _indices(t):
    if t.packed is None:
        raise RuntimeError("indices(): expected a tensor with packed elements")
    if t.meta is not None:
        return t.meta.detach()
    wide = facula.int32 if t.dtype is facula.int8 else facula.int16
    return t.packed.reshape(-1)[_kept(t) :].reshape(t.shape[0], -1).view(wide)


def _to_copy(t, **options):
    wanted = {name: option for name, option in options.items() if option is not None}
    if set(wanted) - {"device", "non_blocking"} or "device" not in wanted:
        raise NotImplementedError(
            f"_to_copy(): a semi-structured sparse tensor can change its device alone; got {wanted}"
        )
    moved = [part if part is None else part.to(wanted["device"]) for part in _parts(t)]
    return t._with(t.shape, moved)


def _product(*operands, **options):
    raise NotImplementedError(
        "products of semi-structured sparse tensors: their kernels for tensor cores are missing; "
        "to_dense() gives a strided matrix"
    )


_FUNCTIONS = {
    "values": _values,
    "indices": _indices,
    "detach": _detach,
    "alias": _detach,
    "clone": _clone,
    "t": _turned,
    "view": _view,
    "_to_copy": _to_copy,
    "mm": _product,
    "matmul": _product,
    "addmm": _product,
    "linear": _product,
}

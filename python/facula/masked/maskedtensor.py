"""MaskedTensor: a tensor of which a mask says which elements are there.

It is a wrapper around data and mask. Elementwise operators work on the data of the elements that
are there, operators that move elements move both, and reductions are those of `facula.masked`.
"""

from __future__ import annotations

import facula
from facula.masked import _ops

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]


def is_masked_tensor(obj, /):
    """Whether an object is a MaskedTensor.

    Args:
        obj: anything.

    Returns:
        bool

    Example:
        >>> is_masked_tensor(facula.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor of copies of data and mask: a leaf, cut off from the history of `data`.

    Args:
        data (Tensor): of any shape and any real dtype.
        mask (Tensor): of bool and the same shape; True where an element is there.
        requires_grad (bool): whether the result collects gradients.

    Returns:
        MaskedTensor

    Raises:
        TypeError: for a mask that is not of bool, or data that is no plain tensor of a real dtype.
        ValueError: where the shapes differ.

    Example:
        >>> masked_tensor(facula.tensor([1.0, 2.0]), facula.tensor([True, False]))
        MaskedTensor(
          [  1.0000,       --]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor of data and mask through which gradients go on to `data`.

    Args:
        data (Tensor): of any shape and any real dtype.
        mask (Tensor): of bool and the same shape; True where an element is there.

    Returns:
        MaskedTensor

    Raises:
        TypeError, ValueError: as `masked_tensor` does.

    Example:
        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> as_masked_tensor(x, facula.tensor([True, False])).exp().sum().backward()
        >>> x.grad
        MaskedTensor(
          [  2.7183,       --]
        )
    """
    return _FromParts.apply(data, mask)


class _FromParts(facula.autograd.Function):
    """as_masked_tensor with a gradient."""

    @staticmethod
    def forward(ctx, data, mask):
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class _FromReduction(facula.autograd.Function):
    """as_masked_tensor of a result; what it was computed from gets a plain gradient."""

    @staticmethod
    def forward(ctx, data, mask):
        ctx.mask = mask
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx, grad):
        data = grad._masked_data if is_masked_tensor(grad) else grad
        return data.masked_fill(~ctx.mask, 0), None


class _Data(facula.autograd.Function):
    """The data of a MaskedTensor; its gradient has the same mask."""

    @staticmethod
    def forward(ctx, input):
        ctx.mask = input._masked_mask
        return input._masked_data.detach()

    @staticmethod
    def backward(ctx, grad):
        if is_masked_tensor(grad):
            return MaskedTensor(grad._masked_data, grad._masked_mask & ctx.mask)
        return MaskedTensor(grad, ctx.mask)


def _check(data, mask):
    if not isinstance(data, facula.Tensor) or is_masked_tensor(data):
        raise TypeError(f"masked_tensor(): data must be a plain tensor; got {type(data).__name__}")
    if not isinstance(mask, facula.Tensor) or is_masked_tensor(mask):
        raise TypeError(f"masked_tensor(): mask must be a plain tensor; got {type(mask).__name__}")
    if mask.dtype != facula.bool:
        raise TypeError(f"masked_tensor(): mask must have dtype bool; got {mask.dtype}")
    if data.is_complex():
        raise TypeError(f"masked_tensor(): data must have a real dtype; got {data.dtype}")
    if data.shape != mask.shape:
        raise ValueError(
            "masked_tensor(): data and mask must have the same shape; "
            f"got {tuple(data.shape)} and {tuple(mask.shape)}"
        )


class MaskedTensor(facula.Tensor):
    """A tensor of which a mask says which elements are there; see `masked_tensor`.

    Args:
        data (Tensor): of any shape and any real dtype; copied.
        mask (Tensor): of bool and the same shape; True where an element is there.
        requires_grad (bool): whether it collects gradients.

    Raises:
        TypeError: for a mask that is not of bool, or data that is no plain tensor of a real dtype.
        ValueError: where the shapes differ.

    Example:
        >>> x = MaskedTensor(facula.tensor([1.0, 2.0]), facula.tensor([True, False]))
        >>> x.sum()
        MaskedTensor(  1.0000, True)
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        return facula.Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            device=data.device,
            dtype=data.dtype,
            layout=data.layout,
            requires_grad=requires_grad,
        )

    def __init__(self, data, mask, requires_grad=False):
        self._masked_data = data.detach().clone()
        self._masked_mask = mask.detach().clone()

    def __reduce_ex__(self, protocol):
        return _rebuilt, (self._masked_data, self._masked_mask, self.requires_grad)

    def __repr__(self, *, tensor_contents=None):
        return _representation(self._masked_data, self._masked_mask)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        reduced = _reduction(func, args, kwargs)
        if reduced is not None:
            return reduced
        if not all(issubclass(kind, (MaskedTensor, facula.Tensor)) for kind in types):
            return NotImplemented
        with facula._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _dispatch(func, args, kwargs or {})

    @classmethod
    def unary(cls, fn, data, mask):
        """What an elementwise function gives for data, as a MaskedTensor.

        Args:
            fn (callable): of one tensor.
            data (Tensor): its argument.
            mask (Tensor): of bool and the same shape.

        Returns:
            MaskedTensor

        Example:
            >>> one = facula.ones(1)
            >>> MaskedTensor.unary(facula.neg, one, one.bool()).get_data()
            tensor([-1.])
        """
        return cls(fn(data), mask)

    def get_data(self):
        """The data as a plain tensor, that of missing elements too.

        Returns:
            Tensor: with the gradient of this tensor.

        Example:
            >>> masked_tensor(facula.ones(2), facula.tensor([True, False])).get_data()
            tensor([1., 1.])
        """
        with facula._C.DisableTorchFunctionSubclass():
            return _Data.apply(self)

    def get_mask(self):
        """The mask.

        Returns:
            Tensor: of bool.

        Example:
            >>> masked_tensor(facula.ones(2), facula.tensor([True, False])).get_mask()
            tensor([ True, False])
        """
        return self._masked_mask

    def to_tensor(self, value):
        """The data with a value in the place of missing elements.

        Args:
            value (float): the value.

        Returns:
            Tensor

        Example:
            >>> masked_tensor(facula.ones(2), facula.tensor([True, False])).to_tensor(0)
            tensor([1., 0.])
        """
        return self.get_data().masked_fill(~self.get_mask(), value)

    def is_sparse_coo(self):
        """Whether the data is in COO layout.

        Returns:
            bool

        Example:
            >>> masked_tensor(facula.ones(1), facula.ones(1).bool()).is_sparse_coo()
            False
        """
        return self._masked_data.layout == facula.sparse_coo

    def is_sparse_csr(self):
        """Whether the data is in CSR layout.

        Returns:
            bool

        Example:
            >>> masked_tensor(facula.ones(1), facula.ones(1).bool()).is_sparse_csr()
            False
        """
        return self._masked_data.layout == facula.sparse_csr

    @property
    def is_sparse(self):
        """Whether the data is in a sparse layout that is implemented for masked tensors."""
        return self.is_sparse_coo() or self.is_sparse_csr()


def _rebuilt(data, mask, requires_grad):
    return MaskedTensor(data, mask, requires_grad)


# --- printing


def _representation(data, mask):
    if data.is_meta:
        raise RuntimeError("MaskedTensor.__repr__(): a tensor on meta has no values to print")
    texts = [_text(value) for value in data.reshape(-1).tolist()]
    there = mask.reshape(-1).tolist()
    if data.ndim == 0:
        return f"MaskedTensor({texts[0]}, True)" if there[0] else "MaskedTensor(--, False)"
    texts = [text if counts else None for text, counts in zip(texts, there, strict=False)]
    rows = _nested(texts, data.shape, "  ")
    return f"MaskedTensor(\n  {rows}\n)"


def _text(value):
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _nested(texts, shape, indent):
    """The texts in brackets, one row of the last dimension on each line; None is missing."""
    if len(shape) == 1:
        width = max([8, *(len(text) for text in texts if text is not None)])
        return f"[{', '.join('--'.rjust(width) if t is None else t for t in texts)}]"
    size = len(texts) // shape[0] if shape[0] else 0
    deeper = indent + "  "
    parts = [
        deeper + _nested(texts[i * size : (i + 1) * size], shape[1:], deeper)
        for i in range(shape[0])
    ]
    return "[\n" + ",\n".join(parts or [indent]) + f"\n{indent}]"


# --- reductions: compositions of facula.masked, so that gradients follow from theirs

_REDUCTIONS = "sum prod mean amax amin argmax argmin var std norm all softmax log_softmax".split()


def _reduction(func, args, kwargs):
    """The result where `func` is a reduction of a MaskedTensor, else None."""
    name = getattr(func, "__name__", "")
    if name not in _REDUCTIONS or not args or not is_masked_tensor(args[0]):
        return None
    input, rest = args[0], args[1:]
    with facula._C.DisableTorchFunctionSubclass():
        data, mask = input.get_data(), input.get_mask()
    if name in ("softmax", "log_softmax"):
        return _FromReduction.apply(_softmax(name, data, mask, rest, kwargs), mask)
    if name == "norm":
        rest, kwargs = _norm_arguments(rest, kwargs)
    dim = rest[-1] if rest and name != "norm" else kwargs.get("dim")
    dim = rest[0] if rest and name in ("var", "std") and not isinstance(rest[0], bool) else dim
    if name == "all":
        result = facula.where(mask, data, facula.ones_like(data)).all(*rest, **kwargs)
    else:
        result = getattr(_ops, name)(data, *rest, mask=mask, **kwargs)
    return _FromReduction.apply(result, _counted(mask, dim, kwargs.get("keepdim", False)))


def _softmax(name, data, mask, rest, kwargs):
    names = ("dim", "dtype")
    options = {**dict(zip(names, rest, strict=False)), **kwargs}
    return getattr(_ops, name)(data, mask=mask, **options)


def _norm_arguments(rest, kwargs):
    """Arguments of `Tensor.norm` as those of `masked.norm`."""
    options = {**dict(zip(("p", "dim", "keepdim", "dtype"), rest, strict=False)), **kwargs}
    order = options.pop("p", "fro")
    options["ord"] = 2.0 if order in ("fro", None) else order
    return (), options


def _counted(mask, dim, keepdim):
    """Whether a slice has an element that is there."""
    dims = _ops._dims(dim, mask.ndim)
    return mask.any(dims, bool(keepdim)) if mask.ndim else mask


# --- operators below autograd

# What moves elements without looking at them, beside views: done to data and mask alike.
_MOVERS = frozenset(
    "cat clone contiguous expand flip gather index index_select repeat repeat_interleave roll "
    "reshape stack where _unsafe_view select_backward slice_backward unfold_backward "
    "diagonal_backward index_put masked_select movedim unbind split chunk new_zeros "
    "slice_scatter".split()
)
# What copies to another dtype or device.
_COPIES = frozenset(("_to_copy", "to"))
_ALIKE = frozenset(("ones_like", "zeros_like", "empty_like", "full_like"))


def _dispatch(func, args, kwargs):
    name = func._schema.name.partition("::")[2]
    if name == "detach":
        return MaskedTensor(args[0]._masked_data, args[0]._masked_mask)
    if name in _COPIES:
        return _converted(func, args, kwargs)
    if name in _ALIKE:
        data = func(args[0]._masked_data, *args[1:], **kwargs)
        return MaskedTensor(data, args[0]._masked_mask.to(data.device))
    if name in ("_local_scalar_dense", "item"):
        return _number(args[0])
    if func.is_view or name in _MOVERS:
        return _moved(func, args, kwargs)
    if "pointwise" in func._tags():
        return _elementwise(func, args, kwargs)
    return _by_formula(func, name, args, kwargs)


def _number(input):
    if not bool(input._masked_mask):
        raise ValueError("MaskedTensor.item(): the element is missing")
    return input._masked_data.item()


def _converted(func, args, kwargs):
    data = func(args[0]._masked_data, *args[1:], **kwargs)
    return MaskedTensor(data, args[0]._masked_mask.to(data.device))


def _map(function, value):
    """Applies a function to the tensors in arguments or results."""
    if isinstance(value, facula.Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, item) for item in value)
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    return value


def _data_of(value):
    return value._masked_data if is_masked_tensor(value) else value


def _moved(func, args, kwargs):
    def mask_of(value):
        if is_masked_tensor(value):
            return value._masked_mask
        # An index or a condition stays what it is; among data a plain tensor is all there.
        if not value.dtype.is_floating_point:
            return value
        return facula.ones_like(value, dtype=facula.bool)

    data = func(*_map(_data_of, args), **_map(_data_of, kwargs))
    mask_args = _map(mask_of, args)
    if func._schema.name == "aten::where":  # numbers are there, too
        mask_args = [a if isinstance(a, facula.Tensor) else facula.tensor(True) for a in mask_args]
    mask_kwargs = {**_map(mask_of, kwargs), **({"dtype": facula.bool} if "dtype" in kwargs else {})}
    mask = func(*mask_args, **mask_kwargs)
    if isinstance(data, (tuple, list)):
        return type(data)(MaskedTensor(d, m) for d, m in zip(data, mask, strict=False))
    return MaskedTensor(data, mask)


def _elementwise(func, args, kwargs):
    masks = []
    _map(lambda t: masks.append(t._masked_mask) if is_masked_tensor(t) else None, (args, kwargs))
    for other in masks[1:]:
        if other.shape != masks[0].shape or not facula.equal(other, masks[0]):
            raise ValueError(
                f"{func._schema.name}(): masks must be equal; "
                f"got two masks, of shapes {tuple(masks[0].shape)} and {tuple(other.shape)}"
            )
    data = func(*_map(_data_of, args), **_map(_data_of, kwargs))
    if is_masked_tensor(args[0]) and data is args[0]._masked_data:
        return args[0]  # in place
    return MaskedTensor(data, masks[0].expand(data.shape))


def _by_formula(func, name, args, kwargs):
    """Operators of derivatives; what is not among them is refused."""
    if name in ("sigmoid_backward", "tanh_backward"):
        return _elementwise(func, args, kwargs)
    return NotImplemented

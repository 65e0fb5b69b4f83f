"""Functions of `facula` that are put together from operators in Python."""

from __future__ import annotations

import facula
from facula import _C

_Tensor = _C.Tensor
_nonzero, _unique2, _unique_dim, _unique_consecutive, _stft, _istft = (
    _C._function("", name)
    for name in ("nonzero", "_unique2", "unique_dim", "unique_consecutive", "stft", "istft")
)


def _overridable(function, arrange=None):
    return _C.overridable(function, __name__, arrange=arrange or _arranged)


def _told_as_given(function):
    return _C.overridable(function, __name__)


def _arranged(function, args, kwargs):
    """What an override is told: what must be given by position, the rest by name, all of it."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    needed = [p.name for p in parameters if p.default is p.empty]
    rest = {name: value for name, value in bound.arguments.items() if name not in needed}
    return tuple(bound.arguments[name] for name in needed), rest


def _as_list(tensors):
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return list(tensors[0])
    return list(tensors)


def _check_tensors(name, **arguments):
    for position, (argument, given) in enumerate(arguments.items(), 1):
        if not isinstance(given, _Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, "
                f"not {type(given).__name__}"
            )


# --- questions and settings


def typename(obj):
    """The qualified name of an object's class; for tensors the legacy type's name."""
    if isinstance(obj, _Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "")
    module = "" if module in ("builtins", "__builtin__", None) else module
    name = getattr(obj, "__qualname__", None)
    if name is None:
        cls = obj.__class__
        module = cls.__module__ if cls.__module__ != "builtins" else ""
        name = cls.__qualname__
    return f"{module}.{name}" if module else name


def is_storage(obj):
    """Whether the object is a storage."""
    return isinstance(obj, (_C.UntypedStorage, facula.TypedStorage))


def is_conj(input):
    """Whether the conjugate bit is set."""
    return input.is_conj()


def is_neg(input):
    """Whether the negative bit is set."""
    return input.is_neg()


def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def is_nonzero(input):
    """Whether the only element is not zero."""
    if input.numel() != 1:
        ambiguous = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {ambiguous} is ambiguous")
    return bool(input.item())


def get_device(input):
    """The index of a tensor's device; -1 on the CPU."""
    return input.get_device()


_warn_always = False


def set_warn_always(b, /):
    """Ask for a warning at every call instead of once."""
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(): expected a bool; got {type(b).__name__}")
    _warn_always = b


def is_warn_always_enabled():
    """Whether a warning was asked for at every call."""
    return _warn_always


def detach_(input):
    """Take a tensor's history away, in place; the function of `Tensor.detach_`."""
    _check_tensors("detach_", input=input)
    return input.detach_()


@_overridable
def is_same_size(input, other):
    """Whether two tensors have the same sizes."""
    _check_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


def set_default_dtype(d, /):
    """Set the dtype of new floating-point tensors."""
    _C._set_default_dtype(d)


def set_default_device(device):
    """Set the device of new tensors; None for the CPU."""
    _C._set_default_device(device)


def set_default_tensor_type(t, /):
    """Set the default dtype by a legacy tensor type, or its name: "torch.DoubleTensor"."""
    from facula._warn_once import warn_once

    warn_once(
        "set_default_tensor_type(): is deprecated in favour of set_default_dtype and "
        "set_default_device"
    )
    name = t.rsplit(".", 1)[-1] if isinstance(t, str) else getattr(t, "__name__", str(t))
    table = {
        "FloatTensor": facula.float32,
        "DoubleTensor": facula.float64,
        "HalfTensor": facula.float16,
        "BFloat16Tensor": facula.bfloat16,
    }
    if name not in table:
        raise TypeError(f"set_default_tensor_type(): expected a floating-point type; got {t}")
    _C._set_default_dtype(table[name])


@_overridable
def _assert(condition, message):
    """Raise AssertionError with `message` unless `condition` holds; tracers see the call.

    Example:
        >>> facula._assert(2 > 1, "two is more than one")
    """
    assert condition, message


_assert.__module__ = facula.__name__  # generated code calls it by its public place


# --- construction


@_told_as_given
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of an object: a tensor, array, DLPack or buffer object, or sequences.

    Args:
        obj: the data.
        dtype (facula.dtype), device (facula.device): those of the data unless given.
        copy (bool): True copies, False forbids it, None copies where needed.
        requires_grad (bool): whether gradients are wanted.

    Raises:
        ValueError: copy=False where a copy is needed.
    """
    plain = isinstance(obj, (_Tensor, int, float, complex, bool, list, tuple)) or is_storage(obj)
    if not plain and hasattr(obj, "__dlpack__") and type(obj).__module__ != "numpy":
        obj = from_dlpack(obj)
    made = facula.as_tensor(obj, dtype=dtype, device=device)
    if isinstance(obj, _Tensor):
        if copy is False and made is not obj:
            raise ValueError("can't alias tensor with different dtype or device: copy is needed")
        result = made.detach().clone() if copy and made is obj else made
        if requires_grad != result.requires_grad:
            result = result.detach().requires_grad_(requires_grad)
        return result
    if copy is False and isinstance(obj, (list, tuple, int, float, complex)):
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    result = made.clone() if copy and not isinstance(obj, (list, tuple)) else made
    return result.requires_grad_() if requires_grad else result


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object with `__dlpack__`, or of a capsule."""
    result = _C._from_dlpack(ext_tensor)
    if device is not None:
        result = result.to(device)
    return result.clone() if copy else result


# --- shapes


def broadcast_shapes(*shapes):
    """The shape that all of the shapes (ints or sequences) broadcast to; returns a Size."""
    result = []
    for shape in shapes:
        if shape is None:  # nothing to broadcast
            continue
        if not isinstance(shape, (int, tuple, list)):
            kind = TypeError if isinstance(shape, str) else RuntimeError  # as PyTorch
            raise kind(
                "broadcast_shapes(): expected ints, or tuples or lists of ints; got "
                f"{type(shape).__name__}"
            )
        shape = [shape] if isinstance(shape, int) else list(shape)
        if any(n < 0 for n in shape):
            raise RuntimeError(
                f"Trying to create tensor with negative dimension ({min(shape)}): ({min(shape)})"
            )
        missing = len(shape) - len(result)
        result = [1] * missing + result
        for at, n in enumerate(shape, len(result) - len(shape)):
            if result[at] == 1:
                result[at] = n
            elif n not in (1, result[at]):
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
    return facula.Size(result)


@_overridable
def broadcast_tensors(*tensors):
    """Views of all tensors with the shape that they broadcast to; returns a tuple."""
    return _C._function("", "broadcast_tensors")(_as_list(tensors))


@_overridable
def split(tensor, split_size_or_sections, dim=0):
    """Views of the tensor along `dim`: of one size (int), or of the sizes of a list."""
    operator = _C._function("", "split")
    if isinstance(split_size_or_sections, (list, tuple)):
        return _C._function("", "split_with_sizes")(tensor, split_size_or_sections, dim)
    return operator(tensor, split_size_or_sections, dim)


@_overridable
def meshgrid(*tensors, indexing=None):
    """Grids of coordinates from 1-D tensors; returns a tuple.

    Args:
        tensors: of at most one dimension.
        indexing (str): "ij" or "xy"; "ij" with a warning when left out.
    """
    tensors = _as_list(tensors)
    operator = _C._function("", "meshgrid")
    if indexing is None:
        from facula._warn_once import warn_once

        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument."
        )
        return operator(tensors)
    return operator(tensors, indexing=indexing)


@_overridable
def cartesian_prod(*tensors):
    """All combinations of the elements of 1-D tensors, a row each."""
    return _C._function("", "cartesian_prod")(_as_list(tensors))


@_overridable
def block_diag(*tensors):
    """A matrix with the given ones along its diagonal."""
    return _C._function("", "block_diag")(_as_list(tensors))


def _at_least(dims, tensors):
    operator = _C._function("", f"atleast_{dims}d")
    return operator(tensors[0] if len(tensors) == 1 else list(tensors))


@_overridable
def atleast_1d(*tensors):
    """Tensors with at least one dimension."""
    return _at_least(1, tensors)


@_overridable
def atleast_2d(*tensors):
    """Tensors with at least two dimensions."""
    return _at_least(2, tensors)


@_overridable
def atleast_3d(*tensors):
    """Tensors with at least three dimensions."""
    return _at_least(3, tensors)


# --- products


@_overridable
def tensordot(a, b, dims=2, out=None):
    """The sum of products over dimensions of both tensors.

    Args:
        a, b (Tensor).
        dims: how many last dimensions of `a` and first ones of `b`, or two lists of dimensions.
    """
    if isinstance(dims, _Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot(): dims must not be negative; got {dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                "tensordot(): dims must be at most the number of dimensions of a and of b; got "
                f"{dims}"
            )
        first, second = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        first, second = ([x] if isinstance(x, int) else list(x) for x in dims)
    operator = _C._function("", "tensordot")
    return operator(a, b, first, second) if out is None else operator(a, b, first, second, out=out)


def einsum(*args):
    """The sum of products that an equation describes: einsum("ij,jk->ik", a, b)."""
    equation, *operands = _equation_and_operands(args)
    return _C._function("", "einsum")(equation, _as_list(operands))


def _einsum_arranged(function, args, kwargs):
    args = _equation_and_operands(args)
    if len(args) == 2 and _C._len_torch_function_stack() == 0:
        return (args[0], *_as_list(args[1:])), kwargs
    return args, kwargs


einsum = _overridable(einsum, _einsum_arranged)


def _equation_and_operands(args):
    if len(args) < 2:
        raise ValueError("einsum(): expected an equation and an operand for each of its terms")
    if not isinstance(args[0], _Tensor):
        return args
    equation, operands = _equation_of(args)
    return (equation, *operands)


def _equation_of(args):
    # The form einsum(a, [0, 1], b, [1, 2], [0, 2]): subscripts as lists of numbers.
    def letters(subscripts):
        return "".join("..." if s is ... else _letter(s) for s in subscripts)

    operands = args[: len(args) - len(args) % 2 : 2]
    equation = ",".join(letters(s) for s in args[1::2])
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, operands


def _letter(number):
    if not 0 <= number < 52:
        raise ValueError("einsum(): subscript must be in the range [0, 52)")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)


@_overridable
def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order that takes the fewest operations."""
    return _C._function("", "chain_matmul")(_as_list(matrices), out=out)


@_overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """The LU factors of matrices in one matrix, and the rows that changed places.

    Args:
        A: a tensor (..., m, n).
        pivot: whether rows change places; without is not implemented on the CPU.
        get_infos: also gives, for each matrix, 0 or the number of the first pivot that is zero;
            without, such a matrix raises.
        out: a tuple of tensors for the results.

    Returns:
        (LU, pivots), or (LU, pivots, infos): see `facula.linalg.lu_factor_ex`.

    Raises:
        RuntimeError: a pivot is zero, unless `get_infos`.

    Example:
        >>> LU, pivots = facula.lu(facula.eye(2))
    """
    from facula._warn_once import warn_once

    warn_once("lu(): is deprecated in favour of linalg.lu_factor and linalg.lu_factor_ex")
    result = _C._function("", "_lu_with_info")(A, pivot=pivot, check_errors=not get_infos)
    if not get_infos:
        result = tuple(result[:2])
    if out is None:
        return result
    if len(out) != len(result):
        raise TypeError(f"lu(): expected out with {len(result)} tensors; got {len(out)}")
    for to, made in zip(out, result, strict=True):
        to.resize_as_(made).copy_(made)
    return out


@_overridable
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances between the rows of two batches of matrices, by the p-norm."""
    modes = {
        "use_mm_for_euclid_dist_if_necessary": None,
        "use_mm_for_euclid_dist": 1,
        "donot_use_mm_for_euclid_dist": 2,
    }
    if compute_mode not in modes:
        raise ValueError(f"cdist(): unknown compute_mode; got {compute_mode!r}")
    return _C._function("", "cdist")(x1, x2, p, modes[compute_mode])


def _int64s(values, device):
    """A vector of ints, filled by operators, which modes see (fake tensors among them)."""
    vector = facula.empty(len(values), dtype=facula.int64, device=device)
    for place, value in zip(vector.unbind(), values, strict=True):
        place.fill_(value)
    return vector


def unravel_index(indices, shape):
    """Positions along each dimension of a shape, from numbers of elements in row-major order.

    Args:
        indices (Tensor): numbers of elements, of an integer dtype.
        shape (int or sequence of ints): the shape that they count through.

    Returns:
        An int64 tensor for each dimension of `shape`, of the sizes of `indices`.

    Raises:
        TypeError: indices are not integers, or the shape is not made of ints.
        ValueError: a dimension is negative, or zero where there are indices.

    >>> facula.unravel_index(facula.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    integral = not (
        indices.is_complex() or indices.is_floating_point() or indices.dtype == facula.bool
    )
    if not integral:
        raise TypeError(f"unravel_index(): indices must be integers; got {indices.dtype}")
    sizes = _shape_of(shape)
    if not sizes:
        return ()
    if indices.numel() and 0 in sizes:
        raise ValueError(f"unravel_index(): shape must have elements to count; got {sizes}")
    steps = [1]  # for each dimension, the product of the sizes after it
    for size in reversed(sizes[1:]):
        steps.insert(0, steps[0] * size)
    steps, counts = _int64s(steps, indices.device), _int64s(sizes, indices.device)
    return (indices.unsqueeze(-1).div(steps, rounding_mode="floor") % counts).unbind(-1)


def _shape_of(shape):
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"unravel_index(): shape must hold ints; got {type(size).__name__}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index(): shape must not be negative; got {sizes}")
    return sizes


# --- reductions


@_overridable
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of the tensor, or of its slices along `dim`.

    Args:
        input (Tensor): of a floating-point or complex dtype.
        p: a number, "fro" or "nuc".
        dim (int or sequence): the dimensions to reduce; None for all.
        keepdim (bool): whether reduced dimensions stay with size 1.
        dtype (facula.dtype): what to compute in.
    """
    extra = {"dtype": dtype}
    if out is not None:
        extra["out"] = out
    dims = [dim] if isinstance(dim, int) else dim
    if p == "nuc":
        dims = range(input.dim()) if dims is None else dims
        if len(dims) != 2:
            raise RuntimeError("norm(): the nuclear norm is of matrices: expected two dimensions")
        return facula.linalg.matrix_norm(input, "nuc", tuple(dims), keepdim, **extra)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): p must be a number, 'fro' or 'nuc'; got {p!r}")
    if p == "fro" and dims is not None and len(dims) > 2:
        raise RuntimeError(f"norm(): the Frobenius norm takes at most two dimensions; got {dims}")
    order = 2.0 if p == "fro" or p is None else p
    return facula.linalg.vector_norm(input, order, dims, keepdim, **extra)


@_told_as_given
def nonzero(input, *, out=None, as_tuple=False):
    """Where the elements are that are not zero.

    Args:
        as_tuple (bool): one tensor for each dimension, which together index `input`.

    Returns:
        Tensor of int64, one row of coordinates for each element; or a tuple of columns.

    Example:
        >>> facula.nonzero(facula.tensor([0, 3, 5]), as_tuple=True)
        (tensor([1, 2]),)
    """
    if not isinstance(as_tuple, bool):
        raise TypeError(
            f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}"
        )
    if as_tuple and out is not None:
        raise RuntimeError("nonzero(): out= takes one tensor; as_tuple=True gives several")
    if as_tuple:
        return facula.where(input)
    return _nonzero(input) if out is None else _nonzero(input, out=out)


@_overridable
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along `dim`.

    Returns:
        Tensor, or a tuple of it, the places of the elements (return_inverse) and their counts.
    """
    if dim is None:
        values, inverse, counts = _unique2(input, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


@_overridable
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first element of every run of equal ones; results as for `unique`."""
    values, inverse, counts = _unique_consecutive(input, return_inverse, return_counts, dim)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


def _chosen(values, inverse, counts, with_inverse, with_counts):
    result = [values]
    if with_inverse:
        result.append(inverse)
    if with_counts:
        result.append(counts)
    return result[0] if len(result) == 1 else tuple(result)


# --- spectra


@_overridable
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The short-time Fourier transform: of pieces of a signal times a window.

    Args:
        input (Tensor): signals (length,) or (batch, length), real or complex.
        n_fft (int): how many points a piece has.
        hop_length (int): from one piece to the next; n_fft // 4 unless given.
        win_length (int): length of the window, at most n_fft (the default).
        window (Tensor): of win_length elements; zeros surround a shorter one. None means ones.
        center (bool): whether the signal is padded, so that piece k has its middle at
            k * hop_length.
        pad_mode (str): how, as for `nn.functional.pad`.
        normalized (bool): whether results are divided by the root of n_fft.
        onesided (bool): whether the first n_fft // 2 + 1 frequencies suffice, as by default for
            real numbers.
        return_complex (bool): whether the result is complex; has to be given for real signals.
        align_to_window (bool): without `center`, whether the first window, not the zeros before
            it, begins with the signal.

    Returns:
        Tensor: (..., frequencies, pieces), complex; or (..., frequencies, pieces, 2), real.

    Raises:
        RuntimeError: lengths do not fit.

    Example:
        >>> signal = facula.sin(facula.arange(64) * 0.5)
        >>> window = facula.hann_window(16)
        >>> facula.stft(signal, 16, window=window, return_complex=True).shape
        facula.Size([9, 17])
    """
    return _stft(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


@_overridable
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose short-time transform comes nearest to `input`, by least squares.

    Griffin and Lim, Signal estimation from modified short-time Fourier transform (1984).

    Args:
        input (Tensor): (frequencies, pieces) or (batch, frequencies, pieces), complex.
        n_fft, hop_length, win_length, window, center, normalized, onesided: as `stft` had them.
        length (int): of the signal; by default what the pieces reach.
        return_complex (bool): whether the signal is complex, which needs all frequencies.

    Returns:
        Tensor: (length,) or (batch, length).

    Raises:
        RuntimeError: windows leave a part of the signal out, or lengths do not fit.

    Example:
        >>> signal = facula.sin(facula.arange(64) * 0.5)
        >>> window = facula.hann_window(16)
        >>> spectra = facula.stft(signal, 16, window=window, return_complex=True)
        >>> facula.allclose(facula.istft(spectra, 16, window=window), signal, atol=1e-6)
        True
    """
    return _istft(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        normalized,
        onesided,
        length,
        return_complex,
    )

"""Text form of tensors, and the options that govern it.

Values are read through `tolist()` on the shown elements only, so that printing needs no arithmetic
operators: a Python float holds every float8, half, bfloat16 and float32 value exactly.
"""

import sys
from math import ceil, inf, isfinite

import facula
from facula import _layouts

_BYTES = {1: facula.uint8, 2: facula.uint16}
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}


class _PrintOptions:
    """The current options; `sci_mode` None lets each tensor's values decide."""

    __slots__ = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")

    def __init__(self):
        self.update(**_PROFILES["default"], sci_mode=None)

    def update(self, **options):
        for name, value in options.items():
            setattr(self, name, value)

    def as_dict(self):
        return {name: getattr(self, name) for name in self.__slots__}


PRINT_OPTS = _PrintOptions()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """Sets how tensors are printed, for the whole process.

    Args:
        precision (int): digits after the decimal point.
        threshold (int): more elements than this are summarised.
        edgeitems (int): items kept at either end of a summarised dimension.
        linewidth (int): characters to a line.
        profile (str): "default", "short" or "full": a start that the other arguments override.
        sci_mode (bool): scientific notation on or off; with None the values decide.

    Example:
        >>> facula.set_printoptions(precision=2)
        >>> facula.tensor([1.12345])
        tensor([1.12])
    """
    if profile in _PROFILES:
        PRINT_OPTS.update(**_PROFILES[profile])
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    PRINT_OPTS.update(**{name: value for name, value in given.items() if value is not None})
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The current print options: a dict that `set_printoptions` accepts as keyword arguments."""
    return PRINT_OPTS.as_dict()


class printoptions:
    """Context manager: sets print options (see `set_printoptions`), then puts the old ones back."""

    def __init__(self, **options):
        self._options = options

    def __enter__(self):
        self._before = get_printoptions()
        set_printoptions(**self._options)

    def __exit__(self, *exception):
        PRINT_OPTS.update(**self._before)


class _PlainFormat:
    """Integers and booleans, aligned to the widest."""

    def __init__(self, values):
        self.width = max((len(str(value)) for value in values), default=1)

    def text(self, value):
        return str(value).rjust(self.width)


class _RealFormat:
    """Floating-point numbers: whole (`2.`), fixed (`2.5000`) or scientific.

    The nonzero finite values choose the form and the width.
    """

    def __init__(self, values):
        precision = PRINT_OPTS.precision
        shaping = [value for value in values if value and isfinite(value)]
        self.whole = all(value == ceil(value) for value in shaping)
        self.scientific = bool(shaping) and self._wants_science(shaping)
        kind = "e" if self.scientific else "f"
        self._spec = ".0f" if self.whole and not self.scientific else f".{precision}{kind}"
        self.width = max((len(self._digits(value)) for value in shaping), default=1)

    def _wants_science(self, shaping):
        if PRINT_OPTS.sci_mode is not None:
            return bool(PRINT_OPTS.sci_mode)
        sizes = [abs(value) for value in shaping]
        smallest, largest = min(sizes), max(sizes)
        is_wide = largest / smallest > 1000.0 or largest > 1.0e8
        return is_wide or (not self.whole and smallest < 1.0e-4)

    def _digits(self, value):
        digits = format(value, self._spec)
        if self.scientific or not self.whole or not isfinite(value):
            return digits
        return digits + "."

    def text(self, value):
        return self._digits(value).rjust(self.width)


class _ComplexFormat:
    """Complex numbers: the two parts have a format each, and only the real part is padded."""

    def __init__(self, values):
        values = list(values)
        self._real = _RealFormat([value.real for value in values])
        self._imag = _RealFormat([value.imag for value in values])
        self.width = self._real.width + self._imag.width + 1

    def text(self, value):
        real, imag = self._real.text(value.real), self._imag.text(value.imag).lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return f"{real}{sign}{imag}j"


def _format_for(dtype, values):
    if dtype.is_complex:
        return _ComplexFormat(values)
    return _RealFormat(list(values)) if dtype.is_floating_point else _PlainFormat(values)


def _shown(t, edge):
    """Nested lists of the elements to print, with `...` for what a summary leaves out.

    At most `edge` items are kept at either end of a dimension; None keeps all.
    """
    if edge is None or t.dim() == 0:
        return t.tolist()
    size = t.size(0)
    if size <= 2 * edge:
        return t.tolist() if t.dim() == 1 else [_shown(t[i], edge) for i in range(size)]
    if t.dim() == 1:
        return [*t[:edge].tolist(), ..., *t[-edge:].tolist()]
    head = [_shown(t[i], edge) for i in range(edge)]
    return [*head, ..., *(_shown(t[i], edge) for i in range(size - edge, size))]


def _as_floats(nested):
    if isinstance(nested, list):
        return [_as_floats(item) for item in nested]
    return nested if nested is ... else float(nested)


def _leaves(nested):
    if not isinstance(nested, list):
        yield nested
        return
    for item in nested:
        if item is not ...:
            yield from _leaves(item)


def _vector_text(items, form, indent):
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (form.width + 2))
    texts = [" ..." if item is ... else form.text(item) for item in items]
    lines = [", ".join(texts[at : at + per_line]) for at in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested_text(nested, dim, form, indent):
    if dim == 0:
        return form.text(nested)
    if dim == 1:
        return _vector_text(nested, form, indent)
    rows = ["..." if row is ... else _nested_text(row, dim - 1, form, indent + 1) for row in nested]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(rows) + "]"


def _is_summarised(t):
    return t.numel() > PRINT_OPTS.threshold


def _values_text(t, indent):
    if t.numel() == 0:
        return "[]"
    if PRINT_OPTS.edgeitems == 0 and t.dim() > 0 and _is_summarised(t):
        return "[...]"
    # Elements without a value of their own (bits8, uint4, float4_e2m1fn_x2 ...) show their bytes.
    readable = t if t.dtype._has_numbers else t.view(_BYTES[t.dtype.itemsize])
    nested = _shown(readable, PRINT_OPTS.edgeitems if _is_summarised(t) else None)
    if t.dtype.is_floating_point and readable is not t:
        nested = _as_floats(nested)
    form = _format_for(t.dtype, _leaves(nested))
    return _nested_text(nested, t.dim(), form, indent)


def _tensor_str(self, indent):
    """The values alone, as `tensor_repr` has them after that many columns."""
    return _values_text(self.detach(), indent)


def _width(suffix):
    """Columns that the suffix takes in PyTorch's text, whose lines ours break like."""
    return len(suffix.replace("facula.", "torch."))


def _add_suffixes(text, suffixes, indent, force_newline):
    """Closes `text` with its suffixes; one that would pass the line width starts a new line."""
    parts = [text]
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or used + _width(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            used, force_newline = indent + _width(suffix), False
        else:
            parts.append(", " + suffix)
            used += _width(suffix) + 2
    return "".join(parts) + ")"


def _size_text(t):
    return f"size={tuple(t.shape)}"


def _dtype_goes_without_saying(t):
    default = facula.get_default_dtype()
    if t.dtype == default or t.is_meta or t.numel() == 0:
        return t.dtype == default
    complex_default = facula.complex128 if default == facula.float64 else facula.complex64
    return t.dtype in (complex_default, facula.int64, facula.bool)


def _strided_text(t, indent):
    return "..." if t.is_meta else _values_text(t, indent)


def _strided_suffixes(t):
    has_plain_size = t.dim() == 1 if t.numel() == 0 else PRINT_OPTS.edgeitems != 0
    return [] if has_plain_size and not t.is_meta else [_size_text(t)]


def _labelled_part(label, part, indent):
    start = f"{label}=tensor("
    part = part.detach()
    text = start + _strided_text(part, indent + len(start))
    return text + (f", {_size_text(part)})" if part.numel() == 0 else ")")


def _sparse_text(t, indent):
    if t.layout == facula.sparse_coo:
        parts = [("indices", t._indices()), ("values", t._values())]
    else:
        by_row = t.layout in (facula.sparse_csr, facula.sparse_bsr)
        names = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
        parts = [(name, getattr(t, name)()) for name in (*names, "values")]
    return (",\n" + " " * indent).join(_labelled_part(label, part, indent) for label, part in parts)


def _sparse_suffixes(t):
    return [_size_text(t)] if t.is_meta else [_size_text(t), f"nnz={t._nnz()}"]


def _quantizer_suffixes(t):
    scheme = t.qscheme()
    suffixes = [_size_text(t), f"dtype={t.dtype}", f"quantization_scheme={scheme}"]
    if scheme in (facula.per_tensor_affine, facula.per_tensor_symmetric):
        return [*suffixes, f"scale={t.q_scale()}", f"zero_point={t.q_zero_point()}"]
    return [
        *suffixes,
        f"scale={t.q_per_channel_scales()}",
        f"zero_point={t.q_per_channel_zero_points()}",
        f"axis={t.q_per_channel_axis()}",
    ]


def _grad_suffix(t):
    try:
        node = t.grad_fn
    except RuntimeError:
        # A view of several, whose base was then changed in place, has no valid node.
        return "grad_fn=<Invalid>"
    if node is None:
        return "requires_grad=True" if t.requires_grad else None
    name = type(node).__name__
    if name == "CppFunction":
        name = node.name().rsplit("::", 1)[-1]
    return f"grad_fn=<{name}>"


def _tangent_suffix(t):
    forward_ad = sys.modules.get("facula.autograd.forward_ad")
    if forward_ad is None or forward_ad._current_level < 0:
        return None
    tangent = forward_ad.unpack_dual(t).tangent
    return None if tangent is None else f"tangent={tangent}"


def _trailing_suffixes(t):
    suffixes = []
    if not t.is_quantized and not _dtype_goes_without_saying(t):
        suffixes.append(f"dtype={t.dtype}")
    if t.layout != facula.strided:
        suffixes.append(f"layout={t.layout}")
    return suffixes + [suffix for suffix in (_grad_suffix(t), _tangent_suffix(t)) if suffix]


def _body(t, given, indent):
    """Text of the values, unless it is given, and all suffixes."""
    plain = t.detach()
    is_sparse = t.layout in _layouts.sparse_layouts()
    said = None if is_sparse else _layouts.text(plain, indent)
    if said is not None:
        text, own = lambda *_: said, [f"size={tuple(t.shape)}"]
    elif t.is_quantized:
        text, own = _values_text, _quantizer_suffixes(t)
        plain = plain.dequantize()
    elif is_sparse:
        text, own = _sparse_text, _sparse_suffixes(t)
    else:
        shows_size = given is None or t.is_meta or t.numel() == 0
        text, own = _strided_text, _strided_suffixes(t) if shows_size else []
        plain = plain if t.layout == facula.strided else plain.to_dense()
    device = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    return text(plain, indent) if given is None else given, device + own + _trailing_suffixes(t)


def _nested_tensor_text(t):
    items = ",\n".join(repr(item.detach().requires_grad_(t.requires_grad)) for item in t.unbind())
    return "nested_tensor([\n" + "\n".join("  " + line for line in items.split("\n")) + "\n]"


def _indented(text):
    return "\n".join("    " + line for line in text.split("\n"))


def _text_without_levels(wrappers, t):
    """Text of the tensor in a wrapper; no transform may see the operators that printing calls."""
    inner = wrappers.get_unwrapped(t)
    kept = wrappers._set_aside()
    try:
        return repr(inner)
    finally:
        wrappers._put_back(kept)


def _wrapper_text(t):
    """Text of a function transform's tensor: level and wrapped tensor; None for other tensors."""
    wrappers = getattr(facula._C, "_functorch", None)
    if wrappers is None or not wrappers.is_functorch_wrapped_tensor(t):
        return None
    level = wrappers.maybe_get_level(t)
    text = _text_without_levels(wrappers, t)
    if wrappers.is_batchedtensor(t):
        head = f"BatchedTensor(lvl={level}, bdim={wrappers.maybe_get_bdim(t)}, value="
    elif wrappers.is_gradtrackingtensor(t):
        head = f"GradTrackingTensor(lvl={level}, value="
    else:
        return f"FunctionalTensor(lvl={level}, value=\\\n{text})"
    return f"{head}\n{_indented(text)}\n)"


def _parameter_class():
    # Only a loaded facula.nn can have made a Parameter; printing does not import it.
    module = sys.modules.get("facula.nn.parameter")
    return module.Parameter if module else None


def tensor_repr(t, tensor_contents=None):
    """The `repr` of a tensor, as PyTorch prints it.

    Args:
        t (Tensor): any tensor: of any dtype, layout, device or subclass.
        tensor_contents (str): text to show in place of the values.

    Returns:
        str: the text, of one or several lines.

    Example:
        >>> tensor_repr(facula.tensor([1.0, 2.5]))
        'tensor([1.0000, 2.5000])'
    """
    with facula._C.DisableTorchFunctionSubclass():
        wrapped = _wrapper_text(t)
        if wrapped is not None:
            return wrapped
        if t.is_nested:
            return _add_suffixes(_nested_tensor_text(t), _trailing_suffixes(t)[1:], 0, False)
        parameter = _parameter_class()
        is_plain = type(t) is facula.Tensor or type(t) is parameter
        prefix = "tensor(" if is_plain else f"{type(t).__name__}("
        text, suffixes = _body(t, tensor_contents, len(prefix))
        whole = _add_suffixes(prefix + text, suffixes, len(prefix), t.is_sparse)
        is_wrapped = not is_plain and parameter is not None and isinstance(t, parameter)
        return f"Parameter({whole})" if is_wrapped else whole


# PyTorch's names; packages call them for subclasses of their own.
_str = _str_intern = tensor_repr

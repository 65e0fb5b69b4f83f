"""What the suites share: running rows of the table and comparing what comes out."""

import sys

import numpy as np

from samples.common import Sample, T, find, make_arguments, make_arrays, seed_of

# Relative and absolute tolerance by the dtype of the result.
TOLERANCE = {
    "float64": (1e-9, 1e-9),
    "float32": (2e-5, 2e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (2e-2, 2e-2),
    "complex128": (1e-9, 1e-9),
    "complex64": (2e-5, 2e-5),
}
MOST_ENLARGED = 1 << 20
# What operators on sizes alone say of layouts that memory cannot give.
REFUSED_LAYOUTS = (
    "view size is not compatible",
    "single memory location",
    "Cannot view",
    "must not be channels-last",
    "last dimension must have stride 1",
    "must be that of self's memory",
    "must hold each element at a place of its own",
)


def dtype_name(t):
    """ "float32" for a tensor of either library."""
    return str(t.dtype).rpartition(".")[2]


def is_tensor(x):
    """Whether a value is a tensor of either library."""
    return hasattr(x, "requires_grad") and hasattr(x, "stride")


def tensors_of(result):
    """The results of a call as a flat list: tensors, numbers, texts."""
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in tensors_of(r)]
    if isinstance(result, dict):
        return tensors_of(list(result.values()))
    return [result]


def to_array(x):
    """A tensor, array or number as an array; bfloat16 as float32."""
    if not is_tensor(x):
        return np.asarray(x)
    t = x.detach()
    if getattr(t, "_is_zerotensor", bool)():  # PyTorch's zeros without memory
        t = t.clone()
    if t.is_complex():
        t = t.resolve_conj()
    t = t.resolve_neg()
    wide = {"bfloat16": "float32", "complex32": "complex64"}.get(dtype_name(t))
    return (
        t.to(getattr(sys.modules[type(t).__module__.partition(".")[0]], wide)) if wide else t
    ).numpy()


def tolerance(name, factor=1.0):
    """(rtol, atol) for a result of this dtype; exact for integers and bool."""
    rtol, atol = TOLERANCE.get(name, (0, 0))
    return rtol * factor, atol * factor


def assert_same_values(got, expected, factor=1.0, what=""):
    """Compares results element by element, within the tolerance of got's dtypes."""
    got, expected = tensors_of(got), tensors_of(expected)
    assert len(got) == len(expected), f"{what}: {len(got)} results; expected {len(expected)}"
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        if g is None or e is None:
            assert g is e, f"{what}: result {i} is {g}; expected {e}"
            continue
        array = to_array(g)
        wanted = to_array(e)
        assert array.shape == wanted.shape, (
            f"{what}: result {i} has shape {array.shape}; expected {wanted.shape}"
        )
        rtol, atol = tolerance(dtype_name(g) if is_tensor(g) else array.dtype.name, factor)
        np.testing.assert_allclose(array, wanted, rtol, atol, err_msg=f"{what}: result {i}")


def geometry_of(result):
    """(dtype, shape, strides) of each tensor among the results; other results as they are.

    Strides of dimensions of size 1 and of empty tensors say nothing and read as 0.
    """

    def one(t):
        if not is_tensor(t):
            return type(t).__name__
        strides = tuple(
            0 if size < 2 or t.numel() == 0 else stride
            for size, stride in zip(t.shape, t.stride(), strict=True)
        )
        return dtype_name(t), tuple(t.shape), strides

    return [one(t) for t in tensors_of(result)]


def run(lib, op, index, dtype, **options):
    """Calls one sample of an operator in a library."""
    args, kwargs = make_arguments(lib, op.samples[index], dtype, seed_of(op, index), **options)
    return find(lib, op.name)(*args, **kwargs)


def reference(op, index, dtype):
    """What NumPy says of one sample."""
    args, kwargs = make_arrays(op.samples[index], dtype, seed_of(op, index))
    with np.errstate(all="ignore"):
        return op.reference(*args, **kwargs)


def enlarged(sample, factor):
    """The sample with every dimension above 1 so many times longer; None where that is too much."""

    def grow(leaf, _):
        if not isinstance(leaf, T):
            return leaf
        options = {k: getattr(leaf, k) for k in ("dtype", "low", "high", "layout", "unique")}
        return T(*(n * factor if n > 1 else n for n in leaf.shape), **options)

    grown = sample.map(grow)
    sizes = [int(np.prod(t.shape, dtype=np.float64)) for t in grown.tensors()]
    return Sample(*grown.args, **grown.kwargs) if max(sizes, default=0) <= MOST_ENLARGED else None


def cases(ops, dtypes=None):
    """(op, dtype) pairs with readable ids, for pytest.mark.parametrize; `dtypes` filters."""
    found = [(op, d) for op in ops for d in op.dtype_names() if dtypes is None or d in dtypes]
    return {"argvalues": found, "ids": [f"{op.name}-{d}" for op, d in found]}


def each(ops):
    """Operators with readable ids, for pytest.mark.parametrize."""
    return {"argvalues": list(ops), "ids": [op.name for op in ops]}

"""The table of samples against PyTorch: values, dtypes, shapes, strides, gradients, errors."""

import math

import facula
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from samples import load_ops, load_public_ops  # noqa: E402
from samples.checks import (  # noqa: E402
    assert_same_values,
    cases,
    each,
    geometry_of,
    is_tensor,
    tensors_of,
    to_array,
)
from samples.common import find, make_arguments, seed_of, split_marked  # noqa: E402

OPS = load_ops()
LIBRARIES = (facula, torch)
LAYOUTS = (None, "transposed", "strided", "channels_last")
# Dtypes whose cases also run every layout; the others run the layout of the table.
LAID_OUT = {"float32", "int64"}


def outcome(lib, op, sample, index, dtype, **options):
    """(results, None) or (None, exception) of one sample in one library."""
    args, kwargs = make_arguments(lib, sample, dtype, seed_of(op, index), **options)
    try:
        return find(lib, op.name)(*args, **kwargs), None
    except Exception as error:  # what it is, is what is compared
        return None, error


def builtin_class(error):
    """The nearest built-in class of an exception: what a caller would write in `except`."""
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def same_outcome(op, sample, index, dtype, **options):
    """Both libraries give the same geometry and values, or the same class of exception."""
    (got, raised), (wanted, expected) = (
        outcome(lib, op, sample, index, dtype, **options) for lib in LIBRARIES
    )
    where = f"{op.name}{sample} {dtype} {options}"
    absent = isinstance(expected, AttributeError)  # torch has no operator of that name
    if expected is not None and op.beyond_torch and (raised is None or absent):
        return
    if expected is not None:
        assert raised is not None, f"{where}: torch raises {expected!r}; facula does not"
        assert builtin_class(raised) is builtin_class(expected), (
            f"{where}: {raised!r}; torch: {expected!r}"
        )
        return
    if raised is not None:
        raise AssertionError(f"{where}: {raised!r}; torch gives a result") from raised
    assert geometry_of(got) == geometry_of(wanted), where
    if not op.nondeterministic:
        assert_same_values(got, wanted, op.tolerance, where)


@pytest.mark.parametrize(("op", "dtype"), **cases(OPS))
def test_results(op, dtype):
    """Values, dtypes, shapes and strides of every sample."""
    for index, sample in op.numbered_samples(dtype):
        for layout in LAYOUTS if dtype in LAID_OUT else (None,):
            same_outcome(op, sample, index, dtype, layout=layout)


OTHER_DTYPES = ("float32", "float16", "complex64", "int64", "uint8", "bool")


@pytest.mark.parametrize("op", **each(load_public_ops()))
def test_dtypes_beyond_the_table(op):
    """A dtype that the row does not name gives torch's result or torch's error, too.

    What `ops.aten` alone has, gets the dtypes that its public operators let through.
    """
    for dtype in OTHER_DTYPES:
        if dtype not in op.dtype_names():
            for index, sample in list(op.numbered_samples(dtype))[:2]:
                same_outcome(op, sample, index, dtype)


def gradients(lib, op, index, dtype):
    """(name, array) of the results' tangible gradients under fixed cotangents; None: none."""
    sample = op.samples[index]
    args, kwargs = make_arguments(lib, sample, dtype, seed_of(op, index), grad=True)
    inputs, call = split_marked(sample, args, kwargs, dtype)
    results = [
        r for r in tensors_of(call(find(lib, op.name), inputs)) if is_tensor(r) and r.requires_grad
    ]
    if not inputs or not results:
        return None
    weights = []
    for r in results:
        values = np.cos(np.arange(math.prod(r.shape)) + 1.0).reshape(tuple(r.shape))
        weights.append(lib.from_numpy(values).to(r.dtype))
    return lib.autograd.grad(results, inputs, weights, allow_unused=True)


def gradients_or_error(lib, op, index, dtype):
    """(gradients, None) or (None, exception) of one sample in one library."""
    try:
        return gradients(lib, op, index, dtype), None
    except Exception as error:  # what it is, is what is compared
        return None, error


@pytest.mark.parametrize(
    ("op", "dtype"),
    **cases([op for op in OPS if not op.nondeterministic], {"float32", "complex64", "bfloat16"}),
)
def test_gradients(op, dtype):
    """Gradients of every sample, and which of them there are."""
    for index, sample in op.numbered_samples(dtype):
        (got, raised), (wanted, expected) = (
            gradients_or_error(lib, op, index, dtype) for lib in LIBRARIES
        )
        where = f"{op.name}{sample}"
        if expected is not None and raised is None and op.beyond_torch:
            continue
        if expected is not None or raised is not None:
            assert expected is not None, f"{where}: {raised!r}; torch gives gradients"
            assert raised is not None, f"{where}: torch raises {expected!r}; facula does not"
            assert builtin_class(raised) is builtin_class(expected), f"{raised!r}; {expected!r}"
            continue
        assert (got is None) == (wanted is None), f"{where}: gradient {got}; torch: {wanted}"
        for g, w in zip(got or (), wanted or (), strict=True):
            assert (g is None) == (w is None), f"{where}: gradient {g}; torch: {w}"
            if g is not None:
                assert geometry_of(g)[0][:2] == geometry_of(w)[0][:2], where
                assert_same_values(g, w, op.tolerance, where)


@pytest.mark.parametrize("op", **each([op for op in OPS if op.errors]))
def test_errors(op):
    """What the table says must raise, raises the same class in both."""
    dtype = op.dtype_names()[0]
    for number, error in enumerate(op.errors):
        (_, raised), (_, expected) = (
            outcome(lib, op, error.sample, number, dtype) for lib in LIBRARIES
        )
        assert expected is not None, f"{error.sample}: torch raises nothing"
        assert raised is not None, f"{error.sample}: torch raises {expected!r}"
        assert builtin_class(raised) is builtin_class(expected), f"{raised!r}; {expected!r}"


def _hold_the_same(got, wanted, where):
    for g, w in zip(got, wanted, strict=True):
        assert geometry_of(g) == geometry_of(w), where
        assert_same_values(g, w, what=where)


@pytest.mark.parametrize(
    "op",
    **each(
        [
            op
            for op in OPS
            if "." not in op.name
            and not op.nondeterministic
            and hasattr(torch.Tensor, op.name + "_")
        ]
    ),
)
def test_inplace_outcome(op):
    """The in-place form changes what torch's changes, or raises as it does."""
    dtype = op.dtype_names()[0]
    for index, sample in op.numbered_samples(dtype):
        ends = []
        for lib in LIBRARIES:
            args, kwargs = make_arguments(lib, sample, dtype, seed_of(op, index))
            if not args or not is_tensor(args[0]):
                break
            try:
                getattr(args[0], op.name + "_")(*args[1:], **kwargs)
                ends.append((args[0], None))
            except Exception as error:  # compared below
                ends.append((None, error))
        if len(ends) < 2:
            continue
        (got, raised), (wanted, expected) = ends
        where = f"{op.name}_{sample}: {raised!r}; torch: {expected!r}"
        assert (raised is None) == (expected is None), where
        if raised is not None:
            assert builtin_class(raised) is builtin_class(expected), where
        else:
            _hold_the_same([got], [wanted], where)


def test_arrays_agree():
    """The libraries start from the same numbers: otherwise nothing above says anything."""
    op = next(op for op in OPS if "float32" in op.dtype_names() and op.samples[0].tensors())
    made = []
    for lib in LIBRARIES:
        args, kwargs = make_arguments(lib, op.samples[0], "float32", 1)
        values = tensors_of([args, kwargs])
        made.append([to_array(t).tobytes() for t in values if is_tensor(t)])
    assert made[0] and made[0] == made[1]

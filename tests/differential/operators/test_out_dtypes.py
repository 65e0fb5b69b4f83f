"""Which dtypes of out= an operator takes, and with what error it refuses the others."""

import pytest

torch = pytest.importorskip("torch")

import facula  # noqa: E402
from samples import load_public_ops  # noqa: E402
from samples.checks import each, tensors_of  # noqa: E402
from samples.common import find, make_arguments, seed_of  # noqa: E402


def _names_with_out():
    for row in facula._C._operator_table():
        if "out" in row["forms"]:
            yield from (row["name"], *filter(None, row["aliases"].split(",")))


OUT = set(_names_with_out())
OPS = [
    op
    for op in load_public_ops()
    if {op.name.replace(".", "_"), op.short_name} & OUT and not op.name.startswith("_")
]
DTYPES = ("float32", "float64", "float16", "int64", "int32", "complex64", "bool", "uint8")


def _refusal(lib, op, index, dtype, given=None):
    """None where out= of `given` is taken, else the built-in class of the exception.

    given=None stands for the dtypes of the results themselves.
    """
    sample = op.samples[index]
    function = find(lib, op.name)
    args, kwargs = make_arguments(lib, sample, dtype, seed_of(op, index))
    results = tensors_of(function(*args, **kwargs))
    given = given and getattr(lib, given)
    out = [lib.empty(t.shape, dtype=given or t.dtype) for t in results]
    args, kwargs = make_arguments(lib, sample, dtype, seed_of(op, index))
    try:
        function(*args, **kwargs, out=out[0] if len(out) == 1 else tuple(out))
    except Exception as error:  # what it is, is what is compared
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    return None


def _has_out(op, index, dtype):
    """Whether PyTorch's function has this case and writes its results to out= of their dtypes."""
    try:
        return _refusal(torch, op, index, dtype) is None
    except Exception:  # no such operator or dtype, or results that are no tensors
        return False


def _compared(op):
    """(number of the sample, dtype) of one sample in each kind of dtype."""
    names = op.dtype_names()
    for dtype in ("float32", "int64", "complex64"):
        if dtype in names:
            numbered = list(op.numbered_samples(dtype))
            if numbered:
                yield numbered[0][0], dtype


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", **each(OPS))
def test_dtypes_of_out(op):
    """Every dtype of out= is taken or refused as PyTorch does."""
    wrong = []
    for index, dtype in _compared(op):
        if not _has_out(op, index, dtype):
            continue
        for given in DTYPES:
            wanted = _refusal(torch, op, index, dtype, given)
            got = _refusal(facula, op, index, dtype, given)
            if got is not wanted:
                wrong.append(f"{dtype} to out= of {given}: {got}; PyTorch: {wanted}")
    assert not wrong, "\n".join(wrong)

"""Which operators autocast casts on the CPU, and to what: dtypes of results, by sample."""

import facula
import pytest
from samples import load_public_ops
from samples.common import find, make_arguments, seed_of

torch = pytest.importorskip("torch")

OPS = [op for op in load_public_ops() if op.samples]


def _dtypes(result):
    if isinstance(result, (tuple, list)):
        return [_dtypes(one) for one in result]
    return (
        str(result.dtype).rpartition(".")[2] if hasattr(result, "dtype") else type(result).__name__
    )


def _outcome(lib, op, dtype):
    """Dtypes of the result of the first sample under autocast, or the class of its error."""
    args, kwargs = make_arguments(lib, op.samples[0], dtype, seed_of(op, 0))
    with lib.autocast("cpu", dtype=lib.bfloat16):
        try:
            return _dtypes(find(lib, op.name)(*args, **kwargs))
        except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError) as error:
            return type(error).__name__


@pytest.mark.filterwarnings("ignore:.*deprecated")  # of PyTorch's functions, once a process
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dtypes_under_autocast(op, dtype):
    try:
        theirs = _outcome(torch, op, dtype)
    except AttributeError:
        pytest.skip("PyTorch has no function of this name")
    assert _outcome(facula, op, dtype) == theirs

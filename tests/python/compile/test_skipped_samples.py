"""The table of samples by stored programs: other data in the same sizes, and eager's bits."""

import facula
import pytest
from facula._dynamo import skip
from samples import load_ops
from samples.checks import each, geometry_of, tensors_of
from samples.common import find, make_arguments, seed_of

OPS = load_ops()
# Of how many samples of an operator; each is called with other data this many times.
SAMPLES, CALLS = 3, 4


def bits(value):
    """The elements of the tensors in a result, as text: NaN is itself there."""
    found = []
    for t in tensors_of(value):
        strided = isinstance(t, facula.Tensor) and t.layout == facula.strided
        found.append(repr(t.tolist()) if strided else str(t))
    return found


def run(op, call, sample, dtype, seed):
    """What a call gives, and its arguments after it."""
    args, kwargs = make_arguments(facula, sample, dtype, seed)
    facula.manual_seed(1)
    try:
        result = call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    if op.nondeterministic:
        return geometry_of(result)
    return geometry_of(result), bits(result), bits((args, kwargs))


@pytest.mark.parametrize("op", **each(OPS))
def test_a_stored_program_gives_the_same_bits(op, monkeypatch):
    monkeypatch.setattr(skip, "calls_before", 1)
    function = find(facula, op.name)
    dtype = op.dtype_names()[0]
    for index, sample in list(op.numbered_samples(dtype))[:SAMPLES]:
        compiled = facula.compile(lambda *a, **k: function(*a, **k), options={"skip_python": True})
        for i in range(CALLS):
            seed = seed_of(op, index) + 977 * i
            eager = run(op, function, sample, dtype, seed)
            assert run(op, compiled, sample, dtype, seed) == eager, f"{sample}"

"""The table of samples on fake and meta tensors: sizes, dtypes and strides of the real results."""

import facula
import pytest
from facula._subclasses.fake_tensor import FakeTensorMode, is_fake
from samples import load_ops
from samples.checks import REFUSED_LAYOUTS, each, geometry_of, is_tensor, tensors_of
from samples.common import Sample, find, make_arguments, seed_of

OPS = load_ops()
# What an operator says whose result's size hangs on values; the samples of all others must run.
FROM_DATA = "depends on data"
# Names of operators whose shape rule asks for such sizes.
ASK = {
    row["name"]
    for row in facula._C._operator_table()
    if "shape_from_data" in row["flags"] and row["meta"]
}
LAYOUTS = (None, "transposed", "strided", "channels_last")


def _calls(op):
    """(dtype, layout, number, sample): all dtypes, and other layouts of the first one."""
    for number, dtype in enumerate(op.dtype_names()):
        for layout in LAYOUTS if number == 0 else (None,):
            for index, sample in op.numbered_samples(dtype):
                yield dtype, layout, index, sample


def _replaced(args, kwargs, make):
    made = Sample(*args, **kwargs).map(
        lambda leaf, _: make(leaf) if isinstance(leaf, facula.Tensor) else leaf
    )
    return made.args, made.kwargs


def _on_meta(call, args, kwargs):
    def make(t):
        return facula.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")

    args, kwargs = _replaced(args, kwargs, make)
    return call(*args, **kwargs), lambda t: t.is_meta


def _on_fake(call, args, kwargs):
    with FakeTensorMode() as mode:
        args, kwargs = _replaced(args, kwargs, mode.from_tensor)
        return call(*args, **kwargs), lambda t: is_fake(t) and t.device.type == "cpu"


class _Sizes:
    """Says the sizes that data decide, one after the other: stand-ins where nothing is known."""

    def __init__(self, known=()):
        self.known, self.asked = known, []

    def size(self, limit):
        number = 10007 + 2 * len(self.asked)
        if len(self.asked) < len(self.known):
            number = self.known[len(self.asked)]
            assert limit is None or number <= limit
        self.asked.append(number)
        return number

    def is_symbolic(self, number):
        return False


def _run_with(sizes, run, call, args, kwargs):
    return facula._C._with_data_sizes(sizes, run, (call, args, kwargs), {})


def _meant(asked, got, expected):
    """What the stand-ins among the sizes of `got` are in the results with data."""
    pairs = {}
    for one, other in zip(got, expected, strict=True):
        if isinstance(one, tuple):
            pairs.update(zip(one[1], other[1], strict=True))
    return [pairs[number] for number in asked]


@pytest.mark.parametrize("run", [_on_meta, _on_fake], ids=["meta", "fake"])
@pytest.mark.parametrize("op", **each(OPS))
def test_geometry_without_memory(op, run):
    """Results without memory have the real ones' structure, sizes, dtypes and strides."""
    call = find(facula, op.name)
    for dtype, layout, index, sample in _calls(op):
        if run is _on_meta and not sample.tensors():
            continue
        what, seed = f"{dtype} {layout} {sample}", seed_of(op, index)
        try:
            args, kwargs = make_arguments(facula, sample, dtype, seed, layout=layout)
            expected = geometry_of(call(*args, **kwargs))
        except RuntimeError as error:
            if layout and any(text in str(error) for text in REFUSED_LAYOUTS):
                continue
            raise
        if not any(isinstance(g, tuple) for g in expected):
            continue  # numbers, which are read from memory
        args, kwargs = make_arguments(facula, sample, dtype, seed, layout=layout)
        try:
            got, is_made = run(call, args, kwargs)
        except NotImplementedError as error:
            assert FROM_DATA in str(error), f"{what}: {error}"
            if op.name.rpartition(".")[2] not in ASK:
                continue
            sizes = _Sizes()
            got, _ = _run_with(sizes, run, call, args, kwargs)
            sizes = _Sizes(_meant(sizes.asked, geometry_of(got), expected))
            got, is_made = _run_with(sizes, run, call, args, kwargs)
        assert geometry_of(got) == expected, what
        assert all(is_made(t) for t in tensors_of(got) if is_tensor(t)), what

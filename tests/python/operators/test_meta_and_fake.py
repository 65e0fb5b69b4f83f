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
            continue
        assert geometry_of(got) == expected, what
        assert all(is_made(t) for t in tensors_of(got) if is_tensor(t)), what

"""The table of samples in every memory layout, and with inputs left alone."""

import facula
import pytest
from samples import load_ops
from samples.checks import (
    REFUSED_LAYOUTS,
    assert_same_values,
    each,
    is_tensor,
    tensors_of,
    to_array,
)
from samples.common import Sample, find, make_arguments, seed_of

OPS = load_ops()
# Names of records that write arguments, whatever their names end in.
WRITING = {row["name"] for row in facula._C._operator_table() if "!" in row["schema"]}
LAYOUTS = ("transposed", "strided", "expanded", "channels_last")


def _first_dtype(op):
    names = op.dtype_names()
    return "float32" if "float32" in names else names[0]


def _called(op, args, kwargs):
    return find(facula, op.name)(*args, **kwargs)


def _copied(args, kwargs):
    """The same values in tensors of contiguous memory."""
    made = Sample(*args, **kwargs).map(
        lambda leaf, _: leaf.clone(memory_format=facula.contiguous_format)
        if isinstance(leaf, facula.Tensor)
        else leaf
    )
    return made.args, made.kwargs


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", **each([o for o in OPS if o.layouts and not o.nondeterministic]))
def test_layout_changes_no_value(op, layout):
    """Strides of the arguments never change the result's values."""
    dtype = _first_dtype(op)
    for index, sample in op.numbered_samples(dtype):
        args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index), layout=layout)
        expected = _called(op, *_copied(args, kwargs))
        try:
            got = _called(op, args, kwargs)
        except RuntimeError as error:
            if not any(text in str(error) for text in REFUSED_LAYOUTS):
                raise
            continue
        assert_same_values(got, expected, op.tolerance, f"{layout} {sample}")


@pytest.mark.parametrize(
    "op", **each(o for o in OPS if not o.short_name.endswith("_") and o.short_name not in WRITING)
)
def test_inputs_stay(op):
    """A function changes none of its arguments, nor their versions."""
    dtype = _first_dtype(op)
    for index, sample in op.numbered_samples(dtype):
        args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index))
        inputs = [t for t in tensors_of([args, kwargs]) if is_tensor(t)]
        before = [(to_array(t).copy(), t._version) for t in inputs]
        _called(op, args, kwargs)
        for tensor, (values, version) in zip(inputs, before, strict=True):
            assert tensor._version == version, sample
            assert to_array(tensor).tobytes() == values.tobytes(), sample

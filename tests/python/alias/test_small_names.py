"""Small modules that programs import: annotations, symbolic numbers by name, DLPack."""

import facula
import pytest
from facula.utils import dlpack


def test_nothing_is_symbolic():
    assert not isinstance(3, facula.SymInt) and not isinstance(
        facula.ones(3).size(0), facula.SymInt
    )
    with pytest.raises(TypeError, match="expected the node"):
        facula.SymInt(3)


@pytest.mark.parametrize(
    "found, expected",
    [
        (lambda: facula.sym_int(-2.7), -2),
        (lambda: facula.sym_float(2), 2.0),
        (lambda: facula.sym_max(3, 2.0), 3.0),
        (lambda: facula.sym_min(2, 3), 2),
        (lambda: facula.sym_not(True), False),
        (lambda: facula.sym_ite(True, 1, 2), 1),
        (lambda: facula.sym_sum([1, 2]), 3),
        (lambda: facula.sym_sqrt(4), 2.0),
    ],
)
def test_symbolic_functions_compute_with_plain_numbers(found, expected):
    assert found() == expected and type(found()) is type(expected)


def test_annotations_name_what_may_be_given():
    from facula import types

    assert facula.Size in types._size.__args__ and isinstance(2.0, types._Number)
    assert type(None) in types.Device.__args__ and types.IntLikeType.__args__[1] is facula.SymInt


def test_dlpack_capsules_share_memory():
    x = facula.arange(3)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 7
    assert x.tolist() == [7, 1, 2] and dlpack.DLDeviceType.kDLCPU == x.__dlpack_device__()[0]
    with pytest.raises(TypeError, match="expected a Tensor"):
        dlpack.to_dlpack([1])

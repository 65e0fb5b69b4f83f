"""tensordot: what dimensions it takes."""

import facula
import pytest

VECTOR, NUMBER = facula.ones(4), facula.ones(())
BAD = {
    "the other has no dimensions": (VECTOR, NUMBER, [0, 0], [-1, -1], IndexError),
    "self has no dimensions": (NUMBER, VECTOR, [0], [0], IndexError),
    "one dimension twice": (VECTOR, VECTOR, [0, 0], [-1, -1], RuntimeError),
    "a dimension that is not there": (VECTOR, VECTOR, [1], [0], IndexError),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_dimensions_raise(name):
    *arguments, error = BAD[name]
    with pytest.raises(error):
        facula.ops.aten.tensordot.default(*arguments)


def test_no_dimensions_at_all_are_a_product():
    assert facula.ops.aten.tensordot.default(NUMBER, NUMBER * 3, [], []).tolist() == 3

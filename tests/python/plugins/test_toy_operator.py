"""An operator in a library of its own: tests/cpp/plugins/toy_operator.cpp."""

import os

import facula
import pytest
from facula import library
from plugin_library import compiled


@pytest.fixture(scope="session")  # a process loads a library once
def ops(tmp_path_factory):
    path = compiled("toy_operator", tmp_path_factory.mktemp("toy"))
    facula.ops.load_library(path)
    assert os.path.realpath(path) in facula.ops.loaded_libraries
    return facula.ops.toy_ops


def test_operator(ops):
    scale_add = ops.scale_add
    x = facula.rand(2, 3, dtype=facula.float64, requires_grad=True)
    y = facula.rand(3, 2, dtype=facula.float64).t().requires_grad_()
    assert facula.equal(scale_add(x, y, 2), x + 2 * y)
    assert scale_add(x.to("meta"), y.to("meta")).shape == (2, 3)
    assert facula.autograd.gradcheck(lambda a, b: scale_add(a, b, 3), (x, y))
    assert set(library.opcheck(scale_add, (x, y, 2)).values()) == {"SUCCESS"}
    with pytest.warns(UserWarning, match="no batching rule"):
        assert facula.vmap(scale_add, in_dims=(0, 0, None))(x, y, 2).shape == (2, 3)
    for bad in ((x, y[:1]), (x, y.float()), (x,), (x, "y")):
        with pytest.raises(RuntimeError):
            scale_add(*bad)


def test_composite(ops):
    x = facula.rand(3, dtype=facula.float64, requires_grad=True)
    assert facula.equal(ops.twice(x), x + x)
    assert facula.autograd.gradcheck(ops.twice, (x,))
    assert facula.equal(facula.vmap(ops.twice)(x), x + x)
    assert ops.twice(x.to("meta")).device.type == "meta"

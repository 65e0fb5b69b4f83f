"""Versions: what counts as a change of a tensor, and what in-place operators over lists return."""

import facula
import pytest

NEW = {
    "ones": lambda: facula.ones(3),
    "zeros": lambda: facula.zeros(3),
    "full": lambda: facula.full((3,), 2.0),
    "arange": lambda: facula.arange(3),
    "rand": lambda: facula.rand(3),
    "randn": lambda: facula.randn(3),
    "randint": lambda: facula.randint(3, (2,)),
    "ones_like": lambda: facula.ones_like(facula.rand(2)),
    "new_zeros": lambda: facula.rand(2).new_zeros(3),
    "tensor": lambda: facula.tensor([1.0]),
    "scalar_tensor": lambda: facula.scalar_tensor(1.0),
    "to": lambda: facula.rand(3).to(facula.int32),
    "bernoulli": lambda: facula.bernoulli(facula.rand(3)),
    "diag": lambda: facula.diag(facula.rand(3)),
    "normal": lambda: facula.normal(facula.rand(3), 1.0),
    "clone": lambda: facula.rand(3).clone(),
    "cat": lambda: facula.cat([facula.rand(2)]),
    "eye": lambda: facula.eye(3),
}


@pytest.mark.parametrize("name", NEW)
def test_new_tensors_start_at_zero(name):
    assert NEW[name]()._version == 0


def test_results_that_are_arguments_keep_theirs():
    x = facula.ones(3).add_(1)
    assert x._version == 1
    assert x.to(facula.float32) is x and x.contiguous() is x and x._version == 1
    assert x.view(3)._version == 1 and facula.ones(3, out=x) is x and x._version == 2


LISTS = ["_foreach_abs_", "_foreach_zero_", "_foreach_sqrt_"]


@pytest.mark.parametrize("name", LISTS)
def test_foreach_in_place_returns_its_list(name):
    tensors = [facula.ones(2), facula.ones(3)]
    assert getattr(facula, name)(tensors) is tensors
    assert getattr(facula, name)(self=tensors) is tensors
    assert getattr(facula.ops.aten, name).default(tensors) is None


def test_foreach_in_place_with_numbers_and_lists():
    tensors = [facula.ones(2), facula.ones(3)]
    assert facula._foreach_add_(tensors, 1) is tensors and tensors[0].tolist() == [2.0, 2.0]
    assert facula._foreach_mul_(tensors, tensors) is tensors and tensors[1].tolist() == [4.0] * 3

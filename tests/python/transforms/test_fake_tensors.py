"""facula._subclasses: shapes without memory, and what tells such tensors from others."""

import facula
import pytest
from facula._subclasses.fake_tensor import FakeTensor, FakeTensorMode, is_fake

REAL = facula.ones(2)


def test_operators_give_shapes_dtypes_and_devices():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(facula.ones(2, 3))
        y = facula.nn.functional.softmax(x @ facula.empty(3, 10**9), -1).half()
    assert is_fake(x) and is_fake(y) and mode.from_tensor(y) is y
    assert (y.shape, y.dtype, y.device.type) == ((2, 10**9), facula.float16, "cpu")


def test_fake_tensors_are_told_from_others():
    with FakeTensorMode():
        fake = facula.ones(2)
    for value, expected in ((fake, True), (facula.ones(2, device="meta"), False), (3, False)):
        assert is_fake(value) == isinstance(value, FakeTensor) == expected
    assert issubclass(FakeTensor, facula.Tensor)


def test_real_tensors_are_let_in_when_asked_for():
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert is_fake(mode.from_tensor(facula.ones(2)) + REAL)
    with FakeTensorMode() as mode, pytest.raises(AssertionError, match="allow_non_fake_inputs"):
        mode.from_tensor(facula.ones(2)) + REAL


def test_nothing_reads_memory_that_is_not_there():
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(facula.ones(2))
    for read in (fake.tolist, fake.numpy, lambda: fake + 1, lambda: fake[0].item()):
        with pytest.raises(RuntimeError):
            read()
    with pytest.raises(TypeError, match="from_tensor"):
        FakeTensor()

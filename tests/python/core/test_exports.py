"""Whoever has a tensor's address from us keeps the memory, and the memory stays where it is."""

import subprocess
import sys

import facula
import numpy as np
import pytest

NOT_RESIZABLE = "Trying to resize storage that is not resizable"

EXPORTS = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "from_dlpack_numpy": np.from_dlpack,
    "from_dlpack": facula.from_dlpack,
    "capsule": lambda x: x.__dlpack__(),
    "memoryview": lambda x: memoryview(x.untyped_storage()),
    "slice": lambda x: x.untyped_storage()[8:16],
}
# These let go of the memory with the exported object, as PyTorch's do; arrays hand it on.
LIFTED = ("from_dlpack_numpy", "from_dlpack", "capsule", "memoryview", "slice")

# What a change gives: an error, or the tensor's size and the bytes of its storage.
CHANGES = {
    "resize_larger": (lambda x: x.resize_(100), None),
    "resize_smaller": (lambda x: x.resize_(2), (2, 24)),
    "resize_same": (lambda x: x.resize_(2, 3), (6, 24)),
    "storage_empty": (lambda x: x.untyped_storage().resize_(0), None),
    "storage_same": (lambda x: x.untyped_storage().resize_(24), None),
    "storage_larger": (lambda x: x.untyped_storage().resize_(400), None),
    "set": (lambda x: x.set_(), (0, 0)),
    "data": (lambda x: setattr(x, "data", facula.ones(2)), (2, 8)),
    "out": (lambda x: facula.add(facula.ones(100), 1, out=x), None),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("export", EXPORTS)
def test_changes_of_an_exported_tensor(export, change):
    x = facula.arange(6.0)
    held = EXPORTS[export](x)
    run, expected = CHANGES[change]
    if expected is None:
        with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
            run(x)
    else:
        run(x)
        assert (x.numel(), x.untyped_storage().nbytes()) == expected
    del held


@pytest.mark.parametrize("export", EXPORTS)
def test_resizable_again(export):
    x = facula.arange(6.0)
    held = EXPORTS[export](x)
    assert not x.untyped_storage().resizable()
    del held
    assert x.untyped_storage().resizable() == (export in LIFTED)


@pytest.mark.parametrize(
    "make",
    [
        lambda: facula.from_numpy(np.ones(3)),
        lambda: facula.frombuffer(bytearray(24), dtype=facula.float64),
        lambda: facula.from_dlpack(np.ones(3)),
    ],
)
def test_memory_of_others_stays(make):
    x = make()
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
        x.resize_(10)
    with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
        x.untyped_storage().resize_(8)
    assert x.resize_(2).shape == (2,)


def test_saving_does_not_pin(tmp_path):
    x = facula.arange(6.0)
    facula.save(x, tmp_path / "x")
    assert x.untyped_storage().resizable()


AFTER = """
import facula, numpy as np
x = facula.full((4000000,), 3.0)
n = {export}
{change}
facula._C._empty_cache()
others = [facula.full((4000000,), 7.) for _ in range(3)]
assert {check} == 3, {check}
"""


@pytest.mark.parametrize("change", ["x.set_()", "x.data = facula.ones(3)", "del x"])
@pytest.mark.parametrize(
    ("export", "check"),
    [
        ("x.numpy()", "n[-1]"),
        ("np.asarray(x)", "n[-1]"),
        ("np.from_dlpack(x)", "n[-1]"),
        ("facula.from_dlpack(x)", "n[-1]"),
        ("x.__dlpack__()", "facula.from_dlpack(n)[-1]"),
        ("memoryview(x.untyped_storage()).cast('f')", "n[-1]"),
        ("x.untyped_storage()[15999992:]", "facula.tensor(n, dtype=facula.float32)[-1]"),
    ],
)
def test_the_memory_outlives_the_tensor(export, change, check):
    code = AFTER.format(export=export, change=change, check=check)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

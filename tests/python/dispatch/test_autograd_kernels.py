"""Kernels at Autograd and Autocast: which calls they see, as PyTorch's do (2.15)."""

import facula
import pytest
from facula import library


class _Seen:
    """An operator whose kernels note that they ran."""

    def __init__(self, lib, name):
        self.lib, self.name, self.log = lib, name, []
        lib.define(f"{name}(Tensor x) -> Tensor")
        self.op = getattr(facula.ops.ground, name)

    def put(self, *keys):
        for key in keys:

            def kernel(x, key=key):
                self.log.append(key)
                return x.clone()

            self.lib.impl(self.name, kernel, key)
        return self

    def __call__(self, x):
        self.log.clear()
        self.op(x)
        return list(self.log)


@pytest.fixture
def lib():
    with library._scoped_library("ground", "DEF") as made:
        yield made


def _plain():
    return facula.ones(2)


def _parameter():
    return facula.ones(2, requires_grad=True)


def _of_inference():
    with facula.inference_mode():
        return facula.ones(2)


CASES = [
    (("CPU", "Autograd"), _plain, ["Autograd"]),
    (("CPU", "Autograd"), _parameter, ["Autograd"]),
    (("CPU", "Autograd"), _of_inference, ["CPU"]),
    (("CPU", "AutogradCUDA"), _plain, ["CPU"]),
    (("CPU", "AutogradCUDA"), _parameter, ["CPU"]),
    (("CPU", "AutogradCPU"), _plain, ["AutogradCPU"]),
    (("CPU", "AutogradCPU", "Autograd"), _plain, ["AutogradCPU"]),
    (("CPU", "Autograd", "AutogradCUDA"), _parameter, ["Autograd"]),
    (("CompositeExplicitAutograd", "AutogradCUDA"), _plain, ["CompositeExplicitAutograd"]),
    (("CPU", "AutocastCPU"), _plain, ["CPU"]),
]


@pytest.mark.parametrize(("keys", "tensor", "expected"), CASES)
def test_which_kernel_runs(lib, keys, tensor, expected):
    seen = _Seen(lib, "f").put(*keys)
    assert seen(tensor()) == expected
    with facula.no_grad():
        assert seen(tensor()) == expected


def test_none_in_inference_mode(lib):
    seen = _Seen(lib, "f").put("CPU", "Autograd")
    with facula.inference_mode():
        assert seen(_plain()) == ["CPU"]


def test_below_autograd_the_backend_runs(lib):
    lib.define("g(Tensor x) -> Tensor")
    log = []

    def above(x):
        log.append("Autograd")
        with facula._C._AutoDispatchBelowAutograd():
            return facula.ops.ground.g(x)

    lib.impl("g", lambda x: (log.append("CPU"), x + 1)[1], "CPU")
    lib.impl("g", above, "Autograd")
    assert facula.ops.ground.g(_plain()).tolist() == [2.0, 2.0]
    assert log == ["Autograd", "CPU"]


def test_taken_out_again(lib):
    seen = _Seen(lib, "f").put("CPU")
    with library._scoped_library("ground", "IMPL") as other:
        other.impl("f", lambda x: (seen.log.append("other"), x.clone())[1], "Autograd")
        assert seen(_plain()) == ["other"]
    assert seen(_plain()) == ["CPU"]
    assert not facula._C._has_kernel("ground", "f", "", "Autograd")


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", ["AutocastCPU"]), (None, ["CPU"])], ids=["on", "off"]
)
def test_autocast_kernels_are_of_a_device(lib, device, expected):
    seen = _Seen(lib, "f").put("CPU", "AutocastCPU", "AutocastCUDA")
    if device is None:
        assert seen(_plain()) == expected
    else:
        with facula.autocast(device, dtype=facula.bfloat16):
            assert seen(_plain()) == expected


def test_has_kernel_tells_keys_apart(lib):
    keys = ("Autograd", "AutogradCPU", "AutogradCUDA")
    expected = {"Autograd": (True, True, True), "AutogradCUDA": (False, False, True)}
    for name, key in (("a", "Autograd"), ("b", "AutogradCUDA")):
        _Seen(lib, name).put("CPU", key)
        found = tuple(facula._C._has_kernel("ground", name, "", k) for k in keys)
        assert found == expected[key]

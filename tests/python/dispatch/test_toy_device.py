"""A device in a library of its own, opened at run time: tests/cpp/plugins/toy_device.

Its memory cannot be read by the host's code, so any kernel that reads it directly ends the process.
"""

import gc
import threading

import facula
import pytest


def test_unknown_before_and_after(toy):
    with pytest.raises(RuntimeError, match="toyland"):
        facula.device("toyland")
    assert str(facula.device("toy")) == "toy"
    assert str(facula.device("toy:0")) == "toy:0"


def test_factory_and_native_kernel(toy):
    before = toy.toy_native_calls()
    x = facula.ones(3, device="toy")
    y = x + 1
    assert str(y.device).startswith("toy")
    assert y.cpu().tolist() == [2.0, 2.0, 2.0]
    assert (y * y).cpu().tolist() == [4.0, 4.0, 4.0]
    assert toy.toy_native_calls() == before + 2


def test_copies_to_and_from(toy):
    x = facula.tensor([[1.0, 2.0], [3.0, 4.0]])
    there = x.to("toy")
    assert there.cpu().tolist() == x.tolist()
    assert there.t().cpu().tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert there.clone().cpu().tolist() == x.tolist()
    assert there.to(facula.float64).cpu().tolist() == x.tolist()
    there[0] = 7.0
    assert there.cpu().tolist() == [[7.0, 7.0], [3.0, 4.0]]
    assert there[1, 0].item() == 3.0
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_fallback_to_the_cpu(toy):
    before = toy.toy_fallback_calls()
    x = facula.tensor([0.0, 1.0, 2.0]).to("toy")
    y = facula.log1p(x)
    assert str(y.device).startswith("toy")
    assert facula.allclose(y.cpu(), facula.log1p(x.cpu()))
    assert (x + x.to(facula.float64)).cpu().tolist() == [0.0, 2.0, 4.0]
    assert toy.toy_fallback_calls() > before


def test_in_place_and_out(toy):
    x = facula.tensor([1.0, 2.0, 3.0]).to("toy")
    version = x._version
    assert x.add_(1) is x
    assert x._version > version
    x.log1p_()
    assert facula.allclose(x.cpu(), facula.log1p(facula.tensor([2.0, 3.0, 4.0])))
    out = facula.empty(3, device="toy")
    facula.add(x, x, out=out)
    assert facula.allclose(out.cpu(), x.cpu() * 2)
    x[1:].fill_(5.0)
    assert x.cpu().tolist()[1:] == [5.0, 5.0]


def test_results_of_several_kinds(toy):
    x = facula.tensor([[1.0, 5.0], [7.0, 3.0]]).to("toy")
    values, indices = x.max(1)
    assert values.cpu().tolist() == [5.0, 7.0]
    assert indices.cpu().tolist() == [1, 0]
    assert [t.cpu().tolist() for t in x.split(1)] == [[[1.0, 5.0]], [[7.0, 3.0]]]
    assert facula.cat([x, x]).cpu().shape == (4, 2)
    assert facula.nonzero(x > 4).cpu().tolist() == [[0, 1], [1, 0]]


def test_autograd(toy):
    x = facula.tensor([1.0, 2.0, 3.0]).to("toy").requires_grad_()
    (facula.log1p(x) * x).sum().backward()
    assert str(x.grad.device).startswith("toy")
    v = facula.tensor([1.0, 2.0, 3.0])
    assert facula.allclose(x.grad.cpu(), facula.log1p(v) + v / (1 + v))


def test_autograd_across_devices(toy):
    x = facula.tensor([1.0, 2.0], requires_grad=True)
    (x.to("toy") * 3).cpu().sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


class _PassOnAnotherDevice(facula.autograd.Function):
    """Its backward waits for another thread's, and runs a pass of its own on another device."""

    @staticmethod
    def forward(ctx, x, device, meeting):
        ctx.device, ctx.meeting = device, meeting
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        ctx.meeting.wait(60)
        with facula.enable_grad():
            y = facula.ones(2, device=ctx.device, requires_grad=True)
            (y * 2).backward(facula.ones(2, device=ctx.device))
        return gradient * y.grad.cpu()[0].item(), None, None


def test_workers_that_wait_for_each_other(toy):
    """Passes inside of two devices' workers that each need the other worker come to an end."""
    meeting, found = threading.Barrier(2), {}

    def run(device, other):
        x = facula.ones(2, device=device, requires_grad=True)
        out = _PassOnAnotherDevice.apply(x, other, meeting)
        out.backward(facula.ones(2, device=device))
        found[device] = x.grad.cpu().tolist()

    for _ in range(3):
        pairs = [("toy:0", "toy:1"), ("toy:1", "toy:0")]
        threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert found == {"toy:0": [2.0, 2.0], "toy:1": [2.0, 2.0]}


def test_several_devices_in_one_call_raise(toy):
    with pytest.raises(RuntimeError, match="same device"):
        facula.add(facula.ones(3, device="toy"), facula.ones(3))


def test_numpy_needs_the_host(toy):
    with pytest.raises(TypeError):
        facula.ones(3, device="toy").numpy()


def test_repr(toy):
    assert repr(facula.ones(2, device="toy")).startswith("tensor([1., 1.], device='toy")


def test_missing_operator_raises(toy):
    x = facula.ones(3, device="toy")
    toy.toy_use_fallback(False)
    try:
        with pytest.raises(NotImplementedError, match="log1p.*toy"):
            facula.log1p(x)
        assert (x + 1).cpu().tolist() == [2.0, 2.0, 2.0]
    finally:
        toy.toy_use_fallback(True)


def test_memory_comes_back(toy):
    gc.collect()
    before = facula.accelerator.memory_allocated("toy:0")
    x = facula.ones(1000, device="toy")
    assert facula.accelerator.memory_allocated("toy:0") == before + 4096
    del x
    assert facula.accelerator.memory_allocated("toy:0") == before


def test_name_cannot_be_taken_twice(toy):
    """A device's name is one library's; the built-in ones stay."""
    assert facula.ones(1, device="cpu").device.type == "cpu"
    assert facula.ones(1, device="toy").device.type == "toy"

"""Devices that have a name although nobody registered their kind: compared, printed, not used."""

import pickle

import facula
import pytest

NAMES = ["mps", "xpu:1", "xla", "hpu", "vulkan", "mtia:0"]


@pytest.mark.parametrize("name", NAMES)
def test_a_device_of_a_kind_that_is_not_here_has_its_name(name):
    device = facula.device(name)
    kind, _, index = name.partition(":")
    assert (device.type, device.index) == (kind, int(index) if index else None)
    assert str(device) == name and device == facula.device(name) == facula.device(device)
    assert device != facula.ones(2).device and len({device, facula.device("cpu")}) == 2
    assert pickle.loads(pickle.dumps(device)) == device


USES = {
    "made there": lambda d: facula.empty(2, device=d),
    "moved there": lambda d: facula.ones(2).to(d),
    "moved with a dtype": lambda d: facula.ones(2).to(device=d, dtype=facula.int32),
    "made like another": lambda d: facula.ones(2).new_zeros(2, device=d),
    "made of numbers": lambda d: facula.tensor([1.0], device=d),
    "a storage": lambda d: facula.UntypedStorage(2, device=d),
    "an operator": lambda d: facula.ops.aten.empty.memory_format([2], device=d),
    "the default": facula.set_default_device,
    "a generator": facula.Generator,
    "a scope": lambda d: facula.device(d).__enter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("given", [facula.device, str])
def test_nothing_can_be_done_on_it(use, given):
    with pytest.raises(RuntimeError, match="got 'mps', a kind that no library has registered"):
        use(given("mps"))
    assert facula.ones(2).device.type == "cpu"


@pytest.mark.parametrize("text", ["tpu", "mps:a", "mps:-1", "mps:200", "xpu:", "", "mps:0:0"])
def test_other_texts_name_no_device(text):
    with pytest.raises(RuntimeError, match="[Dd]evice"):
        facula.device(text)

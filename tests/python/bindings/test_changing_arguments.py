"""Lists and dicts that change while they are read: `__index__` of an element empties them."""

import isolated
import pytest

BODY = """
import gc, os
import facula as m

class Emptying:
    def __init__(self, owner, value=1):
        self.owner, self.value = owner, value
    def __index__(self):
        self.owner.clear()
        gc.collect()
        [bytearray(64) for _ in range(1000)]
        return self.value
    __float__ = __bool__ = __int__ = __index__

def emptied(n=6):
    items = []
    items += [Emptying(items) for _ in range(n)]
    return items

def spread(**others):
    named = {}
    named.update(others)
    return named

def check(call):
    for _ in range(5):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, error)
"""
CALLS = [
    "m.zeros(emptied())",
    "m.ones(2, 3).view(emptied())",
    "m.ones(2, 3).permute(emptied(2))",
    "m.ones(2, 3).repeat(emptied())",
    "m.ones(4, 4).roll(emptied(2), emptied(2))",
    "m.nn.functional.conv2d(m.ones(1, 1, 9, 9), m.ones(1, 1, 2, 2), stride=emptied(2))",
    "m.nn.functional.pad(m.ones(4, 4), emptied(4))",
    "m.tensor(emptied())",
    "m.tensor(emptied(), dtype=m.float64)",
    "m.tensor(emptied(), dtype=m.bool)",
    "m.tensor([emptied(3), emptied(3)])",
    "m.ByteTensor(emptied())",
    "m.UntypedStorage(emptied())",
    "m.ones(9)[emptied()]",
    "m.ones(9)[emptied(1), ]",
    "m.quantile(m.ones(4), m.tensor(emptied(2), dtype=m.float32))",
    "m.Tensor._make_wrapper_subclass(m.Tensor, emptied())",
    "m.Size(emptied())",
    "m.nn.functional.interpolate(m.ones(1, 1, 4, 4), scale_factor=emptied(2))",
]
DICTS = [
    "m.tensor(**d)",
    "m.UntypedStorage(**d)",
    "m.ones(2).to(**d)",
    "m.Tensor._make_wrapper_subclass(m.Tensor, **d)",
    "m.zeros(**d)",
]


@pytest.mark.parametrize("call", CALLS)
def test_lists_that_empty_themselves(call):
    isolated.run(BODY + f"check(lambda: {call})\n")


@pytest.mark.parametrize("call", DICTS)
def test_dicts_that_empty_themselves(call):
    body = BODY + (
        "def attempt():\n"
        "    d = {}\n"
        "    sizes = [Emptying(d) for _ in range(3)]\n"
        "    d.update(data=sizes, size=sizes, dtype=m.float64, device='c' + 'pu')\n"
        f"    if {call!r} != 'm.tensor(**d)': d.pop('data')\n"
        f"    if {call!r} in ('m.tensor(**d)', 'm.ones(2).to(**d)'): d.pop('size')\n"
        f"    {call}\n"
        "check(attempt)\n"
    )
    isolated.run(body)

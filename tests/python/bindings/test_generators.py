"""Whatever keeps a generator owns it: modes, nodes of a graph, recorded programs."""

import gc
import weakref

import facula
import isolated

FORGOTTEN = """
import gc
import facula as m
from facula.utils._python_dispatch import TorchDispatchMode

kept = []
class Keeps(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kept.extend(a for a in (*args, *(kwargs or {}).values()) if isinstance(a, m.Generator))
        return func(*args, **(kwargs or {}))

def overwrite():
    gc.collect()
    return [m.Generator() for _ in range(20)] + [bytearray(5056) for _ in range(200)]

g = m.Generator().manual_seed(7)
expected = m.randn(4, generator=m.Generator().manual_seed(7)).tolist()
with Keeps():
    m.zeros(4).normal_(generator=g)
state = g.get_state().tolist()
del g
junk = overwrite()
assert kept[0].get_state().tolist() == state
kept[0].manual_seed(7)
assert m.randn(4, generator=kept[0]).tolist() == expected

x = m.ones(3, requires_grad=True)
g = m.Generator().manual_seed(7)
y = m.bernoulli(x * 0.5, generator=g)
node = y.grad_fn
names = [n for n in dir(node) if n.startswith("_saved_generator")]
del g
junk = overwrite()
for name in names:
    found = getattr(node, name)
    assert found is getattr(node, name)
    found.manual_seed(7)
    assert m.randn(4, generator=found).tolist() == expected
print(names)
"""


def test_generators_live_as_long_as_what_keeps_them():
    assert isolated.run(FORGOTTEN).startswith("[")


def test_a_generator_has_one_object():
    from facula.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Keeps(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((kwargs or {}).get("generator"))
            return func(*args, **(kwargs or {}))

    g = facula.Generator()
    g.clone_state()
    with Keeps():
        facula.rand(3, generator=g)
        facula.rand(3, generator=facula.default_generator)
    assert seen[0] is g
    assert seen[1] is facula.default_generator
    seen.clear()
    there = weakref.ref(g)
    del g
    gc.collect()
    assert there() is None


def test_a_callback_does_not_bring_a_generator_back():
    body = """
import weakref
import facula as m
from facula.utils._python_dispatch import TorchDispatchMode

class Keeps(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found.append(kwargs["generator"])
        return func(*args, **kwargs)

found, calls = [], []
x = m.ones(3, requires_grad=True)
for _ in range(100):
    g = m.Generator()
    y = m.bernoulli(x * 0.5, generator=g)
    r = weakref.ref(g, lambda _: calls.append(getattr(y.grad_fn, "_saved_generator", None)))
    del g
    m.Generator()
print(len(calls))
"""
    assert isolated.run(body) == "100\n"


def test_the_default_generator_is_one_object_under_both_names():
    assert facula.random.default_generator is facula.default_generator
    facula.manual_seed(3)
    assert facula.random.default_generator.initial_seed() == 3

"""Calls of modules and lookups of their attributes, which the binding does without Python frames,
are what classes and instances make of them."""

import pickle

import facula
import pytest
from facula import nn


class OwnLookup(nn.Linear):
    def __getattr__(self, name):
        return 7 if name == "magic" else super().__getattr__(name)


class EveryLookup(nn.Linear):
    def __getattribute__(self, name):
        return "every" if name == "magic" else super().__getattribute__(name)


class FailingProperty(nn.Linear):
    @property
    def magic(self):
        return self.nothing


class OwnCall(nn.Linear):
    def __call__(self, x):
        return "own"


class Mixin:
    def __call__(self, x):
        return "mixin"


class MixedIn(Mixin, nn.Linear):
    pass


class Echo(nn.Module):
    def forward(self, *args, **kwargs):
        return args, kwargs


class StaticForward(nn.Module):
    @staticmethod
    def forward(*args):
        return args


class ClassForward(nn.Module):
    @classmethod
    def forward(cls, *args):
        return cls.__name__, *args


class DictModule(nn.Module, dict):
    pass


class Endless(nn.Module):
    def forward(self):
        return self()


def with_forward_of_its_own():
    module = nn.Linear(2, 2)
    module.forward = lambda x: ("instance", x)
    return module


CALLS = {
    "forward": (Echo, ((1, 2), {})),
    "static forward": (StaticForward, (1, 2)),
    "class forward": (ClassForward, ("ClassForward", 1, 2)),
    "other __call__": (lambda: lambda a, b: OwnCall(2, 2)(a), "own"),
    "__call__ of a mixin": (lambda: lambda a, b: MixedIn(2, 2)(a), "mixin"),
    "forward of an instance": (lambda: lambda a, b: with_forward_of_its_own()(a), ("instance", 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_reaches(name):
    make, expected = CALLS[name]
    assert make()(1, 2) == expected


def test_keywords_reach_forward():
    assert Echo()(1, b=2) == ((1,), {"b": 2})
    assert Echo()(*range(20)) == (tuple(range(20)), {})


def test_hooks_run_while_they_are_there():
    module = Echo()
    handle = module.register_forward_hook(lambda m, args, result: "hooked")
    assert module(1) == "hooked"
    handle.remove()
    shared = nn.modules.module.register_module_forward_pre_hook(lambda m, args: (9,))
    assert module(1) == ((9,), {})
    shared.remove()
    assert module(1) == ((1,), {})


def test_a_call_of_all_modules_can_be_replaced(monkeypatch):
    plain = nn.Module.__call__
    monkeypatch.setattr(nn.Module, "__call__", lambda self, *args: ("wrapped", plain(self, *args)))
    assert Echo()(1) == ("wrapped", ((1,), {}))


def test_a_compiled_call_goes_before_hooks_and_forward():
    class Compiled(Echo):
        _compiled_call_impl = staticmethod(lambda *args: ("compiled", *args))

    module = Compiled()
    assert module(1) == ("compiled", 1)
    module.register_forward_hook(lambda m, args, result: "hooked")
    assert module(1) == ("compiled", 1)


LOOKUPS = {
    "own": (OwnLookup, 7),
    "own, through __getattribute__": (EveryLookup, "every"),
    "a property that fails": (FailingProperty, AttributeError),
    "none": (nn.Linear, AttributeError),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_finds(name):
    cls, expected = LOOKUPS[name]
    module = cls(2, 3)
    assert module.weight is module._parameters["weight"]
    if expected is not AttributeError:
        assert module.magic == expected
        return
    with pytest.raises(AttributeError, match=f"'{cls.__name__}' object has no attribute 'magic'"):
        _ = module.magic


def test_a_lookup_given_to_a_class_later_is_used():
    module = nn.Linear(2, 2)
    nn.Linear.__getattr__ = lambda self, name: f"late {name}"
    try:
        assert module.magic == "late magic"
    finally:
        del nn.Linear.__getattr__
    with pytest.raises(AttributeError):
        _ = module.magic
    assert module.weight.shape == (2, 2)


def test_a_module_without_tables_says_what_is_missing():
    bare = nn.Linear.__new__(nn.Linear)
    with pytest.raises(AttributeError, match="_hooks"):
        bare(1)
    with pytest.raises(AttributeError, match="weight"):
        _ = bare.weight
    module = nn.Linear(2, 2)
    del module._parameters
    with pytest.raises(AttributeError, match="weight"):
        _ = module.weight


def test_endless_recursion_is_an_error():
    with pytest.raises(RecursionError):
        Endless()()


def test_modules_with_other_bases():
    module = DictModule()
    module["a"] = nn.Linear(1, 1)
    module.layer = module["a"]
    assert module.layer is module._modules["layer"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_modules_are_pickled_in_every_protocol(protocol):
    module = nn.Linear(2, 2)
    again = pickle.loads(pickle.dumps(module, protocol))
    assert facula.equal(again.weight, module.weight)


def test_a_dict_of_another_order_is_read_all_the_same():
    """Hooks and parameters are looked for where Module.__init__ puts them, but not only there."""
    plain = facula.nn.Linear(2, 2)
    plain(facula.ones(1, 2))
    turned = facula.nn.Linear(2, 2)
    items = list(vars(turned).items())
    vars(turned).clear()
    vars(turned).update(reversed(items))
    met = []
    turned.register_forward_hook(lambda module, args, result: met.append(result))
    result = turned(facula.ones(1, 2))
    assert met[0] is result
    assert facula.equal(result, facula.ones(1, 2) @ turned.weight.T + turned.bias)

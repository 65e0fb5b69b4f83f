"""Scenarios of Python objects and the tensors and storages that they stand for.

A scenario is a function of the module (facula or torch) that returns what was seen. The suites
compare that with what is expected here and with PyTorch; `leaks.py` runs them many times.
"""

import copy
import gc
import pickle
import sys
import threading
import weakref
from typing import NamedTuple


class Scenario(NamedTuple):
    """`run(m)` returns `expected`; `torch` is what PyTorch sees, where it collects less."""

    name: str
    run: object
    expected: object
    torch: object = ...
    flag: bool = True  # whether the scheme "flag" can do it, too


SCENARIOS = []


def scenario(expected, torch=..., flag=True):
    """Decorator that puts a function into the table."""

    def add(run):
        SCENARIOS.append(Scenario(run.__name__, run, expected, torch, flag))
        return run

    return add


# --- ways in which C++ holds a tensor: each returns a function that gives it back


def held_as_grad(m, t):
    owner = m.zeros(t.shape)
    owner.grad = t.detach() if t.requires_grad else t
    return lambda: owner.grad


def held_as_base(m, t):
    view = t.view(-1)
    return lambda: view._base


def held_as_leaf(m, t):
    result = t.requires_grad_() * 2

    def give():
        node = result.grad_fn
        while node.next_functions:
            node = node.next_functions[0][0]
        return node.variable

    return give


def held_by_function(m, t):
    class Keep(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.save_for_backward(kept)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None

    result = Keep.apply(m.ones(2, requires_grad=True), t)
    return lambda: result.grad_fn.saved_tensors[0]


HOLDERS = [held_as_grad, held_as_base, held_as_leaf, held_by_function]


def make_class(m, log=None, base=None, **members):
    """A subclass of Tensor; the ends of objects with a tag are noted in `log`."""
    if log is not None:
        members["__del__"] = lambda self: log.extend(("del", v) for v in tags_of(self))
    return type("Sub", (base or m.Tensor,), members)


def tags_of(o):
    """The tag of an object, if it has one."""
    return [o.__dict__["tag"]] if "tag" in o.__dict__ else []


def dead(ref):
    """Whether the collector ends what `ref` refers to."""
    gc.collect()
    return ref() is None


def quietly(run):
    """Runs with exceptions of finalizers noted instead of printed; returns their classes."""
    seen, before = [], sys.unraisablehook
    sys.unraisablehook = lambda info: seen.append(info.exc_type.__name__)
    try:
        run()
    finally:
        sys.unraisablehook = before
    return seen


# --- the same object comes back


@scenario([True] * len(HOLDERS))
def plain_tensor_keeps_its_id(m):
    def check(hold):
        t = m.ones(2)
        number = id(t)
        give = hold(m, t)
        del t
        gc.collect()
        others = [m.ones(2) for _ in range(300)]  # would take the place of an object that died
        return id(give()) == number and give() is give() and len(others) == 300

    return [check(hold) for hold in HOLDERS]


@scenario([(True, "Sub", {"tag": 7}, 0, [("del", 7)])] * len(HOLDERS))
def subclass_attributes_and_one_finalizer(m):
    def check(hold):
        log = []
        t = m.Tensor._make_subclass(make_class(m, log), m.ones(2))
        t.tag = 7
        number = id(t)
        give = hold(m, t)
        del t
        gc.collect()
        back = give()
        seen = (id(back) == number, type(back).__name__, dict(back.__dict__), len(log))
        del back
        gc.collect()
        seen = (*seen[:3], seen[3] + len(log))
        del give
        gc.collect()
        return (*seen, log)

    return [check(hold) for hold in HOLDERS]


@scenario((True, True, [], ["called"], True))
def weak_reference_with_callback(m):
    log = []
    t = m.ones(2)
    ref = weakref.ref(t, lambda _: log.append("called"))
    give = held_as_grad(m, t)
    del t
    gc.collect()
    alive, same, before = ref() is not None, ref() is give(), list(log)
    del give
    gc.collect()
    return alive, same, before, log, ref() is None


@scenario((2.0, True))
def weak_reference_outlives_the_holder(m):
    t = m.ones(2)
    ref = weakref.ref(t)
    give = held_as_grad(m, t)
    del t
    back = ref()
    del give
    total = float(back.sum())
    del back
    return total, dead(ref)


@scenario((1, "two", True, True))
def slots_are_kept(m):
    cls = make_class(m, None, None, __slots__=("a", "b"))
    t = m.ones(2).as_subclass(cls)
    t.a, t.b = 1, "two"
    ref = weakref.ref(t)
    give = held_as_grad(m, t)
    del t
    gc.collect()
    same = give() is ref()
    seen = (give().a, give().b, same)
    del give
    return (*seen, dead(ref))


@scenario([("x", "Mixed", True)] * 3)
def multiple_inheritance(m):
    class Mixin:
        def location(self):
            return self.place

    class Other(Mixin):
        pass

    def check(bases):
        t = m.ones(2).as_subclass(type("Mixed", bases, {}))
        t.place = "x"
        ref = weakref.ref(t)
        give = held_as_grad(m, t)
        del t
        gc.collect()
        seen = (give().location(), type(give()).__name__)
        del give
        return (*seen, dead(ref))

    return [check(bases) for bases in ((m.Tensor, Mixin), (Mixin, m.Tensor), (Other, m.Tensor))]


@scenario((True, True, True, True))
def parts_of_a_tensor_are_the_same_objects(m):
    x = m.ones(3, requires_grad=True)
    (x * x).sum().backward()
    view = x.detach()[1:]
    graph = (x * 2).sum()
    return (
        x.grad is x.grad,
        view._base is view._base,
        view.untyped_storage() is x.untyped_storage(),
        graph.grad_fn is graph.grad_fn,
    )


@scenario((5, True, True, True))
def storage_keeps_attributes(m):
    t = m.ones(3)
    t.untyped_storage().tag = 5
    number = id(t.untyped_storage())
    gc.collect()
    others = [m.ones(1).untyped_storage() for _ in range(50)]
    storage = t.untyped_storage()
    ref = weakref.ref(storage)
    seen = (storage.tag, id(storage) == number, len(others) == 50)
    del storage, t
    return (*seen, dead(ref))


@scenario(("Mine", 1, [], ["del"]))
def storage_subclass(m):
    log = []
    cls = type("Mine", (m.UntypedStorage,), {"__del__": lambda self: log.append("del")})
    storage = cls(8)
    storage.tag = 1
    t = m.tensor([], dtype=m.uint8).set_(storage, 0, (8,), (1,))
    del storage
    gc.collect()
    seen = (type(t.untyped_storage()).__name__, t.untyped_storage().tag, list(log))
    del t
    gc.collect()
    return (*seen, log)


@scenario((True, True), torch=(True, False))
def storage_cycles(m):
    a = m.UntypedStorage(4)
    a.me = a
    first = weakref.ref(a)
    t = m.ones(2)
    t.untyped_storage().owner = t
    second = weakref.ref(t)
    del a, t
    return dead(first), dead(second)


# --- finalizers that do odd things


@scenario((1, True, 2.0, ["del"]))
def finalizer_resurrects_once(m):
    saved, log = [], []

    def bring_back(self):
        log.append("del")
        saved.append(self)

    t = m.ones(2).as_subclass(make_class(m, __del__=bring_back))
    ref = weakref.ref(t)
    del t
    gc.collect()
    count, is_sub = len(saved), type(saved[0]).__name__ == "Sub"
    total = sum(saved[0].tolist())
    saved.clear()
    gc.collect()
    del ref
    return count, is_sub, total, log


@scenario((["ValueError"], True))
def finalizer_raises(m):
    def fail(self):
        raise ValueError

    t = m.ones(2).as_subclass(make_class(m, __del__=fail))
    ref = weakref.ref(t)
    give = held_as_grad(m, t)
    del t
    box = [give]
    del give
    return quietly(box.clear), dead(ref)


@scenario((True, 1, "Sub"))
def finalizer_gives_itself_to_cpp(m):
    owner, log = m.zeros(2), []

    def hand_over(self):
        log.append("del")
        owner.grad = self

    t = m.ones(2).as_subclass(make_class(m, __del__=hand_over))
    number = id(t)
    del t
    gc.collect()
    seen = (id(owner.grad) == number, len(log), type(owner.grad).__name__)
    owner.grad = None
    return seen


@scenario((["del"], True))
def finalizer_changes_attributes(m):
    log = []

    def change(self):
        self.tag = [self]
        self.other = m.ones(3)
        self.__dict__ = {"log": log}
        self.log.append("del")

    t = m.ones(2).as_subclass(make_class(m, __del__=change))
    t.tag = 1
    ref = weakref.ref(t)
    give = held_as_grad(m, t)
    del t
    gc.collect()
    del give
    return log, dead(ref)


@scenario(([], True, 3, ["del"]))
def finalizer_added_to_the_class_later(m):
    log = []
    cls = make_class(m)
    t = m.ones(2).as_subclass(cls)
    t.tag = 3
    give = held_as_grad(m, t)
    del t
    cls.__del__ = lambda self: log.append("del")
    gc.collect()
    seen = (list(log), type(give()) is cls, give().tag)
    del give
    gc.collect()
    return (*seen, log)


@scenario((True, [], True, [("del", "mine")]), flag=False)
def garbage_in_python_that_cpp_holds(m):
    log = []
    t = m.ones(2).as_subclass(make_class(m, log))
    t.tag = "mine"
    ref = weakref.ref(t)
    give = held_as_grad(m, t)
    ring = [t]
    ring.append(ring)
    del t, ring
    gc.collect()
    seen = (ref() is not None, list(log), give() is ref())
    del give
    gc.collect()
    return (*seen, log)


@scenario(("B", 1, "B"))
def class_changes_while_held(m):
    first, second = type("A", (m.Tensor,), {}), type("B", (m.Tensor,), {})
    t = m.ones(2).as_subclass(first)
    t.tag = 1
    give = held_as_grad(m, t)
    t.__class__ = second
    del t
    gc.collect()
    return type(give()).__name__, give().tag, type(give()).__name__


@scenario((True, True))
def long_chain_of_attributes_ends(m):
    cls = make_class(m, None, None, __slots__=("next",))

    def chain(make, follow):
        last = make()
        ref = weakref.ref(last)
        for _ in range(20000):
            fresh = make()
            follow(fresh, last)
            last = fresh
        del last, fresh
        return dead(ref)

    one = m.ones(1)
    return (
        chain(lambda: one.as_subclass(cls), lambda a, b: setattr(a, "next", b)),
        chain(lambda: m.ones(1), lambda a, b: setattr(a, "next", b)),
    )


# --- cycles


@scenario([True] * 4)
def cycles_of_attributes(m):
    plain = m.ones(2)
    plain.me = plain
    sub = m.ones(2).as_subclass(make_class(m, []))
    sub.box = [sub]
    slotted = m.ones(2).as_subclass(make_class(m, None, None, __slots__=("me",)))
    slotted.me = slotted
    parameter = m.nn.Parameter(m.ones(2))
    parameter.owner = {"of": parameter}
    refs = [weakref.ref(t) for t in (plain, sub, slotted, parameter)]
    del plain, sub, slotted, parameter
    gc.collect()
    return [ref() is None for ref in refs]


@scenario((True, True, False))
def cycle_while_cpp_holds(m):
    t = m.ones(2)
    t.me = t
    give = held_as_grad(m, t)
    ref = weakref.ref(t)
    del t
    gc.collect()
    seen = (give().me is give(), ref() is give())
    give().me = None
    del give
    return (*seen, not dead(ref))


@scenario(True)
def cycle_through_leaf_hook(m):
    x = m.ones(2, requires_grad=True)
    x.register_hook(lambda g, x=x: None)
    ref = weakref.ref(x)
    del x
    return dead(ref)


@scenario(True, torch=False)
def cycle_through_gradient(m):
    x = m.ones(2, requires_grad=True)
    x.grad = x.detach().clone()
    x.grad.owner = x
    ref = weakref.ref(x)
    del x
    return dead(ref)


@scenario(True, torch=False)
def cycle_through_saved_tensors(m):
    x = m.ones(2, requires_grad=True)
    x.result = x * x
    ref = weakref.ref(x)
    del x
    return dead(ref)


@scenario(True, torch=False)
def cycle_through_leaf_of_the_graph(m):
    x = m.nn.Parameter(m.ones(2))
    x.result = ((x * 2) + 1).exp()
    ref = weakref.ref(x)
    del x
    return dead(ref)


@scenario(True, torch=False)
def cycle_through_view_base(m):
    x = m.ones(2, 2)
    x.row = x[0]
    ref = weakref.ref(x)
    del x
    return dead(ref)


def square(m):
    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square


@scenario(True)
def cycle_through_function_context(m):
    y = square(m).apply(m.ones(2, requires_grad=True))
    y.grad_fn.result = y
    ref = weakref.ref(y)
    del y
    return dead(ref)


@scenario(True)
def cycle_through_metadata_of_a_function(m):
    y = square(m).apply(m.ones(2, requires_grad=True))
    y.node = y.grad_fn
    y.grad_fn.box = [y]
    ref = weakref.ref(y)
    del y
    return dead(ref)


# --- use


class Probe:
    """Dies with the cycle that it was put into."""


def _dies(hang):
    """Whether a probe dies that `hang(probe)` ties into a cycle."""
    probe = Probe()
    ref = weakref.ref(probe)
    hang(probe)
    del probe
    return dead(ref)


@scenario(True, torch=False)
def cycle_through_hook_of_a_result(m):
    def hang(probe):
        y = m.ones(2, requires_grad=True) * 2
        y.register_hook(lambda g: (y, probe) and None)

    return _dies(hang)


@scenario((True, True, True), torch=(True, False, True))
def cycle_through_hooks_of_a_node(m):
    def by_post_hook(probe):
        node = (m.ones(2, requires_grad=True) * 2).grad_fn
        node.register_hook(lambda ins, outs: (node, probe) and None)

    def by_post_hook_of_a_tensor(probe):
        y = m.ones(2, requires_grad=True) * 2
        y.grad_fn.register_hook(lambda ins, outs: (y, probe) and None)

    def by_pre_hook(probe):
        node = (m.ones(2, requires_grad=True) * 2).grad_fn
        node.register_prehook(lambda outs: (node, probe) and None)

    return _dies(by_post_hook), _dies(by_post_hook_of_a_tensor), _dies(by_pre_hook)


@scenario((True, True), torch=(False, False))
def cycle_through_metadata_of_a_node(m):
    def of_a_node(probe):
        node = (m.ones(2, requires_grad=True) * 2).grad_fn
        node.metadata["me"] = (node, probe)

    def of_a_tensor(probe):
        y = m.ones(2, requires_grad=True) * 2
        y.grad_fn.metadata["me"] = (y, probe)

    return _dies(of_a_node), _dies(of_a_tensor)


@scenario(True, torch=False)
def cycle_through_hook_after_accumulation(m):
    def hang(probe):
        x = m.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda t: (x, probe) and None)

    return _dies(hang)


@scenario(True, torch=False)
def cycle_through_packed_tensors(m):
    def hang(probe):
        packed = [probe]
        hooks = m.autograd.graph.saved_tensors_hooks(lambda t: packed, lambda p: m.ones(2))
        with hooks:
            packed.append(m.ones(2, requires_grad=True).exp())

    return _dies(hang)


@scenario((True, [4.0, 4.0], 1))
def backward_through_dropped_subclasses(m):
    log = []
    x = m.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(make_class(m, log))
    y.tag = "middle"
    z = (y * y).sum() * 0.5
    number = len(log)
    del y
    gc.collect()
    z.backward()
    del z
    gc.collect()
    return number <= len(log), x.grad.tolist(), log.count(("del", "middle"))


@scenario((400, True))
def threads_drop_what_backward_uses(m):
    log, errors = [], []
    cls = make_class(m, log)

    def work():
        try:
            for _ in range(20):
                x = m.ones(8, requires_grad=True)
                parts = []
                for k in range(5):
                    t = (x * k).as_subclass(cls)
                    t.tag = "mine"
                    parts.append(t * t)
                    del t
                loss = sum((p.as_subclass(m.Tensor) for p in parts), m.zeros(8)).sum()
                del parts
                loss.backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    return log.count(("del", "mine")), not errors


@scenario((True, "kept", True, ["kept"], True))
def copies_have_the_attributes(m):
    t = m.ones(2)
    t.tag = ["kept"]
    shallow, deep = copy.copy(t), copy.deepcopy(t)
    back = pickle.loads(pickle.dumps(t))
    return (
        shallow.tag is t.tag,
        deep.tag[0],
        deep.tag is not t.tag,
        back.tag,
        deep.untyped_storage() is not t.untyped_storage(),
    )


@scenario((True, {"me": 1}))
def deepcopy_of_a_cycle(m):
    t = m.ones(2)
    t.me = t
    t.row = {"me": 1}
    deep = copy.deepcopy(t)
    seen = (deep.me is not t, deep.row)
    t.me = deep.me = None
    return seen


@scenario((True, True))
def lists_of_an_operator(m):
    parts = [m.ones(2, requires_grad=True).as_subclass(make_class(m)) for _ in range(3)]
    numbers = [id(p) for p in parts]
    joined = m.cat([p.as_subclass(m.Tensor) for p in parts])
    pieces = joined.split(2)
    same = pieces[0]._base is pieces[1]._base
    return same, numbers == [id(p) for p in parts]

"""Trails: how segments of earlier calls went. A call that goes the same way needs no shapes, no
structure and no search for its program; where it goes another way, it starts again from what it
has called so far."""

from __future__ import annotations

import sys
import types

import facula
from facula import _C
from facula._dynamo.segment import same_number
from facula._dynamo.wholes import Whole
from facula.utils._pytree import tree_unflatten

# At most so many ways on from one place, and steps of one compiled function.
_WAYS, _STEPS = 8, 20_000
# A function whose calls go new ways so often in a row is not followed any more.
_MISSES = 32

# Constants that are compared; anything else is itself.
_COMPARED = frozenset(
    (
        *(int, float, bool, complex, str, bytes, type, type(None), type(...)),
        *(facula.dtype, facula.device, facula.layout, facula.memory_format),
    )
)
# What a tensor is asked for that its geometry and the calls so far determine.
QUERIES = frozenset(
    "__len__ device dim dtype element_size get_device has_names is_complex is_contiguous is_conj "
    "is_cpu is_cuda is_floating_point is_leaf is_meta is_neg is_quantized is_same_size is_signed "
    "is_sparse itemsize layout nbytes ndim ndimension nelement numel requires_grad shape size "
    "stride".split()
)

MISS = object()
_MADE_AGAIN = (types.MethodType, types.BuiltinMethodType, Whole)


class _Slot:
    """A tensor that the segment has met: its place among `Walk.slots`."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


class _First:
    """A tensor that the segment has not met: what it must be."""

    __slots__ = ("number", "kind", "key", "storage")

    def __init__(self, number, kind, key, storage):
        self.number, self.kind, self.key, self.storage = number, kind, key, storage


class _Nest:
    """A tuple, list, dict or slice of patterns."""

    __slots__ = ("kind", "parts", "keys")

    def __init__(self, kind, parts, keys=()):
        self.kind, self.parts, self.keys = kind, parts, keys


class _Same:
    """An object that must be this one."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class _Made:
    """A result: what the program gets is like this fake tensor."""

    __slots__ = ("example",)

    def __init__(self, example):
        self.example = example


class Node:
    """A place on trails: steps that go on from it, programs of segments that end here, and whether
    there are others that cannot be followed."""

    __slots__ = ("steps", "ends", "leads_off")

    def __init__(self):
        self.steps, self.ends, self.leads_off = [], [], False

    def end_for(self, needed):
        """The End whose program gives what these slots need, or None."""
        for end in self.ends:
            if all(slot in end.outputs for slot in needed):
                return end
        return None


class Step:
    """A call: what it is called with, and what it gives.

    Attributes:
        function (callable), args, kwargs: patterns.
        modes (tuple): `modes_now()` at the call.
        state (tuple): grad mode and autocast, as `Call` has them.
        results (list): of leaves; None for a plain value, which is `value`.
        spec (TreeSpec): the nest of the results.
        line (tuple): file and line of the program.
        only (Tensor): the example of the one new tensor that is the result, or None.
        next (Node): where it leads.
    """

    __slots__ = (
        *("function", "args", "kwargs", "modes", "state", "results", "spec", "value", "line"),
        *("only", "next"),
    )

    def __init__(self, function, args, kwargs, modes):
        self.function, self.args, self.kwargs, self.modes = function, args, kwargs, modes
        self.state = self.results = self.spec = self.value = self.line = self.only = None
        self.next = Node()


class End:
    """The end of a segment.

    Attributes:
        program: what runs, in `state`.
        inputs (list of int): slots of its inputs.
        outputs (dict): slot to the place among its results.
        numbers (list): its arguments behind the inputs.
    """

    __slots__ = ("program", "state", "inputs", "outputs", "numbers")

    def __init__(self, program, state, inputs, outputs, numbers):
        self.program, self.state = program, state
        self.inputs, self.outputs, self.numbers = inputs, outputs, numbers


class Trails:
    """What a compiled function's calls have gone through, by where segments begin."""

    def __init__(self):
        self._roots = {}
        self._steps = self._misses = 0

    def walk(self, start):
        """A Walk for a segment that begins so; None if it is not worth it."""
        if self._misses >= _MISSES:
            return None
        root = self._roots.get(start)
        if root is None:
            root = self._roots[start] = Node()
        return Walk(self, root)

    def add(self, node, step):
        """Whether another step may go on from a node; if so, it does."""
        if len(node.steps) >= _WAYS or self._steps >= _STEPS:
            return False
        self._steps += 1
        node.steps.append(step)
        return True

    def note(self, followed):
        """Count a segment that followed a trail to its end, or left it."""
        self._misses = 0 if followed else self._misses + 1


class Walk:
    """One segment's way along the trails.

    Attributes:
        slots (list of Tensors): in the order in which calls met or made them.
        made (list of int): slots of those that calls made.
        taken (list of Step): the calls that it has followed.
        node (Node): where it is; None off the trails.
    """

    def __init__(self, trails, node):
        self._trails, self.node = trails, node
        self.slots, self.made, self.taken = [], [], []
        self._at, self._storages = {}, {}

    def knows(self, tensor):
        """Whether the segment has met a tensor."""
        return id(tensor) in self._at

    def slot_of(self, tensor):
        """The slot of a tensor, or None."""
        return self._at.get(id(tensor))

    def made_it(self, tensor):
        """Whether a call of the segment made a tensor."""
        return self._at.get(id(tensor)) in self.made

    def _add(self, tensor):
        self._at[id(tensor)] = len(self.slots)
        self.slots.append(tensor)

    # --- following

    def follow(self, function, args, kwargs, modes):
        """What a call gives that goes as an earlier one did, or MISS."""
        for step in self.node.steps:
            known = step.function
            if step.modes == modes and (known is function or _same_function(known, function)):
                met, storages = len(self.slots), len(self._storages)
                if self._all_match(step.args, args) and self._match_keywords(step.kwargs, kwargs):
                    return self._take(step)
                self._forget_from(met, storages)
        return MISS

    def _take(self, step):
        self.node = step.next
        if step.results is None:
            return step.value
        self.taken.append(step)
        if step.only is not None:
            return self._new(step.only)
        shown = []
        for result in step.results:
            kind = type(result)
            if kind is _Made:
                result = self._new(result.example)
            elif kind is _Slot:
                result = self.slots[result.number]
            shown.append(result)
        return shown[0] if step.spec is None else tree_unflatten(shown, step.spec)

    def _new(self, example):
        """A tensor that a call makes."""
        result, slot = _C._fake_twin(example), len(self.slots)
        self.made.append(slot)
        self._at[id(result)] = slot
        self.slots.append(result)
        return result

    def _forget_from(self, met, storages):
        """Forget tensors that a step has met which then did not match."""
        while len(self.slots) > met:
            del self._at[id(self.slots.pop())]
        while len(self._storages) > storages:
            self._storages.popitem()

    def _all_match(self, wanted, got):
        if len(wanted) != len(got):
            return False
        slots = self.slots
        for want, value in zip(wanted, got):  # noqa: B905
            if type(want) is _Slot:
                if slots[want.number] is not value:
                    return False
            elif want is not value and not self._matches(want, value):
                return False
        return True

    def _match_keywords(self, wanted, got):
        if not got:
            return not wanted
        return (
            wanted
            and wanted.keys() == got.keys()
            and self._all_match(wanted.values(), [got[name] for name in wanted])
        )

    def _matches(self, want, got):
        kind = type(want)
        if kind is _Slot:
            return self.slots[want.number] is got
        if kind is _First:
            return type(got) is want.kind and self._meets(want, got)
        if kind is _Nest:
            return type(got) is want.kind and self._nest_matches(want, got)
        if kind is _Same:
            return want.value is got
        if kind is not type(got):
            return False
        return same_number(want, got) if kind is int or kind is float else want == got

    def _nest_matches(self, want, got):
        if want.kind is dict:
            return tuple(got) == want.keys and self._all_match(want.parts, got.values())
        return self._all_match(want.parts, _parts_of_slice(got) if want.kind is slice else got)

    def _meets(self, first, tensor):
        if id(tensor) in self._at or _key(tensor) != first.key:
            return False
        if self._storage_number(tensor) != first.storage:
            return False
        self._add(tensor)
        return True

    def _storage_number(self, tensor):
        storage = _C._capture_storage(tensor)
        return self._storages.setdefault(storage, len(self._storages))

    def needed(self):
        """Slots of tensors that calls made and somebody else refers to."""
        slots = self.slots
        # A reference of the list, and that of the call.
        return [k for k in self.made if sys.getrefcount(slots[k]) > 2]

    # --- writing

    def pattern_of(self, value):
        """The pattern of an argument; tensors in it that are new get slots."""
        if isinstance(value, facula.Tensor):
            return self._pattern_of_tensor(value)
        kind = type(value)
        if kind in _COMPARED:
            return value
        if kind in (tuple, list, facula.Size):
            return _Nest(kind, [self.pattern_of(part) for part in value])
        if kind is slice:
            return _Nest(kind, [self.pattern_of(part) for part in _parts_of_slice(value)])
        if kind is dict:
            return _Nest(kind, [self.pattern_of(part) for part in value.values()], tuple(value))
        return _Same(value)

    def _pattern_of_tensor(self, tensor):
        slot = self._at.get(id(tensor))
        if slot is not None:
            return _Slot(slot)
        first = _First(len(self.slots), type(tensor), _key(tensor), self._storage_number(tensor))
        self._add(tensor)
        return first

    def step(self, function, args, kwargs, modes):
        """A Step from here, before its results are told; None off the trails."""
        if self.node is None:
            return None
        patterns = [self.pattern_of(value) for value in args]
        keywords = {name: self.pattern_of(value) for name, value in kwargs.items()}
        return Step(function, patterns, keywords or None, modes)

    def go(self, step):
        """Go on by a new step."""
        if self._trails.add(self.node, step):
            self.node = step.next
        else:
            self.leave()

    def go_plain(self, function, args, kwargs, modes, value):
        """The same for a call that gives no tensors."""
        if step := self.step(function, args, kwargs, modes):
            step.value = value
            self.go(step)

    def go_made(self, step, shown, made, spec):
        """The same for a call that gives tensors, of which it has made some."""
        step.spec = None if spec.is_leaf() else spec
        step.results = []
        for result in shown:
            if isinstance(result, facula.Tensor):
                result = self._result(result, made)
            elif type(result) not in _COMPARED:
                result = MISS
            step.results.append(result)
        if MISS in step.results:
            self.leave()
            return
        if step.spec is None and type(step.results[0]) is _Made:
            step.only = step.results[0].example
        self.go(step)

    def _result(self, tensor, made):
        slot = self._at.get(id(tensor))
        if slot is not None:
            return _Slot(slot)
        if not any(tensor is m for m in made):
            return MISS
        self.made.append(len(self.slots))
        self._add(tensor)
        return _Made(_C._fake_twin(tensor))

    def end(self, program, segment):
        """The segment ends here, and is run by a program."""
        inputs = [self._at.get(id(tensor)) for tensor in segment.inputs]
        if self.node is None or program is None or None in inputs:
            return
        if len(self.node.ends) >= _WAYS:
            return
        outputs = {self.made[r.number]: at for at, r in enumerate(program.outputs)}
        numbers = [segment.values[place] for place in program.numbers]
        self.node.ends.append(End(program, segment.state, inputs, outputs, numbers))

    def leave(self):
        """Go off the trails: what comes is not to be followed."""
        if self.node is not None:
            self.node.leads_off = True
        self.node = None

    def note(self, followed):
        """Count a segment that has gone as an earlier one to its end, or has not here."""
        node = self.node
        if followed or node.steps or node.ends or node.leads_off:
            self._trails.note(followed)

    def call_of(self, step):
        """Function, arguments and keywords of a step that was taken."""
        keywords = step.kwargs or {}
        return (
            step.function,
            tuple(self._thawed(value) for value in step.args),
            {name: self._thawed(value) for name, value in keywords.items()},
        )

    def made_tensors(self):
        """The tensors that calls made, one by one."""
        return (self.slots[slot] for slot in tuple(self.made))

    def _thawed(self, pattern):
        kind = type(pattern)
        if kind is _Slot or kind is _First:
            return self.slots[pattern.number]
        if kind is _Same:
            return pattern.value
        if kind is not _Nest:
            return pattern
        parts = [self._thawed(part) for part in pattern.parts]
        if pattern.kind is dict:
            return dict(zip(pattern.keys, parts, strict=True))
        return slice(*parts) if pattern.kind is slice else pattern.kind(parts)


def _parts_of_slice(value):
    return value.start, value.stop, value.step


def _key(tensor):
    """What programs depend on in a tensor that they are given, but its class and storage."""
    return _C._capture_key(tensor)


def _same_function(a, b):
    if a is b:
        return True
    # Methods and transformed functions are made when they are asked for.
    return type(a) is type(b) and type(a) in _MADE_AGAIN and a == b

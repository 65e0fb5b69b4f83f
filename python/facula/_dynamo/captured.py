"""Captured functions: segments looked up among those that a backend has compiled."""

from __future__ import annotations

import functools
import warnings
import weakref
from dataclasses import dataclass

import facula
from facula import _C
from facula._dynamo import config
from facula._dynamo.breaks import place_in_program, refuse
from facula._dynamo.capture import Capture, current
from facula._dynamo.exc import BackendCompilerFailed, FailOnRecompileLimitHit, RecompileError
from facula._dynamo.segment import same_number
from facula._dynamo.segment_graph import SegmentGraph, names_of_tensors
from facula._dynamo.trails import Trails
from facula._dynamo.utils import count_calls, counters
from facula._functorch._aot_autograd.runtime import call_compiled
from facula._logging import say
from facula.overrides import TorchFunctionMode

_all = weakref.WeakSet()


def forget_everything():
    """Forget what backends have compiled."""
    for captured in _all:
        captured.forget()


@dataclass(eq=False)
class _Program:
    """A compiled segment: it serves those of its structure whose numbers are the same at all places
    but `free` ones."""

    values: list
    free: frozenset
    sizes: frozenset
    numbers: list
    outputs: list
    run: object

    def serves(self, segment, outputs):
        """Whether this program is one for a segment, of which these outputs are needed."""
        same = all(
            same_number(a, b) or (at in self.free and (at not in self.sizes or b > 1))
            for at, (a, b) in enumerate(zip(self.values, segment.values, strict=True))
        )
        return same and set(outputs) <= set(self.outputs)


class _NotesSizes(TorchFunctionMode):
    """Notes whether a backend looks at tensors."""

    looked = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.looked = True
        return func(*args, **(kwargs or {}))


class Captured:
    """Calls functions, whose segments a backend compiles.

    Args:
        backend (callable): of a GraphModule and a list of example inputs; returns a callable that
            takes such inputs, or one list of them if it has `_boxed_call`.
        name (str): the backend's name in messages.
        fullgraph (bool): whether a break raises.
        dynamic (bool): whether sizes are free at once (True), never (False), or once they differ.
        recompile_limit (int): unless None, replaces that of `config`.
    """

    def __init__(self, backend, name, fullgraph=False, dynamic=None, recompile_limit=None):
        self.backend, self.name = backend, name
        self.fullgraph, self.dynamic, self.recompile_limit = fullgraph, dynamic, recompile_limit
        self.forget()
        _all.add(self)

    def forget(self):
        """Forget what was compiled."""
        self._programs = {}
        self.trails = Trails()
        self._count_at = {}
        self._limited = False
        self._calls = 0

    def __call__(self, function, *args, **kwargs):
        from facula._dynamo.decorators import current_stance

        stance = current_stance()
        if current() or config.disable or stance.stance == "force_eager" or _is_traced():
            return function(*args, **kwargs)
        self._calls += 1
        if stance.starts_eager and self._calls == 1:
            return function(*args, **kwargs)
        names = functools.partial(names_of_tensors, function, args, kwargs)
        call = _CapturedCall(self, function, names, args, kwargs, stance)
        return call.run(function, args, kwargs)

    def note_break(self, reason):
        """Called at each break."""

    def count_compilation(self, site):
        """Count a compilation of the segments that begin at a site; whether it may be done."""
        limit = self.recompile_limit or config.recompile_limit
        count = self._count_at.get(site, 0)
        if count and config.error_on_recompile:
            raise RecompileError(f"compile(): a segment would be compiled again ({_shown(site)})")
        if count < limit:
            self._count_at[site] = count + 1
            return True
        text = (
            f"compile(): {_shown(site)} was compiled {limit} times (config.recompile_limit); it "
            "runs as it is for other arguments from now on"
        )
        if self.fullgraph or config.fail_on_recompile_limit_hit:
            raise FailOnRecompileLimitHit(text)
        if not self._limited:
            warnings.warn(text, stacklevel=2)
            self._limited = True
        return False


class _CapturedCall:
    """One call of a function under `Captured`."""

    def __init__(self, owner, function, names, args, kwargs, stance):
        self.owner, self.names, self.stance = owner, names, stance
        self.function = function
        self.args = [*args, *kwargs.values()]
        self.site = self._next_site = "start"
        self.capture = Capture(self)

    def run(self, function, args, kwargs):
        """The function's result."""
        capture, self.capture = self.capture, None  # no cycle: arguments may hold much memory
        try:
            with capture:
                result = function(*args, **kwargs)
        except BaseException:
            capture.finish()
            raise
        capture.finish()
        return result

    def on_break(self, reason):
        """A segment ends before the function does."""
        if self.owner.fullgraph:
            refuse(reason)
        self._next_site = place_in_program()
        self.owner.note_break(reason)
        counters["graph_break"][reason] += 1
        say("breaks", f"{self._next_site[0]}:{self._next_site[1]}: {reason}")

    # --- programs

    def run_segment(self, segment, outputs):
        """The values of these Results of a segment, and the program that serves such segments."""
        site, self.site = self.site, self._next_site
        structure = (*segment.structure, segment.state, facula.get_default_dtype())
        programs = self.owner._programs.setdefault(structure, [])
        program = next((p for p in programs if p.serves(segment, outputs)), None)
        if program is None:
            program = self._compiled(segment, outputs, programs, site)
        numbers = [segment.values[place] for place in program.numbers]
        values = _in_state(segment.state, program.run, [*segment.inputs, *numbers])
        by_place = dict(zip(program.outputs, values, strict=True))
        serves = program if program in programs else None
        return [by_place[place] for place in outputs], serves

    def run_program(self, program, state, inputs, numbers):
        """The results of a program for a segment that has gone as an earlier one did."""
        self.site = self._next_site
        return _in_state(state, program.run, [*inputs, *numbers])

    def walk(self, start):
        """A Walk for a segment that begins here, in the modes `start`."""
        return self.owner.trails.walk((self._next_site, *start))

    def _compiled(self, segment, outputs, programs, site):
        stance = self.stance.stance
        if stance == "fail_on_recompile":
            raise RuntimeError(
                f"compile(): stance 'fail_on_recompile' expects what was compiled; got a segment "
                f"that was not ({_shown(site)})"
            )
        by_hand = stance == "eager_on_recompile" or not self.owner.count_compilation(
            (getattr(self.function, "__code__", id(self.function)), site)
        )
        free = frozenset() if by_hand else self._free_places(segment, programs)
        numbers = [place for place in sorted(free) if place not in segment.sizes]
        module = SegmentGraph(segment, outputs, numbers, self.names()).module()
        run = _of_list(module.forward)
        sizes = frozenset(segment.sizes)
        program = _Program(segment.values, free, sizes, numbers, outputs, run)
        if by_hand:
            return program
        if programs:
            say("recompiles", f"{_shown(site)}: {_difference(programs[-1], segment, outputs)}")
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += count_calls(module.graph)
        say("graphs", module.code)
        program.run = self._call_backend(module, segment, program)
        programs.append(program)
        return program

    def _call_backend(self, module, segment, program):
        backend = self.stance.backend or self.owner.backend
        inputs = [*segment.inputs, *(segment.values[place] for place in program.numbers)]
        notes = _NotesSizes()
        with notes:
            run = _called(backend, self.owner.name, module, inputs)
        if notes.looked and program.free and not getattr(run.args[0], "takes_any_geometry", False):
            return _by_geometry(backend, self.owner.name, module, inputs, run)
        return run

    def _free_places(self, segment, programs):
        """Places of numbers that a new program takes as they come."""
        if self.owner.dynamic is False:
            return frozenset()
        free = set(_marked(segment))
        if self.owner.dynamic or not config.assume_static_by_default:
            sizes = {at for at, n in enumerate(segment.values) if at in segment.sizes and n > 1}
            free |= sizes - set(_parameter_places(segment))
            likely = {segment.values[at] for at in sizes} | {
                a for a in self.args if type(a) is int and a > 1
            }
            free |= {
                at
                for at, n in enumerate(segment.values)
                if at not in segment.sizes and type(n) is int and n in likely
            }
        if programs and config.automatic_dynamic_shapes:
            last = programs[-1]
            free |= last.free | {
                at
                for at, (a, b) in enumerate(zip(last.values, segment.values, strict=True))
                if not same_number(a, b)
            }
        static = {at for at in segment.sizes if segment.values[at] < 2} | set(
            _marked_static(segment)
        )
        return frozenset(free - static)


def _difference(program, segment, outputs):
    """Why a program that was compiled for a segment's structure does not serve it."""
    for at, (a, b) in enumerate(zip(program.values, segment.values, strict=True)):
        if not same_number(a, b):
            if at not in segment.sizes:
                return f"the number {a} is {b}"
            given, dim = segment.sizes[at]
            return f"size {dim} of input {given.number} was {a} and is {b}"
    return f"{len(outputs)} results are needed"


def _called(backend, name, module, inputs):
    """What a backend returns for a graph.

    Raises:
        BackendCompilerFailed: the backend raised, or did not return a callable.
    """
    try:
        run = backend(module, inputs)
        if not callable(run):
            raise TypeError(f"expected a callable; got {run!r}")
    except Exception as error:
        if config.suppress_errors:
            warnings.warn(f"compile(): backend {name!r} raised {error!r}", stacklevel=2)
            return _of_list(module.forward)
        raise BackendCompilerFailed(
            f"backend={name!r} raised:\n{type(error).__name__}: {error}"
        ) from error
    return _of_list(run)


def _of_list(function):
    """What takes the arguments of a compiled function as one list."""
    return functools.partial(call_compiled, function)


def _by_geometry(backend, name, module, inputs, run):
    """A program of a backend that has looked at its examples: it is called for each geometry."""

    def key(args):
        return tuple(tuple(a.shape) if isinstance(a, facula.Tensor) else a for a in args)

    programs = {key(inputs): run}

    def call(args):
        found = key(args)
        if found not in programs:
            programs[found] = _called(backend, name, module, args)
        return programs[found](args)

    return call


def _in_state(state, run, args):
    """Run a program in the modes of its first call."""
    grad = facula.is_grad_enabled()
    _C._set_grad_enabled(state[0])
    try:
        if state[1] is None and not facula.is_autocast_enabled("cpu"):
            return run(args)
        wanted = state[1] or ("cpu", facula.bfloat16, False, None)
        with facula.autocast(wanted[0], dtype=wanted[1], enabled=wanted[2]):
            return run(args)
    finally:
        _C._set_grad_enabled(grad)


def _marked(segment):
    return _places_noted(segment, "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices")


def _marked_static(segment):
    return _places_noted(segment, "_dynamo_static_indices")


def _places_noted(segment, *attributes):
    """Places of sizes that `mark_dynamic` or another of its kind has noted on inputs."""
    for place, (given, dim) in segment.sizes.items():
        tensor = segment.inputs[given.number]
        if any(dim in getattr(tensor, name, ()) for name in attributes):
            yield place


def _parameter_places(segment):
    for place, (given, _) in segment.sizes.items():
        if isinstance(segment.inputs[given.number], facula.nn.Parameter):
            yield place


def _is_traced():
    """Whether calls are seen by something that a captured call would hide them from."""
    from facula.utils._python_dispatch import _get_current_dispatch_mode

    return _C._functorch.maybe_current_level() != -1 or _get_current_dispatch_mode() is not None


def _shown(site):
    place = site[-1] if isinstance(site, tuple) else site
    if isinstance(place, tuple) and len(place) == 2 and place[0]:
        return f"the segment from {place[0]}:{place[1]} on"
    return "the first segment of the function"

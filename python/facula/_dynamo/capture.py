"""Captures what a function calls, for backends: calls are put off, and run as graphs.

While a captured function runs its Python code, tensors that it makes are fake: they have a geometry
and no data. Where data is needed - a break, or the end - the calls so far are a segment. A backend
has compiled it, or does now; its results then become the tensors that Python holds.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager

import facula
from facula import _C
from facula._dynamo.breaks import place_in_program
from facula._dynamo.segment import Call, Segment, autocast_state
from facula._dynamo.trails import MISS, QUERIES
from facula._subclasses.fake_tensor import FakeTensorMode
from facula.overrides import TorchFunctionMode
from facula.utils._pytree import tree_flatten, tree_unflatten

_captures = threading.local()

# Methods and attributes of tensors that need what a graph cannot give: data, memory, history. Those
# that ask for data only are found by themselves, since fake tensors have none.
_NEEDS_TENSOR = frozenset(
    "__array__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __float__ __format__ "
    "__index__ __int__ __reduce_ex__ __repr__ __setstate__ __str__ _typed_storage "
    "apply_ backward data_ptr from_numpy frombuffer grad_fn item map_ numpy "
    "pin_memory record_stream register_hook register_post_accumulate_grad_hook resize_ "
    "resize_as_ retain_grad retains_grad set_ share_memory_ storage to_dense to_sparse tolist"
    "".split()
)


_PLAIN = (bool, int, float, complex, str, facula.dtype, facula.device, facula.layout)


def current():
    """The capture at work on this thread, or None; none while it runs something for real."""
    capture = getattr(_captures, "current", None)
    return capture if capture and not capture.paused else None


def name_of(function):
    """The name of a function that a mode was told of; that of an attribute for its getter."""
    owner = getattr(function, "__self__", None)
    if type(function).__name__ == "method-wrapper" and hasattr(owner, "__objclass__"):
        return owner.__name__
    return getattr(function, "__name__", str(function))


def _is_attribute(function):
    return type(function).__name__ == "method-wrapper"


def _surroundings():
    """What changes the meaning of calls in ways that graphs do not hold."""
    return (
        facula.get_default_dtype(),
        facula.is_inference_mode_enabled(),
        _C._functorch.maybe_current_level(),
    )


def _state():
    """The modes that graphs change: gradients and autocast."""
    return facula.is_grad_enabled(), autocast_state()


class _Storage:
    """What `untyped_storage()` gives in a captured function: resizing it is a call of the graph."""

    def __init__(self, capture, tensor):
        self._capture, self._tensor = capture, tensor

    def _is_current(self):
        return current() is self._capture

    def nbytes(self):
        """The size in bytes, after the calls so far."""
        if not self._is_current():
            return self._tensor.untyped_storage().nbytes()
        self._capture.leave_trail()
        with self._capture.on_examples():
            return self._capture.example(self._tensor).untyped_storage().nbytes()

    size = __len__ = nbytes

    def resize_(self, size):
        """Resize the storage to a number of bytes."""
        if self._is_current():
            self._capture.defer(facula.ops.aten.resize_storage_bytes_, (self._tensor, size), {})
        else:
            self._tensor.untyped_storage().resize_(size)
        return self

    def __getattr__(self, name):
        if self._is_current():
            self._capture.finish(f"UntypedStorage.{name}")
        return getattr(self._tensor.untyped_storage(), name)


class Capture(TorchFunctionMode):
    """One call of a captured function.

    Args:
        runner: has `run_segment(segment, results)`, which gives Tensors and a program or None,
            `run_program(program, state, inputs, numbers)`, `on_break(reason)`, called before a
            segment ends early, which may raise, and `walk(start)`, a Walk or None.
    """

    def __init__(self, runner):
        self._runner = runner
        self.paused = False
        self._begin(_state())

    def _begin(self, state=None):
        """Begin a segment; `state` is that of the function's start."""
        self._start = state
        self._outside = _surroundings()
        self._walk = self._runner.walk((state, _C._capture_modes()))
        self._follows = self._walk is not None
        # What the last segment refers to may be needed by nobody else.
        self._segment = self._known = self._places = self._by_example = self._made = None
        if not self._follows:
            self._open()

    def _open(self):
        """Prepare for recording."""
        self._segment = Segment()
        self._segment.state = self._start
        self._known = {}  # id of a Tensor of the program -> the Tensor, its example
        self._places = {}  # the same -> Input or Result, once a call has it
        self._by_example = {}  # id of an example -> the Tensor of the program
        self._made = []  # Tensors that calls made, and their Results

    def __enter__(self):
        self._before = getattr(_captures, "current", None)
        _captures.current = self
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        _captures.current = self._before

    # --- calls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if self._follows:
            found = self._walk.follow(func, args, kwargs, _C._capture_modes())
            if found is not MISS:
                return found
        name = name_of(func)
        if _surroundings() != self._outside:
            self._run_pending()
        transformed = _C._functorch.maybe_current_level() != -1 or _C._dual_level_on()
        if transformed or not _plain(args, kwargs):
            return self.run_outside(f"{name}() on tensors of a transform", func, args, kwargs)
        if name in _NEEDS_TENSOR:
            return self.run_outside(f"Tensor.{name}", func, args, kwargs)
        if _is_attribute(func):
            return self._attribute(func, name, args)
        if name == "__iter__" and args[0].dim():
            return iter(self.defer(facula.Tensor.unbind, args, {}))
        if name == "untyped_storage":
            return _Storage(self, args[0])
        return self.defer(func, args, kwargs)

    def _attribute(self, func, name, args):
        if len(args) > 1 and args[0] is not None and func.__name__ == "__set__":
            return self.run_outside(f"Tensor.{name} is set", func, args, {})
        tensor = args[0]
        if not isinstance(tensor, facula.Tensor):
            return func(*args)
        if name == "grad":
            if self._is_made(tensor):
                return self.run_outside("Tensor.grad", func, args, {})
            return func(*args)
        if not self._knows(tensor):
            found = func(*args)
            return self.defer(getattr, (tensor, name), {}) if _is_tensor(found) else found
        return self.defer(getattr, (tensor, name), {})

    def _is_made(self, tensor):
        if self._follows:
            return self._walk.made_it(tensor)
        return any(made is tensor for made, _ in self._made)

    def _knows(self, tensor):
        return self._walk.knows(tensor) if self._follows else id(tensor) in self._known

    def defer(self, func, args, kwargs):
        """Put a call off; returns what it will have returned.

        A call that needs data, or that fails, runs now, after the segment.
        """
        if self._follows:
            found = self._walk.follow(func, args, kwargs, _C._capture_modes())
            if found is not MISS:
                return found
        self.leave_trail()
        before = self._out_shapes(kwargs)
        try:
            found = self._on_examples(func, args, kwargs)
            results, result_spec = tree_flatten(found)
        except Exception as error:
            reason = f"{name_of(func)}(): {error}"
            if not _needs_data(error):
                return self.run_failed(reason, func, args, kwargs)
            return self.run_outside(reason, func, args, kwargs)
        if before != self._out_shapes(kwargs):
            return self.run_outside(f"{name_of(func)}() resizes out=", func, args, kwargs)
        tensors = [r for r in results if isinstance(r, facula.Tensor)]
        if not tensors and (found is not None or func is getattr):
            return self._plain_result(func, args, kwargs, found, results)
        if any(t.layout is not facula.strided for t in tensors):
            return self.run_outside(f"{name_of(func)}() with a layout", func, args, kwargs)
        return self._record(func, args, kwargs, results, result_spec)

    def _out_shapes(self, kwargs):
        """The shapes of the tensors that a call writes its results to, after the calls so far."""
        if kwargs.get("out") is None:
            return None
        tensors = [t for t in tree_flatten(kwargs["out"])[0] if isinstance(t, facula.Tensor)]
        with self.on_examples():
            return [tuple(self.example(t).shape) for t in tensors]

    def _on_examples(self, func, args, kwargs):
        """What a function gives for the fake tensors of its arguments."""
        leaves, spec = tree_flatten((args, kwargs))
        with self.on_examples():
            on_examples = [self._of_example(leaf) for leaf in leaves]
            example_args, example_kwargs = tree_unflatten(on_examples, spec)
            return func(*example_args, **example_kwargs)

    def _plain_result(self, func, args, kwargs, found, results):
        """What a call gives that gives no tensors."""
        # Anything but a plain value, such as an iterator, may hold examples.
        if func is not getattr and not all(r is None or isinstance(r, _PLAIN) for r in results):
            return self.run_outside(f"{name_of(func)}()", func, args, kwargs)
        name = args[1] if func is getattr else name_of(func)
        if walk := self._walk:
            if name in QUERIES and isinstance(found, (*_PLAIN, tuple)):
                walk.go_plain(func, args, kwargs, _C._capture_modes(), found)
            else:
                walk.leave()
        return found

    def apply(self, function, args, kwargs):
        """`autograd.Function.apply`: a call of the graph, unless it reaches tensors by itself."""
        if _reaches_others(function):
            reason = f"{function.__name__}.apply() uses variables around it"
            return self.run_outside(reason, function.apply, args, kwargs)
        return self.defer(function.apply, args, kwargs)

    def transform(self, name, function, options, run, args, kwargs):
        """A transformed function: a call of the graph, if all that it reads is known."""
        from facula._dynamo.wholes import whole

        target = whole(name, function, options, run)
        if target is None or not _plain(args, kwargs):
            return self.run_outside(f"{name}() of a function that reads others", run, args, kwargs)
        return self.defer(target, args, kwargs)

    def _of_example(self, leaf):
        return self.example(leaf) if isinstance(leaf, facula.Tensor) else leaf

    @contextmanager
    def on_examples(self):
        """A context in which calls compute shapes alone, and no mode is told."""
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        with self.pause(), fake, _C.DisableTorchFunction():
            yield

    def example(self, tensor):
        """The fake tensor for a Tensor of the program."""
        known = self._known.get(id(tensor))
        if known is None:
            example = _C._make_fake(tensor)
            if not tensor.is_leaf:
                with facula.enable_grad():
                    example = facula.ops.aten.clone(example.requires_grad_())
            known = self._know(tensor, example)
        return known[1]

    def _know(self, tensor, example):
        known = self._known[id(tensor)] = tensor, example
        self._by_example[id(example)] = tensor
        return known

    def _place(self, tensor):
        """The Input or Result of a Tensor of the program."""
        place = self._places.get(id(tensor))
        if place is None:
            with _C.DisableTorchFunction():
                place = self._segment.add_input(tensor, self.example(tensor))
            self._places[id(tensor)] = place
        return place

    def _record(self, func, args, kwargs, results, spec):
        """Put a call on the list, and on the trail; returns what the program gets."""
        walk = self._walk
        step = walk.step(func, args, kwargs, _C._capture_modes()) if walk else None
        line, count = place_in_program(), len(self._made)
        shown = self._put(func, args, kwargs, results, spec, _state(), line)
        if step is not None:
            step.state, step.line = _state(), line
            walk.go_made(step, shown, [tensor for tensor, _ in self._made[count:]], spec)
        return tree_unflatten(shown, spec)

    def _put(self, func, args, kwargs, results, spec, state, line, made=()):
        """Put a call on the list; returns leaves for the program, with the tensors `made` in the
        places of new ones if there are some."""
        segment, made = self._segment, iter(made)
        if segment.state is None:
            segment.state = state
        segment.structure.append(_told(func))
        segment.structure.append(state)
        if not _hashable(func):
            segment.held.append(func)
        args = segment.freeze(args, self._place)
        kwargs = segment.freeze(kwargs, self._place)
        shown, places = [], []
        for index, result in enumerate(results):
            if isinstance(result, facula.Tensor):
                result, place = self._result(result, made)
                places.append((index, place))
            shown.append(result)
        segment.calls.append(Call(func, args, kwargs, (spec, places), state, line))
        return shown

    def _result(self, example, made):
        """The Tensor that the program gets for an example, and its Input or Result."""
        known = self._by_example.get(id(example))
        if known is not None:
            return known, self._place(known)
        with self.on_examples():
            if not _C._is_fake(example):
                example = _C._make_fake(example)
            tensor = next(made, None)
            if tensor is None:
                tensor = example.detach()
                if example.requires_grad:
                    tensor.requires_grad_()
        place = self._segment.add_result(example)
        self._know(tensor, example)
        self._places[id(tensor)] = place
        self._made.append((tensor, place))
        return tensor, place

    def leave_trail(self):
        """Record what the segment has called so far: it goes another way than earlier ones."""
        if not self._follows:
            return
        self._follows = False
        self._open()
        walk = self._walk
        walk.note(False)
        made = walk.made_tensors()
        for step in walk.taken:
            func, args, kwargs = walk.call_of(step)
            with _as_of(step.state, self._outside):
                results, spec = tree_flatten(self._on_examples(func, args, kwargs))
                self._put(func, args, kwargs, results, spec, step.state, step.line, made)

    # --- breaks

    def finish(self, reason=None):
        """Run the segment so far; a reason says that this is a break."""
        if reason is not None:
            self._runner.on_break(reason)
        self._run_pending(reason is None)

    def run_outside(self, reason, func, args, kwargs):
        """Call a function for real, after the segment so far."""
        self.finish(reason)
        with self.pause():
            return func(*args, **kwargs)

    def run_failed(self, reason, func, args, kwargs):
        """The same for a function that fails on examples: where it fails, too, that is no break."""
        self._run_pending()
        with self.pause():
            result = func(*args, **kwargs)
        self._runner.on_break(reason)
        return result

    @contextmanager
    def pause(self):
        """A context in which functions are called for real."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def _run_pending(self, is_last=False):
        if self._follows:
            if self._follow_end(is_last):
                return
            self.leave_trail()
        segment, made, walk = self._segment, self._made, self._walk
        if segment.calls:
            if walk:
                walk.slots = None  # so that what only it refers to is not needed
            self._begin()
            needed = _referenced(made)
            with self.pause():
                values, program = self._runner.run_segment(segment, [place for _, place in needed])
                _give([tensor for tensor, _ in needed], values, segment.inputs)
            if walk:
                walk.end(program, segment)
        else:
            self._begin()

    def _follow_end(self, is_last):
        """End a segment that has gone as an earlier one did; whether a program is there for it."""
        walk = self._walk
        if not walk.taken:
            if not is_last:
                self._begin()
            return True
        needed = walk.needed()
        end = walk.node.end_for(needed)
        if end is None:
            return False
        walk.note(True)
        if not is_last:
            self._begin()
        inputs = [walk.slots[slot] for slot in end.inputs]
        with self.pause():
            values = self._runner.run_program(end.program, end.state, inputs, end.numbers)
            wanted = [values[end.outputs[slot]] for slot in needed]
            _give([walk.slots[slot] for slot in needed], wanted, inputs)
        return True


def _give(tensors, values, inputs):
    """Make Tensors of the program those that a segment's program has given."""
    taken = {id(tensor) for tensor in inputs}
    for tensor, value in zip(tensors, values, strict=True):
        if id(value) in taken:
            value = facula.ops.aten.alias(value)
        taken.add(id(value))
        _C._swap_tensor_impl(tensor, value)


@contextmanager
def _as_of(state, surroundings):
    """A context in which modes are what they were at a call."""
    grad, autocast = state
    dtype, inference, _ = surroundings
    before = facula.get_default_dtype()
    facula.set_default_dtype(dtype)
    wanted = autocast or ("cpu", facula.bfloat16, False, None)
    try:
        with (
            facula.inference_mode(inference),
            facula.set_grad_enabled(grad),
            facula.autocast(wanted[0], dtype=wanted[1], enabled=wanted[2]),
        ):
            yield
    finally:
        facula.set_default_dtype(before)


def _is_tensor(value):
    return isinstance(value, facula.Tensor)


def _referenced(made):
    """The items whose Tensor somebody else refers to."""
    found = []
    for at in range(len(made)):
        # A reference of the tuple, and that of the call.
        if sys.getrefcount(made[at][0]) > 2:
            found.append(made[at])
    return found


def _reaches_others(function):
    """Whether methods of an autograd.Function use tensors or modules besides their arguments, which
    a graph would not have as inputs; or other variables of the function around them."""
    for name in ("forward", "setup_context", "backward", "jvp"):
        code = getattr(getattr(function, name), "__code__", None)
        if code is None or code.co_freevars:
            return True
        names = getattr(function, name).__globals__
        used = (names.get(n) for n in code.co_names)
        if any(isinstance(u, (facula.Tensor, facula.nn.Module)) for u in used):
            return True
    return False


def _hashable(function):
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _told(function):
    """A function as a part of a structure."""
    if _is_attribute(function):
        return "attribute", name_of(function)
    return function if _hashable(function) else (type(function), id(function))


_NEEDS_DATA = (
    "the shape of the result depends on",
    "cannot access the data of a storage on meta",
    "Please convert all Tensors to FakeTensors",
)


def _needs_data(error):
    return any(text in str(error) for text in _NEEDS_DATA)


def _plain(args, kwargs):
    """Whether tensors among the arguments are such as graphs take."""
    for value in (*args, *kwargs.values()):
        for leaf in tree_flatten(value)[0] if isinstance(value, (tuple, list, dict)) else (value,):
            if isinstance(leaf, facula.Tensor) and not _is_plain(leaf):
                return False
            if isinstance(leaf, slice) and _has_tensor(leaf):
                return False
    return True


def _has_tensor(part):
    return any(isinstance(p, facula.Tensor) for p in (part.start, part.stop, part.step))


def _is_plain(tensor):
    kind = type(tensor)
    if kind is not facula.Tensor and kind is not facula.nn.Parameter:
        return kind.__torch_function__ is facula.Tensor.__torch_function__ and not hasattr(
            kind, "__torch_dispatch_own__"
        )
    with _C.DisableTorchFunction():
        return tensor.layout is facula.strided and not tensor.is_quantized

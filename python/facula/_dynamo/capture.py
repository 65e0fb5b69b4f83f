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
        run_segment (callable): given a Segment and the Results that are needed, returns Tensors.
        on_break (callable): given a reason, before a segment ends early; may raise.
    """

    def __init__(self, run_segment, on_break):
        self._run_segment, self._on_break = run_segment, on_break
        self.paused = False
        self._forget()
        self._segment.state = _state()

    def _forget(self):
        self._segment = Segment()
        self._known = {}  # id of a Tensor of the program -> the Tensor, its example
        self._places = {}  # the same -> Input or Result, once a call has it
        self._by_example = {}  # id of an example -> the Tensor of the program
        self._made = []  # Tensors that calls made, and their Results
        self._outside = _surroundings()

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
        name = name_of(func)
        if _surroundings() != self._outside:
            self._run_pending()
            self._outside = _surroundings()
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
        if id(tensor) not in self._known:
            found = func(*args)
            if not isinstance(found, facula.Tensor) or name == "grad":
                return found
        elif name == "grad":
            return (
                self.run_outside("Tensor.grad", func, args, {})
                if self._is_made(tensor)
                else (func(*args))
            )
        with self.on_examples():
            found = func(self.example(tensor))
        if not isinstance(found, facula.Tensor):
            return found
        return self.defer(getattr, (tensor, name), {})

    def _is_made(self, tensor):
        return any(made is tensor for made, _ in self._made)

    def defer(self, func, args, kwargs):
        """Put a call off; returns what it will have returned.

        A call that needs data, or that fails, runs now, after the segment.
        """
        leaves, spec = tree_flatten((args, kwargs))
        try:
            with self.on_examples():
                on_examples = [self._of_example(leaf) for leaf in leaves]
                example_args, example_kwargs = tree_unflatten(on_examples, spec)
                found = func(*example_args, **example_kwargs)
                results, result_spec = tree_flatten(found)
                tensors = [r for r in results if isinstance(r, facula.Tensor)]
        except Exception as error:
            reason = f"{name_of(func)}(): {error}"
            if not _needs_data(error):
                return self.run_failed(reason, func, args, kwargs)
            return self.run_outside(reason, func, args, kwargs)
        if not tensors and found is not None:
            # Anything but a plain value, such as an iterator, may hold examples.
            if all(r is None or isinstance(r, _PLAIN) for r in results):
                return found
            return self.run_outside(f"{name_of(func)}()", func, args, kwargs)
        if any(t.layout is not facula.strided for t in tensors):
            return self.run_outside(f"{name_of(func)}() with a layout", func, args, kwargs)
        return self._record(func, args, kwargs, results, result_spec)

    def apply(self, function, args, kwargs):
        """`autograd.Function.apply`: a call of the graph, unless it reaches tensors by itself."""
        if _reaches_others(function):
            reason = f"{function.__name__}.apply() uses variables around it"
            return self.run_outside(reason, function.apply, args, kwargs)
        return self.defer(function.apply, args, kwargs)

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
        segment = self._segment
        state = _state()
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
                result, place = self._result(result)
                places.append((index, place))
            shown.append(result)
        segment.calls.append(Call(func, args, kwargs, (spec, places), state, place_in_program()))
        return tree_unflatten(shown, spec)

    def _result(self, example):
        """The Tensor that the program gets for an example, and its Input or Result."""
        known = self._by_example.get(id(example))
        if known is not None:
            return known, self._place(known)
        with self.on_examples():
            if not _C._is_fake(example):
                example = _C._make_fake(example)
            tensor = example.detach()
            if example.requires_grad:
                tensor.requires_grad_()
        place = self._segment.add_result(example)
        self._know(tensor, example)
        self._places[id(tensor)] = place
        self._made.append((tensor, place))
        return tensor, place

    # --- breaks

    def finish(self, reason=None):
        """Run the segment so far; a reason says that this is a break."""
        if reason is not None:
            self._on_break(reason)
        self._run_pending()

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
        self._on_break(reason)
        return result

    @contextmanager
    def pause(self):
        """A context in which functions are called for real."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def _run_pending(self):
        segment, made = self._segment, self._made
        if not segment.calls:
            self._forget()
            return
        self._forget()
        needed = _referenced(made)
        with self.pause():
            values = self._run_segment(segment, [place for _, place in needed])
            taken = {id(tensor) for tensor in segment.inputs}
            for (tensor, _), value in zip(needed, values, strict=True):
                if id(value) in taken:
                    value = facula.ops.aten.alias(value)
                taken.add(id(value))
                _C._swap_tensor_impl(tensor, value)


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

"""The graph of a function, or of it and its backward pass, without in-place changes.

A function is run once on fake tensors, under functionalization and a mode that records; what it
does to its arguments and how its results share memory is noted beside the graph, for a runtime to
do it again (PyTorch's AOTAutograd is the model of the interface).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import facula
from facula import _C
from facula.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    _ConstantsMode,
    decompose,
    disable_proxy_modes_tracing,
    track_tensor_tree,
)
from facula.fx.graph_module import GraphModule


@dataclass
class Output:
    """How one result of a function is made of the graph's."""

    kind: str  # "value", "input", "view_of_input", "view_of_value" or "constant"
    index: int = -1  # of the graph's output, or of the argument
    value: object = None  # the constant
    geometry: tuple = ()  # of a view: sizes, strides, offset
    dtype: object = None
    requires_grad: bool = False


@dataclass
class Mutation:
    """An argument that the function changes, and the graph's output with its new values."""

    argument: int
    index: int = -1  # of the graph's output; -1: only the geometry changes
    geometry: tuple = ()  # where it changes: sizes, strides, offset
    with_history: bool = False


@dataclass
class Program:
    """A graph and how a runtime takes its results.

    `differentiable` are the outputs of the graph that have gradients, in the order of the tangents;
    `defined` those of them whose tangents are arguments of the graph.
    """

    graph: GraphModule
    outputs: list = field(default_factory=list)
    mutations: list = field(default_factory=list)
    differentiable: list = field(default_factory=list)
    defined: tuple = ()
    wanted: list = field(default_factory=list)  # the arguments that get gradients
    count: int = 0  # of the outputs of the forward part
    arguments: list = field(default_factory=list)  # fake tensors and constants
    fresh: frozenset = frozenset()  # of the arguments: those that the program begins by copying


def _geometry(t):
    return tuple(t.shape), t.stride(), t.storage_offset()


def _storage(t):
    return t.untyped_storage()._cdata


class _Recorder:
    """One recording of a function."""

    def __init__(self, function, args, with_gradients, decompositions, fresh):
        self.function, self.args, self.with_gradients = function, args, with_gradients
        self.fresh = fresh
        self.tracer = PythonKeyTracer()
        self.mode = ProxyTorchDispatchMode(
            self.tracer, "fake", decomposition_table=dict(decompositions or {})
        )
        self.mode.detach_is_alias = False
        self.placeholders, self.results = [], []  # of the graph: nodes or constants
        self.roots = []  # the results that have gradients

    # --- arguments

    def _fake_arguments(self):
        """A fake tensor for each argument; those over one storage share one, too."""
        made, by_object, bases = [], {}, {}
        tensors = [a for a in self.args if isinstance(a, facula.Tensor)]
        users = {}
        for t in tensors:
            users.setdefault(_storage(t), set()).add(id(t))
        for arg in self.args:
            if not isinstance(arg, facula.Tensor):
                made.append(arg)
                continue
            if id(arg) not in by_object:
                shared = len(users[_storage(arg)]) > 1
                by_object[id(arg)] = _fake_view(arg, bases) if shared else _fake(arg)
            made.append(by_object[id(arg)])
        return made

    def _placeholder_name(self, i):
        return f"primals_{i + 1}" if self.with_gradients else f"arg{i}_1"

    def _make_placeholders(self, fakes):
        for i, fake in enumerate(fakes):
            name = self._placeholder_name(i)
            proxy = self.tracer.create_proxy("placeholder", name, (), {}, name=name)
            self.placeholders.append(proxy.node)
            track_tensor_tree(fake, proxy, constant=None, tracer=self.tracer)

    def _wrapped(self, fakes):
        """Functional tensors for the arguments, those that get gradients as leaves."""
        unique = list({id(f): f for f in fakes if isinstance(f, facula.Tensor)}.values())
        wrappers = dict(zip(map(id, unique), _C._to_functional_tensors(unique), strict=True))
        self.unique = [(f, wrappers[id(f)]) for f in unique]
        values, given = [], {}
        for arg, fake in zip(self.args, fakes, strict=True):
            if not isinstance(fake, facula.Tensor):
                values.append(arg)
                continue
            w = wrappers[id(fake)]
            if self._gets_gradient(arg):
                w.requires_grad_(True)
            if id(w) not in given:
                given[id(w)] = _copy(w) if len(values) in self.fresh else w
            values.append(given[id(w)])
        self.wrappers = [wrappers[id(f)] if isinstance(f, facula.Tensor) else None for f in fakes]
        return values

    def _gets_gradient(self, arg):
        return self.with_gradients and isinstance(arg, facula.Tensor) and arg.requires_grad

    # --- recording

    @contextlib.contextmanager
    def _recording(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(_C._FakeMode(True))
            stack.enter_context(decompose(self.mode.decomposition_table))
            stack.enter_context(self.mode)
            stack.enter_context(_ConstantsMode(self.mode))
            yield

    def record(self, defined=None):
        """The Program of the function."""
        fakes = self._fake_arguments()
        program = Program(None, fresh=self.fresh)
        with self._recording():
            self._make_placeholders(fakes)
            values = self._wrapped(fakes)
            before = [w is not None and _storage(_value(w)) for w in self.wrappers]
            with _C._functionalize_mode(False), _written_statistics_shown():
                results = self.function(*values)
            self._note_mutations(program, fakes, values, before)
            self._note_outputs(program, values, results)
            program.count = len(self.results)
            self._mark("is_forward")
            if self.with_gradients:
                self._record_backward(program, defined)
            first = len(self.tracer.graph.nodes)
            _C._functional_write_back(
                [f for f, _ in self.unique], [w for _, w in self.unique], True
            )
            self._mark("must_be_in_forward", first)
        self.tracer.graph.output(tuple(self.results))
        self.tracer.graph.eliminate_dead_code(is_impure_node=has_effect)
        program.graph = GraphModule(self.tracer.root, self.tracer.graph)
        program.arguments = [
            f.requires_grad_() if self._gets_gradient(a) else f
            for a, f in zip(self.args, fakes, strict=True)
        ]
        return program

    def _mark(self, tag, first=0):
        for node in list(self.tracer.graph.nodes)[first:]:
            node.meta.setdefault("partitioner_tag", tag)

    def _node_of(self, value):
        """What the graph has for a value: a node, or the constant that it is."""
        return self.tracer.create_arg(self.tracer.unwrap_proxy(_value(value)))

    def _add_result(self, value):
        self.results.append(self._node_of(value))
        return len(self.results) - 1

    def _note_mutations(self, program, fakes, values, before):
        seen = set()
        for i, (fake, w) in enumerate(zip(fakes, self.wrappers, strict=True)):
            if w is None or id(w) in seen:
                continue
            seen.add(id(w))
            value = values[i]
            if value.untyped_storage().nbytes() != fake.untyped_storage().nbytes():
                continue  # a storage that changes its size is written in the graph
            with disable_proxy_modes_tracing():
                moved = _geometry(value) != _geometry(fake)
            changed = _storage(_value(value)) != before[i]
            if not (changed or moved) or (value is not w and not self._was_written(value)):
                continue
            m = Mutation(i, geometry=_geometry(value) if moved else ())
            program.mutations.append(m)
            if changed:
                m.index = self._add_result(value)
                m.with_history = value.grad_fn is not None
                self._note_gradient(program, value, m.index)

    def _was_written(self, value):
        """Whether a fresh copy of an argument was changed: its value is the copy no more."""
        target = getattr(self._node_of(value), "target", None)
        return target is not facula.ops.aten.clone.default

    def _note_gradient(self, program, value, index):
        if self.with_gradients and value.requires_grad:
            program.differentiable.append(index)
            self.roots.append(value)

    def _note_outputs(self, program, values, results):
        arguments, storages = {}, {}
        for i, value in enumerate(values):
            if isinstance(value, facula.Tensor):
                arguments.setdefault(id(value), i)
                storages.setdefault(_storage(value), i)
        users = {}
        for r in results:
            if isinstance(r, facula.Tensor):
                users[_storage(r)] = users.get(_storage(r), 0) + 1
        bases = {}
        for r in results:
            program.outputs.append(self._output(program, r, arguments, storages, users, bases))

    def _output(self, program, r, arguments, storages, users, bases):
        if not isinstance(r, facula.Tensor):
            self.results.append(r)
            return Output("constant", value=r)
        if not _C._is_functional_tensor(r):
            return Output("value", self._add_result(r), requires_grad=r.requires_grad)
        shape = {"geometry": _geometry(r), "dtype": r.dtype, "requires_grad": r.requires_grad}
        if id(r) in arguments:
            self._add_result(r)
            return Output("input", arguments[id(r)])
        if _storage(r) in storages:
            self._add_result(r)
            return Output("view_of_input", storages[_storage(r)], **shape)
        if users[_storage(r)] == 1:
            index = self._add_result(r)
            self._note_gradient(program, r, index)
            return Output("value", index, requires_grad=r.requires_grad)
        return self._shared(program, r, bases, shape)

    def _shared(self, program, r, bases, shape):
        """A result over the memory of another: a view of what both lie over."""
        base = r if r._base is None else r._base
        if id(base) not in bases:
            index = self._add_result(base)
            bases[id(base)] = (index, base)
            self._note_gradient(program, base, index)
        elif base is not r:
            self._add_result(r)
        index = bases[id(base)][0]
        if base is r:
            return Output("value", index, requires_grad=r.requires_grad)
        return Output("view_of_value", index, **shape)

    # --- the backward part

    def _record_backward(self, program, defined):
        count = len(self.roots)
        program.defined = tuple(range(count)) if defined is None else tuple(defined)
        program.wanted = [i for i, a in enumerate(self.args) if self._gets_gradient(a)]
        tangents = [self._tangent(k) for k in program.defined]
        seeds = _C._to_functional_tensors(tangents)
        roots = [self.roots[k] for k in program.defined]
        unique = {id(self.wrappers[i]): self.wrappers[i] for i in program.wanted}
        grads = [None] * len(unique)
        if roots and unique:
            with _C._functionalize_mode(False):
                grads = facula.autograd.grad(
                    roots, list(unique.values()), list(seeds), allow_unused=True
                )
        by_wrapper = dict(zip(unique, grads, strict=True))
        for i in range(len(self.args)):
            # A tensor that is given twice gets its gradient once.
            grad = by_wrapper.pop(id(self.wrappers[i]), None) if i in program.wanted else None
            self.results.append(None if grad is None else self._node_of(grad))
        self._mark("is_backward")

    def _tangent(self, k):
        root, name = self.roots[k], f"tangents_{k + 1}"
        with disable_proxy_modes_tracing():
            fake = facula.empty_strided(
                root.shape, root.stride(), dtype=root.dtype, device=root.device
            )
        with self.tracer.graph.inserting_after(self.placeholders[-1]):
            proxy = self.tracer.create_proxy("placeholder", name, (), {}, name=name)
        self.placeholders.append(proxy.node)
        track_tensor_tree(fake, proxy, constant=None, tracer=self.tracer)
        return fake


@contextlib.contextmanager
def _written_statistics_shown():
    """Let batch_norm() call operators whose schemas say that running statistics are written."""
    before = _C._batch_norm_shows_writes(True)
    try:
        yield
    finally:
        _C._batch_norm_shows_writes(before)


def _fake(t):
    return _C._make_fake(t.detach())


def _fake_view(t, bases):
    """A fake tensor over the memory of other fake ones."""
    bytes_of_one, storage = t.element_size(), t.untyped_storage()
    key = storage._cdata, t.dtype
    with _C._FakeMode(True):
        if key not in bases:
            count = storage.nbytes() // bytes_of_one
            bases[key] = facula.empty(count, dtype=t.dtype, device=t.device)
        return bases[key].as_strided(t.shape, t.stride(), t.storage_offset())


def _copy(w):
    """A functional copy of a functional tensor, through which gradients pass."""
    with _C._functionalize_mode(False):
        return w.clone()


def _value(t):
    """The value of a functional tensor."""
    if isinstance(t, facula.Tensor) and _C._is_functional_tensor(t):
        return _C._from_functional_tensor(t)
    return t


def has_effect(node):
    """Whether a node stays in a program when nobody uses its result: it writes, or draws random
    numbers."""
    if node.op in ("placeholder", "output"):
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    is_random = facula.Tag.nondeterministic_seeded in node.target.tags
    return is_random or any(argument.is_write for argument in schema.arguments)


def record_program(
    function, args, *, with_gradients, decompositions=None, defined=None, fresh=frozenset()
):
    """Record a function and, on demand, its backward pass.

    Args:
        function (callable): of what `args` holds; returns a list of Tensors and other values.
        args (list): Tensors and constants. Nothing is computed on them, and nothing changed.
        with_gradients (bool): add the gradients of the Tensors that require grad.
        decompositions (dict): OpOverload to a function that is traced in its place.
        defined (sequence of int): the outputs with gradients whose tangents are given; all if None.
        fresh (set of int): arguments that the function changes in place though they require grad.

    Returns:
        Program: its graph takes `args` and then the tangents, and returns the new values of
        arguments that the function changes, its results, and gradients of all arguments or None.
    """

    def run(fresh):
        recorder = _Recorder(function, list(args), with_gradients, decompositions, fresh)
        with facula.enable_grad() if with_gradients else contextlib.nullcontext():
            return recorder.record(defined)

    try:
        return run(fresh)
    except RuntimeError as error:
        # In the recording every argument is a leaf; one that is none outside may be changed.
        others = [
            i
            for i, a in enumerate(args)
            if isinstance(a, facula.Tensor) and a.requires_grad and not a.is_leaf
        ]
        if fresh or not (with_gradients and others and "leaf" in str(error)):
            raise
    return run(frozenset(others))

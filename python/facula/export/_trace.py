"""The graph of a module's forward: parameters, buffers and constants as inputs, results flat.

The module runs once on fake tensors, its parameters and buffers among them, under a mode above
autograd that records operators whole. What is noted while it runs, the module and the line of each
call, stays with the nodes.
"""

from __future__ import annotations

import contextlib
import traceback

import facula
from facula import _C
from facula.export import _names
from facula.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from facula.fx.experimental._sizes import Undecided
from facula.fx.experimental._symbolic_tracing import SymbolicTracer
from facula.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    _ConstantsMode,
    disable_proxy_modes_tracing,
    set_meta,
    track_tensor_tree,
)
from facula.fx.graph_module import GraphModule
from facula.fx.node import Node, map_aggregate
from facula.overrides import TorchFunctionMode
from facula.utils._pytree import tree_flatten, tree_unflatten

_PACKAGE = facula.__path__[0]
_MODULES = f"{_PACKAGE}/nn/modules/"


class _Lifted:
    """A tensor of the module that becomes an input: its names, its kind, its stand-in."""

    def __init__(self, fqn, kind, value, persistent=None):
        self.fqn, self.kind, self.value, self.persistent = fqn, kind, value, persistent
        self.fake = None


def lifted_tensors(mod):
    """The tensors of a module as inputs: parameters, buffers, then other attributes."""
    lifted = [_Lifted(n, InputKind.PARAMETER, p) for n, p in _named(mod, "_parameters")]
    lifted += [
        _Lifted(n, InputKind.BUFFER, b, _is_persistent(mod, n)) for n, b in _named(mod, "_buffers")
    ]
    for prefix, module in mod.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, facula.Tensor):
                fqn = f"{prefix}.{name}" if prefix else name
                lifted.append(_Lifted(fqn, InputKind.CONSTANT_TENSOR, value))
    return lifted


def _named(mod, kind):
    for prefix, module in mod.named_modules():
        for name, value in getattr(module, kind).items():
            if value is not None:
                yield (f"{prefix}.{name}" if prefix else name), value


def _is_persistent(mod, fqn):
    owner, _, name = fqn.rpartition(".")
    return name not in mod.get_submodule(owner)._non_persistent_buffers_set


def _fake_of(value, known):
    """The stand-in of a tensor: one for each tensor, a Parameter for a Parameter."""
    if id(value) not in known:
        fake = _C._make_fake(value)
        if isinstance(value, facula.nn.Parameter):
            fake = facula.nn.Parameter(fake.detach(), requires_grad=value.requires_grad)
        known[id(value)] = fake
    return known[id(value)]


def _slot_of(mod, one):
    owner, _, name = one.fqn.rpartition(".")
    module = mod.get_submodule(owner)
    if one.kind is InputKind.PARAMETER:
        return module._parameters, name
    return (module._buffers if one.kind is InputKind.BUFFER else vars(module)), name


@contextlib.contextmanager
def _stand_ins(mod, lifted):
    """Context manager: the module has fake tensors in the place of its own.

    Raises:
        ValueError: the module has given itself another tensor meanwhile.
    """
    for one in lifted:
        slots, name = _slot_of(mod, one)
        slots[name] = one.fake
    try:
        yield
        for one in lifted:
            slots, name = _slot_of(mod, one)
            if slots.get(name) is not one.fake:
                kind = one.kind.name.lower().replace("_tensor", "")
                raise ValueError(
                    f"export(): expected forward() to leave the {kind} {one.fqn!r} in its place; "
                    "it was given another value: change it by copy_(), or register a buffer"
                )
    finally:
        for one in lifted:
            slots, name = _slot_of(mod, one)
            slots[name] = one.value


class _Tracer(SymbolicTracer):
    """Notes for each node the modules it is called in and the lines of the program."""

    def __init__(self, sizes=None):
        super().__init__(sizes)
        self.modules = {}

    def create_node(self, *args, **kwargs):
        """Add a node."""
        node = super().create_node(*args, **kwargs)
        if node.op == "call_function":
            node.meta["nn_module_stack"] = dict(self.modules)
            lines = _lines_of_program()
            if lines:
                node.meta["stack_trace"] = lines
        return node


def _lines_of_program():
    """The frames of modules and of the user, as text."""
    frames = [
        frame
        for frame in traceback.extract_stack()
        if not frame.filename.startswith((_PACKAGE, "<frozen", "<string"))
        or (frame.filename.startswith(_MODULES) and not frame.filename.endswith("/module.py"))
    ]
    first = next((i for i, f in enumerate(frames) if f.name == "forward"), None)
    if first is None:
        return ""
    return "".join(traceback.StackSummary.from_list(frames[first:]).format()).strip()


class _KeptCalls:
    """The calls of modules whose signatures are kept, by name: `b1`, and `b1@1` for the second.

    What is described by the nodes of a graph is taken when the call is made: in-place changes give
    a tensor another node.
    """

    def __init__(self, tracer, names):
        self.tracer, self.names, self.signatures = tracer, frozenset(names), {}
        self._open = []

    def enter(self, fqn, shown, args, kwargs):
        """A call begins."""
        if fqn not in self.names:
            return
        leaves, spec = tree_flatten((args, kwargs))
        self._open.append((shown, self._described(leaves), spec))

    def leave(self, fqn, result):
        """The innermost call ends."""
        if fqn not in self.names:
            return
        shown, inputs, in_spec = self._open.pop()
        leaves, out_spec = tree_flatten(result)
        self.signatures[shown] = inputs, self._described(leaves), in_spec, out_spec

    def _described(self, leaves):
        return [_names.argument_of_value(self.tracer, leaf) for leaf in leaves]


@contextlib.contextmanager
def _noting_modules(mod, tracer, kept):
    """Context manager: calls of modules are noted while they run."""
    hooks = []
    calls = {}

    def enter(fqn):
        def hook(module, args, kwargs):
            count = calls[fqn] = calls.get(fqn, -1) + 1
            shown = f"{fqn}@{count}" if count else fqn
            path = f"L__self__{fqn}"
            name = f"{type(module).__module__}.{type(module).__qualname__}"
            tracer.modules[path if not count else f"{path}@{count}"] = (shown, name)
            kept.enter(fqn, shown, args, kwargs)

        return hook

    def leave(fqn):
        def hook(module, args, result):
            tracer.modules.popitem()
            kept.leave(fqn, result)

        return hook

    for fqn, module in mod.named_modules(remove_duplicate=True):
        entered = module.register_forward_pre_hook(enter(fqn), prepend=True, with_kwargs=True)
        hooks += [entered, module.register_forward_hook(leave(fqn))]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class Traced:
    """What tracing gives: the graph, its signature, and the structures of arguments and result."""

    def __init__(self, graph_module, signature, out_spec, constants, kept):
        self.graph_module, self.signature = graph_module, signature
        self.out_spec, self.constants, self.kept = out_spec, constants, kept


def trace(
    mod,
    args,
    kwargs,
    argument_names,
    sizes=None,
    expressions=None,
    limit=None,
    numbers=None,
    kept=(),
):
    """Run a module on stand-ins and write its graph.

    Args:
        mod (Module): the program.
        args (tuple), kwargs (dict): what it is called with.
        argument_names (list[str]): a name for each leaf of the arguments.
        sizes (Sizes | None): the symbols among the sizes of the arguments.
        expressions (dict | None): (leaf, dim) to the expression of its size.
        limit (int | None): of the nodes.
        numbers (SampleNumbers | None): what stands for numbers from data, without `sizes`.
        kept (tuple[str]): the modules whose signatures are noted.

    Returns:
        Traced
    """
    tracer, known = _Tracer(sizes), {}
    tracer.limit, tracer.numbers = limit, sizes or numbers
    lifted = lifted_tensors(mod)
    for one in lifted:
        one.fake = _fake_of(one.value, known)
    leaves, spec = tree_flatten((args, kwargs))
    if sizes is not None:
        shapes = _stand_in_shapes(leaves, sizes, expressions)
    else:
        shapes = [None] * len(leaves)
    leaves = [
        _fake_argument(leaf, shape, known) for leaf, shape in zip(leaves, shapes, strict=True)
    ]
    inputs = _placeholders(tracer, lifted, leaves, argument_names)
    if sizes is not None:
        write_symbols(tracer, sizes, inputs[len(lifted) :], expressions)
    kept = _KeptCalls(tracer, kept)
    result, out_spec = _run(mod, tracer, lifted, tree_unflatten(leaves, spec), sizes, kept)
    lift = _Constants(tracer, lifted)
    output = tracer.graph.output(tuple(tracer.create_arg(_unwrapped(tracer, result))))
    lift.to_inputs()
    if sizes is not None:
        finish_symbols(tracer.graph, sizes)
    specs = _input_specs(lifted, lift.specs, inputs[len(lifted) :], leaves)
    module = GraphModule(_graphs_of(tracer.root), tracer.graph)
    signature = ExportGraphSignature(specs, _output_specs(output))
    return Traced(module, signature, out_spec, lift.constants, kept.signatures)


def _graphs_of(root):
    """A module with the graphs that are attributes of another, and with nothing else."""
    made = facula.nn.Module()
    for name, graph in root.named_children():
        made.add_module(name, graph)
    return made


def _stand_in_shapes(leaves, sizes, expressions):
    """The shape of each argument with dynamic sizes; None for the others."""
    shapes = []
    for i, leaf in enumerate(leaves):
        dynamic = {dim: e for (at, dim), e in expressions.items() if at == i}
        shape = list(leaf.shape) if dynamic else None
        for dim, expression in dynamic.items():
            shape[dim] = sizes.stand_in_of(expression)
        shapes.append(shape)
    return shapes


def _fake_argument(leaf, shape, known):
    if not isinstance(leaf, facula.Tensor):
        return leaf
    if shape is None:
        return _fake_of(leaf, known)
    order = sorted(range(leaf.dim()), key=lambda d: (leaf.stride(d), -d))
    strides, step = [0] * leaf.dim(), 1
    for dim in order:
        strides[dim], step = step, step * shape[dim]
    with _C._FakeMode(True):
        fake = facula.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)
    return fake.requires_grad_() if leaf.requires_grad else fake


def write_symbols(tracer, sizes, inputs, expressions):
    """Add the nodes that read the symbols from the arguments."""
    count, read = len(expressions), set()
    for (leaf, dim), expression in expressions.items():
        if expression in read or str(expression) not in sizes.samples:
            continue
        read.add(expression)
        proxy = tracer.create_proxy(
            "call_function",
            facula.ops.aten.sym_size.int,
            (tracer.proxy(inputs[leaf]), dim),
            {},
            name=f"sym_size_int_{count + len(read) - 1}",
        )
        sizes.stands_for(expression, proxy)


def finish_symbols(graph, sizes):
    """Take out the sizes that no node uses, and note the tensors' sizes as expressions."""
    for node in reversed(list(graph.nodes)):
        value = node.meta.get("val")
        if isinstance(value, facula.SymInt) and node.op == "call_function" and not node.users:
            graph.erase_node(node)
    note_sizes(graph, sizes)


def note_sizes(graph, sizes):
    """Note the tensors' sizes as expressions, for printing."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, facula.Tensor):
            node.meta["symbolic_sizes"] = sizes.texts(value.shape)


def verify(traced, sizes, of_sample):
    """The same for the programs of two traces."""
    verify_modules(traced.graph_module, sizes, of_sample.graph_module)


def verify_modules(module, sizes, of_sample):
    """Check the graph with symbols against the one of the sample alone.

    Raises:
        Undecided: the symbols' trace calls other operators, or gives other sizes.
    """
    found = [_step(node, sizes) for node in _calls(module)]
    if found != [_step(node, None) for node in _calls(of_sample)]:
        raise Undecided("the program of the sample is another one")


def _calls(module):
    """The calls that give tensors or nothing, and the output."""
    return [
        node
        for node in module.graph.nodes
        if node.op in ("call_function", "output")
        and not isinstance(node.meta.get("val"), (facula.SymInt, facula.SymBool))
        and node.target is not facula.ops.aten._assert_scalar.default
    ]


def _step(node, sizes):
    """What a call is for the sample: its target, its numbers, the shape of what it gives."""

    def number(value):
        if isinstance(value, Node):
            value = value.meta.get("val")
        if isinstance(value, (facula.SymInt, facula.SymBool)):
            at = value.node.expr
            decided = at.value if hasattr(at, "value") else at.holds
            return str(decided(sizes.samples))
        return None if isinstance(value, (facula.Tensor, list, tuple)) else str(value)

    shape = getattr(node.meta.get("val"), "shape", ())
    if sizes is not None:
        shape = [sizes.expression(n).value(sizes.samples) for n in shape]
    numbers = map_aggregate((node.args, node.kwargs), number)
    return str(node.target), str(numbers), list(shape)


def _placeholders(tracer, lifted, leaves, argument_names):
    taken, proxies = set(), []
    names = [_names.of_lifted(one.kind, one.fqn) for one in lifted] + list(argument_names)
    values = [one.fake for one in lifted] + list(leaves)
    with disable_proxy_modes_tracing():
        for name, value in zip(names, values, strict=True):
            name = _names.unused(name, taken)
            proxy = tracer.create_proxy("placeholder", name, (), {}, name=name)
            proxy.node.name = name  # also where Python has a function of this name
            if isinstance(value, facula.Tensor):
                track_tensor_tree(value, proxy, constant=None, tracer=tracer)
            else:
                set_meta(proxy, value)
            proxies.append(proxy)
    return [proxy.node for proxy in proxies]


def _run(mod, tracer, lifted, given, sizes, kept):
    mode = ProxyTorchDispatchMode(
        tracer, "fake", pre_dispatch=True, _error_on_data_dependent_ops=True
    )
    args, kwargs = given
    with contextlib.ExitStack() as stack:
        stack.enter_context(_stand_ins(mod, lifted))
        stack.enter_context(_noting_modules(mod, tracer, kept))
        stack.enter_context(_C._FakeMode(True))
        stack.enter_context(mode)
        stack.enter_context(_ConstantsMode(mode))
        stack.enter_context(_NamedViewsMode())
        if sizes is not None:
            stack.enter_context(sizes.tracing(tracer))
        result = mod(*args, **kwargs)
        return tree_flatten(result)


class _NamedViewsMode(TorchFunctionMode):
    """Attributes that are views stand in the graph by the names that PyTorch's graphs have."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = _VIEWS.get(getattr(getattr(func, "__self__", None), "__name__", None))
        if name is None or getattr(func, "__name__", None) != "__get__":
            return func(*args, **(kwargs or {}))
        return getattr(facula.ops.aten, name).default(args[0])


_VIEWS = {"T": "numpy_T", "mT": "mT", "H": "matrix_H", "mH": "mH"}


def _unwrapped(tracer, leaves):
    return [tracer.unwrap_proxy(leaf) for leaf in leaves]


class _Constants:
    """Tensors that the program has from elsewhere, which become inputs behind the module's own."""

    def __init__(self, tracer, lifted):
        self.tracer, self.lifted = tracer, lifted
        self.specs = []
        self.constants = {
            one.fqn: one.value
            for one in lifted
            if one.kind is InputKind.CONSTANT_TENSOR or one.persistent is False
        }

    def to_inputs(self):
        """Turn the nodes that read them into placeholders."""
        graph = self.tracer.graph
        users = [n for n in graph.nodes if n.op == "placeholder"][len(self.lifted) :]
        place = users[0] if users else next(iter(graph.nodes))
        made = {}
        for node in list(graph.nodes):
            if node.op != "get_attr":
                continue
            value = getattr(self.tracer.root, node.target)
            if not isinstance(value, facula.Tensor):
                continue
            if id(value) not in made:
                made[id(value)] = self._input(graph, place, value)
            node.replace_all_uses_with(made[id(value)])
            graph.erase_node(node)

    def _input(self, graph, place, value):
        name = f"lifted_tensor_{len(self.specs)}"
        with graph.inserting_before(place):
            new = graph.placeholder(f"c_{name}")
        new.meta["val"] = _C._make_fake(value)
        self.constants[name] = value
        self.specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(new.target), name))
        return new


def _input_specs(lifted, constants, nodes, leaves):
    names = [_names.of_lifted(one.kind, one.fqn) for one in lifted]
    taken = set()
    specs = [
        InputSpec(one.kind, TensorArgument(_names.unused(name, taken)), one.fqn, one.persistent)
        for one, name in zip(lifted, names, strict=True)
    ]
    for node, leaf in zip(nodes, leaves, strict=True):
        argument = (
            TensorArgument(node.target)
            if isinstance(leaf, facula.Tensor)
            else _names.argument_of(node, leaf)
        )
        constants = [*constants, InputSpec(InputKind.USER_INPUT, argument, None)]
    return specs + constants


def _output_specs(output):
    specs = []
    for value in output.args[0]:
        argument = (
            _names.argument_of_output(value)
            if isinstance(value, Node)
            else ConstantArgument("", value)
        )
        specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument, None))
    return specs

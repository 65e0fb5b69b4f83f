"""unflatten: an exported program as the tree of modules that it was exported from.

Each node says which calls of modules it was recorded in. A module's graph has the nodes of its own
and calls its children; what a child reads of its surroundings is an argument, what others read of
it is a result.
"""

from __future__ import annotations

import copy
import operator

import facula
from facula import nn
from facula.export._decompose import remove_unused
from facula.export._unlift import _CHANGES, _OF_MODULE
from facula.export.exported_program import ExportedProgram
from facula.export.graph_signature import ConstantArgument, InputKind
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule, _assign_attr
from facula.fx.interpreter import Interpreter
from facula.fx.node import Node, map_arg
from facula.utils import _pytree as pytree

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Fits the leaves of a call to a program that was exported with another structure."""

    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The leaves in the order of the program.

        Args:
            target_spec (TreeSpec): of `(args, kwargs)` when the program was exported.
            input_spec (TreeSpec): of `(args, kwargs)` of this call.
            input_args (list): the leaves of this call.
            metadata (dict | None): the module's `meta`.
            obj (Module | None): the module.

        Returns:
            list: as many leaves as `target_spec` has.
        """
        raise NotImplementedError("adapt(): expected a subclass that says how leaves are ordered")


class InterpreterModule(nn.Module):
    """A module that runs a graph on its own parameters, buffers and submodules.

    Args:
        graph (Graph): the steps; its placeholders are the arguments.
        ty (str | None): the class that the module had.
    """

    def __init__(self, graph, ty=None):
        super().__init__()
        self.graph, self._ty = graph, ty
        graph.owning_module = self

    def type_name(self):
        """The class that the module had when it was exported."""
        return self._ty

    def forward(self, *args, **kwargs):
        """Run the graph.

        Raises:
            TypeError: it has other arguments.
        """
        names = self.arg_names
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or sorted(given) != sorted(names):
            raise TypeError(
                f"forward(): expected the arguments {names}; got {len(args)} by position and "
                f"{list(kwargs)}"
            )
        ordered = [given[name] for name in names]
        return Interpreter(self, graph=self.graph).run(*ordered, enable_io_processing=False)

    @property
    def arg_names(self):
        """The names of the arguments, in their order."""
        return [node.target for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def graph_module(self):
        """The graph as a GraphModule with this module's tensors and submodules."""
        return GraphModule(self, self.graph)

    def print_readable(self, print_output=True, **options):
        """The graph's code, as `GraphModule.print_readable` gives it."""
        return self.graph_module.print_readable(print_output, **options)


class _SignedModule(InterpreterModule):
    """A module that takes and gives what the exported module did.

    Args:
        graph (Graph): of the tensors among the leaves of the arguments.
        ty (str | None): the class that the module had.
        signature (ModuleCallSignature): of its calls.
        places (list[int]): the leaves that are arguments of the graph.
    """

    def __init__(self, graph, ty, signature, places):
        super().__init__(graph, ty)
        self._signature, self._places = signature, places

    def forward(self, *args, **kwargs):
        """Run the graph.

        Raises:
            TypeError: the arguments have another structure than when the program was exported.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._signature.in_spec:
            raise TypeError(
                f"forward(): expected arguments of the structure {self._signature.in_spec}; got "
                f"{spec}"
            )
        given = [leaves[place] for place in self._places]
        results = Interpreter(self, graph=self.graph).run(*given, enable_io_processing=False)
        return pytree.tree_unflatten(list(results), self._signature.out_spec)


class UnflattenedModule(InterpreterModule):
    """The module at the top of an unflattened program: it takes what forward() took.

    Args:
        export_module (ExportedProgram): the program.
        flat_args_adapter (FlatArgsAdapter | None): fits calls of another structure.
    """

    def __init__(self, export_module, flat_args_adapter=None):
        program = export_module
        flat = _FlatProgram(program)
        frames = _Frames(flat)
        root = frames.root()
        super().__init__(root.graph, root.ty)
        self.graph_signature = copy.deepcopy(program.graph_signature)
        self.module_call_graph = copy.deepcopy(program.module_call_graph)
        self.flat_args_adapter, self.meta = flat_args_adapter, {}
        self._signature = program.module_call_graph[0].signature
        self._checks = _size_checks(program)
        modules = frames.attach(self)
        flat.assign_tensors(self, modules)

    def forward(self, *args, **kwargs):
        """Run the program.

        Raises:
            TypeError: the arguments have another structure, and there is no adapter.
            RuntimeError: an argument has another size than the program was exported with.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._signature.in_spec:
            leaves = self._adapted(leaves, spec)
        for check in self._checks:
            check(leaves)
        results = Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(list(results), self._signature.out_spec)

    def _adapted(self, leaves, spec):
        wanted = self._signature.in_spec
        ordered = list(wanted.child(1).context)
        by_name = spec.child(1)
        if sorted(by_name.context) == sorted(ordered) and spec.child(0) == wanted.child(0):
            args, kwargs = pytree.tree_unflatten(leaves, spec)
            found = pytree.tree_flatten((args, {name: kwargs[name] for name in ordered}))
            if found[1] == wanted:
                return found[0]
        if self.flat_args_adapter is None:
            raise TypeError(
                f"forward(): expected arguments of the structure {wanted}; got {spec}, and no "
                "flat_args_adapter"
            )
        adapted = self.flat_args_adapter.adapt(wanted, spec, leaves, self.meta, self)
        if len(adapted) != wanted.num_leaves:
            raise TypeError(
                f"forward(): expected {wanted.num_leaves} leaves of the flat_args_adapter; got "
                f"{len(adapted)}"
            )
        return adapted


class _SizeCheck:
    """An argument has the size that the program was exported with."""

    def __init__(self, position, name, dim, size):
        self.position, self.name, self.dim, self.size = position, name, dim, size

    def __call__(self, leaves):
        got = leaves[self.position]
        if isinstance(got, facula.Tensor) and got.shape[self.dim] != self.size:
            raise RuntimeError(
                f"forward(): expected {self.name}.shape[{self.dim}] == {self.size}; got "
                f"{got.shape[self.dim]}. Dim.DYNAMIC in dynamic_shapes= exports other sizes as well"
            )


def _size_checks(program):
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    users = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    checks = []
    for position, spec in enumerate(users):
        node = nodes.get(spec.arg.name)
        value = None if node is None else node.meta.get("val")
        if isinstance(value, facula.Tensor):
            checks += [
                _SizeCheck(position, spec.arg.name, dim, size)
                for dim, size in enumerate(value.shape)
                if (position, dim) not in program._expressions
            ]
    return checks


# --- the program without its tree


class _FlatProgram:
    """A program's nodes: which stand for tensors of modules, which for results, and what writes."""

    def __init__(self, program):
        self.program = program
        graph = copy.deepcopy(program.graph)
        for node, given in zip(graph.nodes, program.graph.nodes, strict=True):
            node.name = given.name
        kept = [e.signature for e in program.module_call_graph if e.fqn and e.signature]
        remove_unused(graph, {a.name for s in kept for a in (*s.inputs, *s.outputs)})
        self.nodes = list(graph.nodes)
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        self.fqn_of = {}  # placeholder -> the tensor that it stands for
        for node in self.nodes:
            if node.op == "placeholder" and specs[node.name].kind is not InputKind.USER_INPUT:
                self.fqn_of[node] = specs[node.name].target
        output = self.nodes[-1]
        pairs = list(zip(output.args[0], program.graph_signature.output_specs, strict=True))
        self.results = [value for value, spec in pairs if spec.kind not in _CHANGES]
        self.changes = [(value, spec.target) for value, spec in pairs if spec.kind in _CHANGES]

    def name_in(self, node, fqn):
        """A name of a tensor that lies within a module; None where it has none there."""
        tensor = self._tensor(self.fqn_of[node])
        for other in self.fqn_of.values():
            if self._tensor(other) is tensor and (not fqn or other.startswith(f"{fqn}.")):
                return other
        return None

    def _tensor(self, name):
        state = self.program.state_dict
        return state[name] if name in state else self.program.constants[name]

    def target_of(self, name):
        """The placeholder of a tensor of the module, or of an argument, that is changed."""
        by_fqn = {fqn: node for node, fqn in self.fqn_of.items()}
        if name in by_fqn:
            return by_fqn[name]
        return next(n for n in self.nodes if n.op == "placeholder" and n.name == name)

    def assign_tensors(self, root, modules):
        """Give modules their tensors: those that are one in the program are one there.

        Args:
            root (Module): has the tensors by their names in the program.
            modules (list): `(module, fqn)` of the calls; what their graphs read is there, too.
        """
        made, by_fqn = {}, {}
        for spec in self.program.graph_signature.input_specs:
            if spec.kind not in _OF_MODULE:
                continue
            value = self._tensor(spec.target)
            if id(value) not in made:
                made[id(value)] = _copied(value)
            by_fqn[spec.target] = spec, made[id(value)]
            _assign(root, spec.target, *by_fqn[spec.target])
        for module, fqn in modules:
            for node in module.graph.nodes:
                if node.op == "get_attr":
                    _assign(module, node.target, *by_fqn[f"{fqn}.{node.target}"])


def _copied(value):
    if isinstance(value, nn.Parameter):
        return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
    return value.clone()


def _assign(module, name, spec, value):
    """Give a module a tensor, as a parameter, a buffer or a plain attribute."""
    _assign_attr(value, module, name)
    owner, _, name = name.rpartition(".")
    owner = module.get_submodule(owner)
    if spec.kind is InputKind.CONSTANT_TENSOR:
        owner._buffers.pop(name, None)
        owner.__dict__[name] = value
    elif spec.persistent is False:
        owner._non_persistent_buffers_set.add(name)


# --- the tree


class _Frame:
    """A call of a module: its nodes in order, and the calls of its children among them."""

    def __init__(self, path, fqn, ty):
        self.path, self.fqn, self.ty = path, fqn, ty  # the path has names of calls, as `b1@1`
        self.items, self.inputs, self.outputs = [], [], []
        self.graph, self.children = None, {}
        self.signature, self.places = None, []  # of a call whose signature is kept

    def keep(self, signature, nodes):
        """Take arguments and give results as a signature says.

        Raises:
            NotImplementedError: the call reads or gives more than that.
        """
        self.signature, self.nodes = signature, nodes
        named = [
            None if isinstance(a, ConstantArgument) else nodes[a.name] for a in signature.inputs
        ]
        more = [v.name for v in self.inputs if v not in named]
        more += [v.name for v in self.outputs if v not in self.results()]
        if more:
            raise NotImplementedError(
                f"unflatten(): expected the module {self.fqn!r}, whose signature is kept, to read "
                f"its arguments and give its results alone; got {more} as well"
            )
        firsts = {node: i for i, node in reversed(list(enumerate(named))) if node is not None}
        self.inputs, self.places = list(firsts), list(firsts.values())

    def results(self):
        """The nodes of the results of a call whose signature is kept."""
        arguments = (a for a in self.signature.outputs if not isinstance(a, ConstantArgument))
        return [self.nodes[a.name] for a in arguments]

    def module(self):
        """The module of this call."""
        if self.signature is None:
            return InterpreterModule(self.graph, self.ty)
        return _SignedModule(self.graph, self.ty, self.signature, self.places)


class _Frames:
    """The calls of a program's modules, and their graphs."""

    def __init__(self, flat):
        self.flat = flat
        self.top = _Frame((), "", _type_of_root(flat.nodes))
        self.frame_of = {}
        self._split()
        self._connect()
        signatures = {e.fqn: e.signature for e in flat.program.module_call_graph if e.signature}
        self._keep(self.top, signatures, {node.name: node for node in flat.nodes})
        self._write(self.top)
        self._share(self.top, {})

    def root(self):
        """The call of the whole."""
        return self.top

    # --- which node belongs to which call

    def _split(self):
        for node in self.flat.nodes:
            if node.op == "placeholder" or node.op == "output":
                self.frame_of[node] = self.top
                continue
            frame = self._frame(node.meta.get("nn_module_stack") or {})
            frame.items.append(node)
            self.frame_of[node] = frame

    def _frame(self, stack):
        frame = self.top
        for fqn, ty in list(stack.values())[1:]:
            name = _child_name(frame.fqn, fqn)
            if name not in frame.children:
                plain = fqn.partition("@")[0]
                frame.children[name] = _Frame((*frame.path, name), plain, ty)
                frame.items.append(frame.children[name])
            frame = frame.children[name]
        return frame

    # --- what goes in and out of calls

    def _connect(self):
        for node in self.flat.nodes:
            if node.op == "output":
                used = [value for value in self.flat.results if isinstance(value, Node)]
            else:
                used = node.all_input_nodes
            for value in used:
                self._pass(value, self.frame_of[node])
        for value, target in self.flat.changes:
            # The new value is written at the end, where nothing reads the old one any more.
            self._pass(value, self.top)
            self._pass(self.flat.target_of(target), self.top)
        order = {node: i for i, node in enumerate(self.flat.nodes)}
        self._sort(self.top, order)

    def _sort(self, frame, order):
        frame.outputs.sort(key=order.get)
        for child in frame.children.values():
            self._sort(child, order)

    def _pass(self, value, reader):
        """Let a value reach the call that reads it."""
        maker = self.frame_of[value]
        for frame in self._outside(reader, value):
            if value not in frame.inputs:
                frame.inputs.append(value)
        if value in self.flat.fqn_of:
            return
        frame = maker
        while frame.path != reader.path[: len(frame.path)]:
            if value not in frame.outputs:
                frame.outputs.append(value)
            frame = self._at(frame.path[:-1])

    def _outside(self, reader, value):
        """The calls around a reader in which a value does not arise."""
        is_tensor = value in self.flat.fqn_of
        maker = self.frame_of[value].path
        for length in range(len(reader.path), 0, -1):
            frame = self._at(reader.path[:length])
            if is_tensor and self.flat.name_in(value, frame.fqn) is not None:
                return
            if not is_tensor and frame.path == maker[:length]:
                return
            yield frame

    def _at(self, path):
        frame = self.top
        for name in path:
            frame = frame.children[name]
        return frame

    def _keep(self, frame, signatures, nodes):
        """Give calls whose signature is kept the arguments and results that it says."""
        for name, child in frame.children.items():
            number = name.partition("@")[2]
            signature = signatures.get(f"{child.fqn}@{number}" if number else child.fqn)
            if signature is not None:
                child.keep(signature, nodes)
            self._keep(child, signatures, nodes)
        if frame.signature is not None:
            # What a kept call gives must exist in it; what it is given, around it.
            for value in frame.results():
                if self.frame_of[value].path[: len(frame.path)] != frame.path:
                    self._pass(value, frame)

    # --- graphs

    def _write(self, frame):
        for child in frame.children.values():
            self._write(child)
        graph, values = Graph(), {}
        inputs = frame.inputs
        if frame is self.top:
            inputs = [
                n for n in self.flat.nodes if n.op == "placeholder" and n not in self.flat.fqn_of
            ]
        for value in inputs:
            made = graph.create_node("placeholder", value.name, (), {}, name=value.name)
            made.target = made.name if frame is not self.top else made.target
            made.meta = dict(value.meta)
            values[value] = made
        self._write_attributes(frame, graph, values)
        for item in frame.items:
            if isinstance(item, _Frame):
                self._write_call(graph, values, item)
            else:
                values[item] = graph.node_copy(item, lambda n: values[n])
        self._write_results(frame, graph, values)
        frame.graph = graph

    def _write_attributes(self, frame, graph, values):
        read = [value for value in dict.fromkeys(self._tensors_read(frame)) if value not in values]
        for value in reversed(read) if frame is self.top else read:
            name = self.flat.name_in(value, frame.fqn)
            relative = name[len(frame.fqn) + 1 :] if frame.fqn else name
            values[value] = graph.create_node("get_attr", relative, (), {})
            values[value].meta = dict(value.meta)

    def _tensors_read(self, frame):
        for item in frame.items:
            used = item.inputs if isinstance(item, _Frame) else item.all_input_nodes
            yield from (value for value in used if value in self.flat.fqn_of)
        if frame is self.top:
            changed = [self.flat.target_of(target) for _, target in self.flat.changes]
            results = [value for value in self.flat.results if isinstance(value, Node)]
            yield from (value for value in changed + results if value in self.flat.fqn_of)

    def _write_signed_call(self, graph, values, child):
        """A call with nested arguments, and the leaves of what it gives."""
        signature = child.signature
        leaves = [
            a.value if isinstance(a, ConstantArgument) else values[child.nodes[a.name]]
            for a in signature.inputs
        ]
        args, kwargs = pytree.tree_unflatten(leaves, signature.in_spec)
        call = graph.create_node("call_module", child.path[-1], tuple(args), kwargs)
        found = graph.call_function(pytree.tree_leaves, (call,))
        for i, argument in enumerate(signature.outputs):
            if isinstance(argument, ConstantArgument):
                continue
            value = child.nodes[argument.name]
            if value in values:
                continue
            values[value] = graph.call_function(operator.getitem, (found, i))
            values[value].meta["val"] = value.meta.get("val")

    def _write_call(self, graph, values, child):
        if child.signature is not None:
            self._write_signed_call(graph, values, child)
            return
        given = tuple(values[value] for value in child.inputs)
        call = graph.create_node("call_module", child.path[-1], given, {})
        if len(child.outputs) == 1:
            values[child.outputs[0]] = call
            return
        for i, value in enumerate(child.outputs):
            values[value] = graph.call_function(operator.getitem, (call, i))
            values[value].meta["val"] = value.meta.get("val")

    def _write_results(self, frame, graph, values):
        if frame.signature is not None:
            graph.output(
                [
                    a.value if isinstance(a, ConstantArgument) else values[frame.nodes[a.name]]
                    for a in frame.signature.outputs
                ]
            )
            return
        if frame is not self.top:
            results = [values[value] for value in frame.outputs]
            graph.output(results[0] if len(results) == 1 else results)
            return
        for value, target in self.flat.changes:
            into = values[self.flat.target_of(target)]
            graph.create_node(
                "call_function",
                facula.ops.aten.copy_.default,
                (into, values[value]),
                name="copy__default",
            )
        graph.output(map_arg(tuple(self.flat.results), lambda n: values[n]))

    # --- modules

    def _share(self, frame, known):
        """Calls of one module with one graph are calls of one object."""
        for name, child in list(frame.children.items()):
            self._share(child, known)
            same = [one for one in known.get(child.fqn, ()) if _equal(one.graph, child.graph)]
            if not same:
                known.setdefault(child.fqn, []).append(child)
                continue
            self._replace(frame, name, same[0])

    def _replace(self, frame, name, other):
        """Let a frame's calls of one child be calls of another with the same graph."""
        frame.children[name] = other
        wanted = other.path[-1]
        if name == wanted:
            return
        del frame.children[name]
        frame.children[wanted] = other
        for node in frame.graph.nodes:
            if node.op == "call_module" and node.target == name:
                node.target = wanted

    def attach(self, root):
        """Put the modules of all calls below the top; returns them with their names."""
        made = {}
        self._attach(self.top, root, made)
        return list(made.values())

    def _attach(self, frame, module, made):
        order = {e.fqn: i for i, e in enumerate(self.flat.program.module_call_graph)}
        children = sorted(
            frame.children.items(),
            key=lambda item: order[item[1].fqn] if "@" not in item[0] else len(order),
        )
        for name, child in children:
            if id(child) not in made:
                made[id(child)] = child.module(), child.fqn
                self._attach(child, made[id(child)][0], made)
            _assign_attr(made[id(child)][0], module, name)


def _child_name(parent, fqn):
    """The name of a call below its parent: `b1@1` for the second call of `b1`."""
    plain, _, number = fqn.partition("@")
    inside = plain.startswith(f"{parent}.") if parent else True
    # A module that is called outside of the module that has it has its whole name there.
    name = plain[len(parent) + 1 :] if parent and inside else plain
    return f"{name}@{number}" if number else name


def _type_of_root(nodes):
    for node in nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            return next(iter(stack.values()))[1]
    return None


def _equal(a, b):
    """Whether two graphs have the same steps."""
    if len(a.nodes) != len(b.nodes):
        return False
    number_of = {}
    for i, (x, y) in enumerate(zip(a.nodes, b.nodes, strict=True)):
        number_of[x] = number_of[y] = i
        same_target = x.op == "placeholder" or x.target == y.target
        if x.op != y.op or not same_target:
            return False
        shown = [
            str(map_arg((n.args, n.kwargs), lambda one: _Number(number_of[one]))) for n in (x, y)
        ]
        if shown[0] != shown[1]:
            return False
    return True


class _Number:
    """A node by its place in its graph."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"%{self.number}"


def unflatten(module, flat_args_adapter=None):
    """A program as a tree of modules with the names that the exported module's had.

    Submodules may be exchanged, as long as they take and give the same tensors.

    Args:
        module (ExportedProgram): what `export` gave.
        flat_args_adapter (FlatArgsAdapter | None): fits calls of another structure.

    Returns:
        UnflattenedModule

    Raises:
        TypeError: `module` is something else.
        NotImplementedError: a module whose signature is kept reads more than its arguments.

    Example:
        >>> net = facula.nn.Sequential(facula.nn.ReLU(), facula.nn.Tanh())
        >>> tree = facula.export.unflatten(facula.export.export(net, (facula.ones(2),)))
        >>> [name for name, _ in tree.named_modules()]
        ['', '0', '1']
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten(): expected an ExportedProgram; got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)

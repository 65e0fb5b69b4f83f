"""The module of an exported program: its tensors are attributes again, its arguments nested."""

from __future__ import annotations

import copy

import facula
from facula.export import _guards
from facula.export.graph_signature import ConstantArgument, InputKind, OutputKind
from facula.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from facula.fx.graph_module import GraphModule, _assign_attr
from facula.utils import _pytree as pytree

_OF_MODULE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_CHANGES = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
)


class GuardsFn(facula.nn.Module):
    """Checks arguments for what the program was made under: sizes, and the values of constants."""

    def __init__(self, checks):
        super().__init__()
        self.checks = checks

    def forward(self, *leaves):
        """Check the leaves of the arguments.

        Raises:
            AssertionError: one does not fit.
        """
        for check in self.checks:
            check(leaves)


class _ArgumentsCodeGen(_PyTreeCodeGen):
    """Writes functions whose parameters are those of the module that was exported."""

    def __init__(self, names, kwarg_names, in_spec, out_spec):
        super().__init__(_PyTreeInfo(["self", *names], in_spec, out_spec))
        self.kwarg_names = kwarg_names

    def gen_var_bindings(self, fn_args, free_vars, expanded_def=False):
        """The line that takes the arguments apart."""
        count = len(fn_args) - len(self.kwarg_names)
        given = ", ".join(fn_args[:count])
        by_name = ", ".join(
            f"'{key}':{name}" for key, name in zip(self.kwarg_names, fn_args[count:], strict=True)
        )
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        bound = f"fx_pytree.tree_flatten_spec(([{given}], {{{by_name}}}), self._in_spec)"
        return f"\n    {', '.join(names)}, = {bound}"


def unlift(program, check_guards):
    """The module of a program, with the program's own tensors."""
    graph = copy.deepcopy(program.graph)
    root = facula.nn.Module()
    for name in [n.target for n in graph.nodes if n.op == "get_attr"]:
        if hasattr(program.graph_module, name):
            setattr(root, name, getattr(program.graph_module, name))
    attributes, inputs = _to_attributes(program, graph, root)
    _write_back(program, graph, attributes, inputs)
    signature = program.module_call_graph[0].signature
    if check_guards and inputs:
        _add_guards(program, graph, root, inputs)
    kwarg_names = list(signature.in_spec.child(1).context)
    names = list(signature.forward_arg_names)
    graph.set_codegen(_ArgumentsCodeGen(names, kwarg_names, signature.in_spec, signature.out_spec))
    _share_tensors(program, root)
    module = _ExportedModule(root, graph)
    module._expected_kwargs = kwarg_names
    return module


class _ExportedModule(GraphModule):
    """The module of an exported program; it prints as a GraphModule."""

    def __call__(self, *args, **kwargs):
        """Run the program on arguments with the structure that it was made with.

        Raises:
            ValueError: the arguments have another structure.
        """
        return super().__call__(*args, **self._ordered(args, kwargs))

    def _get_name(self):
        return "GraphModule"

    def _ordered(self, args, kwargs):
        expected = self._expected_kwargs
        if sorted(kwargs) != sorted(expected):
            raise ValueError(
                f"forward(): expected the keyword arguments {expected}; got {list(kwargs)}"
            )
        ordered = {name: kwargs[name] for name in expected}
        spec, wanted = pytree.tree_structure((args, ordered)), self._in_spec
        if spec != wanted:
            raise ValueError(
                f"forward(): expected arguments of the structure {wanted}, which the program was "
                f"exported with; got {spec}"
            )
        return ordered


def _to_attributes(program, graph, root):
    """Turn inputs that are the module's into attributes; gives those and the user's inputs."""
    attributes, inputs = {}, []
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind not in _OF_MODULE:
            inputs.append(node)
            continue
        with graph.inserting_before(node):
            new = graph.get_attr(spec.target)
        new.meta = dict(node.meta)
        attributes[spec.target] = new
        _assign(root, spec, _value_of(program, spec))
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    return attributes, inputs


def _value_of(program, spec):
    store = program.state_dict if spec.target in program.state_dict else program.constants
    return store[spec.target]


def _assign(root, spec, value):
    _assign_attr(value, root, spec.target)
    owner, _, name = spec.target.rpartition(".")
    module = root.get_submodule(owner)
    if spec.kind is InputKind.CONSTANT_TENSOR and name in module._buffers:
        del module._buffers[name]
        module.__dict__[name] = value
    elif spec.persistent is False:
        module._non_persistent_buffers_set.add(name)


def _share_tensors(program, root):
    """Parameters that are one in the program are one in the module."""
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.PARAMETER:
            _assign_attr(_value_of(program, spec), root, spec.target)


def _write_back(program, graph, attributes, inputs):
    """New values of buffers and inputs are copied to them, not returned."""
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    results, by_name = [], {node.target: node for node in inputs}
    aten = facula.ops.aten
    for value, spec in zip(output.args[0], program.graph_signature.output_specs, strict=True):
        if spec.kind not in _CHANGES:
            results.append(value)
            continue
        target = attributes.get(spec.target) or by_name.get(spec.target)
        with graph.inserting_before(output):
            graph.create_node(
                "call_function", aten.copy_.default, (target, value), name="copy__default"
            )
    output.args = (tuple(results),)


def _add_guards(program, graph, root, inputs):
    checks = []
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    for position, (node, spec) in enumerate(zip(inputs, specs, strict=True)):
        checks += _checks_of(program, position, node, spec)
    if program._sizes is not None:
        names = [node.target for node in inputs]
        checks.append(
            _SymbolCheck(
                program._expressions, program.range_constraints, program._sizes.conditions, names
            )
        )
    checks += _guards.checks(program)
    root._guards_fn = GuardsFn(checks)
    place = next(n for n in graph.nodes if n.op not in ("placeholder", "get_attr"))
    with graph.inserting_before(place):
        graph.call_module("_guards_fn", tuple(inputs))


def _checks_of(program, position, node, spec):
    if isinstance(spec.arg, ConstantArgument):
        if isinstance(spec.arg.value, (bool, int, float, str, type(None))):
            return [_ValueCheck(position, node.target, spec.arg.value)]
        return []
    value = node.meta.get("val")
    if not isinstance(value, facula.Tensor):
        return []
    return [
        _SizeCheck(position, node.target, dim, size)
        for dim, size in enumerate(value.shape)
        if (position, dim) not in program._expressions
    ]


class _ValueCheck:
    """An argument is the constant that the program was made with."""

    def __init__(self, position, name, value):
        self.position, self.name, self.value = position, name, value

    def __call__(self, leaves):
        got = leaves[self.position]
        if type(got) is not type(self.value) or got != self.value:
            raise AssertionError(
                f"forward(): expected {self.name} == {self.value!r}, which the program was "
                f"exported with; got {got!r}"
            )


class _SizeCheck:
    """A dimension of an argument has the size that the program was made with."""

    def __init__(self, position, name, dim, size):
        self.position, self.name, self.dim, self.size = position, name, dim, size

    def __call__(self, leaves):
        got = leaves[self.position]
        if not isinstance(got, facula.Tensor) or self.dim >= got.dim():
            raise AssertionError(f"forward(): expected a tensor as {self.name}; got {got!r}")
        if got.shape[self.dim] != self.size:
            raise AssertionError(
                f"Guard failed: {self.name}.size()[{self.dim}] == {self.size}; got "
                f"{got.shape[self.dim]}"
            )


class _SymbolCheck:
    """Dynamic sizes are in their ranges, agree with one another, and keep the conditions."""

    def __init__(self, expressions, ranges, conditions, names):
        self.expressions, self.ranges = expressions, ranges
        self.conditions, self.names = conditions, names

    def __call__(self, leaves):
        sizes = {}
        for (position, dim), expression in self.expressions.items():
            if str(expression) in self.ranges:
                sizes.setdefault(str(expression), leaves[position].shape[dim])
        for (position, dim), expression in self.expressions.items():
            self._check_size(sizes, expression, position, dim, leaves[position].shape[dim])
        for condition in self.conditions:
            if condition.symbols() <= set(sizes) and not condition.holds(sizes):
                raise AssertionError(f"forward(): expected sizes with {condition}; got {sizes}")

    def _check_size(self, sizes, expression, position, dim, got):
        where = f"{self.names[position]}.size()[{dim}]"
        found = self.ranges.get(str(expression))
        if found is not None and got < found.lower:
            raise AssertionError(f"Guard failed: {where} >= {found.lower}; got {got}")
        if found is not None and found.upper is not None and got > found.upper:
            raise AssertionError(f"Guard failed: {where} <= {found.upper}; got {got}")
        if expression.symbols() <= set(sizes) and expression.value(sizes) != got:
            raise AssertionError(
                f"Guard failed: {where} == {expression.value(sizes)}, by the other sizes; got {got}"
            )

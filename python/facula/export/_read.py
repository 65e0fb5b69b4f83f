"""Exported programs from JSON: graphs, signatures, the symbols of dynamic sizes."""

from __future__ import annotations

import operator

import facula
from facula._higher_order_ops._operator import HigherOrderOperator
from facula.export import _schema, _trace
from facula.export._expression_texts import parse
from facula.export._write import OUTPUT_TARGETS
from facula.export.dynamic_shapes import ValueRanges
from facula.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from facula.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from facula.fx.experimental._expressions import Expression, Symbol
from facula.fx.experimental._sizes import SizeNode, Sizes
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.utils._pytree import treespec_loads

_KEYWORD = 2
_ANY_SAMPLE = 4  # of a symbol whose size in the samples the file does not tell


def program_of(data, weights, constants, example_inputs):
    """The program that JSON describes.

    Args:
        data (dict): as `json.loads` gives it.
        weights, constants (dict): name to Tensor.
        example_inputs (tuple | None): `(args, kwargs)`.

    Returns:
        ExportedProgram

    Raises:
        RuntimeError: another version of the format.
        NotImplementedError: the program has what facula lacks.
    """
    found, known = data["schema_version"]["major"], _schema.SCHEMA_VERSION["major"]
    if found != known:
        raise RuntimeError(f"load(): expected version {known} of the format; got {found}")
    module = data["graph_module"]
    sizes = _symbols(module["graph"])
    reader = _GraphReader(sizes)
    graph = reader.graph(module["graph"])
    signature = ExportGraphSignature(
        [reader.input_spec(s) for s in module["signature"]["input_specs"]],
        [reader.output_spec(s) for s in module["signature"]["output_specs"]],
    )
    program = ExportedProgram(
        GraphModule(reader.root, graph),
        graph,
        signature,
        weights,
        _ranges(data["range_constraints"]),
        [reader.call_entry(e) for e in module["module_call_graph"]],
        example_inputs,
        constants,
    )
    program._dialect = (data.get("verifiers") or ["TRAINING"])[0]
    program._guard_texts = list(data.get("guards_code", ()))
    if sizes.samples:
        program._sizes = sizes
        program._expressions = _argument_sizes(graph, signature, sizes)
    return program


def _ranges(constraints):
    return {
        Symbol(name): ValueRanges(found["min_val"], found["max_val"])
        for name, found in constraints.items()
    }


def _symbols(graph):
    """The symbols in a graph, with the sizes that they have in the samples."""
    samples, named = {}, set()
    numbers = [n for t in graph["tensor_values"].values() for n in _sizes_of(t)]
    for number in [*numbers, *graph["sym_int_values"].values()]:
        if "as_expr" not in number:
            continue
        expression = parse(number["as_expr"]["expr_str"])
        named |= expression.symbols()
        hint = number["as_expr"].get("hint")
        for name in expression.symbols():
            if hint and expression == Expression.of(Symbol(name)):
                samples.setdefault(name, hint["as_int"])
    sizes = Sizes()
    for name in sorted(named):
        sizes.add(name, samples.get(name, _ANY_SAMPLE))
    return sizes


def _sizes_of(meta):
    return [*meta["sizes"], *meta["strides"], meta["storage_offset"]]


def _argument_sizes(graph, signature, sizes):
    """(leaf, dim) of the user's inputs to the expression of its size, where it is one."""
    nodes = {n.name: n for n in graph.nodes if n.op == "placeholder"}
    users = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    found = {}
    for leaf, spec in enumerate(users):
        value = nodes[spec.arg.name].meta.get("val") if spec.arg.name in nodes else None
        if not isinstance(value, facula.Tensor):
            continue
        for dim, number in enumerate(value.shape):
            expression = sizes.expression(number)
            if expression.symbols():
                found[leaf, dim] = expression
    return found


def tensor_of_meta(meta, size):
    """A tensor without data as a file describes it; None where it has no strides.

    Args:
        meta (dict): what the file says.
        size (callable): the number of a size.
    """
    if _schema.value_of("layout", meta["layout"]) is not facula.strided:
        return None
    shape, strides = [size(n) for n in meta["sizes"]], [size(n) for n in meta["strides"]]
    offset = size(meta["storage_offset"])
    dtype = _schema.value_of("dtype", meta["dtype"])
    with facula._C._FakeMode(True):
        tensor = facula.empty_strided(
            [*shape], strides, dtype=dtype, device=device_of(meta["device"])
        )
        if offset:
            reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            whole = facula.empty(max(0, offset + reach), dtype=dtype, device=tensor.device)
            tensor = whole.as_strided(shape, strides, offset)
    return tensor.requires_grad_() if meta["requires_grad"] else tensor


def device_of(found):
    """The device that a file names."""
    index = found.get("index")
    return facula.device(found["type"] if index is None else f"{found['type']}:{index}")


def _plain_float(value):
    return float(value)  # "NaN" and "Infinity" are texts


_SIMPLE = {
    "as_int": int,
    "as_bool": bool,
    "as_string": str,
    "as_float": _plain_float,
    "as_ints": list,
    "as_bools": list,
    "as_strings": list,
    "as_int_lists": list,
    "as_float_lists": list,
    "as_none": lambda value: None,
    "as_floats": lambda values: [_plain_float(v) for v in values],
    "as_complex": lambda v: complex(_plain_float(v["real"]), _plain_float(v["imag"])),
    "as_scalar_type": lambda n: _schema.value_of("dtype", n),
    "as_layout": lambda n: _schema.value_of("layout", n),
    "as_memory_format": lambda n: _schema.value_of("memory format", n),
    "as_device": lambda found: device_of(found),
    "as_operator": lambda name: target_named(name),
}


class _GraphReader:
    """Makes the nodes of one graph."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.nodes, self.graph_data = {}, None
        self.root, self.written = facula.nn.Module(), None

    def graph(self, data):
        """The Graph of its JSON."""
        self.graph_data = data
        graph = self.written = Graph()
        for i, given in enumerate(data["inputs"]):
            self._placeholder(graph, given, i)
        for node in data["nodes"]:
            self._node(graph, node)
        results = tuple(self._argument(one) for one in data["outputs"])
        graph.output(results[0] if data.get("is_single_tensor_return") else results)
        if self.sizes.samples:
            _trace.note_sizes(graph, self.sizes)
        return graph

    def _placeholder(self, graph, given, position):
        kind, found = next(iter(given.items()))
        if kind == "as_tensor":
            name = found["name"]
        elif kind.startswith("as_sym_") and "as_name" in found:
            name = found["as_name"]
        else:
            name = f"_constant_input_{position}"
        node = graph.create_node("placeholder", name, (), {}, name=name)
        node.name = name
        node.meta["val"] = (
            self._value(given) if not name.startswith("_constant") else (_SIMPLE[kind](found))
        )
        self.nodes[name] = node

    # --- values

    def _size(self, given):
        if "as_int" in given:
            return given["as_int"]
        return self.sizes.stand_in_of(self.sizes.known(parse(given["as_expr"]["expr_str"])))

    def _value(self, given):
        """What a node gives, as its meta has it."""
        kind, found = next(iter(given.items()))
        if kind == "as_tensor":
            return tensor_of_meta(self.graph_data["tensor_values"][found["name"]], self._size)
        if kind == "as_optional_tensor":
            return self._value(found)
        if kind in ("as_tensors", "as_optional_tensors"):
            return [self._value(one if "as_tensor" in one else {"as_tensor": one}) for one in found]
        if kind == "as_sym_int" and "as_name" in found:
            number = self.graph_data["sym_int_values"][found["as_name"]]
            if "as_int" in number:
                return number["as_int"]
            expression = self.sizes.known(parse(number["as_expr"]["expr_str"]))
            return facula.SymInt(SizeNode(self.sizes, expression))
        return None

    def _argument(self, given):
        kind, found = next(iter(given.items()))
        if kind in _SIMPLE:
            return _SIMPLE[kind](found)
        if kind in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._named(found)
        if kind == "as_graph":
            return self._inner_graph(found)
        if kind == "as_optional_tensor":
            return self._argument(found)
        if kind in ("as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._named(one) for one in found]
        if kind == "as_optional_tensors":
            return [self._argument(one) for one in found]
        if kind == "as_nested_tensors":
            return [[self._named(one) for one in row] for row in found]
        raise NotImplementedError(f"load(): expected tensors, sizes and constants; got {kind}")

    def _inner_graph(self, found):
        """The node that reads a graph which is an argument."""
        inner = _GraphReader(self.sizes)
        module = GraphModule(inner.root, inner.graph(found["graph"]))
        self.root.add_module(found["name"], module)
        return self.written.create_node("get_attr", found["name"], (), {})

    def _named(self, found):
        name = found.get("name", found.get("as_name"))
        return next(iter(found.values())) if name is None else self.nodes[name]

    # --- nodes

    def _node(self, graph, data):
        target = target_named(data["target"])
        args, kwargs = [], {}
        for one in data["inputs"]:
            value = self._argument(one["arg"])
            if _is_keyword(one, target, len(args)):
                kwargs[one["name"]] = value
            else:
                args.append(value)
        outputs = data["outputs"]
        name = data.get("name") or _first_name(outputs)
        node = graph.create_node("call_function", target, tuple(args), kwargs, name=name)
        node.meta.update(_metadata(data["metadata"]))
        is_tuple = _gives_tuple(target) and not data.get("is_hop_single_tensor_return")
        self._results(graph, node, outputs, is_tuple)

    def _results(self, graph, node, outputs, is_tuple):
        if not outputs:
            node.meta["val"] = None
            return
        listed = next(iter(outputs[0])) in ("as_tensors", "as_optional_tensors")
        if len(outputs) == 1 and not listed and not is_tuple:
            node.meta["val"] = self._value(outputs[0])
            self.nodes[_first_name(outputs) or node.name] = node
            return
        if listed:
            key = next(iter(outputs[0]))
            outputs = [one if "as_none" in one else {"as_tensor": one} for one in outputs[0][key]]
        values = [self._value(one) for one in outputs]
        node.meta["val"] = values
        for i, one in enumerate(outputs):
            name = _first_name([one])
            if name is None or name.startswith(f"{node.name}_unused_"):
                continue
            picked = graph.create_node("call_function", operator.getitem, (node, i), {}, name=name)
            picked.meta["val"] = values[i]
            for key in ("stack_trace", "nn_module_stack"):
                if key in node.meta:
                    picked.meta[key] = node.meta[key]
            self.nodes[name] = picked

    # --- the signature and the modules

    def _argument_spec(self, given):
        kind, found = next(iter(given.items()))
        if kind in _SIMPLE:
            return ConstantArgument("", _SIMPLE[kind](found))
        name = found.get("name", found.get("as_name"))
        name = self.nodes[name].name
        classes = {
            "as_tensor": TensorArgument,
            "as_sym_int": SymIntArgument,
            "as_sym_float": SymFloatArgument,
            "as_sym_bool": SymBoolArgument,
        }
        if kind not in classes:
            raise NotImplementedError(f"load(): expected tensors and numbers; got {kind}")
        return classes[kind](name)

    def input_spec(self, data):
        """An input's description; inputs with constants get the names of their places back."""
        kind, found = next(iter(data.items()))
        if kind == "user_input":
            return InputSpec(InputKind.USER_INPUT, self._argument_spec(found["arg"]), None)
        if kind == "constant_input":
            value_kind, value = next(iter(found["value"].items()))
            self._rename_constant(found["name"])
            argument = ConstantArgument(found["name"], _SIMPLE[value_kind](value))
            return InputSpec(InputKind.USER_INPUT, argument, None)
        kinds = {
            "parameter": (InputKind.PARAMETER, "parameter_name"),
            "buffer": (InputKind.BUFFER, "buffer_name"),
            "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
        }
        if kind not in kinds:
            raise NotImplementedError(f"load(): expected tensors as inputs; got {kind}")
        argument = TensorArgument(self.nodes[found["arg"]["name"]].name)
        which, target = kinds[kind]
        return InputSpec(which, argument, found[target], found.get("persistent"))

    def _rename_constant(self, name):
        key = next(k for k in self.nodes if k.startswith("_constant_input_"))
        node = self.nodes.pop(key)
        node.name = node.target = name
        self.nodes[name] = node

    def output_spec(self, data):
        """An output's description."""
        kind, found = next(iter(data.items()))
        if kind == "user_output":
            return OutputSpec(OutputKind.USER_OUTPUT, self._argument_spec(found["arg"]), None)
        names = {name: (which, target) for which, (name, target) in OUTPUT_TARGETS.items()}
        names["loss_output"] = OutputKind.LOSS_OUTPUT, None
        if kind not in names:
            raise NotImplementedError(f"load(): expected tensors as outputs; got {kind}")
        which, target = names[kind]
        argument = TensorArgument(self.nodes[found["arg"]["name"]].name)
        return OutputSpec(which, argument, found.get(target))

    def call_entry(self, data):
        """A module of the program."""
        signature = data["signature"]
        if signature is None:
            return ModuleCallEntry(data["fqn"])
        return ModuleCallEntry(
            data["fqn"],
            ModuleCallSignature(
                [self._argument_spec(a) for a in signature["inputs"]],
                [self._argument_spec(a) for a in signature["outputs"]],
                treespec_loads(signature["in_spec"]),
                treespec_loads(signature["out_spec"]),
                signature.get("forward_arg_names"),
            ),
        )


def target_named(name):
    """What a node calls, by its name in files.

    Raises:
        NotImplementedError: facula has no such operator.
    """
    parts = name.split(".")
    if parts[0] in ("_operator", "math") and len(parts) == 2:
        found = __import__(parts[0])
    elif parts[0] == "torch":
        found = facula
    else:
        found = None
    for part in parts[1:]:
        found = getattr(found, part, None)
    if not callable(found):
        raise NotImplementedError(f"load(): expected an operator that facula has; got {name}")
    return found


def _is_keyword(one, target, position):
    kind = one.get("kind")
    if kind in (1, _KEYWORD):
        return kind == _KEYWORD
    if not isinstance(target, facula._C.OpOverload):
        return False
    arguments = target._schema.arguments
    if position < len(arguments) and arguments[position].name == one["name"]:
        return arguments[position].kwarg_only
    return True


def _gives_tuple(target):
    if isinstance(target, HigherOrderOperator):
        return True
    return isinstance(target, facula._C.OpOverload) and len(target._schema.returns) > 1


def _first_name(outputs):
    for one in outputs:
        found = next(iter(one.values()))
        if isinstance(found, dict):
            return found.get("name", found.get("as_name"))
    return None


def _metadata(found):
    metadata = {}
    if "stack_trace" in found:
        metadata["stack_trace"] = found["stack_trace"]
    if found.get("nn_module_stack"):
        entries = [entry.split(",") for entry in found["nn_module_stack"].split(";")]
        metadata["nn_module_stack"] = {
            parts[0]: (",".join(parts[1:-1]), _own_name(parts[-1])) for parts in entries
        }
    return metadata


def _own_name(name):
    return f"{facula.__name__}.{name[6:]}" if name.startswith("torch.") else name

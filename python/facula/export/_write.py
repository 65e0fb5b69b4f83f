"""Exported programs as JSON: each node with its arguments by name, each tensor with its sizes."""

from __future__ import annotations

import inspect
import math
import operator

import facula
from facula._higher_order_ops._operator import HigherOrderOperator
from facula.export import _schema
from facula.export._expression_texts import text_of
from facula.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from facula.fx.graph_module import GraphModule
from facula.fx.node import Node
from facula.utils._pytree import treespec_dumps

_POSITIONAL, _KEYWORD = 1, 2
_SYMBOLIC = (
    (facula.SymInt, "sym_int"),
    (facula.SymFloat, "sym_float"),
    (facula.SymBool, "sym_bool"),
)


def program_json(program, guards):
    """A program as what `json.dumps` takes; its tensors stand in records of their own.

    Args:
        program (ExportedProgram): what is written.
        guards (list[str]): the conditions on the arguments' sizes.

    Raises:
        NotImplementedError: a value in the graph has no place in the format.
    """
    writer = _GraphWriter(program._sizes, program.graph_module)
    graph = writer.graph(program.graph_signature)
    return {
        "graph_module": {
            "graph": graph,
            "signature": _signature(program.graph_signature),
            "module_call_graph": [_call_entry(e) for e in program.module_call_graph],
            "metadata": {},
            "treespec_namedtuple_fields": _namedtuples(program.module_call_graph),
        },
        "opset_version": _schema.OPSET_VERSION,
        "range_constraints": {
            str(symbol): {"min_val": found.lower, "max_val": found.upper}
            for symbol, found in program.range_constraints.items()
        },
        "schema_version": _schema.SCHEMA_VERSION,
        "verifiers": [program.dialect],
        "torch_version": facula.__version__,
        "guards_code": guards,
    }


def tensor_meta(tensor, size):
    """What files say of a tensor without its data.

    Args:
        tensor (Tensor): any layout.
        size (callable): how a size is written.
    """
    strided = tensor.layout is facula.strided
    return {
        "dtype": _schema.number_of("dtype", tensor.dtype),
        "sizes": [size(n) for n in tensor.shape],
        "requires_grad": tensor.requires_grad,
        "device": _schema.device_text(tensor.device),
        "strides": [size(n) for n in tensor.stride()] if strided else [],
        "storage_offset": size(tensor.storage_offset() if strided else 0),
        "layout": _schema.number_of("layout", tensor.layout),
    }


def plain_size(number):
    """A size that is a number."""
    return {"as_int": number}


class _GraphWriter:
    """Writes the graph of a module: its nodes, and what they give."""

    def __init__(self, sizes, module):
        self.sizes, self.module = sizes, module
        self.tensors, self.numbers = {}, {kind: {} for _, kind in _SYMBOLIC}

    def graph(self, signature=None):
        """The graph as JSON.

        Args:
            signature (ExportGraphSignature | None): of a whole program.
        """
        constants = {
            s.arg.name: s.arg.value
            for s in (signature.input_specs if signature else ())
            if isinstance(s.arg, ConstantArgument)
        }
        inputs, nodes, outputs, single = [], [], [], False
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._input(node, constants))
            elif node.op == "call_function" and not _is_picked(node):
                nodes.append(self._node(node))
            elif node.op == "output":
                single = isinstance(node.args[0], Node)
                results = node.args if single else node.args[0]
                outputs = [self._argument(value) for value in results]
            elif node.op == "get_attr" and self._graph_at(node) is not None:
                continue  # it stands in the call that takes it
            elif node.op != "call_function":
                raise NotImplementedError(
                    f"save(): expected a graph of operators; got {node.op} {node.target!r}"
                )
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.numbers["sym_int"],
            "sym_bool_values": self.numbers["sym_bool"],
            "is_single_tensor_return": single,
            "custom_obj_values": {},
            "sym_float_values": self.numbers["sym_float"],
        }

    def _input(self, node, constants):
        if node.target in constants:
            return self._argument(constants[node.target])
        return self._noted(node.name, node.meta.get("val"))

    # --- values

    def _size(self, number):
        if self.sizes is None:
            return plain_size(number)
        return self._symbolic_int(self.sizes.expression(number))

    def _symbolic_int(self, expression):
        if expression.is_number():
            return plain_size(expression.number())
        return {"as_expr": self._expression(expression)}

    def _expression(self, expression):
        hint = {"as_int": expression.value(self.sizes.samples)}
        return {"expr_str": text_of(expression), "hint": hint}

    def _noted(self, name, value):
        """The argument that a node's value is, with its description noted."""
        if isinstance(value, facula.Tensor):
            self.tensors[name] = tensor_meta(value, self._size)
            return {"as_tensor": {"name": name}}
        if isinstance(value, facula.SymInt):
            self.numbers["sym_int"][name] = self._symbolic_int(value.node.expr)
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, facula.SymBool):
            relation = value.node.expr
            holds = relation.holds(self.sizes.samples)
            text = _relation_text(relation)
            described = {"expr_str": text, "hint": {"as_bool": holds}}
            self.numbers["sym_bool"][name] = {"as_expr": described}
            return {"as_sym_bool": {"as_name": name}}
        if value is None:
            return {"as_none": True}
        raise NotImplementedError(
            f"save(): expected tensors and sizes as values of nodes; got {value!r} for {name}"
        )

    # --- nodes

    def _node(self, node):
        return {
            "target": _target_name(node.target),
            "inputs": self._inputs(node),
            "outputs": self._outputs(node),
            "metadata": _metadata(node),
            "is_hop_single_tensor_return": _gives_tensor(node),
            "name": node.name,
        }

    def _graph_at(self, node):
        """The GraphModule that a node reads, or None."""
        found = getattr(self.module, node.target, None)
        return found if isinstance(found, GraphModule) else None

    def _inputs(self, node):
        if _takes_functions(node.target):
            return [_named("", self._argument(a, "Tensor"), _POSITIONAL) for a in node.args]
        named = _parameters_of(node.target)
        inputs = []
        for value, (name, type_text) in zip(node.args, named, strict=False):
            inputs.append(_named(name, self._argument(value, type_text), _POSITIONAL))
        types = dict(named)
        for name, value in node.kwargs.items():
            inputs.append(_named(name, self._argument(value, types.get(name, "")), _KEYWORD))
        return inputs

    def _outputs(self, node):
        value = node.meta.get("val")
        if isinstance(node.target, facula._C.OpOverload) and not node.target._schema.returns:
            return []
        if not isinstance(value, (list, tuple)):
            return [self._noted(node.name, value)]
        picked = {user.args[1]: user.name for user in node.users if _is_picked(user)}
        given = [
            self._noted(picked.get(i, f"{node.name}_unused_{i}"), one)
            for i, one in enumerate(value)
        ]
        if not _takes_functions(node.target) and len(node.target._schema.returns) == 1:
            return [{"as_tensors": [one["as_tensor"] for one in given]}]
        return given

    def _argument(self, value, type_text=""):
        """A value in the place of an argument whose type in the schema is known, or ""."""
        if isinstance(value, Node) and value.op == "get_attr":
            graph = _GraphWriter(self.sizes, self._graph_at(value)).graph()
            return {"as_graph": {"name": value.target, "graph": graph}}
        if isinstance(value, Node):
            return _of_node(value)
        if isinstance(value, (list, tuple)):
            return self._list(value, type_text)
        return _constant(value)

    def _list(self, values, type_text):
        if any(isinstance(v, Node) for v in values):
            return self._nodes(values, type_text)
        if not values:
            return {_empty_list(type_text): []}
        for name, kind in (("bools", bool), ("ints", int), ("floats", float), ("strings", str)):
            if all(type(v) is kind for v in values):
                written = [_number(v) for v in values] if kind is float else list(values)
                return {f"as_{name}": written}
        if all(type(v) in (int, float) for v in values):
            return {"as_floats": [_number(float(v)) for v in values]}
        if "Tensor" in type_text and all(v is None for v in values):
            return {"as_optional_tensors": [{"as_none": True} for _ in values]}
        raise NotImplementedError(f"save(): expected a list of values of a kind; got {values!r}")

    def _nodes(self, values, type_text):
        given = [self._argument(v) for v in values]
        kinds = {next(iter(one)) for one in given}
        if kinds <= {"as_tensor", "as_none"}:
            if kinds == {"as_tensor"} and "?" not in type_text:
                return {"as_tensors": [one["as_tensor"] for one in given]}
            return {"as_optional_tensors": given}
        for kind, plain in (("sym_int", "as_int"), ("sym_float", "as_float")):
            if kinds <= {f"as_{kind}", plain}:
                sizes = [one.get(f"as_{kind}", one) for one in given]
                return {f"as_{kind}s": sizes}
        raise NotImplementedError(f"save(): expected a list of values of a kind; got {values!r}")


def _named(name, argument, kind):
    return {"name": name, "arg": argument, "kind": kind}


def _is_picked(node):
    """Whether a node takes a result out of those of a call."""
    return (
        node.op == "call_function"
        and node.target is operator.getitem
        and isinstance(node.args[0], Node)
        and isinstance(node.args[0].meta.get("val"), (list, tuple))
    )


def _of_node(node):
    value = node.meta.get("val")
    for cls, kind in _SYMBOLIC:
        if isinstance(value, cls):
            return {f"as_{kind}": {"as_name": node.name}}
    return {"as_tensor": {"name": node.name}}


def _number(value):
    """A float; JSON has no word for those that are not finite."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _constant(value):
    if value is None:
        return {"as_none": True}
    if isinstance(value, float):
        return {"as_float": _number(value)}
    for kind, name in ((bool, "bool"), (int, "int"), (str, "string")):
        if isinstance(value, kind):
            return {f"as_{name}": value}
    if isinstance(value, complex):
        return {"as_complex": {"real": _number(value.real), "imag": _number(value.imag)}}
    if isinstance(value, facula.dtype):
        return {"as_scalar_type": _schema.number_of("dtype", value)}
    if isinstance(value, facula.layout):
        return {"as_layout": _schema.number_of("layout", value)}
    if isinstance(value, facula.memory_format):
        return {"as_memory_format": _schema.number_of("memory format", value)}
    if isinstance(value, facula.device):
        return {"as_device": _schema.device_text(value)}
    if isinstance(value, facula._C.OpOverload):
        return {"as_operator": _target_name(value)}
    raise NotImplementedError(
        f"save(): expected numbers, texts, dtypes and devices as arguments; got {value!r}"
    )


def _empty_list(type_text):
    for part, name in (("Tensor?", "as_optional_tensors"), ("Tensor", "as_tensors")):
        if part in type_text:
            return name
    for part in ("float", "bool"):
        if part in type_text:
            return f"as_{part}s"
    return "as_strings" if "str" in type_text else "as_ints"


def _parameters_of(target):
    """`(name, type)` of each parameter of what a node calls; the type "" outside of schemas."""
    if isinstance(target, facula._C.OpOverload):
        return [(a.name, str(a.type)) for a in target._schema.arguments]
    return [(name, "") for name in inspect.signature(target).parameters]


def _gives_tensor(node):
    """Whether a call with functions among its arguments gives one tensor; None for other calls."""
    if not _takes_functions(node.target):
        return None
    return isinstance(node.meta.get("val"), facula.Tensor)


def _takes_functions(target):
    return isinstance(target, HigherOrderOperator)


def _target_name(target):
    if _takes_functions(target):
        return f"torch.ops.higher_order.{target.name()}"
    if isinstance(target, facula._C.OpOverload):
        return f"torch.ops.{target}"
    module = target.__module__
    if module.partition(".")[0] == facula.__name__ and hasattr(facula, target.__name__):
        return f"torch.{target.__name__}"
    if module in ("_operator", "math"):
        return f"{module}.{target.__name__}"
    raise NotImplementedError(f"save(): expected an operator in the graph; got {target!r}")


def _relation_text(relation):
    names = {
        "<": "StrictLessThan",
        "<=": "LessThan",
        ">": "StrictGreaterThan",
        ">=": "GreaterThan",
        "==": "Equality",
        "!=": "Unequality",
    }
    return f"{names[relation.op]}({text_of(relation.a)}, {text_of(relation.b)})"


def _metadata(node):
    metadata = {}
    if node.meta.get("stack_trace"):
        metadata["stack_trace"] = node.meta["stack_trace"]
    if node.meta.get("nn_module_stack"):
        metadata["nn_module_stack"] = ";".join(
            f"{path},{fqn},{_file_name(name)}"
            for path, (fqn, name) in node.meta["nn_module_stack"].items()
        )
    return metadata


def _file_name(name):
    """A class by the name that files have for it."""
    name = name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}"
    own = f"{facula.__name__}."
    return f"torch.{name[len(own) :]}" if name.startswith(own) else name


# --- the signature and the modules


def _argument_spec(arg):
    if isinstance(arg, TensorArgument):
        return {"as_tensor": {"name": arg.name}}
    for cls, kind in (
        (SymIntArgument, "sym_int"),
        (SymFloatArgument, "sym_float"),
        (SymBoolArgument, "sym_bool"),
    ):
        if isinstance(arg, cls):
            return {f"as_{kind}": {"as_name": arg.name}}
    if isinstance(arg, ConstantArgument):
        return _constant(arg.value)
    raise NotImplementedError(f"save(): expected tensors and numbers; got {arg!r}")


def _signature(signature):
    return {
        "input_specs": [_input_spec(s) for s in signature.input_specs],
        "output_specs": [_output_spec(s) for s in signature.output_specs],
    }


def _input_spec(spec):
    if spec.kind is InputKind.USER_INPUT:
        if isinstance(spec.arg, ConstantArgument):
            value = _constant(spec.arg.value)
            return {"constant_input": {"name": spec.arg.name, "value": value}}
        return {"user_input": {"arg": _argument_spec(spec.arg)}}
    arg = {"name": spec.arg.name}
    if spec.kind is InputKind.PARAMETER:
        return {"parameter": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind is InputKind.BUFFER:
        persistent = spec.persistent is not False
        return {"buffer": {"arg": arg, "buffer_name": spec.target, "persistent": persistent}}
    if spec.kind is InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": arg, "tensor_constant_name": spec.target}}
    raise NotImplementedError(f"save(): expected tensors as inputs of the graph; got {spec}")


OUTPUT_TARGETS = {
    OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
    OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
    OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
    OutputKind.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", "parameter_name"),
    OutputKind.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", "user_input_name"),
}


def _output_spec(spec):
    if spec.kind is OutputKind.USER_OUTPUT:
        return {"user_output": {"arg": _argument_spec(spec.arg)}}
    if spec.kind is OutputKind.LOSS_OUTPUT:
        return {"loss_output": {"arg": {"name": spec.arg.name}}}
    if spec.kind not in OUTPUT_TARGETS:
        raise NotImplementedError(f"save(): expected tensors as outputs of the graph; got {spec}")
    name, target = OUTPUT_TARGETS[spec.kind]
    return {name: {"arg": {"name": spec.arg.name}, target: spec.target}}


def _call_entry(entry):
    signature = entry.signature
    if signature is None:
        return {"fqn": entry.fqn, "signature": None}
    return {
        "fqn": entry.fqn,
        "signature": {
            "inputs": [_argument_spec(a) for a in signature.inputs],
            "outputs": [_argument_spec(a) for a in signature.outputs],
            "in_spec": treespec_dumps(signature.in_spec, 1),
            "out_spec": treespec_dumps(signature.out_spec, 1),
            "forward_arg_names": signature.forward_arg_names,
        },
    }


def _namedtuples(entries):
    """The fields of the named tuples among arguments and results."""
    found = {}

    def note(spec):
        cls = spec.context if isinstance(spec.context, type) else None
        if cls is not None and hasattr(cls, "_fields"):
            from facula.utils._pytree import SUPPORTED_SERIALIZED_TYPES

            known = SUPPORTED_SERIALIZED_TYPES.get(cls)
            name = known.serialized_type_name if known else f"{cls.__module__}.{cls.__qualname__}"
            found[name] = {"field_names": list(cls._fields)}
        for child in spec.children():
            note(child)

    for entry in entries:
        if entry.signature is not None:
            note(entry.signature.in_spec)
            note(entry.signature.out_spec)
    return found

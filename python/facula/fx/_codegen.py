"""Graphs as Python source: names, literals, lines, and the forms that a function can take."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import operator
import re
import typing
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass

import facula
import facula.utils._pytree as pytree
from facula.fx import _pytree as fx_pytree
from facula.fx.node import Node, _get_qualified_name, _type_repr, map_arg

__all__ = ["CodeGen", "PythonCode"]

_BINARY = {
    **{name: symbol for name, symbol in zip(
        "eq ne lt gt le ge add sub mul floordiv truediv div mod pow lshift rshift".split(),
        "== != < > <= >= + - * // / / % ** << >>".split(), strict=True)},
    "and_": "&", "or_": "|", "xor": "^", "matmul": "@",
}  # fmt: skip
magic_methods = {
    **{name: f"{{}} {symbol} {{}}" for name, symbol in _BINARY.items()},
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
}
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in "add sub mul floordiv truediv div mod pow lshift rshift and_ or_ xor "
    "getitem matmul".split()
}
_AUGMENTED = "add and floordiv lshift mod mul matmul or pow rshift sub truediv xor".split()
inplace_methods = {
    **{f"i{name}": f"{{}} {_BINARY.get(name) or _BINARY[f'{name}_']}= {{}}" for name in _AUGMENTED},
    "setitem": "{}[{}] = {}",
}

_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}
_GENERIC_ORIGINS = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


def _dtype_abbreviations():
    """By dtype, what sizes in printed code begin with: "f32", "i64", "b8"."""
    found = {facula.bool: "b8"}
    for name in dir(facula._C):  # dir(facula) has modules that would be loaded
        dtype = getattr(facula._C, name)
        if not isinstance(dtype, facula.dtype) or dtype in found:
            continue
        full = str(dtype).rpartition(".")[2]
        match = re.fullmatch(r"([a-z]+)(\d.*)", full)
        if match and match[1] in _SHORT:
            found[dtype] = _SHORT[match[1]] + match[2].replace("_", "")
    return found


class _CustomBuiltin(typing.NamedTuple):
    """A name that generated code may use without more ado, and the line that imports it."""

    import_str: str
    obj: typing.Any


_custom_builtins = {}


def _register_custom_builtin(name, import_str, obj):
    """Give generated code a name: what it means, and the line that imports it."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin(facula.__name__, f"import {facula.__name__}", facula)
_register_custom_builtin("device", f"from {facula.__name__} import device", facula.device)
_register_custom_builtin(
    "fx_pytree", f"import {facula.__name__}.fx._pytree as fx_pytree", fx_pytree
)
_register_custom_builtin("pytree", f"import {facula.__name__}.utils._pytree as pytree", pytree)


def _snake_case(s):
    """A name in lower case with underscores: `myBlock.Conv2d` is `my_block.conv2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", s).lower()


class _Namespace:
    """Names that are given once."""

    def __init__(self):
        self._obj_to_name, self._used_names = {}, set()
        self._base_count = defaultdict(int)

    def create_name(self, candidate, obj):
        """A name that is free, and a valid identifier that hides no builtin.

        Args:
            candidate (str): what the name is made of.
            obj: what it is for; asked for again, it has the same name. None: for nothing.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        match = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (match[1], int(match[2])) if match else (name, 0)
        number = number or self._base_count[base]
        while name in self._used_names or self._is_illegal_name(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._used_names.add(name)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = name
        return name

    def _is_illegal_name(self, name, obj):
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return obj is not vars(builtins)[name]
        return name in _custom_builtins and obj is not _custom_builtins[name].obj

    def _rename_object(self, obj, name):
        self._obj_to_name[obj] = name
        self._used_names.add(name)


@dataclass
class PythonCode:
    """A function's source, the objects that its names mean, and the steps of its lines."""

    src: str
    globals: dict[str, typing.Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class CodeGen:
    """How a graph is written as Python; subclasses write it differently."""

    _body_transformer = None

    def gen_fn_def(self, free_vars, maybe_return_annotation="", *, expanded_def=False):
        """The line that begins the function.

        Args:
            free_vars (list[str]): its arguments with annotations and defaults.
            maybe_return_annotation (str): " -> type", or nothing.
            expanded_def (bool): whether each argument has a line of its own.
        """
        names = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        if expanded_def:
            listed = "".join(f"    {name},\n" for name in names)
            return f"def forward(\n{listed}){maybe_return_annotation}:"
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None, repr_fn=repr):
        """The line that ends the function.

        Args:
            output_args: what the graph returns, with Nodes.
            descs (list[str]): remarks on the parts; printed code shows them.
            repr_fn (callable): how a value is written.
        """
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args):
        """The values of the graph's arguments for those of the function."""
        return args

    def process_outputs(self, outputs):
        """What the function returns where the graph returns `outputs`."""
        return outputs

    def additional_globals(self):
        """Names that the function needs beside those of its steps, as pairs with objects."""
        return []

    def _gen_python_code(self, nodes, root_module, namespace, **options):
        return _Writer(self, namespace, root_module, **options).write(list(nodes))


class _PyTreeInfo(typing.NamedTuple):
    """The structure of a function's arguments and result, whose leaves its graph has."""

    orig_args: list[str]
    in_spec: typing.Any
    out_spec: typing.Any


class _PyTreeCodeGen(CodeGen):
    """Writes functions that take and give nested values; the graph has their leaves."""

    def __init__(self, pytree_info):
        self.pytree_info = pytree_info

    def process_inputs(self, *args):
        return tuple(pytree.tree_leaves(args))

    def process_outputs(self, outputs):
        info = self.pytree_info
        if info is None or info.out_spec is None:
            return outputs
        leaves = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return pytree.tree_unflatten(leaves, info.out_spec)

    def gen_var_bindings(self, fn_args, free_vars, expanded_def=False):
        """The line that takes the arguments apart."""
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        spec = f"fx_pytree.tree_flatten_spec([{', '.join(fn_args)}], self._in_spec)"
        return f"\n    {', '.join(names)}, = {spec}"

    def gen_fn_def(self, free_vars, maybe_return_annotation="", *, expanded_def=False):
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        arguments = self.pytree_info.orig_args
        head = super().gen_fn_def(
            list(arguments) or ["self"], maybe_return_annotation, expanded_def=expanded_def
        )
        inner = [name for name in arguments if name != "self"]
        return head + (self.gen_var_bindings(inner, free_vars, expanded_def) if free_vars else "")

    def generate_output(self, output_args, *, descs=None, repr_fn=repr):
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        leaves = (repr_fn or repr)(output_args)
        return f"return pytree.tree_unflatten({leaves}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Writes functions that take one list of all arguments and empty it, so that they can go."""

    def gen_fn_def(self, free_vars, maybe_return_annotation="", *, expanded_def=False):
        head = f"def forward(self, args_list){maybe_return_annotation}:"
        if not free_vars:
            return head
        taken = ", ".join(name.split(":")[0].split("=")[0].strip() for name in free_vars)
        return f"{head}\n    {taken}, = args_list\n    args_list.clear()"


@contextmanager
def _written_as(nodes, name_of):
    """Lets `repr` of nodes give their names in generated code."""
    for node in nodes:
        node._repr_fn = name_of
    try:
        yield
    finally:
        for node in nodes:
            del node._repr_fn


def tensor_annotation(node, include_stride=False, include_device=False):
    """What printed code says of a node's value: `f32[2, 3]`, or None where `meta` says nothing."""
    value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    if isinstance(value, (facula.SymInt, facula.SymFloat, facula.SymBool)):
        return f"Sym({value})"
    is_tensor = isinstance(value, facula.Tensor)
    if not is_tensor and not (hasattr(value, "shape") and hasattr(value, "memory_format")):
        return None
    dtype = facula.fx.graph.dtype_abbrs.get(value.dtype, str(value.dtype).rpartition(".")[2])
    text = f"{dtype}{_sizes(node.meta.get('symbolic_sizes', value.shape))}"
    if is_tensor and include_stride and value.layout is facula.strided:
        text += _sizes(value.stride())
    return text + str(value.device) if is_tensor and include_device else text


def _sizes(values):
    return "[" + ", ".join(map(str, values)) + "]"


class _Writer:
    """Writes a graph's function."""

    def __init__(
        self,
        codegen,
        namespace,
        root="self",
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        record_func=False,
        additional_meta=None,
    ):
        self.codegen, self.names, self.root = codegen, namespace, root
        self.verbose, self.expanded_def = verbose, expanded_def
        self.include_stride, self.include_device = include_stride, include_device
        self.colored, self.additional_meta = colored, additional_meta or ()
        self.globals, self.body, self.parameters = {}, [], []
        self.wrapped, self.returned, self.before = {}, "", None
        for name, builtin in _custom_builtins.items():
            self.add_global(name, builtin.obj)
        for name, value in codegen.additional_globals():
            self.add_global(name, value)

    def write(self, nodes):
        """The PythonCode of the nodes."""
        self.last_uses = _last_uses(nodes)
        lines_of = []
        with _written_as(nodes, lambda node: self.names.create_name(node.name, node)):
            for number, node in enumerate(nodes):
                self.body.append(self.remark(node))
                lines_of.append((len(self.body), number))
                self.body.append(self.line(node))
            head = self.codegen.gen_fn_def(
                self.parameters, self.returned, **self.options_of(self.codegen.gen_fn_def)
            )
        body = self.body if any(self.body) else ["pass\n\n"]
        if self.codegen._body_transformer is not None:
            body = self.codegen._body_transformer(body)
        marked = any(node.op == "call_function" for node in nodes) and self.wrapped
        wrap = [f'{self.name_of_wrap()}("{name}")' for name in self.wrapped] if marked else []
        text = "".join(body).lstrip("\n")
        text = "\n".join(f"    {line}" for line in text.split("\n"))
        joined = "\n".join(wrap)
        source = f"\n{joined}\n\n{head}\n{text}"
        start = joined.count("\n") + 1 + 3
        return PythonCode(source, self.globals, self.map_lines(lines_of), start)

    def options_of(self, function):
        """`expanded_def`, for functions of subclasses that know it."""
        return {"expanded_def": True} if self.expanded_def else {}

    def name_of_wrap(self):
        return self.add_global("wrap", facula.fx._symbolic_trace.wrap)

    def map_lines(self, lines_of):
        """By line of the body, the number of the step that it belongs to."""
        numbers, line, found = dict(lines_of), 0, {}
        current = None
        for place, text in enumerate(self.body):
            current = numbers.get(place, current)
            for _ in range(text.count("\n")):
                line += 1
                found[line] = current
        return found

    def add_global(self, hint, obj):
        """The name of an object in the function's globals."""
        if obj is not facula.device and _is_from_torch(obj):
            full = _get_qualified_name(obj)
            if _resolve(full) is obj:
                self.globals.setdefault(facula.__name__, facula)
                return full
        name = self.names.create_name(hint.replace(".", "_"), obj)
        self.globals[name] = obj
        return name

    def type_text(self, annotation):
        """An annotation as source."""
        text = _type_repr(annotation)
        origin = getattr(annotation, "__origin__", None)
        if origin is None:
            return self.add_global(text, annotation)
        origin = _GENERIC_ORIGINS.get(origin, origin)
        name = self.add_global(_type_repr(origin), origin)
        parts = [self.type_text(part) for part in getattr(annotation, "__args__", ())]
        return f"{name}[{','.join(parts)}]" if parts else name

    def value(self, a):
        """An argument as source."""
        if isinstance(a, Node):
            return repr(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            name = self.add_global(_get_qualified_name(type(a)), type(a))
            return f"{name}{tuple(a)!r}"
        if isinstance(a, facula.Size):
            return f"{facula.__name__}.Size([{', '.join(map(self.value, a))}])"
        if isinstance(a, tuple):
            return "(" + ", ".join(map(self.value, a)) + ("," if len(a) == 1 else "") + ")"
        if isinstance(a, list):
            return "[" + ", ".join(map(self.value, a)) + "]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in a.items()) + "}"
        if isinstance(a, complex):
            return f"complex({a.real!r}, {a.imag!r})"
        if isinstance(a, slice):
            return f"slice({', '.join(map(self.value, (a.start, a.stop, a.step)))})"
        if isinstance(a, enum.Enum):
            return f"{self.add_global(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, facula.Tensor):
            dtype = str(a.dtype).rpartition(".")[2]
            return f"{facula.__name__}.Tensor(size={list(a.shape)}, dtype={dtype})"
        if isinstance(a, (facula._C.OpOverload, facula._C.OpOverloadPacket)) or isinstance(a, type):
            return self.add_global(_get_qualified_name(a), a)
        if callable(a) and hasattr(a, "__name__") and not isinstance(a, facula.nn.Module):
            return self.add_global(_get_qualified_name(a), a)
        return self.paint(repr(a), "34")

    def paint(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.colored and self.verbose else text

    def arguments(self, args, kwargs):
        """The arguments of a call as source."""
        parts = [self.value(a) for a in args]
        return ", ".join(parts + [f"{k} = {self.value(v)}" for k, v in kwargs.items()])

    def annotation(self, node):
        """What stands between a name and its value: nothing, ` : type` or `: "f32[2]"`."""
        if self.verbose:
            shown = tensor_annotation(node, self.include_stride, self.include_device)
            if shown is not None:
                return f': "{self.paint(shown, "31")}"'
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def line(self, node):
        """The lines of a node."""
        if node.op == "placeholder":
            return self.parameter(node)
        if node.op == "output":
            if node.type is not None:
                self.returned = f" -> {self.type_text(node.type)}"
            options = {} if self.plain_output() else {"repr_fn": self.value}
            return f"{self.codegen.generate_output(node.args[0], **options)}\n"
        return f"{self.assignment(node)}{self.freed(node)}\n"

    def plain_output(self):
        """Whether the codegen is a subclass that knows one argument alone."""
        code = type(self.codegen).generate_output.__code__
        return "repr_fn" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def parameter(self, node):
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{self.annotation(node)}{default}")
        given = node.target.replace("*", "")
        return "" if given == repr(node) else f"{node!r} = {given}\n"

    def assignment(self, node):
        target, args = node.target, node.args
        module = getattr(target, "__module__", None)
        name = getattr(target, "__name__", None)
        if node.op == "call_function" and module == "_operator" and name in inplace_methods:
            text = inplace_methods[name].format(*map(self.value, args))
            return f"{text};  {node!r}{self.annotation(node)} = {self.value(args[0])}"
        return f"{node!r}{self.annotation(node)} = {self.expression(node)}"

    def expression(self, node):
        """The right side of a node's line."""
        args, kwargs, target = node.args, node.kwargs, node.target
        if node.op == "get_attr":
            return _format_target(self.root, target)
        if node.op == "call_module":
            return f"{_format_target(self.root, target)}({self.arguments(args, kwargs)})"
        if node.op == "call_method":
            owner = _format_target(self.value(args[0]), target)
            return f"{owner}({self.arguments(args[1:], kwargs)})"
        name = getattr(target, "__name__", None)
        if getattr(target, "__module__", None) == "_operator" and name in magic_methods:
            return magic_methods[name].format(*map(self.value, args))
        full = self.add_global(_get_qualified_name(target), target)
        if full == "getattr" and len(args) == 2 and str(args[1]).isidentifier():
            return _format_target(self.value(args[0]), args[1])
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(full)
        return f"{full}({self.arguments(args, kwargs)})"

    def freed(self, node):
        """Forgets values at their last use, so that their memory can go."""
        done = [repr(n) for n in self.last_uses.get(node, ())]
        if not node.users:
            done.append(repr(node))
        return f";  {self.paint(' = '.join([*done, 'None']), '2')}" if done else ""

    def remark(self, node):
        """The comment above a node in printed code: where it comes from."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return ""
        where = node.stack_trace or ""
        if where == self.before:
            return ""
        self.before = where
        if not where:
            return f"\n{self.paint('# No stacktrace found for following nodes', '2')}\n"
        place = parse_stack_trace(where)
        text = place.get_summary_str() if place else ""
        if "custom" in node.meta:
            text = f"Annotation: {node.meta['custom']} {text}"
        text = f"# {text}"
        for key in self.additional_meta:
            if key in node.meta:
                text = f"# {key}: {node.meta[key]} {text}"
        return f"\n{self.paint(text, '2')}\n"


def _last_uses(nodes):
    """By node, the nodes whose values nobody takes after it."""
    last, seen = defaultdict(list), set()
    for node in reversed(nodes):

        def note(used, node=node):
            if used not in seen:
                seen.add(used)
                last[node].append(used)
            return used

        map_arg(node.args, note)
        map_arg(node.kwargs, note)
    return last


class _ParsedStackTrace(typing.NamedTuple):
    """The last place of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self):
        """The place as a comment shows it."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def parse_stack_trace(stack_trace, filter_fn=None):
    """The innermost place of a stack trace's text, or None.

    Args:
        stack_trace (str): as `traceback` prints it.
        filter_fn (callable): which (file, function, line of code) are looked at.
    """
    pattern = r'File "(.+)", line (\d+), in (.+)\n\s*(.*)'
    for file, lineno, name, code in reversed(re.findall(pattern, stack_trace.strip())):
        if filter_fn is None or filter_fn(file, name, code):
            return _ParsedStackTrace(file, lineno, name, code.strip())
    return None


def _format_target(base, target):
    """`base.a.b` as source; parts that are no identifiers go through getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _is_from_torch(obj):
    """Whether an object is the package's own, to be called by its full name."""
    module = getattr(obj, "__module__", None)
    if module is None and isinstance(obj, type(operator.add)):
        return False
    return isinstance(module, str) and module.partition(".")[0] == facula.__name__


def _resolve(full):
    first, *rest = full.split(".")
    found = facula if first == facula.__name__ else None
    for part in rest:
        found = getattr(found, part, None)
    return found

"""A graph: steps in the order in which they run, and what is done with them."""

from __future__ import annotations

import copyreg
import operator
from contextlib import contextmanager

import facula
from facula.fx import _codegen
from facula.fx._codegen import CodeGen, PythonCode, _dtype_abbreviations, _Namespace, _snake_case
from facula.fx.node import Node, map_aggregate, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# What packages know by its place here.
magic_methods = _codegen.magic_methods
reflectable_magic_methods = _codegen.reflectable_magic_methods
inplace_methods = _codegen.inplace_methods
_BoxedCodeGen = _codegen._BoxedCodeGen
_PyTreeCodeGen = _codegen._PyTreeCodeGen
_PyTreeInfo = _codegen._PyTreeInfo
_custom_builtins = _codegen._custom_builtins
_register_custom_builtin = _codegen._register_custom_builtin
_CustomBuiltin = _codegen._CustomBuiltin
_ParsedStackTrace = _codegen._ParsedStackTrace
_parse_stack_trace = _codegen.parse_stack_trace
_is_from_torch = _codegen._is_from_torch
_format_target = _codegen._format_target
dtype_abbrs = _dtype_abbreviations()


def _is_magic(name):
    """Whether a name begins and ends with two underscores."""
    return name.startswith("__") and name.endswith("__")


class _NodeList:
    """The steps of a graph in order."""

    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __iter__(self):
        root, step = self.graph._root, self.direction
        node = getattr(root, step)
        while node is not root:
            following = getattr(node, step)
            if not node._erased:
                yield node
            # A step that was put behind this one in the meantime comes next.
            node = following if node._erased else getattr(node, step)

    def __reversed__(self):
        return _NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")

    def __len__(self):
        return self.graph._len


_node_list = _NodeList


class _InsertPoint:
    """Context manager: new steps go to another place; the place is set at once."""

    def __init__(self, graph, insert):
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.graph._insert = self.before


class Graph:
    """Steps in the order in which they run.

    Args:
        owning_module (GraphModule): the module whose forward the graph is.
        tracer_cls (type): the Tracer that made it.
        tracer_extras (dict): what the tracer's class is to be made with.

    Example:
        >>> graph = facula.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(facula.relu, (x,))
        >>> _ = graph.output(y)
        >>> facula.fx.GraphModule(facula.nn.Module(), graph)(facula.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._graph_namespace, self._len, self._is_numbered = _Namespace(), 0, False
        self._codegen, self._co_fields = CodeGen(), {}
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras

    @property
    def owning_module(self):
        """The GraphModule that the graph is the forward of, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    @property
    def nodes(self):
        """The steps, to be gone through in order or reversed."""
        return _NodeList(self)

    def _number(self):
        """Write into each step where it stands, unless nothing has moved since."""
        if not self._is_numbered:
            for position, node in enumerate(self.nodes):
                node._position = position
            self._is_numbered = True

    def find_nodes(self, *, op, target=None, sort=True):
        """The steps of a kind, with a target if one is given, as a list.

        Args:
            op (str): the kind.
            target: what is called; needed where `op` is "call_function".
            sort (bool): whether they come in order; they always do.

        Raises:
            AssertionError: "call_function" without a target.
        """
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes(): op='call_function' needs a target; got None")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self):
        """The step that returns, the last.

        Raises:
            AssertionError: the last step is another.
        """
        node = next(iter(reversed(self.nodes)), None)
        if node is None or node.op != "output":
            raise AssertionError(f"output_node(): the last step must be an output; got {node}")
        return node

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Add a step where the graph is being written; returns the Node.

        Args:
            op (str): its kind.
            target: what it calls.
            args (tuple), kwargs (dict): the arguments.
            name (str): what it is to be called; made of the target if None.
            type_expr: the annotation of its value.

        Raises:
            AssertionError: `args` is no tuple, or `kwargs` no dict, or `op` no kind of step.
        """
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"create_node(): args must be a tuple; got {type(args).__name__}")
        if not isinstance(kwargs, dict):
            got = type(kwargs).__name__
            raise AssertionError(f"create_node(): kwargs must be a dict; got {got}")
        candidate = self._target_to_str(target) if name is None else name
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._insert(node)
        self._len += 1
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        return node

    def _target_to_str(self, target):
        if callable(target):
            name = getattr(target, "__name__", None) or type(target).__name__
        elif isinstance(target, str):
            name = target
        else:
            raise AssertionError(f"create_node(): target must be a str; got {type(target)}")
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    def placeholder(self, name, type_expr=None, default_value=...):
        """Add an argument of the function.

        Args:
            name (str): its name, with stars where it takes the rest.
            type_expr: its annotation.
            default_value: its default.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """Add the reading of a parameter, buffer or other attribute."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """Add the call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """Add the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """Add the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr=None):
        """Add the end of the function."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _number_of(self, tensor_node, target, *rest, value=None):
        made = self.call_function(target, (tensor_node, *rest))
        if value is not None:
            made.meta["val"] = value
        return made

    def create_size_node(self, tensor_node, dim):
        """Add the reading of a size as an operator; `meta["val"]` is it where it is known.

        Args:
            tensor_node (Node): whose value is a tensor.
            dim (int): the dimension.
        """
        value = tensor_node.meta.get("val")
        value = None if value is None else value.shape[dim]
        return self._number_of(tensor_node, facula.ops.aten.sym_size.int, dim, value=value)

    def create_stride_node(self, tensor_node, dim):
        """Add the reading of a stride as an operator; `meta["val"]` is it where it is known."""
        value = tensor_node.meta.get("val")
        value = None if value is None else value.stride()[dim]
        return self._number_of(tensor_node, facula.ops.aten.sym_stride.int, dim, value=value)

    def create_storage_offset_node(self, tensor_node):
        """Add the reading of a storage offset; `meta["val"]` is it where it is known."""
        value = tensor_node.meta.get("val")
        value = None if value is None else value.storage_offset()
        target = facula.ops.aten.sym_storage_offset.default
        return self._number_of(tensor_node, target, value=value)

    def materialize_symint(self, value):
        """The step whose value a symbolic number is; a plain number stays what it is."""
        return self.materialize_symints([value])[0]

    def materialize_symints(self, values):
        """For each number the step that computes it; plain numbers stay what they are.

        Args:
            values (list[int | SymInt]): the numbers.

        Raises:
            NotImplementedError: a symbolic number is the value of no step.
        """
        return [v if isinstance(v, int) else self._step_of(v) for v in values]

    def _step_of(self, value):
        for node in self.nodes:
            if node.meta.get("val") is value:
                return node
        raise NotImplementedError(
            f"materialize_symint(): {value} must be the value of a step; steps that compute an "
            "expression anew are not made yet"
        )

    def process_inputs(self, *args):
        """The values of the graph's arguments for those of its function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What the function returns where the graph returns `out`."""
        return self._codegen.process_outputs(out)

    def erase_node(self, to_erase):
        """Take a step out.

        Raises:
            RuntimeError: others use its result, or it is of another graph.
        """
        if to_erase.users:
            users = ", ".join(map(str, to_erase.users))
            raise RuntimeError(f"erase_node(): {to_erase} must have no users; got {users}")
        if to_erase.graph is not self:
            raise RuntimeError(f"erase_node(): {to_erase} must be of this graph; it is of another")
        if to_erase._erased:
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased, self._is_numbered = True, False
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def inserting_before(self, n=None):
        """Context manager: each new step goes directly before `n`, or to the start.

        Raises:
            AssertionError: `n` is of another graph.
        """
        if n is None:
            return self.inserting_after(self._root)
        return _InsertPoint(self, self._own(n).prepend)

    def inserting_after(self, n=None):
        """Context manager: each new step goes directly behind `n`, or to the end.

        Raises:
            AssertionError: `n` is of another graph.
        """
        if n is None:
            return self.inserting_before(self._root)
        return _InsertPoint(self, self._own(n).append)

    def _own(self, node):
        if node.graph is not self:
            raise AssertionError(f"inserting: {node} must be of this graph; it is of another")
        return node

    def node_copy(self, node, arg_transform=lambda x: x):
        """Add a copy of another graph's step; `arg_transform` gives this graph's nodes."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Add copies of another graph's steps; returns what its output was, in this graph.

        Args:
            g (Graph): the other graph.
            val_map (dict[Node, Node]): is filled with nodes of `g` and those of this graph.
            return_output_node (bool): whether the output's Node of `g` is returned as well.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        made = Graph(tracer_cls=self._tracer_cls)
        made._tracer_extras, made._codegen = self._tracer_extras, self._codegen
        values = {}
        for node in self.nodes:
            values[node] = made.node_copy(node, lambda n: values[n])
        return made

    def __getstate__(self):
        # Steps by number: pickling them by reference would recurse as deep as the graph is long.
        numbers = {node: i for i, node in enumerate(self.nodes)}
        steps = []
        for n in self.nodes:
            args, kwargs = (
                map_arg(a, lambda x: _StepNumber(numbers[x])) for a in (n.args, n.kwargs)
            )
            steps.append((n.op, n.name, n.target, args, kwargs, n.type, n.meta))
        return {
            "steps": steps,
            "codegen": self._codegen,
            "owning_module": self._owning_module,
            "tracer_cls": self._tracer_cls,
            "tracer_extras": self._tracer_extras,
        }

    def __setstate__(self, state):
        self.__init__(state["owning_module"], state["tracer_cls"], state["tracer_extras"])
        self._codegen = state["codegen"]
        made = []

        def node_of(a):
            return made[a.number] if isinstance(a, _StepNumber) else a

        for op, name, target, args, kwargs, annotation, meta in state["steps"]:
            args, kwargs = map_aggregate(args, node_of), map_aggregate(kwargs, node_of)
            made.append(self.create_node(op, target, args, dict(kwargs), name, annotation))
            made[-1].meta = meta

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out steps whose results nobody uses; returns whether there were any.

        Args:
            is_impure_node (callable): which steps stay all the same; `Node.is_impure` if None.
        """
        self.lint()
        count = self._len
        for node in reversed(self.nodes):
            stays = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not stays and not node.users:
                self.erase_node(node)
        return self._len < count

    def lint(self):
        """Check that steps use earlier steps of this graph, and what the module has.

        Raises:
            RuntimeError: they do not.
        """
        seen, names = set(), set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"lint(): {used}, used by {node}, is of another graph")
                if used not in seen:
                    raise RuntimeError(f"lint(): {node} uses {used} before its definition")
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"lint(): two nodes have the name {node.name}")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node):
        place = self.owning_module
        for part in node.target.split("."):
            if not hasattr(place, part):
                raise RuntimeError(
                    f"lint(): {node} needs {node.target}; {type(place).__name__} has no "
                    f"attribute {part}"
                )
            place = getattr(place, part)
        if node.op == "call_module" and not isinstance(place, facula.nn.Module):
            raise RuntimeError(
                f"lint(): {node} needs a module at {node.target}; got {type(place).__name__}"
            )

    def set_codegen(self, codegen):
        """Choose how the graph is written as Python."""
        self._codegen = codegen

    @contextmanager
    def on_generate_code(self, make_transformer):
        """Context manager: the lines of generated code go through a function.

        Args:
            make_transformer (callable): given the function that was set before, or None, returns
                the function, which takes the list of lines and returns another.
        """
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            codegen._body_transformer = before

    def python_code(
        self,
        root_module,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        record_func=False,
        additional_meta=None,
    ):
        """The graph as a function's source with its globals.

        Args:
            root_module (str): the name of the module in the source, "self".
            verbose (bool): whether sizes and places are shown.
            include_stride, include_device (bool): whether they are shown with the sizes.
            colored (bool): whether the text has colours for terminals.
            expanded_def (bool): whether each argument has a line of its own.
            record_func (bool): not supported.
            additional_meta (list[str]): keys of `meta` that are shown as well.

        Returns:
            PythonCode: with fields `src` and `globals`.

        Raises:
            NotImplementedError: `record_func` is set.
        """
        if record_func:
            raise NotImplementedError("python_code(): record_func is not supported")
        return self._codegen._gen_python_code(
            self.nodes,
            root_module,
            _Namespace(),
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )

    def print_tabular(self):
        """Print the steps as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())

    def __str__(self):
        return "\n".join(["graph():", *(f"    {node.format_node()}" for node in self.nodes)])


class _StepNumber:
    """A step in a pickled graph."""

    def __init__(self, number):
        self.number = number


def _operator_of(name):
    """The operator of a dotted name: `aten.add.Tensor`."""
    return operator.attrgetter(name)(facula.ops)


for _kind in (facula._C.OpOverload, facula._C.OpOverloadPacket):
    copyreg.pickle(_kind, lambda op: (_operator_of, (str(op),)))

"""Modules whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
from contextlib import contextmanager
from pathlib import Path

import facula
from facula.fx.graph import CodeGen, Graph, _custom_builtins, _PyTreeCodeGen

__all__ = [
    "GraphModule",
    "reduce_graph_module",
    "reduce_package_graph_module",
]

# Attributes that `meta` has under this key are given to copies as well.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_counter = itertools.count()
_OWN = ("_graph", "_code", "_in_spec", "_out_spec")
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def _exec_with_source(source, names):
    """Run source whose lines tracebacks show."""
    name = f"<eval_with_key>.{next(_counter)}"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec", dont_inherit=True), names)


def _forward_from_src(source, names):
    names = dict(names)
    _exec_with_source(source, names)
    return names["forward"]


def _import_line(name, obj):
    """The line that gives source a name again."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if isinstance(obj, type(facula)):
        return f"import {obj.__name__} as {name}"
    module = getattr(obj, "__module__", None)
    own = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if module is None or own is None:
        module, own = type(obj).__module__, type(obj).__qualname__
    first, *rest = own.split(".")
    if not rest:
        return f"from {module} import {own} as {name}"
    return f"from {module} import {first} as {name}\n{name} = {'.'.join([name, *rest])}"


def _format_import_block(names):
    lines = (_import_line(name, obj) for name, obj in names.items() if name != "__builtins__")
    return "\n".join(sorted(set(lines)))


def _copy_attr(from_module, to_module, target):
    """Give a module what another has at a dotted name, with modules on the way."""
    *way, last = target.split(".")
    for part in way:
        from_module = getattr(from_module, part)
        if from_module is getattr(to_module, part, None):
            return  # the parent was given whole
        if not hasattr(to_module, part):
            to_module.add_module(part, facula.nn.Module())
        to_module = getattr(to_module, part)
    value = getattr(from_module, last)
    if isinstance(value, facula.Tensor) and not isinstance(value, facula.nn.Parameter):
        to_module.register_buffer(last, value)
    else:
        setattr(to_module, last, value)


def _assign_attr(from_obj, to_module, target):
    """Put an object at a dotted name of a module, with modules on the way."""
    *way, last = target.split(".")
    for part in way:
        if not hasattr(to_module, part):
            setattr(to_module, part, facula.nn.Module())
        to_module = getattr(to_module, part)
    if isinstance(from_obj, facula.Tensor) and not isinstance(from_obj, facula.nn.Parameter):
        to_module.register_buffer(last, from_obj)
    else:
        setattr(to_module, last, from_obj)


def _get_attr(model, attr_name):
    """What a module has at a dotted name."""
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


def _has_attr(model, attr_name):
    """Whether a module has something at a dotted name."""
    for part in attr_name.split("."):
        if not hasattr(model, part):
            return False
        model = getattr(model, part)
    return True


def _del_attr(model, attr_name):
    """Take away what a module has at a dotted name."""
    way, _, last = attr_name.rpartition(".")
    delattr(_get_attr(model, way) if way else model, last)


class GraphModule(facula.nn.Module):
    """A module whose `forward` runs a graph.

    Args:
        root (Module | dict): has what the graph's steps name: a module, or values by dotted names.
        graph (Graph): the steps.
        class_name (str): what the module is called when it is printed.

    Raises:
        RuntimeError: `root` is a dict that lacks a name, or neither dict nor module.

    Example:
        >>> traced = facula.fx.symbolic_trace(lambda x: x + 1)
        >>> traced(facula.ones(2))
        tensor([2., 2.])
        >>> print(traced.code.strip())
        def forward(self, x):
            add = x + 1;  x = None
            return add
    """

    def __new__(cls, *args, **kwargs):
        # Each has a class of its own, as `forward` is looked up there.
        template = next(c for c in cls.__mro__ if "_template" not in vars(c))

        class GraphModuleImpl(template):
            _template = template

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, facula.nn.Module):
            self.training = root.training
            self._take_from_module(root, graph)
        elif isinstance(root, dict):
            self._take_from_dict(root, graph)
        else:
            raise RuntimeError(
                f"GraphModule: root must be a Module or a dict; got {type(root).__name__}"
            )
        for hooks in _HOOKS:
            setattr(self, hooks, [])
        self.meta, self.shape_env = dict(getattr(root, "meta", None) or {}), None
        # Only a tracer that others can import is kept: a module must be loaded without it, too.
        tracer_cls = graph._tracer_cls
        self._tracer_cls = (
            None if "<locals>" in getattr(tracer_cls, "__qualname__", "") else tracer_cls
        )
        self._tracer_extras = graph._tracer_extras or {}
        self.graph = graph

    def _take_from_module(self, root, graph):
        # Hooks and the like would be lost; what packages write beside parameters stays.
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)

    def _take_from_dict(self, root, graph):
        targets = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"GraphModule: root must have {node.target}, which {node} needs; got "
                        f"{', '.join(root) or 'an empty dict'}"
                    )
                targets.append(node.target)
        # Short names first: a module is there before what is put into it.
        for target in sorted(targets, key=lambda name: name.count(".")):
            _assign_attr(root[target], self, target)

    @property
    def graph(self):
        """The steps; after they were changed, `recompile` writes `forward` anew."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"graph must be a Graph; got {type(graph).__name__}")
        is_others = graph.owning_module not in (None, self)
        self._graph = copy.deepcopy(graph) if is_others else graph
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The source of `forward`.

        Raises:
            RuntimeError: none was written yet.
        """
        if not hasattr(self, "_code"):
            raise RuntimeError("code: forward must be written first; call recompile()")
        return self._code

    def recompile(self):
        """Write `forward` from the graph; returns the PythonCode."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code = code.src
        self._lineno_map, self._prologue_start = code._lineno_map, code._prologue_start
        type(self).forward = _forward_from_src(code.src, code.globals)
        return code

    def _recompile_submodules(self):
        return [
            (name, module.recompile())
            for name, module in self.named_modules()
            if isinstance(module, GraphModule)
        ]

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as Python source with its parameters beside it.

        Args:
            folder (str): where; it is made. `from folder import module_name` finds the class.
            module_name (str): the name of the class.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        package = facula.__name__
        facula.save(self.state_dict(), folder / "state_dict.pt")
        lines = []
        for name, module in self.named_children():
            made = f"{package}.load({_saved(folder, name, module)!r}, weights_only=False)"
            lines.append(f"        setattr(self, {name!r}, {made})")
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is None:
                continue
            made = f"{package}.empty({list(value.shape)}, dtype={value.dtype})"
            if name in self._parameters:
                flag = value.requires_grad
                lines.append(
                    f"        self.{name} = {package}.nn.Parameter({made}, requires_grad={flag})"
                )
            else:
                lines.append(f"        self.register_buffer({name!r}, {made})")
        code = self._graph.python_code(root_module="self")
        body = "\n".join(f"    {line}".rstrip() for line in code.src.strip("\n").split("\n"))
        imports = _format_import_block(code.globals)
        state = f"{package}.load({str(folder / 'state_dict.pt')!r})"
        text = (
            f"{imports}\n\nfrom {package}.nn import *\n\n\n"
            f"class {module_name}({package}.nn.Module):\n    def __init__(self):\n"
            f"        super().__init__()\n" + "\n".join(lines) + ("\n" if lines else "")
            + f"        self.load_state_dict({state})\n\n{body}\n"
        )  # fmt: skip
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *\n")

    def add_submodule(self, target, m):
        """Put a module at a dotted name, with modules on the way; returns whether that worked.

        Args:
            target (str): the name.
            m (Module): the module.
        """
        *way, last = target.split(".")
        place = self
        for part in way:
            if not hasattr(place, part):
                place.add_module(part, facula.nn.Module())
            place = getattr(place, part)
            if not isinstance(place, facula.nn.Module):
                return False
        place.add_module(last, m)
        return True

    def delete_submodule(self, target):
        """Take the module at a dotted name out; returns whether there was one."""
        way, _, last = target.rpartition(".")
        try:
            place = self.get_submodule(way)
            if not isinstance(getattr(place, last), facula.nn.Module):
                return False
        except AttributeError:
            return False
        delattr(place, last)
        return True

    def delete_all_unused_submodules(self):
        """Take out modules that no step names."""
        used = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module" and _has_attr(self, node.target):
                inner = self.get_submodule(node.target).named_modules()
                used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(
        self,
        print_output=True,
        include_stride=False,
        include_device=False,
        colored=False,
        *,
        fast_sympy_print=False,
        expanded_def=False,
        additional_meta=None,
    ):
        """The source of the module and of those in it, with sizes where they are known.

        Args:
            print_output (bool): whether it is printed.
            include_stride, include_device (bool): whether they are shown with the sizes.
            colored (bool): whether the text has colours for terminals.
            fast_sympy_print (bool): has no effect.
            expanded_def (bool): whether each argument has a line of its own.
            additional_meta (list[str]): keys of the nodes' `meta` that are shown as well.

        Returns:
            str
        """
        options = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "expanded_def": expanded_def,
            "additional_meta": additional_meta,
        }
        text = _print_readable(self, self._get_name(), **options)
        if print_output:
            print(text)
        return text

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        kept = {k: v for k, v in self.__dict__.items() if k not in _OWN}
        holder = _CodeOnlyModule(copy.deepcopy(kept, memo))
        made = type(self).__new__(type(self))
        self._deepcopy_init()(made, holder, copy.deepcopy(self._graph), type(self).__name__)
        memo[id(self)] = made
        made._take_state(holder)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(made)
        return made

    def _take_state(self, other):
        """What another module has beside what the steps name: hooks, metadata, attributes."""
        for name, value in other.__dict__.items():
            if name not in _OWN and name not in ("_parameters", "_buffers", "_modules"):
                self.__dict__[name] = value

    def __copy__(self):
        made = type(self)._template(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    def __reduce__(self):
        graph = self._graph
        code = graph.python_code(root_module="self")
        state = {k: v for k, v in self.__dict__.items() if k not in _OWN}
        if isinstance(graph._codegen, _PyTreeCodeGen):
            # The leaves are traced again; the form of the function is kept beside them.
            state["_codegen"], graph._codegen = graph._codegen, CodeGen()
            try:
                code = graph.python_code(root_module="self")
            finally:
                graph._codegen = state["_codegen"]
        state["_code"], state["_graphmodule_cls_name"] = code.src, type(self).__name__
        state["_template"] = type(self)._template
        return reduce_graph_module, (state, _format_import_block(code.globals))

    def _replicate_for_data_parallel(self):
        made = self.__copy__()
        made._is_replica = True
        return made

    @contextmanager
    def _set_replace_hook(self, f):
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def __str__(self):
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])


def _hook_pair(name, label):
    def register(self, f):
        if not callable(f):
            raise AssertionError(f"{label} hook must be callable; got {type(f).__name__}")
        getattr(self, name).append(f)

    def unregister(self, f):
        getattr(self, name).remove(f)

    return register, unregister


for _label in ("replace_node", "create_node", "erase_node", "deepcopy"):
    _name = f"_{_label.removesuffix('_node') if _label == 'replace_node' else _label}_hooks"
    _register, _unregister = _hook_pair(_name, _label)
    setattr(GraphModule, f"_register_{_label}_hook", _register)
    setattr(GraphModule, f"_unregister_{_label}_hook", _unregister)


def _saved(folder, name, module):
    path = folder / f"{name}.pt"
    facula.save(module, path)
    return os.fspath(path)


def _print_readable(module, module_name, **options):
    """The source of a GraphModule and, indented, of those in it."""
    graph = module.graph
    code = graph.python_code("self", verbose=True, **options).src
    text = f"class {module_name}({facula.__name__}.nn.Module):\n"
    parts = [text + _indented(code.strip("\n").rstrip(" "), 4)]
    for name, child in module.named_children():
        if hasattr(child, "graph") and isinstance(child.graph, Graph):
            parts.append(_indented(_print_readable(child, name, **options), 4))
    return "\n".join(parts)


def _indented(text, columns):
    pad = " " * columns
    return "\n".join(pad + line if line.strip() else "" for line in text.split("\n"))


class _CodeOnlyModule(facula.nn.Module):
    """A module with another's attributes, whose forward is source."""

    def __init__(self, body):
        super().__init__()
        self.__dict__.update(body)


def reduce_graph_module(body, import_block):
    """The GraphModule of a pickle: its source is run on proxies again.

    Args:
        body (dict): the attributes, with the source as `_code`.
        import_block (str): lines that give the source its names.
    """
    names = {}
    _exec_with_source(f"{import_block}\n{body['_code']}", names)
    return _deserialize_graph_module(names["forward"], body)


def reduce_package_graph_module(importer, body, generated_module_name):
    """The GraphModule of an archive of `facula.package`.

    Args:
        importer: imports the archive's modules.
        body (dict): the attributes.
        generated_module_name (str): the module with the source.
    """
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


def _deserialize_graph_module(forward, body, graph_module_cls=None):
    from facula.fx._symbolic_trace import Tracer

    body = dict(body)
    template = graph_module_cls or body.pop("_template", GraphModule)
    codegen, name = body.pop("_codegen", None), body.pop("_graphmodule_cls_name", "GraphModule")
    body.pop("_code")
    held = type(name, (_CodeOnlyModule,), {"forward": forward})(body)
    tracer_cls = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):
        # What was one step stays one.
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = KeepModules(**body.get("_tracer_extras", {})).trace(held)
    graph._tracer_cls = body.get("_tracer_cls")
    if codegen is not None:
        graph._codegen = codegen
    made = template.__new__(template)
    GraphModule.__init__(made, held, graph, name)
    made._take_state(held)
    return made

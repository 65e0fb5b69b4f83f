"""Modules whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache

import facula

__all__ = ["GraphModule"]

_counter = itertools.count()


def _compiled(code):
    """The function of a PythonCode; tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_counter)}"
    source = code.src
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = dict(code.globals)
    exec(compile(source, name, "exec"), names)
    return names["forward"]


def _copy_attribute(from_module, to_module, target):
    """Give a module what another has at a dotted name, with modules on the way."""
    *way, last = target.split(".")
    for part in way:
        from_module = getattr(from_module, part)
        if not hasattr(to_module, part):
            to_module.add_module(part, facula.nn.Module())
        to_module = getattr(to_module, part)
    value = getattr(from_module, last)
    if isinstance(value, facula.Tensor) and not isinstance(value, facula.nn.Parameter):
        to_module.register_buffer(last, value)
    else:
        setattr(to_module, last, value)


class GraphModule(facula.nn.Module):
    """A module whose `forward` runs a graph.

    Args:
        root (Module | dict): has what the graph's steps name: a module, or values by dotted names.
        graph (Graph): the steps; the module takes a copy.
        class_name (str): what the module is called when it is printed.

    Raises:
        RuntimeError: `root` is a dict that lacks a name.
    """

    def __new__(cls, *args, **kwargs):
        # Each has a class of its own, as `forward` is looked up there.
        name = cls.__name__ if cls is not GraphModule else "GraphModuleImpl"
        made = type(name, (cls,), {"__module__": cls.__module__, "_template": cls})
        return super().__new__(made)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, facula.nn.Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.target)
        self.meta = dict(getattr(root, "meta", None) or {})
        self.graph = graph

    def _take(self, root, target):
        if isinstance(root, facula.nn.Module):
            if not _has(self, target):
                _copy_attribute(root, self, target)
            return
        if target not in root:
            raise RuntimeError(f"Node referenced target {target} but it is not in root")
        holder = facula.nn.Module()
        place = holder
        *way, last = target.split(".")
        for part in way:
            place.add_module(part, facula.nn.Module())
            place = getattr(place, part)
        setattr(place, last, root[target])
        _copy_attribute(holder, self, target)

    @property
    def graph(self):
        """The steps; after they were changed, `recompile` writes `forward` anew."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        self._graph = copy.deepcopy(graph) if graph.owning_module is not None else graph
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The source of `forward`."""
        return self._code

    def recompile(self):
        """Write `forward` from the graph; returns the PythonCode."""
        code = self._graph.python_code("self")
        self._code = code.src
        type(self).forward = _compiled(code)
        return code

    def add_submodule(self, target, m):
        """Put a module at a dotted name; returns whether that worked."""
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
        used = {n.target for n in self.graph.nodes if n.op in ("call_module", "get_attr")}
        for name, _ in list(self.named_modules()):
            if name and not any(
                f"{u}.".startswith(f"{name}.") or f"{name}.".startswith(f"{u}.") for u in used
            ):
                self.delete_submodule(name)

    def print_readable(self, print_output=True, **options):
        """The module's source as text; printed unless that is switched off."""
        text = f"class {type(self).__name__}(torch.nn.Module):\n"
        text += "\n".join(f"    {line}".rstrip() for line in self.code.strip().split("\n"))
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo):
        holder = facula.nn.Module()
        holder.__dict__ = copy.deepcopy(
            {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}, memo
        )
        made = type(self)._template(holder, copy.deepcopy(self._graph), type(self).__name__)
        made.training = self.training
        return made

    def __copy__(self):
        return type(self)._template(self, copy.deepcopy(self._graph), type(self).__name__)

    def __reduce__(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuild, (type(self)._template, state, self._code, type(self).__name__)

    def __str__(self):
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])


def _has(module, target):
    for part in target.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


class _Held(facula.nn.Module):
    """A module with the source of a graph, to be traced again."""


def _rebuild(template, state, source, class_name):
    from facula.fx._symbolic_trace import Tracer

    class KeepAll(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    names = {facula.__name__: facula, "inf": float("inf"), "nan": float("nan")}
    import operator

    names.update({f"_operator_{name}": getattr(operator, name) for name in dir(operator)})
    names["device"] = facula.device
    exec(source, names)
    kind = type("_Held", (_Held,), {"forward": names["forward"]})
    held = kind()
    held.__dict__.update(state)
    return template(held, KeepAll().trace(held), class_name)

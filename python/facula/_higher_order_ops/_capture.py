"""Functions among an operator's arguments as graphs of their own.

A function is traced on stand-ins of its operands, apart from the trace that it is met in. Tensors
that it has from elsewhere become operands, too, so that its graph says all that it reads.
"""

from __future__ import annotations

import contextlib

import facula
from facula import _C
from facula._higher_order_ops import _functional
from facula.fx.experimental._symbolic_tracing import SymbolicTracer
from facula.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    _ConstantsMode,
    _no_modes,
    disable_proxy_modes_tracing,
    get_proxy_mode,
    py_sym_types,
    set_meta,
    track_tensor_tree,
)
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.utils._pytree import tree_flatten


def mode_that_records():
    """The mode that adds this call to a graph, or None."""
    mode = get_proxy_mode()
    return mode if mode is not None and mode.enable_tracing else None


class Captured:
    """The trace of a function: its graph, the tensors that it has from elsewhere, its result.

    Args:
        op (str): the operator's name, for errors.
        function (callable): of the operands.
        operands (list): Tensors and numbers.
        mode (ProxyTorchDispatchMode): the mode that records the operator's call.
        with_grad (set[int]): the operands that need a gradient in the function.
    """

    def __init__(self, op, function, operands, mode, with_grad=frozenset()):
        sizes = getattr(mode.tracer, "sizes", None)
        tracer = SymbolicTracer(sizes)
        with _C.DisableTorchFunction():
            given = [
                _stand_in(t, i in with_grad, mode.pre_dispatch) for i, t in enumerate(operands)
            ]
            proxies = _placeholders(tracer, given)
        self.placeholders = [proxy.node for proxy in proxies]
        with _tracing(tracer, mode), contextlib.ExitStack() as stack:
            if not mode.pre_dispatch:
                stack.enter_context(facula.set_grad_enabled(bool(with_grad)))
            if sizes is not None:
                stack.enter_context(sizes.within(tracer, operands, proxies))
            leaves, self.spec = tree_flatten(function(*given))
            _check_new(op, leaves, given)
            kinds = (facula.Tensor, *py_sym_types)
            results = [tracer.unwrap_proxy(v) if isinstance(v, kinds) else v for v in leaves]
            tracer.output(tuple(results))
        self.values = leaves
        self.graph, self.root = tracer.graph, tracer.root
        constants = [n for n in self.graph.nodes if n.op == "get_attr"]
        # A program without in-place changes has what functionalization has wrapped.
        self._constants = {
            node: _functional.unwrapped(getattr(self.root, node.target)) for node in constants
        }

    def tensors(self):
        """The tensors that it has from elsewhere, in the order of their first use."""
        return [v for v in self._constants.values() if isinstance(v, facula.Tensor)]

    def uses(self, position):
        """Whether it reads an operand."""
        return bool(self.placeholders[position].users)

    def module(self, kept, lifted, names, as_list=False, single=False):
        """Its GraphModule.

        Args:
            kept (list[int]): the operands that are arguments of it.
            lifted (list[Tensor]): the further arguments.
            names (list[str]): of all arguments.
            as_list (bool): whether it gives a list, else a tuple.
            single (bool): whether it gives its one result itself.
        """
        graph, values, by_id = Graph(), {}, {}
        for position, name in enumerate(names):
            node = graph.create_node("placeholder", name, (), {}, name=name)
            if position < len(kept):
                old = self.placeholders[kept[position]]
                values[old], node.meta = node, dict(old.meta)
            else:
                tensor = lifted[position - len(kept)]
                by_id[id(tensor)] = node
                with _C.DisableTorchFunction():
                    set_meta(_Meta(node), tensor)
        root = facula.nn.Module()
        for node in self.graph.nodes:
            if node.op == "get_attr":
                value = self._constants[node]
                if isinstance(value, facula.Tensor):
                    values[node] = by_id[id(value)]
                    continue
                setattr(root, node.target, value)
            if node.op == "output":
                found = [values.get(v, v) if _is_node(v) else v for v in node.args[0]]
                graph.output(found[0] if single else found if as_list else tuple(found))
            elif node.op != "placeholder":
                values[node] = graph.node_copy(node, lambda n: values[n])
        return GraphModule(root, graph)


class _Meta:
    """A node in the place of a proxy."""

    def __init__(self, node):
        self.node = node


def _is_node(value):
    return isinstance(value, facula.fx.Node)


def _stand_in(value, with_grad, keeps_grad):
    if not isinstance(value, facula.Tensor):
        return value
    with _no_modes(), facula.no_grad():
        fake = _C._make_fake(value.detach())
    wanted = with_grad or (keeps_grad and value.requires_grad)
    return fake.requires_grad_() if wanted else fake


def _placeholders(tracer, given):
    proxies = []
    with disable_proxy_modes_tracing():
        for i, value in enumerate(given):
            proxy = tracer.create_proxy("placeholder", f"arg{i}_1", (), {}, name=f"arg{i}_1")
            if isinstance(value, facula.Tensor):
                track_tensor_tree(value, proxy, constant=None, tracer=tracer)
            else:
                set_meta(proxy, value)
            proxies.append(proxy)
    return proxies


@contextlib.contextmanager
def _tracing(tracer, outer):
    """Context manager: calls are recorded by this tracer, and not by the mode around it."""
    mode = ProxyTorchDispatchMode(
        tracer,
        "fake",
        pre_dispatch=outer.pre_dispatch,
        _error_on_data_dependent_ops=True,
        decomposition_table=outer.decomposition_table,
    )
    mode.detach_is_alias = outer.detach_is_alias
    before, outer.enable_tracing = outer.enable_tracing, False
    try:
        with _C._FakeMode(True), mode, _ConstantsMode(mode):
            yield
    finally:
        outer.enable_tracing = before


def _check_new(op, leaves, given):
    for leaf in leaves:
        if isinstance(leaf, facula.Tensor) and any(leaf is one for one in given):
            raise RuntimeError(
                f"{op}(): expected functions that give new tensors; got an operand back: return "
                "its clone()"
            )


def operands_of(captures, operands, mode, keep_all=False, named=True):
    """What several functions read: operands that any uses, and tensors from elsewhere.

    Args:
        captures (list[Captured]): the functions.
        operands (list): what they are called with.
        mode (ProxyTorchDispatchMode): the mode that records the call.
        keep_all (bool): whether operands that none uses stay.
        named (bool): whether the functions' arguments are called as the operands are in export.

    Returns:
        tuple: the positions of operands that stay, the further tensors, names for all.
    """
    kept = [i for i in range(len(operands)) if keep_all or any(one.uses(i) for one in captures)]
    lifted = {id(t): t for one in captures for t in one.tensors()}
    lifted = sorted(lifted.values(), key=lambda t: _name(t, mode) or "~")
    values = [operands[i] for i in kept] + lifted
    names = [f"arg{i}_1" for i in range(len(values))]
    if named and (mode.pre_dispatch or mode.tracer.names_operands):
        names = [_name(v, mode) or names[i] for i, v in enumerate(values)]
        if len(set(names)) < len(names):
            names = [f"arg{i}_1" for i in range(len(values))]
    return kept, lifted, names


def _name(value, mode):
    proxy = mode.tracer.unwrap_proxy(value)
    node = getattr(proxy, "node", None)
    return node.name if _is_node(node) else None


def attribute(mode, name, module):
    """A proxy of a graph that becomes an attribute of the module that is traced.

    Args:
        mode (ProxyTorchDispatchMode): has the tracer.
        name (str): of the attribute, without its number.
        module (GraphModule): the graph.
    """
    root, number = mode.tracer.root, 0
    while hasattr(root, f"{name}_{number}"):
        number += 1
    root.add_module(f"{name}_{number}", module)
    return mode.tracer.create_proxy("get_attr", f"{name}_{number}", (), {})


def record(mode, op, args, run):
    """Add a call to the graph, and give what it gives.

    Args:
        mode (ProxyTorchDispatchMode): records it.
        op (HigherOrderOperator): what is called.
        args (tuple): nested proxies, tensors and numbers.
        run (callable): gives the results, without records.

    Returns:
        tuple or list: the results.
    """
    from facula.utils._pytree import tree_map

    given = tree_map(mode.tracer.unwrap_proxy, args)
    proxy = mode.tracer.create_proxy("call_function", op, given, {}, name=op.name())
    with disable_proxy_modes_tracing(), _C.DisableTorchFunction():
        results = tree_map(_functional.unwrapped, run())
        return track_tensor_tree(results, proxy, constant=None, tracer=mode.tracer)

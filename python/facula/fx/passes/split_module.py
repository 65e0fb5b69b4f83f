"""A module cut into several, by a function that says where each step goes."""

from __future__ import annotations

import operator

from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule, _get_attr
from facula.fx.node import map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """One of the modules that a module is cut into.

    Args:
        name (str): tells it from the others.
    """

    def __init__(self, name):
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names, self.graph = [], Graph()
        self.inputs, self.outputs = {}, {}
        self.dependencies, self.dependents = {}, {}
        self.environment, self.targets = {}, {}

    def __repr__(self):
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n "
            f"outputs: {list(self.outputs)},\n depends on: {list(self.dependencies)},\n "
            f"needed by: {list(self.dependents)}"
        )


def split_module(
    m,
    root_m,
    split_callback,
    qualname_map=None,
    keep_original_order=False,
    keep_original_node_name=False,
    keep_original_input_name=True,
    *,
    partition_affix=None,
    tuple_return=False,
):
    """Cut a module into several and one that calls them.

    Args:
        m (GraphModule): is cut; it stays as it is.
        root_m (Module): has no effect.
        split_callback (callable): of a Node, the name of its part: a number or text.
        qualname_map (dict[str, str]): is filled with names of modules in the parts and in `m`.
        keep_original_order (bool): whether the parts are called in the order of their first steps.
        keep_original_node_name (bool): whether steps keep their names.
        keep_original_input_name (bool): whether the parts' arguments are called as in `m`.
        partition_affix (str): stands in the parts' names.
        tuple_return (bool): whether parts with one result give a tuple, too.

    Returns:
        GraphModule: calls `submod_NAME` for each part.

    Raises:
        RuntimeError: parts depend on one another in a circle.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: facula.relu(x) + 1)
        >>> cut = split_module(gm, None, lambda node: int(node.name == "add"))
        >>> [node.target for node in cut.graph.nodes if node.op == "call_module"]
        ['submod_0', 'submod_1']
    """
    cut = _Cut(m, split_callback, partition_affix)
    cut.find_crossings()
    order = cut.parts if keep_original_order else cut.sorted_parts()
    cut.write_parts(qualname_map, keep_original_node_name, keep_original_input_name, tuple_return)
    return cut.write_base([cut.parts[name] for name in order], tuple_return)


class _Cut:
    """A module while it is cut."""

    def __init__(self, m, part_of, affix):
        self.m, self.parts, self.part_of = m, {}, {}
        self.nodes = {node.name: node for node in m.graph.nodes}
        for node in m.graph.nodes:
            # Arguments and parameters are handed in.
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = str(part_of(node))
            if name not in self.parts:
                self.parts[name] = Partition(name)
                if affix is not None:
                    self.parts[name].submod_name = f"submod_{affix}_{name}"
            self.part_of[node] = name
            self.parts[name].node_names.append(node.name)

    def find_crossings(self):
        """Note which values each part takes and gives."""
        for node in self.m.graph.nodes:
            for used in node.all_input_nodes:
                self._note(used, node)

    def _note(self, used, user):
        giver, taker = self.part_of.get(used), self.part_of.get(user)
        if giver == taker:
            return
        if giver is not None:
            self.parts[giver].outputs.setdefault(used.name)
        if taker is not None:
            self.parts[taker].inputs.setdefault(used.name)
        if giver is not None and taker is not None:
            self.parts[giver].dependents.setdefault(taker)
            self.parts[taker].dependencies.setdefault(giver)

    def sorted_parts(self):
        """The names of the parts, each after those that it takes values of."""
        waiting = {name: len(part.dependencies) for name, part in self.parts.items()}
        ready, ordered = [name for name in self.parts if not waiting[name]], []
        while ready:
            name = ready.pop(0)
            ordered.append(name)
            for user in self.parts[name].dependents:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        if len(ordered) < len(self.parts):
            left = ", ".join(name for name in self.parts if name not in ordered)
            raise RuntimeError(f"split_module(): parts must have no cycle; got one among {left}")
        return ordered

    def write_parts(self, names, keep_node_names, keep_input_names, tuple_return):
        """Copy the steps into the graphs of the parts."""
        for part in self.parts.values():
            for i, name in enumerate(part.inputs):
                source = self.nodes[name]
                shown = name if keep_input_names else f"arg_{i}"
                made = part.graph.placeholder(shown, type_expr=source.type)
                made.meta = dict(source.meta)
                part.environment[source] = made
        for node, name in self.part_of.items():
            self._copy(node, self.parts[name], names, keep_node_names)
        for part in self.parts.values():
            results = tuple(part.environment[self.nodes[name]] for name in part.outputs)
            is_single = len(results) == 1 and not tuple_return
            part.graph.output(results[0] if is_single else results)

    def _copy(self, node, part, names, keep_name):
        def value_of(used):
            return part.environment[used]

        target = node.target
        if node.op == "call_module":
            target = node.target.replace(".", "_")
            part.targets[target] = _get_attr(self.m, node.target)
            if names is not None:
                names[f"{part.submod_name}.{target}"] = node.target
        args, kwargs = map_arg(node.args, value_of), map_arg(node.kwargs, value_of)
        name = node.name if keep_name else None
        made = part.graph.create_node(node.op, target, args, kwargs, name, node.type)
        made.meta = dict(node.meta)
        part.environment[node] = made

    def write_base(self, parts, tuple_return):
        """The module that calls the parts."""
        graph, environment, attributes = Graph(), {}, {}
        for node in self.m.graph.nodes:
            if node.op == "placeholder":
                default = node.args[0] if node.args else ...
                made = graph.placeholder(node.target, node.type, default)
            elif node.op == "get_attr":
                made = graph.get_attr(node.target)
                attributes[node.target] = _get_attr(self.m, node.target)
            else:
                continue
            made.meta = dict(node.meta)
            environment[node] = made
        for part in parts:
            attributes[part.submod_name] = GraphModule(part.targets, part.graph)
            args = tuple(environment[self.nodes[name]] for name in part.inputs)
            call = graph.call_module(part.submod_name, args)
            if len(part.outputs) == 1 and not tuple_return:
                environment[self.nodes[next(iter(part.outputs))]] = call
                continue
            for i, name in enumerate(part.outputs):
                item = graph.call_function(operator.getitem, (call, i))
                environment[self.nodes[name]] = item
        for node in self.m.graph.nodes:
            if node.op == "output":
                graph.output(map_arg(node.args[0], lambda n: environment[n]))
        return GraphModule(attributes, graph)


def split_module_simple(m, node_to_partition, *, partition_affix=None):
    """`split_module` by a table.

    Args:
        m (GraphModule): is cut.
        node_to_partition (dict[Node, int | str]): the name of each step's part.
        partition_affix (str): stands in the parts' names.

    Returns:
        GraphModule
    """
    return split_module(m, None, node_to_partition.__getitem__, partition_affix=partition_affix)

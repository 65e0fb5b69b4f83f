"""What a pass does to a graph, written down."""

from __future__ import annotations

import os

from facula.fx.traceback import NodeSource, NodeSourceAction

__all__ = ["GraphTransformObserver"]


class GraphTransformObserver:
    """Context manager: notes the steps that a pass makes, erases and replaces.

    Args:
        gm (GraphModule): the pass changes it.
        passname (str): the pass.
        subsystem (str): the part of a program that it belongs to.
        log_url (str): a folder for a drawing of the graph after the pass. Without one nothing is
            noted.

    Attributes:
        created_nodes, erased_nodes (set[str]): the names of the steps.
        Created steps have in `meta["from_node"]` which pass made them.
    """

    _pass_count = 0

    def __init__(self, gm, passname, subsystem=None, log_url=None):
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.active = log_url is not None
        self.erased_nodes, self.created_nodes, self.name_to_node = set(), set(), {}
        GraphTransformObserver._pass_count += 1

    @classmethod
    def get_current_pass_count(cls):
        """The number of observers made so far."""
        return cls._pass_count

    def apply_gm_pass(self, pass_fn):
        """Run a pass over the module; returns what it returns."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn):
        """Run a pass over the module's graph; returns what it returns."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self):
        if not self.active:
            return self
        self._hooks = {
            "create_node": self.get_node_creation_hook(),
            "erase_node": self.get_node_erase_hook(),
            "replace_node": self.get_node_replace_hook(),
            "deepcopy": self.get_deepcopy_hook(),
        }
        for name, hook in self._hooks.items():
            getattr(self.gm, f"_register_{name}_hook")(hook)
        return self

    def __exit__(self, kind, value, trace):
        if not self.active:
            return
        for name, hook in self._hooks.items():
            getattr(self.gm, f"_unregister_{name}_hook")(hook)
        if kind is None and (self.created_nodes or self.erased_nodes):
            from facula.fx.passes.graph_drawer import FxGraphDrawer

            name = f"pass_{self._pass_count}_{self.passname}"
            dot = FxGraphDrawer(self.gm, name).get_dot_graph()
            dot.write_raw(os.path.join(self.log_url, f"{name}.dot"))

    def get_node_creation_hook(self):
        """The function that hears of new nodes."""

        def hook(node):
            self.created_nodes.add(node.name)
            self.name_to_node[node.name] = node
            source = NodeSource(None, self.passname, NodeSourceAction.CREATE)
            node.meta.setdefault("from_node", [source])

        return hook

    def get_node_erase_hook(self):
        """The function that hears of erased nodes."""

        def hook(node):
            self.erased_nodes.add(node.name)
            self.name_to_node[node.name] = node

        return hook

    def get_node_replace_hook(self):
        """The function that hears of inputs that are replaced."""

        def hook(old, new, user):
            node = self.name_to_node.get(new)
            if node is None:
                return
            actions = [NodeSourceAction.REPLACE]
            if new in self.created_nodes:
                actions.append(NodeSourceAction.CREATE)
            source = NodeSource(old, self.passname, actions)
            known = node.meta.setdefault("from_node", [])
            if source not in known:
                known.append(source)

        return hook

    def get_deepcopy_hook(self):
        """The function that hears of copies of the module."""

        def hook(gm):
            for name in self._hooks:
                for kept in ("_create_node_hooks", "_erase_node_hooks", "_replace_hooks"):
                    hooks = getattr(gm, kept, [])
                    hooks[:] = [h for h in hooks if h is not self._hooks.get(name)]

        return hook

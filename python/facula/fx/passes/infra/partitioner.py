"""The largest groups of steps that a back end can take as one."""

from __future__ import annotations

import itertools
import operator

from facula.fx.node import _get_qualified_name
from facula.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Steps that go together.

    Args:
        id (int): its number.
        nodes (iterable[Node]): its first steps.
        node_orders (iterable[int]): where they stand.
    """

    def __init__(self, id=None, nodes=None, node_orders=None):
        self.id = id
        nodes = list(nodes or ())
        self.nodes = dict(zip(nodes, node_orders or itertools.repeat(None), strict=False))

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node, node_order=None):
        """Take a step in."""
        self.nodes.setdefault(node, node_order)

    def remove_node(self, node):
        """Let a step go."""
        del self.nodes[node]

    def size(self):
        """The number of steps."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the steps that a back end takes, as many as can go together.

    From the last step back, a step's group and those of its users are merged wherever no path
    would lead out of the merged group and back.

    Args:
        graph_module (GraphModule): has the steps.
        operator_support (OperatorSupportBase): says what the back end takes.
        allows_single_node_partition (bool): whether a group may have one computing step alone.
        non_compute_ops (list[str]): full names of functions that do not count as computing, beside
            `operator.getitem` and `aten.view`.
        allowed_single_node_partition_ops (list[str]): full names of functions that may stand alone.
        skip_horizontal_fusion (bool): whether groups with nothing but a common input stay apart.

    Example:
        >>> from facula.fx.passes.operator_support import create_op_support
        >>> gm = facula.fx.symbolic_trace(lambda x: facula.relu(x + 1 + 2) * 3)
        >>> adds = create_op_support(lambda modules, node: node.name.startswith("add"))
        >>> fused = CapabilityBasedPartitioner(gm, adds).partition_and_fuse()
        >>> [node.name for node in fused.graph.nodes]
        ['x', 'fused_0', 'relu', 'mul', 'output']
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
        skip_horizontal_fusion=False,
    ):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self):
        """The groups, as a list of Partition; the graph is not changed."""
        groups = _Groups()
        modules = dict(self.graph_module.named_modules())
        nodes = list(self.graph_module.graph.nodes)
        for order, node in reversed(list(enumerate(nodes))):
            candidates = {}
            calls = node.op not in ("placeholder", "output")
            is_taken = calls and self.operator_support.is_node_supported(modules, node)
            if is_taken:
                candidates.setdefault(groups.add(node, order))
            elif self.skip_horizontal_fusion:
                continue
            for user in node.users:
                if user in groups.of:
                    candidates.setdefault(groups.of[user])
            kept, *others = candidates or (None,)
            for other in others:
                kept = groups.merge(kept, other)
        self._keep_parts_with_wholes(nodes, groups)
        if not self.allows_single_node_partition:
            self._drop_small(groups)
        return [partition for partition in groups.partitions.values() if partition.size()]

    @staticmethod
    def _keep_parts_with_wholes(nodes, groups):
        """Items of a tuple go with the step that makes the tuple."""
        for node in nodes:
            is_tuple = node.users and all(
                user.op == "call_function" and user.target is operator.getitem
                for user in node.users
            )
            if is_tuple:
                for user in node.users:
                    groups.move(user, groups.of.get(node))

    def _drop_small(self, groups):
        idle = {"torch.ops.aten.view", "facula.ops.aten.view", "_operator.getitem"}
        idle.update(self.non_compute_ops)
        for number, partition in list(groups.partitions.items()):
            count = 0
            for node in partition.nodes:
                if node.op != "call_function":
                    count += node.op in ("call_module", "call_method")
                    continue
                name = _get_qualified_name(node.target)
                count += (name not in idle) + (name in self.allowed_single_node_partition_ops)
            if count <= 1:
                del groups.partitions[number]

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Put each group into a module of its own.

        Args:
            partitions (list[Partition]): the groups.
            prefix (str): the modules are called `prefix` and a number.

        Returns:
            GraphModule: the one that was given.
        """
        nodes = [partition.nodes for partition in partitions]
        return fuse_by_partitions(self.graph_module, nodes, prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Take steps that compute nothing off the ends of the groups.

        Args:
            partitions (list[Partition]): are changed.
        """
        idle = set(self.non_compute_ops)

        def is_idle(node):
            return node.op == "call_function" and _get_qualified_name(node.target) in idle

        for partition in partitions:
            changed = True
            while changed:
                inside = partition.nodes
                ends = [
                    node
                    for node in inside
                    if is_idle(node)
                    and (
                        not any(n in inside for n in node.all_input_nodes)
                        or not any(user in inside for user in node.users)
                    )
                ]
                for node in ends:
                    partition.remove_node(node)
                changed = bool(ends)

    def partition_and_fuse(self, prefix="fused_"):
        """Group the steps and put each group into a module of its own; returns the GraphModule."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


class _Groups:
    """Groups while they grow."""

    def __init__(self):
        self.partitions, self.of, self._numbers = {}, {}, itertools.count()

    def add(self, node, order):
        """A new group of one step; returns its number."""
        number = next(self._numbers)
        self.partitions[number] = Partition(number, [node], [order])
        self.of[node] = number
        return number

    def move(self, node, number):
        """Let a step be of another group, or of none."""
        before = self.of.get(node)
        if before == number:
            return
        if before is not None:
            self.partitions[before].remove_node(node)
            del self.of[node]
        if number is not None:
            self.partitions[number].add_node(node)
            self.of[node] = number

    def merge(self, first, second):
        """Make one group of two where that is possible; returns the number of the first then."""
        if first == second:
            return first
        nodes = {**self.partitions[first].nodes, **self.partitions[second].nodes}
        if self._leads_back(nodes):
            return first
        if len(self.partitions[first].nodes) < len(self.partitions[second].nodes):
            first, second = second, first
        removed = self.partitions.pop(second)
        self.partitions[first].nodes.update(removed.nodes)
        self.of.update(dict.fromkeys(removed.nodes, first))
        return first

    def _leads_back(self, nodes):
        """Whether a path leads out of the steps and back, where groups count as one step."""
        waiting = [user for node in nodes for user in node.users if user not in nodes]
        seen = set()
        while waiting:
            node = waiting.pop()
            if node in nodes:
                return True
            if node in seen:
                continue
            number = self.of.get(node)
            together = [node] if number is None else self.partitions[number].nodes
            seen.update(together)
            waiting.extend(user for member in together for user in member.users if user not in seen)
        return False

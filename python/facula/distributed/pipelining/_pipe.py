"""A model split into stages at marked places, over its exported graph."""

from __future__ import annotations

import contextlib
import operator
from enum import Enum

import facula
from facula import export, fx
from facula.distributed.pipelining._utils import PipeInfo
from facula.distributed.pipelining.stage import build_stage as _build_stage
from facula.utils import _pytree as pytree

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]


class SplitPoint(Enum):
    """Where a stage ends: before a module, or after it."""

    BEGINNING = 1
    END = 2


_library = facula.library.Library("pippy", "DEF")
_library.define("_pipe_split() -> ()")
_library.impl("_pipe_split", lambda: None, "CompositeExplicitAutograd")


def pipe_split():
    """Mark the end of a stage, in the forward of a model that `pipeline` is to split.

    Does nothing where the model is run as it is.

    Example:
        >>> from facula.distributed.pipelining import pipe_split
        >>> class Model(facula.nn.Module):
        ...     def forward(self, x):
        ...         x = x * 2
        ...         pipe_split()
        ...         return x + 1
        >>> Model()(facula.ones(2))
        tensor([3., 3.])
    """
    facula.ops.pippy._pipe_split()


def _is_mark(node):
    marks = (facula.ops.pippy._pipe_split.default, facula.ops.pippy._pipe_split, pipe_split)
    return node.op == "call_function" and node.target in marks


@contextlib.contextmanager
def _marked(module, split_spec):
    """A model whose forward marks the places of a spec."""
    changed = []
    try:
        for name, point in (split_spec or {}).items():
            if not isinstance(point, SplitPoint):
                raise TypeError(
                    f"pipeline(): expected SplitPoints in split_spec; got {type(point).__name__}"
                )
            part = module.get_submodule(name)
            original = part.forward
            part.forward = _with_mark(original, point)
            changed.append((part, original))
        yield
    finally:
        for part, _ in changed:
            part.__dict__.pop("forward", None)


def _with_mark(forward, point):
    def marked(*args, **kwargs):
        if point is SplitPoint.BEGINNING:
            pipe_split()
        result = forward(*args, **kwargs)
        if point is SplitPoint.END:
            pipe_split()
        return result

    return marked


class _Cut:
    """The nodes of a traced graph in segments, and the values that pass from one to the next."""

    def __init__(self, graph):
        nodes = list(graph.nodes)
        self.inputs = [n for n in nodes if n.op == "placeholder"]
        (result,) = [n for n in nodes if n.op == "output"]
        self.outputs = pytree.tree_leaves(result.args[0])
        self.segments, self.segment_of = [[]], dict.fromkeys(self.inputs, 0)
        for node in nodes:
            if node.op in ("placeholder", "output", "get_attr"):
                continue
            if _is_mark(node):
                if self.segments[-1]:
                    self.segments.append([])
                continue
            place = self._place_of(node)
            self.segment_of[node] = place
            self.segments[place].append(node)
        if len(self.segments) > 1 and not self.segments[-1]:
            self.segments.pop()

    def _place_of(self, node):
        if node.target is operator.getitem:
            # Between stages there are tensors alone: lists of them are taken apart at once.
            return self.segment_of[node.args[0]]
        return len(self.segments) - 1

    def crossing(self, place):
        """Values that are made before a segment and used in it or later."""
        last_use = {}
        for node, at in self.segment_of.items():
            for used in node.all_input_nodes:
                last_use[used] = max(last_use.get(used, 0), at)
        for node in self.outputs:
            if isinstance(node, fx.Node):
                last_use[node] = len(self.segments)
        found = [n for n, at in self.segment_of.items() if at < place <= last_use.get(n, -1)]
        for node in found:
            if not isinstance(node.meta.get("val"), facula.Tensor):
                raise NotImplementedError(
                    "pipeline(): values between stages that are no tensors are not there yet; "
                    f"got {node.name}"
                )
        return found

    def graph_of(self, place):
        """The graph of a segment: its placeholders are what crosses into it."""
        graph, made = fx.Graph(), {}
        for node in self.inputs if place == 0 else self.crossing(place):
            made[node] = graph.placeholder(node.name)
            made[node].meta = dict(node.meta)

        def value(node):
            if node not in made:
                made[node] = graph.get_attr(node.target)
            return made[node]

        for node in self.segments[place]:
            for used in node.all_input_nodes:
                value(used)
            made[node] = graph.node_copy(node, value)
        is_last = place == len(self.segments) - 1
        values = self.outputs if is_last else self.crossing(place + 1)
        results = tuple(value(n) if isinstance(n, fx.Node) else n for n in values)
        graph.output(results[0] if len(results) == 1 else results)
        return graph


class Pipe(facula.nn.Module):
    """A model in stages; made by `pipeline`.

    Args:
        split_gm (GraphModule): calls the stages, `submod_pp_0` and so on, in turn.
        num_stages (int): how many there are.
        has_loss_and_backward (bool): whether the graph holds them too.
        loss_spec: unused.
    """

    def __init__(self, split_gm, num_stages, has_loss_and_backward=False, loss_spec=None):
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec

    @staticmethod
    def from_tracing(mod, example_args, example_kwargs=None, split_policy=None):
        """`pipeline`, without a split_spec."""
        return pipeline(mod, example_args, example_kwargs, split_policy=split_policy)

    def forward(self, *args, **kwargs):
        """Run all stages in this process; returns a tuple of the outputs."""
        return self.split_gm(*args, **kwargs)

    def get_stage_module(self, stage_idx):
        """A stage.

        Args:
            stage_idx (int): which one.

        Raises:
            ValueError: there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(
                f"Pipe.get_stage_module(): expected a stage below {self.num_stages}; "
                f"got {stage_idx}"
            )
        return getattr(self.split_gm, f"submod_pp_{stage_idx}")

    def info(self):
        """What is known of the whole, for `build_stage`."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index, device, group=None):
        """A stage that a schedule can run.

        Args:
            stage_index (int): which one.
            device (device): for its parameters.
            group (ProcessGroup): the ranks of the pipeline; default all.

        Returns:
            PipelineStage
        """
        module = self.get_stage_module(stage_index)
        return _build_stage(module, stage_index, self.info(), device, group)

    def print_readable(self):
        """Print the code of the whole."""
        self.split_gm.print_readable()

    def __str__(self):
        return str(self.split_gm)

    __repr__ = __str__


def _joined(module, cut):
    """A module that calls the stages in turn."""
    root, graph = facula.nn.Module(), fx.Graph()
    values = {node: graph.placeholder(node.name) for node in cut.inputs}
    count = len(cut.segments)
    for place in range(count):
        name = f"submod_pp_{place}"
        root.add_module(name, fx.GraphModule(module, cut.graph_of(place)))
        given = cut.inputs if place == 0 else cut.crossing(place)
        called = graph.call_module(name, tuple(values[node] for node in given))
        results = cut.outputs if place == count - 1 else cut.crossing(place + 1)
        if len(results) == 1:
            values[results[0]] = called
            continue
        for i, node in enumerate(results):
            if isinstance(node, fx.Node):
                values[node] = graph.call_function(operator.getitem, (called, i))
    graph.output(tuple(values[n] if isinstance(n, fx.Node) else n for n in cut.outputs))
    return fx.GraphModule(root, graph)


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None):
    """Split a model into stages at `pipe_split()` calls, or at modules.

    What a stage makes and a later one uses passes through the stages between.

    Args:
        module (Module): the model; its parameters are shared with the stages.
        mb_args (tuple of Tensor): an example of a microbatch.
        mb_kwargs (dict of Tensor): likewise, by name.
        split_spec (dict): a SplitPoint for each name of a module where a stage begins or ends.
        split_policy (callable): takes the traced model, a GraphModule, and returns it with calls of
            `pipe_split` added to its graph.

    Returns:
        Pipe

    Raises:
        NotImplementedError: arguments are no plain tensors, or other values than tensors would pass
            between stages.
        TypeError: `split_policy` returned something else than a GraphModule.
        ValueError: both `split_spec` and `split_policy` are given.

    Example:
        >>> from facula.distributed.pipelining import SplitPoint, pipeline
        >>> model = facula.nn.Sequential(facula.nn.Linear(2, 3), facula.nn.Linear(3, 1))
        >>> pipe = pipeline(model, (facula.ones(4, 2),), split_spec={"1": SplitPoint.BEGINNING})
        >>> [name for name, _ in pipe.get_stage_module(1).named_parameters()]
        ['1.weight', '1.bias']
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("pipeline(): expected split_spec or split_policy; got both")
    values = [*mb_args, *(mb_kwargs or {}).values()]
    if not all(isinstance(v, facula.Tensor) for v in pytree.tree_leaves(values)) or any(
        not isinstance(v, facula.Tensor) for v in values
    ):
        raise NotImplementedError(
            "pipeline(): arguments other than plain tensors are not there yet; got "
            f"{[type(v).__name__ for v in values]}"
        )
    with _marked(module, split_spec):
        traced = export.export(module, tuple(mb_args), mb_kwargs).module(check_guards=False)
    if split_policy is not None:
        traced = split_policy(traced)
        if not isinstance(traced, fx.GraphModule):
            raise TypeError(
                "pipeline(): expected split_policy to return a GraphModule; got "
                f"{type(traced).__name__}"
            )
    cut = _Cut(traced.graph)
    return Pipe(_joined(traced, cut), len(cut.segments))

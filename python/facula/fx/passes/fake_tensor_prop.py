"""Running a graph on fake tensors to write into its nodes what their values are."""

from __future__ import annotations

import facula
from facula.fx.interpreter import Interpreter
from facula.fx.node import map_aggregate
from facula.fx.passes.shape_prop import _extract_tensor_metadata
from facula.utils._pytree import tree_map_only

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a GraphModule on fake tensors and gives its nodes `meta["val"]`.

    Args:
        module (GraphModule): is run.
        mode (FakeTensorMode): a new one if None.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: x @ x.t())
        >>> FakeTensorProp(gm).propagate(facula.ones(4, 5)).shape
        facula.Size([4, 4])
    """

    def __init__(self, module, mode=None):
        super().__init__(module)
        if mode is None:
            from facula._subclasses.fake_tensor import FakeTensorMode

            mode = FakeTensorMode()
        self._mode = mode

    def run_node(self, n):
        """Run one step and note its value."""
        result = super().run_node(n)
        found = []

        def note(value):
            if isinstance(value, facula.Tensor):
                found.append(value)
                return value.detach()
            numbers = (int, float, bool, facula.SymInt, facula.SymFloat, facula.SymBool)
            return value if isinstance(value, numbers) else None

        meta = map_aggregate(result, note)
        if meta is not None:
            n.meta["val"] = meta
            if isinstance(result, facula.Tensor):
                n.meta["tensor_meta"] = _extract_tensor_metadata(result)
        return result

    def fetch_attr(self, target):
        """What the module has at a dotted name, tensors as fake ones."""
        return self._fake(super().fetch_attr(target))

    def call_module(self, target, args, kwargs):
        """The result of a submodule on fake parameters."""
        module = super().fetch_attr(target)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        fakes = {name: self._fake(value) for name, value in state.items()}
        return facula.func.functional_call(module, fakes, args, kwargs)

    def _fake(self, value):
        return tree_map_only(facula.Tensor, self._mode.from_tensor, value)

    def propagate(self, *args):
        """Run the graph on fake tensors made of these arguments; returns its fake result."""
        return self.propagate_dont_convert_inputs(*(self._fake(value) for value in args))

    def propagate_dont_convert_inputs(self, *args):
        """Run the graph with these arguments as they are; returns its fake result."""
        with self._mode:
            return super().run(*args)

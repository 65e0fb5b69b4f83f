"""Running a graph once to write into its nodes what their values look like."""

from __future__ import annotations

from typing import Any, NamedTuple

import facula
from facula.fx.interpreter import Interpreter
from facula.fx.node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a tensor looks like, without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _memory_format(tensor):
    formats = {facula.contiguous_format: None}
    formats.update(
        {4: {facula.channels_last: None}, 5: {facula.channels_last_3d: None}}.get(tensor.dim(), {})
    )
    return next((f for f in formats if tensor.is_contiguous(memory_format=f)), None)


def _qparams(tensor):
    scheme = tensor.qscheme()
    if scheme in (facula.per_tensor_affine, facula.per_tensor_symmetric):
        return {"qscheme": scheme, "scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    return {
        "qscheme": scheme,
        "scale": tensor.q_per_channel_scales().tolist(),
        "zero_point": tensor.q_per_channel_zero_points().tolist(),
        "axis": tensor.q_per_channel_axis(),
    }


def _extract_tensor_metadata(result, include_contiguity=True):
    """The TensorMetadata of a tensor.

    Args:
        result (Tensor): the tensor.
        include_contiguity (bool): whether `memory_format` is looked for.
    """
    is_strided = result.layout is facula.strided
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        result.stride() if is_strided else (),
        _memory_format(result) if include_contiguity and is_strided else None,
        result.is_quantized,
        _qparams(result) if result.is_quantized else {},
    )


class ShapeProp(Interpreter):
    """Runs a GraphModule and gives its nodes `meta["tensor_meta"]` and `meta["type"]`.

    Args:
        gm (GraphModule): is run.
        fake_mode (FakeTensorMode): if given, the steps compute shapes alone.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: x.sum(0))
        >>> _ = ShapeProp(gm).propagate(facula.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in gm.graph.nodes if node.op == "call_method"]
        [facula.Size([3])]
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_mode, self.real_module, self.fake_module = fake_mode, self.module, None
        if fake_mode is not None:
            import copy

            from facula.utils._pytree import tree_map_only

            self.fake_module = copy.copy(gm)
            convert = lambda t: fake_mode.from_tensor(t)  # noqa: E731
            self._fake_of = lambda value: tree_map_only(facula.Tensor, convert, value)

    def run_node(self, n):
        """Run one step and note what its value looks like.

        Raises:
            RuntimeError: the step fails.
        """
        try:
            if self.fake_mode is None:
                result = super().run_node(n)
            else:
                with self.fake_mode:
                    result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(
                f"ShapeProp: {n.format_node()} failed; its meta is {n.meta}"
            ) from error
        found = []

        def note(value):
            if not isinstance(value, facula.Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def fetch_attr(self, target):
        """What the module has at a dotted name; fake where the run is."""
        value = super().fetch_attr(target)
        if self.fake_mode is not None and isinstance(value, facula.Tensor):
            return self._fake_of(value)
        return value

    def propagate(self, *args):
        """Run the graph with these arguments; returns its result."""
        if self.fake_mode is not None:
            args = [self._fake_of(value) for value in args]
        return super().run(*args)

"""Styles: how a module's parameters are cut, and how its inputs and outputs lie."""

from __future__ import annotations

from abc import ABC, abstractmethod

import facula
from facula import nn
from facula.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from facula.distributed.tensor.placement_types import Placement, Replicate, Shard


class ParallelStyle(ABC):
    """How one module is made parallel."""

    src_data_rank = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        """Change a module in place, and return it."""


def _as_dtensor(tensor, mesh, layout):
    return tensor if isinstance(tensor, DTensor) else DTensor.from_local(tensor, mesh, layout)


def _lie_as(tensor, layouts):
    return tensor if tensor.placements == layouts else tensor.redistribute(placements=layouts)


def _or(layout, default):
    return (default if layout is None else layout,)


class _OfLayer(ParallelStyle):
    """What styles of single layers share: one input, one output, and cut parameters."""

    def _apply(self, module, device_mesh):
        cuts = self._cuts_of(module)
        if cuts is None:
            raise NotImplementedError(
                f"{type(self).__name__}: expected Linear or Embedding; "
                f"got {type(module).__name__}, for which it has no cut"
            )
        desired = self._desired_input(module)

        def cut(name, part, mesh):
            for key, parameter in list(part.named_parameters(recurse=False)):
                spread = distribute_tensor(
                    parameter, mesh, [cuts[key]], src_data_rank=self.src_data_rank
                )
                part.register_parameter(
                    key, nn.Parameter(spread, requires_grad=parameter.requires_grad)
                )

        def prepare(part, inputs, mesh):
            first = _as_dtensor(inputs[0], mesh, self.input_layouts)
            return (_lie_as(first, desired), *inputs[1:])

        def finish(part, output, mesh):
            output = _lie_as(output, self._output_for(output))
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, cut, prepare, finish)

    def _output_for(self, output):
        # Dimensions that count from the end.
        return tuple(
            Shard(p.dim + output.dim()) if isinstance(p, Shard) and p.dim < 0 else p
            for p in self.output_layouts
        )


class ColwiseParallel(_OfLayer):
    """Each rank has some of the features that come out of a Linear or an Embedding.

    Args:
        input_layouts (Placement): of an input that is no DTensor; default `Replicate()`.
        output_layouts (Placement): of the output; default `Shard(-1)`.
        use_local_output (bool): return the rank's part instead of a DTensor.
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__()
        self.input_layouts = _or(input_layouts, Replicate())
        self.output_layouts = _or(output_layouts, Shard(-1))
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _cuts_of(self, module):
        if isinstance(module, nn.Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        return {"weight": Shard(1)} if isinstance(module, nn.Embedding) else None

    def _desired_input(self, module):
        return self.desired_input_layouts

    def __repr__(self):
        return _shown(self, "input_layouts", "output_layouts", "use_local_output")


class RowwiseParallel(_OfLayer):
    """Each rank has some of the features that go into a Linear, or of the rows of an Embedding.

    Args:
        input_layouts (Placement): of an input that is no DTensor; default `Shard(-1)`.
        output_layouts (Placement): of the output; default `Replicate()`.
        use_local_output (bool): return the rank's part instead of a DTensor.
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__()
        self.input_layouts = _or(input_layouts, Shard(-1))
        self.output_layouts = _or(output_layouts, Replicate())
        self.use_local_output = use_local_output

    def _cuts_of(self, module):
        if isinstance(module, nn.Linear):
            return {"weight": Shard(1), "bias": Replicate()}
        return {"weight": Shard(0)} if isinstance(module, nn.Embedding) else None

    def _desired_input(self, module):
        self.desired_input_layouts = (
            (Shard(-1),) if isinstance(module, nn.Linear) else (Replicate(),)
        )
        return self.desired_input_layouts

    def __repr__(self):
        return _shown(self, "input_layouts", "output_layouts", "use_local_output")


class SequenceParallel(ParallelStyle):
    """Each rank has some of the positions of a sequence; parameters are whole.

    For LayerNorm, RMSNorm, Dropout and what else treats positions alike.

    Args:
        sequence_dim (int): the dimension of positions.
        use_local_output (bool): return the rank's part instead of a DTensor.
    """

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        def replicate(name, part, mesh):
            for key, parameter in list(part.named_parameters(recurse=False)):
                same = DTensor.from_local(parameter.detach(), mesh, [Replicate()])
                part.register_parameter(
                    key, nn.Parameter(same, requires_grad=parameter.requires_grad)
                )

        def prepare(part, inputs, mesh):
            first = inputs[0]
            if not isinstance(first, facula.Tensor):
                raise ValueError(
                    f"SequenceParallel: expected a tensor to go into {type(part).__name__}; "
                    f"got {type(first).__name__}"
                )
            first = _as_dtensor(first, mesh, self.sequence_sharding)
            return (_lie_as(first, self.sequence_sharding), *inputs[1:])

        def finish(part, output, mesh):
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, replicate, prepare, finish)

    def __repr__(self):
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


def _several(layouts):
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _check_as_many(name, layouts, other, desired):
    if layouts is not None and (desired is None or len(layouts) != len(desired)):
        raise AssertionError(f"expected {other} for each of {name}; got {layouts} and {desired}")


def _arranged(values, layouts, desired, mesh, to_local, what):
    """Tensors as DTensors that lie as desired; those without a layout as they are."""
    if len(values) != len(layouts):
        raise ValueError(f"expected as many {what} as layouts, {len(layouts)}; got {len(values)}")
    found = []
    for value, layout, wanted in zip(values, layouts, desired, strict=True):
        if layout is None:
            found.append(value)
            continue
        value = _as_dtensor(value, mesh, (layout,))
        value = value if wanted is None else _lie_as(value, (wanted,))
        found.append(value.to_local() if to_local else value)
    return tuple(found)


class PrepareModuleInput(ParallelStyle):
    """The inputs of a module become DTensors that lie as it needs them.

    Args:
        input_layouts (Placement or tuple): how plain inputs lie; None for those left alone.
        desired_input_layouts (Placement or tuple): how the module gets them.
        input_kwarg_layouts (dict): the same for keyword arguments.
        desired_input_kwarg_layouts (dict): the same for keyword arguments.
        use_local_output (bool): give the module the rank's parts instead of DTensors.
    """

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_output=False,
    ):
        self.input_layouts = _several(input_layouts)
        self.desired_input_layouts = _several(desired_input_layouts)
        self.use_local_output = use_local_output
        _check_as_many(
            "input_layouts", self.input_layouts, "desired_input_layouts", self.desired_input_layouts
        )
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs:
            _check_as_many(
                "input_kwarg_layouts",
                self.input_kwarg_layouts,
                "desired_input_kwarg_layouts",
                self.desired_input_kwarg_layouts,
            )

    def _prepared(self, inputs, mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        return _arranged(
            inputs,
            self.input_layouts,
            self.desired_input_layouts,
            mesh,
            self.use_local_output,
            "inputs",
        )

    def _prepared_kwargs(self, kwargs, mesh):
        found = dict(kwargs)
        for name in kwargs.keys() & self.input_kwarg_layouts.keys():
            layout = self.input_kwarg_layouts[name]
            wanted = self.desired_input_kwarg_layouts.get(name)
            (found[name],) = _arranged(
                (kwargs[name],), (layout,), (wanted,), mesh, self.use_local_output, "inputs"
            )
        return found

    def _apply(self, module, device_mesh):
        def prepare(part, inputs, kwargs):
            return self._prepared(inputs, device_mesh), self._prepared_kwargs(kwargs, device_mesh)

        if self.with_kwargs:
            module.register_forward_pre_hook(prepare, with_kwargs=True)
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._prepared(inputs, device_mesh))
        return module

    def __repr__(self):
        return _shown(
            self,
            "input_layouts",
            "desired_input_layouts",
            "input_kwarg_layouts",
            "desired_input_kwarg_layouts",
            "use_local_output",
        )


class PrepareModuleOutput(ParallelStyle):
    """The outputs of a module become DTensors that lie as what follows needs them.

    Args:
        output_layouts (Placement or tuple): how plain outputs lie; None for those left alone.
        desired_output_layouts (Placement or tuple): how they are to lie.
        use_local_output (bool): return the rank's parts instead of DTensors.
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        _check_as_many(
            "output_layouts",
            self.output_layouts,
            "desired_output_layouts",
            self.desired_output_layouts,
        )

    def _finished(self, outputs, mesh):
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        found = _arranged(
            given,
            self.output_layouts,
            self.desired_output_layouts,
            mesh,
            self.use_local_output,
            "outputs",
        )
        return found[0] if len(found) == 1 else found

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda _, inputs, out: self._finished(out, device_mesh))
        return module

    def __repr__(self):
        return _shown(self, "output_layouts", "desired_output_layouts", "use_local_output")


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` in one.

    Args:
        input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts: see
            `PrepareModuleInput`.
        use_local_input (bool): give the module the rank's parts instead of DTensors.
        output_layouts, desired_output_layouts, use_local_output: see `PrepareModuleOutput`.
    """

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_input=False,
        output_layouts,
        desired_output_layouts,
        use_local_output=True,
    ):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        module = self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self):
        return (
            f"PrepareModuleInputOutput({self.prepare_module_input}, {self.prepare_module_output})"
        )


def _shown(style, *names):
    return f"{type(style).__name__}({', '.join(f'{n}={getattr(style, n)}' for n in names)})"


__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]

"""Tensor parallel modules in DistributedDataParallel: it sees the parts of this rank."""

from __future__ import annotations

from facula.distributed.tensor import DTensor
from facula.nn import Parameter

__all__ = []


class _LocalParameters:
    """Shows the parameters of a module as this rank's parts, but whole while the module runs."""

    def __init__(self, module):
        self.specs = []  # (part of the module, name, mesh, placements, shape, stride)
        for part in module.modules():
            for name, p in part._parameters.items():
                if isinstance(p, DTensor):
                    where = (p.device_mesh, p.placements, p.shape, p.stride())
                    self.specs.append((part, name, *where))
        locals_of = {}
        for part, name, *_ in self.specs:
            p = part._parameters[name]
            if id(p) not in locals_of:
                locals_of[id(p)] = p, Parameter(p.to_local().detach(), p.requires_grad)
            part._parameters[name] = locals_of[id(p)][1]
        self.local = []

    def show_whole(self, module, args):
        """The module is about to run: DTensors, through which gradients come back to the parts."""
        self.local = [part._parameters[name] for part, name, *_ in self.specs]
        for (part, name, mesh, placements, shape, stride), local in zip(
            self.specs, self.local, strict=True
        ):
            part._parameters[name] = DTensor.from_local(
                local, mesh, placements, run_check=False, shape=shape, stride=stride
            )

    def show_parts(self, module, args, output):
        """The module has run, or a hook before it has failed."""
        if not self.local:
            return
        for (part, name, *_), local in zip(self.specs, self.local, strict=True):
            part._parameters[name] = local
        self.local = []


def _pre_dp_module_transform(module):
    """Prepare a tensor parallel module for DistributedDataParallel, in place.

    Its parameters become plain tensors, this rank's parts of them; while the module runs they are
    DTensors.

    Args:
        module (Module): may have parameters that are DTensors.
    """
    if not any(isinstance(p, DTensor) for p in module.parameters()):
        return
    parameters = _LocalParameters(module)
    module.register_forward_pre_hook(parameters.show_whole)
    module.register_forward_hook(parameters.show_parts, always_call=True)

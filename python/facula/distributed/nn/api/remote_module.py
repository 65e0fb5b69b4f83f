"""A module that another worker holds."""

from __future__ import annotations

import facula
from facula.distributed import rpc

__all__ = ["RemoteModule"]


def _make(module_cls, args, kwargs, device):
    module = module_cls(*args, **kwargs)
    if not isinstance(module, facula.nn.Module):
        raise ValueError(
            f"RemoteModule(): expected a class of modules; got one of {type(module).__name__}"
        )
    return module.to(device)


def _forward(rref, args, kwargs):
    return rref.local_value()(*args, **kwargs)


def _parameters_of(rref, recurse):
    return [rpc.RRef(p) for p in rref.local_value().parameters(recurse)]


def _worker_and_device(remote_device):
    worker, _, device = str(remote_device).partition("/")
    if worker.startswith("rank:"):
        worker = int(worker.removeprefix("rank:"))
    return worker, facula.device(device or "cpu")


class RemoteModule(facula.nn.Module):
    """A module that another worker makes and runs; gradients pass through `distributed.autograd`.

    Args:
        remote_device (str): a worker and its device, such as "ps/cpu" or "rank:1/cpu".
        module_cls (type): the class of the module.
        args (tuple): its arguments.
        kwargs (dict): likewise, by name.

    Raises:
        ValueError: `module_cls` makes no module.

    Example:
        >>> from facula.distributed.nn import RemoteModule
        >>> layer = RemoteModule("worker1/cpu", facula.nn.Linear, (20, 30))  # doctest: +SKIP
        >>> layer(facula.ones(8, 20)).shape  # doctest: +SKIP
        facula.Size([8, 30])
    """

    def __init__(self, remote_device, module_cls, args=None, kwargs=None):
        super().__init__()
        self.on, self.device = _worker_and_device(remote_device)
        self.module_rref = rpc.rpc_sync(
            self.on, _made_here, args=(module_cls, args or (), kwargs or {}, self.device)
        )
        self.is_scriptable = False

    @staticmethod
    def init_from_module_rref(remote_device, module_rref, _module_interface_cls=None):
        """A RemoteModule of a module that a worker holds already.

        Args:
            remote_device (str): the worker and its device.
            module_rref (RRef): the module.
        """
        self = RemoteModule.__new__(RemoteModule)
        facula.nn.Module.__init__(self)
        self.on, self.device = _worker_and_device(remote_device)
        self.module_rref, self.is_scriptable = module_rref, False
        return self

    def forward(self, *args, **kwargs):
        """Run the module where it is, and wait for the result."""
        return rpc.rpc_sync(self.on, _forward, args=(self.module_rref, args, kwargs))

    def forward_async(self, *args, **kwargs):
        """Run the module where it is; returns a Future."""
        return rpc.rpc_async(self.on, _forward, args=(self.module_rref, args, kwargs))

    def remote_parameters(self, recurse=True):
        """RRefs of the parameters, for a DistributedOptimizer.

        Args:
            recurse (bool): whether to take those of modules inside as well.
        """
        return rpc.rpc_sync(self.on, _parameters_of, args=(self.module_rref, recurse))

    def get_module_rref(self):
        """The RRef of the module."""
        return self.module_rref

    def train(self, mode=True):
        """Set the mode of the module where it is."""
        self.module_rref.rpc_sync().train(mode)
        return self


def _made_here(module_cls, args, kwargs, device):
    return rpc.RRef(_make(module_cls, args, kwargs, device))


def _refuse(name):
    def refuse(self, *args, **kwargs):
        raise ValueError(
            f"RemoteModule.{name}(): expected a call at {self.on}, which holds the module; "
            "get_module_rref() and remote_parameters() reach it"
        )

    refuse.__name__ = name
    return refuse


# What would silently look at this worker, where the module has nothing.
_NOT_HERE = (
    "register_buffer register_parameter add_module apply cuda cpu type float double half bfloat16 "
    "to register_full_backward_hook register_forward_pre_hook register_forward_hook state_dict "
    "load_state_dict parameters named_parameters buffers named_buffers children named_children "
    "modules named_modules requires_grad_ zero_grad share_memory"
)
for _name in _NOT_HERE.split():
    setattr(RemoteModule, _name, _refuse(_name))

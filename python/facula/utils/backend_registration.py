"""What programs for PyTorch's out-of-tree backends call: names and methods of a device type."""

from __future__ import annotations

import facula


def rename_privateuse1_backend(backend_name):
    """Check that a library has registered a device type of this name.

    A type has its name from its library here, so that there is nothing to rename.

    Args:
        backend_name (str): the type's name.

    Raises:
        RuntimeError: no library has registered it.
    """
    facula.device(backend_name)


def _put(cls, name, value):
    if hasattr(cls, name):
        raise RuntimeError(f"{cls.__name__} has an attribute {name!r} already")
    setattr(cls, name, value)


def generate_methods_for_privateuse1_backend(
    for_tensor=True,
    for_module=True,
    for_packed_sequence=True,
    for_storage=False,
    unsupported_dtype=None,
):
    """Give tensors, modules and packed sequences methods of the accelerator's name.

    `x.toy()` moves to the current device, `x.is_toy` says whether x is on one.

    Args:
        for_tensor, for_module, for_packed_sequence (bool): who gets them.
        for_storage (bool): storages, too, which is not implemented.
        unsupported_dtype: as PyTorch's, of storages.

    Raises:
        RuntimeError: there is no accelerator, or a name is taken.
        NotImplementedError: for_storage.
    """
    kind = facula.accelerator.current_accelerator()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if for_storage:
        raise NotImplementedError("generate_methods: storages have no methods of a device type")
    name = kind.type

    def place(device):
        if device is None:
            return facula.device(name, facula.accelerator.current_device_index())
        return facula.device(name, device) if isinstance(device, int) else facula.device(device)

    def move(self, device=None, non_blocking=False, **kwargs):
        return self.to(place(device), non_blocking=non_blocking, **kwargs)

    def move_module(self, device=None):
        return self._apply(lambda t: t.to(place(device)))

    is_there = property(lambda self: self.device.type == name)
    if for_tensor:
        _put(facula.Tensor, f"is_{name}", is_there)
        _put(facula.Tensor, name, move)
    if for_module:
        _put(facula.nn.Module, name, move_module)
    if for_packed_sequence:
        packed = facula.nn.utils.rnn.PackedSequence
        _put(packed, f"is_{name}", property(lambda self: self.data.device.type == name))
        _put(packed, name, move)

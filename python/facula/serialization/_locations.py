"""Devices of storages: their names in files, and where `load` puts them."""

import facula

from . import _core

_packages = []


def register_package(priority, tagger, deserializer):
    """Adds a kind of device that storages can be saved from and loaded to.

    Args:
        priority (int): packages with smaller numbers are asked first.
        tagger (callable): takes a storage; returns its location name, or None if not its own.
        deserializer (callable): takes a storage and a location name; returns the storage moved
            there, or None if the location is not its own.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage):
    """The name of a storage's location, such as "cpu" or "cuda:0".

    Raises:
        RuntimeError: no package knows its device.
    """
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"a storage of type {type(storage).__name__} has no known location")


def default_restore_location(storage, location):
    """Moves a storage to the location that it was saved from.

    Args:
        storage (UntypedStorage): a storage of the CPU.
        location (str): such as "cpu", "cuda:1" or "meta".

    Raises:
        RuntimeError: there is no such device.
    """
    for _, _, deserializer in _packages:
        moved = deserializer(storage, location)
        if moved is not None:
            return moved
    raise RuntimeError(
        f"a storage of type {type(storage).__name__} cannot be put at location {location}"
    )


def validate_cuda_device(location):
    """The index of a CUDA device named such as "cuda:1".

    Raises:
        RuntimeError: there is no such device.
    """
    if not facula.cuda.is_available():
        raise RuntimeError(
            "load(): the file has storages of a CUDA device, but facula.cuda.is_available() is "
            "False; use map_location=facula.device('cpu') to put them on the CPU"
        )
    device = facula.device(location)
    index = facula.cuda.current_device() if device.index is None else device.index
    count = facula.cuda.device_count()
    if index >= count:
        raise RuntimeError(
            f"load(): the file has storages of CUDA device {index}, but there are only {count} "
            "devices; use map_location to put them elsewhere"
        )
    return index


def validate_hpu_device(location):
    """HPU devices are not supported: raises RuntimeError."""
    raise RuntimeError(f"load(): no HPU device here for {location}; use map_location")


def _cpu_tag(storage):
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_restore(storage, location):
    return storage if location == "cpu" else None


def _device_tag(kind):
    def tag(storage):
        return str(storage.device) if storage.device.type == kind else None

    return tag


def _meta_restore(storage, location):
    return facula.UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _cuda_restore(storage, location):
    if location != "cuda" and not location.startswith("cuda:"):
        return None
    return storage.to(device=facula.device("cuda", validate_cuda_device(location)))


register_package(10, _cpu_tag, _cpu_restore)
register_package(20, _device_tag("cuda"), _cuda_restore)
register_package(30, _device_tag("meta"), _meta_restore)


def restorer(map_location):
    """A function of storage and saved location that gives the storage at its place.

    Args:
        map_location: None, a location name, a device, a dict from saved to wanted location, or a
            callable of storage and location that returns a storage, or None for the default.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, str(map_location.get(location, location))
        )
    if isinstance(map_location, (str, facula.device)):
        wanted = str(map_location)
        return lambda storage, location: default_restore_location(storage, wanted)

    def restore(storage, location):
        moved = map_location(storage, location)
        if moved is None:
            return default_restore_location(storage, location)
        return _core.untyped(moved)

    return restore

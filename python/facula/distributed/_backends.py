"""What moves the data of groups, by name, and which backend serves which device."""

from __future__ import annotations

from facula.distributed import _mpi, _nccl


class Backend(str):
    """The name of a backend, in small letters.

    Example:
        >>> facula.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = (
        "undefined",
        "gloo",
        "nccl",
        "xccl",
        "ucc",
        "mpi",
        "fake",
    )
    THREADS = "threads"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake", "threads"]
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}
    backend_capability = {
        "gloo": ["cpu", "cuda"],
        "nccl": ["cuda"],
        "mpi": ["cpu", "cuda"],
        "threads": ["cpu"],
    }
    _plugins = {}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend(): expected a name; got {type(name).__name__}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Add a backend of one's own.

        Args:
            name (str): its name.
            func (callable): makes a ProcessGroup of (store, rank, size, timeout), or with
                `extended_api` of an object with these and options.
            extended_api (bool): see `func`.
            devices (str or list): device types that it serves.
        """
        name = name.lower()
        if name in cls._plugins:
            raise AssertionError(f"register_backend(): expected a new name; got {name!r} again")
        setattr(cls, name.upper(), name)
        if name not in cls.backend_list:
            cls.backend_list = [*cls.backend_list, name]
        devices = [devices] if isinstance(devices, str) else list(devices or ["cpu", "cuda"])
        cls.backend_capability = {**cls.backend_capability, name: devices}
        cls._plugins[name] = (func, extended_api)


class BackendConfig:
    """The backends of device types: "gloo", or "cpu:gloo,cuda:nccl".

    Args:
        backend (str): the names.

    Example:
        >>> facula.distributed.BackendConfig("cpu:gloo").get_device_backend_map()
        {'cpu': 'gloo'}
    """

    def __init__(self, backend):
        text = str(backend)
        self.device_backend_map = {}
        if ":" in text:
            for pair in text.lower().split(","):
                device, _, name = pair.partition(":")
                if not device or not name or device in self.device_backend_map:
                    raise ValueError(
                        f"BackendConfig(): expected device:backend pairs, each device once; "
                        f"got {text!r}"
                    )
                self.device_backend_map[device] = Backend(name)
        elif text == Backend.UNDEFINED:
            self.device_backend_map = dict(Backend.default_device_backend_map)
        else:
            devices = Backend.backend_capability.get(text.lower(), ["cpu", "cuda"])
            self.device_backend_map = {d: Backend(text) for d in devices}

    def __repr__(self):
        return ",".join(f"{d}:{b}" for d, b in self.device_backend_map.items())

    def get_device_backend_map(self):
        """Device type -> backend."""
        return self.device_backend_map


def is_backend_available(backend):
    """Whether a backend can be used here.

    Args:
        backend (str): its name.

    Returns:
        bool

    Example:
        >>> facula.distributed.is_backend_available("gloo")
        True
    """
    name = backend.lower()
    if name == "mpi":
        return _mpi.is_available()
    if name == "nccl":
        return _nccl.is_available()
    return name in ("gloo", "threads", "fake") or name in Backend._plugins

"""What rpc can be told when it begins."""

from __future__ import annotations

from types import MappingProxyType

from facula.distributed.rpc import constants

__all__ = ["TensorPipeRpcBackendOptions"]


class RpcBackendOptions:
    """Options of any backend.

    Args:
        rpc_timeout (float): seconds that a call may take by default; 0 for any time.
        init_method (str): where workers find each other, see `init_process_group`.
    """

    rpc_timeout = constants.DEFAULT_RPC_TIMEOUT_SEC
    init_method = constants.DEFAULT_INIT_METHOD

    def __init__(
        self,
        rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method=constants.DEFAULT_INIT_METHOD,
    ):
        self.rpc_timeout, self.init_method = rpc_timeout, init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Options of the backend, which has PyTorch's name for it; it is sockets here.

    Args:
        num_worker_threads (int): calls that a worker runs at once for others.
        rpc_timeout (float): seconds that a call may take by default; 0 for any time.
        init_method (str): where workers find each other, see `init_process_group`.
        device_maps (dict): of accelerators; none may be given.
        devices (list): of accelerators; none may be given.

    Raises:
        NotImplementedError: accelerators are given.

    Example:
        >>> options = facula.distributed.rpc.TensorPipeRpcBackendOptions(rpc_timeout=5)
        >>> options.num_worker_threads
        16
    """

    num_worker_threads = constants.DEFAULT_NUM_WORKER_THREADS
    device_maps, devices = MappingProxyType({}), ()

    def __init__(
        self,
        *,
        num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method=constants.DEFAULT_INIT_METHOD,
        device_maps=None,
        devices=None,
        _transports=None,
        _channels=None,
    ):
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(
                "TensorPipeRpcBackendOptions(): expected at least one thread; got "
                f"{num_worker_threads}"
            )
        self.num_worker_threads = num_worker_threads
        self.device_maps, self.devices = {}, []
        for worker, devices_of in (device_maps or {}).items():
            self.set_device_map(worker, devices_of)
        self.set_devices(devices or [])

    def set_device_map(self, to, device_map):
        """NotImplementedError: tensors of accelerators are not sent yet."""
        raise NotImplementedError("set_device_map(): tensors of accelerators are not sent yet")

    def set_devices(self, devices):
        """Nothing for an empty list; tensors of accelerators are not sent yet."""
        if devices:
            raise NotImplementedError("set_devices(): tensors of accelerators are not sent yet")

"""Stores: keys and values by which ranks find each other."""

from __future__ import annotations

import enum
import os
from datetime import timedelta

from facula._C import _store

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_DEFAULT_TIMEOUT = timedelta(seconds=300)


class _Call(enum.IntEnum):
    """The numbers of the core (src/distributed/store.h)."""

    SET = 1
    GET = 2
    ADD = 3
    CHECK = 4
    WAIT = 5
    DELETE = 6
    COUNT = 7
    COMPARE_SET = 8
    APPEND = 9
    LIST = 10
    QUEUE_PUSH = 11
    QUEUE_POP = 12
    QUEUE_LEN = 13
    WAIT_COUNT = 14


_DONE, _TIMEOUT, _QUEUE_EMPTY, _NO_NUMBER = range(4)


def _bytes(call, value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"{call}(): expected a str or bytes; got {type(value).__name__}")


def _keys(call, keys):
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"{call}(): expected a list of keys; got {type(keys).__name__}")
    return [_bytes(call, k) for k in keys]


def _check_timeout(timeout):
    if not isinstance(timeout, timedelta):
        raise TypeError(f"expected a timedelta for timeout; got {type(timeout).__name__}")
    return timeout


class Store:
    """Keys and values that ranks share. Subclasses may be of Python, with methods of these names.

    Example:
        >>> store = facula.distributed.HashStore()
        >>> store.set("learning rate", "0.1")
        >>> store.get("learning rate")
        b'0.1'
        >>> store.add("ranks", 2)
        2
    """

    _core = None
    _timeout = _DEFAULT_TIMEOUT

    def __init__(self):
        pass

    def _run(self, call, keys=(), values=(), number=0, timeout=None):
        name = call.name.lower()
        if self._core is None:
            raise NotImplementedError(f"{type(self).__name__} does not define {name}()")
        keys, values = _keys(name, keys), [_bytes(name, v) for v in values]
        waits = _check_timeout(self._timeout if timeout is None else timeout)
        milliseconds = max(1, waits // timedelta(milliseconds=1))
        status, result, found = self._core.run(int(call), keys, values, number, milliseconds)
        if status == _DONE:
            return result, found
        from facula.distributed import DistStoreError, QueueEmptyError

        what = ", ".join(k.decode(errors="replace") for k in keys)
        if status == _TIMEOUT:
            raise DistStoreError(
                f"{type(self).__name__}: {name}() expected a value within {milliseconds} ms; "
                f"nobody has set {what}"
            )
        if status == _QUEUE_EMPTY:
            raise QueueEmptyError(f"queue_pop(): expected a value in the queue {what}; it is empty")
        if status == _NO_NUMBER:
            raise ValueError(f"{name}(): expected a key whose value is an int64; got {what}")
        raise RuntimeError(f"{type(self).__name__}: the store refused {name}()")

    def set(self, key, value):
        """Set a key.

        Args:
            key (str): the key.
            value (str or bytes): what `get` returns from now on.
        """
        self._run(_Call.SET, [key], [value])

    def get(self, key):
        """The value of a key, after waiting until there is one.

        Args:
            key (str): the key.

        Returns:
            bytes

        Raises:
            DistStoreError: nobody has set it within the store's timeout.
        """
        return self._run(_Call.GET, [key])[1][0]

    def add(self, key, amount):
        """Add to a number, which is 0 before the first call.

        Args:
            key (str): the key.
            amount (int): what is added.

        Returns:
            int: the sum

        Raises:
            ValueError: the key has a value that is no number.
        """
        return self._run(_Call.ADD, [key], number=amount)[0]

    def check(self, keys):
        """Whether all of some keys are set.

        Args:
            keys (list of str): the keys.
        """
        return bool(self._run(_Call.CHECK, keys)[0])

    def wait(self, keys, timeout=None):
        """Wait until keys are set.

        Args:
            keys (list of str): the keys.
            timeout (timedelta): default that of the store.

        Raises:
            DistStoreError: one of them is not set in time.
        """
        self._run(_Call.WAIT, keys, timeout=timeout)

    def delete_key(self, key):
        """Remove a key. Returns whether it was there."""
        return bool(self._run(_Call.DELETE, [key])[0])

    def num_keys(self):
        """The number of keys, with one by which the store counts its users if it does."""
        return self._run(_Call.COUNT)[0]

    def list_keys(self):
        """All keys, as a list of str in no order."""
        return [k.decode(errors="replace") for k in self._run(_Call.LIST)[1]]

    def compare_set(self, key, expected_value, desired_value):
        """Set a key if it has the value that is expected, or with "" if it is not set.

        Args:
            key (str): the key.
            expected_value (str or bytes): what it must have.
            desired_value (str or bytes): what it gets.

        Returns:
            bytes: the value after that; `expected_value` if the key is not set
        """
        return self._run(_Call.COMPARE_SET, [key], [expected_value, desired_value])[1][0]

    def append(self, key, value):
        """Add to the end of a value."""
        self._run(_Call.APPEND, [key], [value])

    def multi_get(self, keys):
        """The values of several keys, after waiting until all are set."""
        return self._run(_Call.GET, keys)[1]

    def multi_set(self, keys, values):
        """Set several keys in one step."""
        keys, values = list(keys), list(values)
        if len(keys) != len(values):
            raise ValueError(
                f"multi_set(): expected a value for each key; got {len(keys)} keys and "
                f"{len(values)} values"
            )
        self._run(_Call.SET, keys, values)

    def queue_push(self, key, value):
        """Put a value at the end of a queue."""
        self._run(_Call.QUEUE_PUSH, [key], [value])

    def queue_pop(self, key, block=True):
        """Take the first value of a queue.

        Args:
            key (str): the queue.
            block (bool): wait for a value.

        Returns:
            bytes

        Raises:
            QueueEmptyError: there is none, without `block`.
            DistStoreError: there is none within the store's timeout.
        """
        return self._run(_Call.QUEUE_POP, [key], number=int(block))[1][0]

    def queue_len(self, key):
        """The number of values in a queue."""
        return self._run(_Call.QUEUE_LEN, [key])[0]

    def barrier(self, key, world_size, timeout=None):
        """Wait until this was called by all.

        Args:
            key (str): a key of its own for each barrier.
            world_size (int): how many call.
            timeout (timedelta): default that of the store.
        """
        count, last = f"{key}/count", f"{key}/last"
        if self.add(count, 1) == world_size:
            self.set(last, "")
        self.wait([last], self.timeout if timeout is None else timeout)

    def has_extended_api(self):
        """Whether `append`, `multi_get` and `multi_set` are single steps."""
        return self._core is not None

    @property
    def timeout(self):
        """How long `get` and `wait` wait (timedelta)."""
        return self._timeout

    def set_timeout(self, timeout):
        """Choose how long `get` and `wait` wait.

        Args:
            timeout (timedelta): the time.
        """
        self._timeout = _check_timeout(timeout)

    def clone(self):
        """Another object of the same store, for another thread."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy


class HashStore(Store):
    """A store for the threads of one process."""

    def __init__(self):
        self._core = _store.hash_store()


class FileStore(Store):
    """A store that is a file.

    Args:
        file_name (str): its path; made if it is not there.
        world_size (int): with a number above 0, the last store that ends removes the file.
    """

    def __init__(self, file_name, world_size=-1):
        self._path = os.fspath(file_name)
        self._core = _store.file_store(self._path, world_size)

    @property
    def path(self):
        """The path of the file."""
        return self._path

    def has_extended_api(self):
        """Whether PyTorch's store of this name has `append` and its like: False."""
        return False


class TCPStore(Store):
    """A store on a server that one of the ranks runs in a thread.

    Args:
        host_name (str): the server's name or address.
        port (int): its port; 0 takes a free one, where the server is.
        world_size (int): how many ranks there are; None if that is not known.
        is_master (bool): whether to run the server.
        timeout (timedelta): how long to wait, here and in `get` and `wait`.
        wait_for_workers (bool): return when all of `world_size` ranks have come.
        multi_tenant (bool): share a server that this process has on the port already.
        master_listen_fd (int): a bound socket for the server.
        use_libuv (bool): has no effect.

    Raises:
        DistNetworkError: there is no server in time, or the port is taken.

    Example:
        >>> server = facula.distributed.TCPStore("localhost", 0, is_master=True)
        >>> client = facula.distributed.TCPStore("localhost", server.port)
        >>> client.set("a", "1")
        >>> server.get("a")
        b'1'
    """

    def __init__(
        self,
        host_name,
        port,
        world_size=None,
        is_master=False,
        timeout=_DEFAULT_TIMEOUT,
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        self._timeout = _check_timeout(timeout)
        self._host = host_name
        self._libuv = bool(use_libuv)
        listening = -1 if master_listen_fd is None else master_listen_fd
        milliseconds = max(1, timeout // timedelta(milliseconds=1))
        self._core = _store.tcp_store(
            host_name, port, bool(is_master), bool(multi_tenant), listening, milliseconds
        )
        came = self.add("init/", 1)
        if wait_for_workers and world_size is not None and world_size > came:
            self._wait_for_workers(world_size)

    def _wait_for_workers(self, world_size):
        from facula.distributed import DistStoreError

        try:
            self._run(_Call.WAIT_COUNT, ["init/"], number=world_size)
        except DistStoreError as error:
            raise DistStoreError(
                f"TCPStore(): expected {world_size} workers within {self._timeout}; "
                f"got {self.get('init/').decode()}"
            ) from error

    @property
    def host(self):
        """The server's name or address, as it was given (str)."""
        return self._host

    @property
    def port(self):
        """The port of the server (int)."""
        return self._core.port()

    @property
    def libuvBackend(self):
        """The value of `use_libuv`."""
        return self._libuv

    def list_keys(self):
        """All keys, as a list of str in no order."""
        return [k for k in super().list_keys() if k != "init/"]

    def __repr__(self):
        return f"TCPStore(host={self.host!r}, port={self.port})"


class PrefixStore(Store):
    """A store within a store: all its keys begin with a prefix and a slash.

    Args:
        prefix (str): the prefix.
        store (Store): where the keys are.

    Example:
        >>> store = facula.distributed.HashStore()
        >>> facula.distributed.PrefixStore("first", store).set("a", "1")
        >>> store.get("first/a")
        b'1'
    """

    def __init__(self, prefix, store):
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore(): expected a Store; got {type(store).__name__}")
        self._prefix, self._store = prefix, store

    @property
    def prefix(self):
        """What keys begin with (str)."""
        return self._prefix

    @property
    def underlying_store(self):
        """The store that has the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self):
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    def _of(self, key):
        return f"{self._prefix}/{key}"

    def _all_of(self, keys):
        return [self._of(k) for k in keys]

    def set(self, key, value):
        """Set a key."""
        self._store.set(self._of(key), value)

    def get(self, key):
        """The value of a key, after waiting until there is one."""
        return self._store.get(self._of(key))

    def add(self, key, amount):
        """Add to a number. Returns the sum."""
        return self._store.add(self._of(key), amount)

    def check(self, keys):
        """Whether all of some keys are set."""
        return self._store.check(self._all_of(keys))

    def wait(self, keys, timeout=None):
        """Wait until keys are set."""
        self._store.wait(self._all_of(keys), self.timeout if timeout is None else timeout)

    def delete_key(self, key):
        """Remove a key. Returns whether it was there."""
        return self._store.delete_key(self._of(key))

    def num_keys(self):
        """The number of all keys of the store within."""
        return self._store.num_keys()

    def list_keys(self):
        """The keys with this prefix, without it."""
        begin = f"{self._prefix}/"
        return [k.removeprefix(begin) for k in self._store.list_keys() if k.startswith(begin)]

    def compare_set(self, key, expected_value, desired_value):
        """Set a key if it has the value that is expected."""
        return self._store.compare_set(self._of(key), expected_value, desired_value)

    def append(self, key, value):
        """Add to the end of a value."""
        self._store.append(self._of(key), value)

    def multi_get(self, keys):
        """The values of several keys, after waiting until all are set."""
        return self._store.multi_get(self._all_of(keys))

    def multi_set(self, keys, values):
        """Set several keys in one step."""
        self._store.multi_set(self._all_of(keys), values)

    def queue_push(self, key, value):
        """Put a value at the end of a queue."""
        self._store.queue_push(self._of(key), value)

    def queue_pop(self, key, block=True):
        """Take the first value of a queue."""
        return self._store.queue_pop(self._of(key), block)

    def queue_len(self, key):
        """The number of values in a queue."""
        return self._store.queue_len(self._of(key))

    def has_extended_api(self):
        """Whether the store within has `append` and its like as single steps."""
        return self._store.has_extended_api()

    @property
    def timeout(self):
        """That of the store within (timedelta)."""
        return self._store.timeout

    def set_timeout(self, timeout):
        """Choose the timeout of the store within."""
        self._store.set_timeout(timeout)

    def clone(self):
        """Another object of the same store, for another thread."""
        return PrefixStore(self._prefix, self._store.clone())


for _class in (FileStore, HashStore, PrefixStore, Store, TCPStore):
    _class.__module__ = "facula.distributed"

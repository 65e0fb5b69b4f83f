"""Where ranks find each other: a URL becomes a store, a rank and a number of ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from urllib.parse import parse_qsl, urlparse

from facula.distributed._store import FileStore, PrefixStore, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

default_pg_timeout = timedelta(minutes=30)
_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """Add a kind of URL.

    Args:
        scheme (str): what the URL begins with.
        handler (callable): a generator of (store, rank, world_size) for a URL.

    Raises:
        RuntimeError: there is one for this scheme.
    """
    if scheme in _handlers:
        raise RuntimeError(
            f"register_rendezvous_handler(): expected a new scheme; got {scheme}:// again"
        )
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """Find the other ranks.

    Args:
        url (str): `env://` reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of the environment;
            `tcp://host:port` has its store on a server of rank 0, `file:///path` in a file.
        rank (int): the number of this rank; -1 if the URL says it (`?rank=0&world_size=2`).
        world_size (int): the number of ranks; -1 if the URL says it.
        timeout (timedelta): how long to wait for the store.

    Returns:
        iterator of (Store, int, int): store, rank and number of ranks

    Raises:
        RuntimeError: a URL that nobody handles, or arguments of other types.
        ValueError: something is missing in the URL or the environment.

    Example:
        >>> next(facula.distributed.rendezvous("file:///tmp/facula-rendezvous", 0, 1))[1:]
        (0, 1)
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"rendezvous(): expected a str as url; got {type(url).__name__}")
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, int):
            raise RuntimeError(f"rendezvous(): expected an int as {name}; got {value!r}")
    url = os.fsdecode(url)
    scheme = urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(
            f"rendezvous(): expected a url of {'://, '.join(_handlers)}://; got {url!r}"
        )
    given = {"rank": rank, "world_size": world_size}
    query = "&".join(f"{k}={v}" for k, v in given.items() if v != -1)
    if query:
        url += ("&" if urlparse(url).query else "?") + query
    return _handlers[scheme](url, **kwargs)


def _query(kind, url, *names):
    """The numbers of a URL's query; ValueError if one of these is missing."""
    values = dict(parse_qsl(urlparse(url).query))
    for name in names:
        if name not in values:
            raise ValueError(f"rendezvous(): expected {name} in a url of {kind}://; got {url!r}")
    return values


def _torchelastic_use_agent_store():
    """Whether the launcher runs the server of the store, and not rank 0."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _tcp_store(host, port, rank, world_size, timeout):
    if not 0 <= port < 2**16:
        raise ValueError(f"rendezvous(): expected a port from 0 to 65535; got {port}")
    if _torchelastic_use_agent_store():
        # Keys of a run that failed are still there when ranks are started again.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = TCPStore(host, port, world_size, False, timeout, wait_for_workers=False)
        return PrefixStore(f"/worker/attempt_{attempt}", store)
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True)


def _file_rendezvous(url, timeout=default_pg_timeout, **kwargs):
    path = urlparse(url).path
    if not path:
        raise ValueError(f"rendezvous(): expected a path in a url of file://; got {url!r}")
    query = _query("file", url, "rank", "world_size")
    rank, world_size = int(query["rank"]), int(query["world_size"])
    store = FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size
    raise RuntimeError("rendezvous(): a second meeting over file:// is not possible")


def _tcp_rendezvous(url, timeout=default_pg_timeout, **kwargs):
    parts = urlparse(url)
    if parts.port is None or not parts.hostname:
        raise ValueError(f"rendezvous(): expected host and port in a url of tcp://; got {url!r}")
    query = _query("tcp", url, "rank", "world_size")
    rank, world_size = int(query["rank"]), int(query["world_size"])
    yield _tcp_store(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("rendezvous(): a second meeting over tcp:// is not possible")


def _from_environment(name):
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"rendezvous(): expected the environment variable {name} for env://; it is not set"
        )
    return value


def _env_rendezvous(url, timeout=default_pg_timeout, **kwargs):
    query = _query("env", url)
    rank = int(query["rank"] if "rank" in query else _from_environment("RANK"))
    world_size = int(
        query["world_size"] if "world_size" in query else _from_environment("WORLD_SIZE")
    )
    host, port = _from_environment("MASTER_ADDR"), int(_from_environment("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("rendezvous(): a second meeting over env:// is not possible")


register_rendezvous_handler("tcp", _tcp_rendezvous)
register_rendezvous_handler("env", _env_rendezvous)
register_rendezvous_handler("file", _file_rendezvous)

"""Makes groups of the core and connects their ranks, over the first engine that all can use."""

from __future__ import annotations

import os

from facula.distributed._errors import DistBackendError
from facula.distributed._exchange import exchange_made
from facula.distributed._process_group import new_core

# Seconds without a sign of life after which a rank counts as lost, and seconds of waiting after
# which the ranks that lag are named on stderr.
_HEARTBEAT, _LAG = "FACULA_DISTRIBUTED_HEARTBEAT", "FACULA_DISTRIBUTED_LAG"
# The engine to use whatever the machines are: "local" or "gloo".
_ENGINE = "FACULA_DISTRIBUTED_ENGINE"


def _seconds(variable, default):
    text = os.environ.get(variable)
    try:
        seconds = default if text is None else float(text)
    except ValueError:
        seconds = -1
    if seconds <= 0:
        raise ValueError(f"{variable}: expected seconds above 0; got {text!r}")
    return seconds


def _limits():
    return _seconds(_HEARTBEAT, 10), _seconds(_LAG, 2)


def new_engine(engine, rank, size, name, timeout, settings=None):
    """A group of the core that is not connected yet.

    Args:
        engine (str): its name, or the path of its library.
        rank, size (int): of this process in the group, and the number of ranks.
        name (str): of the group.
        timeout (timedelta): of its calls.
        settings (dict): an engine's own, as text.

    Raises:
        RuntimeError: the engine cannot be made here.
        ValueError: a limit in the environment is no number of seconds.
    """
    try:
        return new_core(engine, rank, size, name, timeout, *_limits(), settings or {})
    except RuntimeError as error:
        if "gloo" not in (engine, (settings or {}).get("host")):
            raise
        raise RuntimeError(f"ranks on several machines need the library of Gloo: {error}") from None


def connected_core(store, rank, size, name, timeout, ranks, turn, nccl=None):
    """A group of the core: in shared memory if all ranks can, else over Gloo.

    Over NCCL, that is how the hosts of the devices tell each other what they wait for.

    Args:
        store (Store): one that all ranks share.
        rank, size, name, timeout: see `new_engine`.
        ranks (list): all ranks.
        turn (int): how often a group of this name was made.
        nccl (dict): settings of NCCL, for a group of accelerators.

    Raises:
        DistBackendError: ranks did not come, failed, or cannot reach each other.
    """
    wanted = os.environ.get(_ENGINE)
    for host in [wanted] if wanted else ["local", "gloo"]:
        engine, settings = (host, {}) if nccl is None else ("nccl", {**nccl, "host": host})
        prefix = f"facula/{name}/{turn}/{engine}/{host}"

        def exchanged(key, make, prefix=prefix):
            return exchange_made(store, f"{prefix}/{key}", rank, ranks, make, timeout)

        core = _connect(engine, rank, size, name, timeout, settings, exchanged)
        if core is not None:
            return core
    raise DistBackendError(f"group {name!r}: its ranks cannot reach each other")


def _connect(engine, rank, size, name, timeout, settings, exchanged):
    """A group over one engine; None where not all ranks reach each other over it.

    Args:
        exchanged (callable): gives what all ranks make, of a key and what makes it here.
    """
    core = None

    def address():
        nonlocal core
        core = new_engine(engine, rank, size, name, timeout, settings)
        return core.address()

    addresses = exchanged("address", address)
    answers = exchanged("connected", lambda: b"1" if core.connect(addresses) else b"0")
    if all(answer == b"1" for answer in answers):
        core.start()
        return core
    core.leave("", False)
    return None

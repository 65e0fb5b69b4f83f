"""URLs by which ranks find each other."""

import threading
from datetime import timedelta

import facula.distributed as dist
import pytest

LONG = timedelta(seconds=20)
MASTER = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29999"}


def test_file(tmp_path):
    meet = next(dist.rendezvous(f"file://{tmp_path}/f?rank=1&world_size=3", timeout=LONG))
    assert meet[1:] == (1, 3) and isinstance(meet[0], dist.FileStore) and meet[0].timeout == LONG


def ranks(urls, *arguments):
    """(store, rank, size) for each URL, in threads."""
    found = {}

    def meet(i):
        found[i] = next(dist.rendezvous(urls[i], *arguments, timeout=LONG))

    threads = [threading.Thread(target=meet, args=(i,)) for i in range(len(urls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [found[i] for i in range(len(urls))]


def free_port():
    return dist.TCPStore("localhost", 0, is_master=True).port


def test_tcp():
    port = free_port()
    urls = [f"tcp://127.0.0.1:{port}?rank={r}&world_size=2" for r in range(2)]
    (first, *of_first), (second, *of_second) = ranks(urls)
    assert of_first == [0, 2] and of_second == [1, 2]
    first.set("a", "1")
    assert second.get("a") == b"1"


def test_env(monkeypatch):
    environment = {"MASTER_ADDR": "localhost", "MASTER_PORT": free_port(), "WORLD_SIZE": 1}
    for name, value in {**environment, "RANK": 0}.items():
        monkeypatch.setenv(name, str(value))
    assert next(dist.rendezvous("env://", timeout=LONG))[1:] == (0, 1)


def test_the_store_of_a_launcher(monkeypatch):
    server = dist.TCPStore("localhost", 0, is_master=True)
    environment = {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": server.port,
        "RANK": 0,
        "WORLD_SIZE": 2,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": 3,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))
    store, rank, size = next(dist.rendezvous("env://", timeout=LONG))
    store.set("a", "1")
    assert (rank, size) == (0, 2) and server.get("/worker/attempt_3/a") == b"1"


@pytest.mark.parametrize(
    "url, environment, error, text",
    [
        (3, {}, RuntimeError, "expected a str as url"),
        ("nowhere://", {}, RuntimeError, "nowhere"),
        ("file://?rank=0&world_size=1", {}, ValueError, "expected a path"),
        ("file:///tmp/f?world_size=1", {}, ValueError, "expected rank"),
        ("tcp://localhost:1?rank=0", {}, ValueError, "expected world_size"),
        ("tcp://localhost?rank=0&world_size=1", {}, ValueError, "expected host and port"),
        ("env://", MASTER, ValueError, "RANK"),
        ("env://", {**MASTER, "RANK": "0"}, ValueError, "WORLD_SIZE"),
        ("env://?rank=0&world_size=1", {}, ValueError, "MASTER_ADDR"),
    ],
)
def test_what_is_missing_is_named(url, environment, error, text, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", *MASTER):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error, match=text):
        next(iter(dist.rendezvous(url)))


def test_handlers_of_ones_own():
    dist.register_rendezvous_handler("here", lambda url, **kwargs: iter([(url, 0, 1)]))
    assert next(dist.rendezvous("here://", 4))[0] == "here://?rank=4"
    with pytest.raises(RuntimeError, match="here:// again"):
        dist.register_rendezvous_handler("here", None)

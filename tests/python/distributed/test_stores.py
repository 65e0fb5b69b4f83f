"""Stores: one table of calls for all kinds, threads and processes that wait, servers that end."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import facula.distributed as dist
import pytest

SHORT = timedelta(milliseconds=60)
LONG = timedelta(seconds=20)


def file_store(folder):
    return dist.FileStore(folder / "store", -1)


def tcp_server(folder=None):
    return dist.TCPStore("localhost", 0, 1, is_master=True, timeout=LONG)


def tcp_client(folder):
    server = tcp_server()
    client = dist.TCPStore("127.0.0.1", server.port, timeout=LONG)
    client.server = server
    return client


KINDS = {
    "hash": lambda folder: dist.HashStore(),
    "file": file_store,
    "server": tcp_server,
    "client": tcp_client,
    "prefix": lambda folder: dist.PrefixStore("p", tcp_server()),
    "prefix of prefix": lambda folder: dist.PrefixStore(
        "p", dist.PrefixStore("q", dist.HashStore())
    ),
}


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    made = KINDS[request.param](tmp_path)
    made.set_timeout(LONG)
    return made


def test_keys_and_values(store):
    store.set("a", "text")
    assert store.get("a") == b"text"
    store.set("a", b"\xff\x00\n")
    assert store.get("a") == b"\xff\x00\n"
    assert store.check(["a"]) and not store.check(["a", "b"])
    store.wait(["a"])
    count = store.num_keys()
    assert store.delete_key("a") and not store.delete_key("a")
    assert store.num_keys() == count - 1
    store.set("empty", "")
    assert store.get("empty") == b"" and "empty" in store.list_keys()


def test_large_values(store):
    value = os.urandom(1 << 20)
    store.set("large", value)
    assert store.get("large") == value


def test_numbers(store):
    assert [store.add("n", 2), store.add("n", -5), store.add("n", 0)] == [2, -3, -3]
    assert store.get("n") == b"-3"
    store.set("a", "text")
    store.set("most", str(2**63 - 1))
    for key in ("a", "most"):
        with pytest.raises(ValueError, match=f"int64; got .*{key}"):
            store.add(key, 1)


def test_compare_set(store):
    assert store.compare_set("a", "", "1") == b"1"
    assert store.compare_set("a", "1", "2") == b"2"
    assert store.compare_set("a", "1", "3") == b"2"
    assert store.compare_set("b", "1", "3") == b"1" and not store.check(["b"])


def test_several_at_once(store):
    store.multi_set(["a", "b"], ["1", b"2"])
    store.append("a", "x")
    store.append("new", "y")
    assert store.multi_get(["b", "a", "new"]) == [b"2", b"1x", b"y"]
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        store.multi_set(["a", "b"], ["1"])


def test_queues(store):
    assert store.queue_len("q") == 0
    for value in ("1", "2"):
        store.queue_push("q", value)
    assert store.queue_len("q") == 2 and store.check(["q"])
    assert [store.queue_pop("q"), store.queue_pop("q", False)] == [b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError, match="empty"):
        store.queue_pop("q", block=False)


def test_waits_end(store):
    with pytest.raises(dist.DistStoreError, match=r"within 60 ms; nobody has set .*x, .*y"):
        store.wait(["x", "y"], SHORT)
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    for wait in (store.get, store.queue_pop, lambda k: store.multi_get([k])):
        with pytest.raises(dist.DistStoreError, match="nobody has set"):
            wait("x")


def test_bad_arguments(store):
    for call in (
        lambda: store.set("a", 1),
        lambda: store.set("a", None),
        lambda: store.wait(["a"], 3),
        lambda: store.set_timeout(3),
    ):
        with pytest.raises(TypeError, match="expected"):
            call()


def test_a_waiter_is_woken(store):
    found = []
    waiters = [threading.Thread(target=lambda: found.append(store.get("late"))) for _ in range(4)]
    for thread in waiters:
        thread.start()
    time.sleep(0.02)
    store.set("late", "1")
    for thread in waiters:
        thread.join(10)
    assert found == [b"1"] * 4


def test_each_value_of_a_queue_is_popped_once(store):
    found = []

    def pop():
        while (value := store.queue_pop("q")) != b"end":
            found.append(int(value))

    poppers = [threading.Thread(target=pop) for _ in range(4)]
    for thread in poppers:
        thread.start()
    for i in range(40):
        store.queue_push("q", str(i))
    for _ in poppers:
        store.queue_push("q", "end")
    for thread in poppers:
        thread.join(10)
    assert sorted(found) == list(range(40))


def test_threads_add(store):
    def add():
        for _ in range(50):
            store.add("n", 1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("n", 0) == 200


def test_barrier(store):
    left = []

    def work():
        store.barrier("b", 3)
        left.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    assert not left
    store.barrier("b", 3)
    for thread in threads:
        thread.join(10)
    assert len(left) == 2


def test_clones_share_keys(store):
    store.clone().set("a", "1")
    assert store.get("a") == b"1"


def test_prefixes_keep_keys_apart():
    store = dist.HashStore()
    one, two = dist.PrefixStore("one", store), dist.PrefixStore("two", store)
    one.set("a", "1")
    assert store.get("one/a") == b"1" and not two.check(["a"])
    nested = dist.PrefixStore("x", one)
    assert nested.underlying_store is one and nested._underlying_non_prefix_store is store
    with pytest.raises(TypeError, match="expected a Store"):
        dist.PrefixStore("p", {})


class OfPython(dist.Store):
    def __init__(self):
        super().__init__()
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key]


def test_stores_of_python():
    store = OfPython()
    dist.PrefixStore("p", store).set("a", "1")
    assert store.values == {"p/a": "1"} and dist.PrefixStore("p", store).get("a") == "1"
    with pytest.raises(NotImplementedError, match="OfPython does not define add"):
        store.add("n", 1)


# --- files


def test_a_file_goes_with_its_last_store(tmp_path):
    path = tmp_path / "store"
    first, second = dist.FileStore(path, 2), dist.FileStore(str(path), 2)
    first.set("a", "1")
    assert second.get("a") == b"1" and second.path == str(path)
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_a_record_that_was_cut_off_is_overwritten(tmp_path):
    path = tmp_path / "store"
    store = dist.FileStore(path)
    store.set("a", "1")
    with open(path, "ab") as file:
        file.write(b"\x40\x00\x00\x00half")
    store.set("b", "2")
    other = dist.FileStore(path)
    assert other.multi_get(["a", "b"]) == [b"1", b"2"]


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "letter"
    path.write_bytes(b"\x04\x00\x00\x00 no store at all")
    with pytest.raises(dist.DistStoreError, match="expected the file of a store"):
        dist.FileStore(path)
    with pytest.raises(dist.DistStoreError, match="cannot open"):
        dist.FileStore(tmp_path / "missing" / "store")


# --- servers


def test_workers_are_waited_for():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    stores = []

    def join(rank):
        stores.append(dist.TCPStore("localhost", port, 3, rank == 0, LONG))

    threads = [threading.Thread(target=join, args=(r,)) for r in (1, 2)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    assert not stores
    join(0)
    for thread in threads:
        thread.join(10)
    assert len(stores) == 3
    with pytest.raises(dist.DistStoreError, match="expected 4 workers .*; got 1"):
        dist.TCPStore("localhost", 0, 4, True, SHORT)


def test_a_server_that_is_not_there():
    with pytest.raises(dist.DistNetworkError, match=r"localhost:1; got no connection .*refused"):
        dist.TCPStore("localhost", 1, timeout=SHORT)
    server = tcp_server()
    with pytest.raises(dist.DistNetworkError, match="cannot listen on port"):
        dist.TCPStore("localhost", server.port, 1, True, SHORT)
    shared = dist.TCPStore("localhost", server.port, is_master=False, timeout=SHORT)
    assert shared.port == server.port
    with pytest.raises(ValueError, match="port from 0 to 65535"):
        dist.TCPStore("localhost", 70000, timeout=SHORT)


def test_tenants_share_a_server():
    one = dist.TCPStore("localhost", 0, is_master=True, multi_tenant=True)
    two = dist.TCPStore("localhost", one.port, is_master=True, multi_tenant=True)
    one.set("a", "1")
    assert two.get("a") == b"1"


def test_a_socket_from_outside():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    store = dist.TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listening.detach())
    store.set("a", "1")
    assert store.get("a") == b"1" and store.port == port


def test_the_end_of_a_server_ends_waits():
    server = tcp_server()
    client = dist.TCPStore("localhost", server.port, timeout=LONG)
    errors = []

    def wait():
        try:
            client.get("never")
        except dist.DistNetworkError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    del server
    thread.join(10)
    assert len(errors) == 1 and "closed the connection" in errors[0]
    with pytest.raises(dist.DistNetworkError):
        client.set("a", "1")


def test_strangers_are_turned_away():
    server = tcp_server()
    for sent in (b"GET / HTTP/1.0\r\n\r\n", b"facula.s\xff\xff\xff\xff", b"facula.s\x01\0\0\0\0"):
        with socket.create_connection(("localhost", server.port)) as stranger:
            stranger.settimeout(10)
            stranger.sendall(sent)
            assert stranger.recv(1) == b""
    # A call without the keys that it needs.
    body = b"\x03" + b"\0" * 24
    with socket.create_connection(("localhost", server.port)) as stranger:
        stranger.sendall(b"facula.s" + len(body).to_bytes(4, "little") + body)
        assert stranger.recv(100)[4] == 4  # StoreStatus::BadRequest
    server.set("a", "1")
    assert server.get("a") == b"1"


CLIENT = """
import sys, time
from datetime import timedelta
import facula.distributed as dist
store = dist.TCPStore("localhost", int(sys.argv[1]), timeout=timedelta(seconds=20))
store.set("ready", "1")
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_client_that_is_killed_takes_nothing_along():
    server = tcp_server()
    client = start(CLIENT + "store.queue_pop('q')", server.port)
    server.get("ready")
    time.sleep(0.1)
    client.kill()
    client.communicate()
    time.sleep(0.1)
    server.queue_push("q", "kept")
    assert server.queue_pop("q", False) == b"kept"


def test_ctrl_c_ends_a_wait():
    server = tcp_server()
    client = start(CLIENT + "store.get('never')", server.port)
    server.get("ready")
    time.sleep(0.1)
    begin = time.monotonic()
    client.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in client.communicate(timeout=10)[0]
    assert time.monotonic() - begin < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
@pytest.mark.parametrize("kind", ["server", "client", "file"])
def test_a_child_uses_the_store_of_its_parent(kind, tmp_path):
    store = KINDS[kind](tmp_path)
    child = os.fork()
    if child == 0:
        try:
            store.add("n", 1)
            store.get("from parent")
            store.add("n", 1)
        finally:
            os._exit(0)
    store.add("n", 1)
    store.set("from parent", "1")
    os.waitpid(child, 0)
    assert store.add("n", 0) == 3

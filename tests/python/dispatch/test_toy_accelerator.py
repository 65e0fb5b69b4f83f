"""facula.accelerator and the rest of the device table, with the toy device."""

import gc
import subprocess
import sys
import types
from pathlib import Path

import facula
import pytest
from facula import accelerator

MB = 1 << 20


def run(toy_path, body):
    """Run a program that has opened the toy's library as `toy`; returns what it wrote."""
    folder = Path(__file__).parent
    start = f"import sys; sys.path.insert(0, {str(folder)!r})\nimport facula, os\n"
    start += f"from conftest import opened\ntoy = opened({str(toy_path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + body], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- devices


def test_the_accelerator(toy):
    assert accelerator.current_accelerator() == facula.device("toy")
    assert accelerator.current_accelerator(check_available=True) == facula.device("toy")
    assert accelerator.is_available() and accelerator.device_count() == 2
    assert facula.device(1) == facula.device("toy:1")
    assert facula.float64 in accelerator.get_device_capability()["supported_dtypes"]
    assert accelerator.get_memory_info(1)[1] == 256 * MB
    assert facula._C._device_properties("toy:1")["name"] == "Toy that runs late"


def test_current_devices(toy):
    assert accelerator.current_device_index() == 0
    accelerator.set_device_index("toy:1")
    assert facula.ones(1, device="toy").device.index == 1
    with accelerator.device_index(0):
        assert facula.ones(1, device="toy").device.index == 0
        with accelerator.device_index(None):
            assert accelerator.current_device_index() == 0
    assert accelerator.current_device_index() == 1
    x = facula.ones(1, device="toy:0")
    assert x.to("toy").device.index == 1  # the current one
    assert x.to("toy:0") is x
    with facula.device("toy:0"):
        assert facula.ones(1).device.index == 0
        assert facula.ones(1, device="toy").device.index == 1
    accelerator.set_device_index(-1)
    assert accelerator.current_device_index() == 1


@pytest.mark.parametrize(
    "body, error, text",
    [
        (lambda: facula.ones(2, device="toy:2"), RuntimeError, "index below 2; got toy:2"),
        (lambda: facula.empty(0, device="toy:7"), RuntimeError, "index below 2; got toy:7"),
        (lambda: facula.ones(2).to("toy:2"), RuntimeError, "index below 2; got toy:2"),
        (lambda: accelerator.set_device_index(5), RuntimeError, "index below 2; got toy:5"),
        (lambda: accelerator.current_stream("toy:3"), RuntimeError, "index below 2"),
        (lambda: accelerator.synchronize("cpu"), ValueError, "doesn't match"),
        (lambda: facula.Stream("cpu"), ValueError, "expected an accelerator; got cpu"),
        (lambda: facula.Generator("toy:4"), RuntimeError, "index below 2"),
    ],
)
def test_devices_that_are_not_there(toy, body, error, text):
    with pytest.raises(error, match=text):
        body()


def test_nothing_starts_before_its_first_use(toy_path):
    assert run(
        toy_path,
        """
from facula import accelerator as a
assert a.device_count() == 2 and a.is_available() and a.memory_stats() == {}
facula.device("toy:1"), a.current_device_index(), a.empty_cache(), facula.manual_seed(3)
print(toy.toy_starts(), facula._C._is_device_started("toy"))
facula.ones(1, device="toy"); facula.ones(1, device="toy:1")
print(toy.toy_starts(), facula._C._is_device_started("toy"))
""",
    ).split() == ["0", "False", "1", "True"]


def test_a_forked_child_says_so(toy_path):
    out = run(
        toy_path,
        """
x, held = facula.ones(100, device="toy"), facula.ones(100).pin_memory()
child = os.fork()
if child == 0:
    del x, held
    try:
        facula.ones(1, device="toy")
    except RuntimeError as e:
        print(str(e), facula.ones(2).is_pinned(), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(status, x.sum().item())
""",
    )
    assert "Cannot re-initialize toy in forked subprocess" in out
    assert out.split("\n")[1] == "0 100.0"


# --- memory


@pytest.fixture
def empty(toy):
    gc.collect()  # what errors of earlier tests hold
    accelerator.synchronize()
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    return toy


def test_memory_statistics(empty):
    start = accelerator.memory_stats()
    x = facula.empty(3 * MB, dtype=facula.uint8, device="toy")
    y = facula.empty(100, dtype=facula.uint8, device="toy")
    stats = accelerator.memory_stats("toy:0")
    changed = {
        key: stats[key] - start[key]
        for key in (
            "allocation.all.current",
            "allocation.small_pool.current",
            "allocated_bytes.all.current",
            "allocated_bytes.small_pool.current",
            "requested_bytes.all.current",
        )
    }
    assert list(changed.values()) == [2, 1, 3 * MB + 512, 512, 3 * MB + 100]
    assert accelerator.memory_reserved() == stats["reserved_bytes.all.current"]
    reserved = accelerator.memory_reserved()
    in_use = accelerator.memory_allocated()
    del x, y
    assert accelerator.memory_allocated() == in_use - 3 * MB - 512
    assert accelerator.max_memory_allocated() == in_use
    assert accelerator.memory_reserved() == reserved  # kept for reuse
    accelerator.empty_cache()
    assert accelerator.memory_reserved() < reserved
    assert empty.toy_bytes_in_use(0) == accelerator.memory_reserved()
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated()
    assert accelerator.memory_stats()["num_device_free"] > 0


def test_running_out_of_memory(empty):
    x = facula.empty(25 * MB, dtype=facula.float32, device="toy")
    with pytest.raises(facula.OutOfMemoryError) as caught:
        facula.empty(200 * MB, dtype=facula.uint8, device="toy")
    text = str(caught.value)
    assert text.startswith("toy:0 out of memory. Tried to allocate 200.00 MiB")
    assert "total capacity of 256.00 MiB of which" in text
    assert "is reserved but unallocated. The largest blocks in use:" in text
    assert f"{100 * MB} bytes: float32 [{25 * MB}]" in text
    assert accelerator.memory_stats()["num_ooms"] == 1
    assert x.fill_(2)[5].item() == 2
    facula.empty(200 * MB, dtype=facula.uint8, device="toy:1")  # the other device has its own
    with pytest.raises((facula.OutOfMemoryError, RuntimeError)):
        facula.empty(2**62, dtype=facula.uint8, device="toy")


def test_what_is_cached_makes_room(empty):
    x = facula.empty(150 * MB, dtype=facula.uint8, device="toy")
    del x
    assert accelerator.memory_reserved() >= 150 * MB
    y = facula.empty(200 * MB, dtype=facula.uint8, device="toy")
    assert accelerator.memory_stats()["num_alloc_retries"] == 1
    assert y.numel() == 200 * MB


def test_limits(empty):
    set_fraction = facula._C._set_memory_fraction
    set_fraction(0.25, "toy:0")
    try:
        assert facula._C._get_memory_fraction("toy:0") == 0.25
        with pytest.raises(facula.OutOfMemoryError, match="This process may hold 64.00 MiB"):
            facula.empty(100 * MB, dtype=facula.uint8, device="toy")
        facula.empty(40 * MB, dtype=facula.uint8, device="toy")
        facula.empty(100 * MB, dtype=facula.uint8, device="toy:1")
    finally:
        set_fraction(1.0, "toy:0")
    facula.empty(100 * MB, dtype=facula.uint8, device="toy")
    with pytest.raises(ValueError, match="from 0 to 1"):
        set_fraction(1.5, "toy:0")


def test_storages_grow_on_the_device(empty):
    x = facula.arange(6.0).to("toy")
    x.resize_(1000)
    assert x[:6].cpu().tolist() == [0, 1, 2, 3, 4, 5]


# --- tables that lack entries


@pytest.fixture(scope="module")
def plain(_toy_library):
    """A device without streams, events, pinned memory, peer and strided copies, and capture."""
    _toy_library.toy_register_plain()
    return _toy_library


def test_tables_that_are_too_short_are_refused(toy):
    assert toy.toy_register_short() == 1
    with pytest.raises(RuntimeError, match="toyshort"):
        facula.device("toyshort")


@pytest.mark.parametrize(
    "body, entry",
    [
        (lambda: facula.Stream("toyplain"), "create_stream"),
        (lambda: facula._C._default_stream("toyplain").query(), "query_stream"),
        (lambda: facula.Event("toyplain:1").record(), "create_event"),
        (lambda: facula._C._device_properties("toyplain"), "get_properties"),
    ],
)
def test_missing_entries_are_named(plain, body, entry):
    with pytest.raises(NotImplementedError, match=f"'toyplain' .* no entry '{entry}'"):
        body()


def test_a_plain_device_takes_the_other_ways(plain):
    """Copies and zeros go by way of the host where there is no entry for them."""
    x = facula.arange(6.0).reshape(2, 3)
    there = x.to("toyplain:0")
    assert there.t().contiguous().cpu().tolist() == x.t().tolist()
    other = there.to("toyplain:1")
    assert other.device.index == 1 and other.cpu().tolist() == x.tolist()
    other.zero_()
    assert other.cpu().eq(0).all()
    assert other.copy_(there.to("toy:1")).cpu().tolist() == x.tolist()
    facula._C._default_stream("toyplain:1").synchronize()


# --- modules of device types


def test_modules_of_devices(toy):
    assert facula.get_device_module("cpu") is facula.cpu
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        facula.get_device_module("toy:1")
    module = types.ModuleType("facula.toy")
    facula._register_device_module("toy", module)
    try:
        assert facula.toy is module
        assert facula.get_device_module("toy:1") is facula.get_device_module() is module
        assert sys.modules["facula.toy"] is module
        with pytest.raises(RuntimeError, match="already been registered"):
            facula._register_device_module("toy", module)
    finally:
        del sys.modules["facula.toy"], facula.toy
    with pytest.raises(RuntimeError, match="toyland"):
        facula._register_device_module("toyland", module)


def test_methods_of_the_type(toy_path):
    """In a program of their own: the methods stay."""
    out = run(
        toy_path,
        """
facula.utils.rename_privateuse1_backend("toy")
facula.utils.generate_methods_for_privateuse1_backend()
x = facula.ones(2).toy(1)
print(x.device, x.is_toy, facula.ones(2).is_toy, facula.nn.Linear(2, 2).toy().weight.device)
for call in (lambda: facula.utils.rename_privateuse1_backend("toyland"),
             facula.utils.generate_methods_for_privateuse1_backend):
    try:
        call()
    except RuntimeError:
        print("refused")
""",
    )
    assert out.split() == ["toy:1", "True", "False", "toy:0", "refused", "refused"]


# --- autocast


def test_autocast_has_a_state_for_each_type_of_device(toy):
    host = facula.ones(4, 4)
    there = host.to("toy")
    assert facula.get_autocast_dtype("toy") == facula.float16
    with facula.autocast("toy", dtype=facula.bfloat16):
        assert facula.is_autocast_enabled("toy") and not facula.is_autocast_enabled("cpu")
        assert facula.mm(there, there).dtype == facula.bfloat16
        assert facula.mm(host, host).dtype == facula.float32
        with facula.autocast("cpu", dtype=facula.float16):
            assert facula.mm(there, there).dtype == facula.bfloat16
            assert facula.mm(host, host).dtype == facula.float16
        with facula.autocast("toy", enabled=False):
            assert facula.mm(there, there).dtype == facula.float32
        assert facula.mm(host, host).dtype == facula.float32
    assert not facula.is_autocast_enabled("toy")
    facula.set_autocast_dtype("toy", facula.bfloat16)
    facula.set_autocast_enabled("toy", True)
    try:
        assert facula.get_autocast_dtype("toy") == facula.bfloat16
        assert facula.get_autocast_dtype("cpu") == facula.bfloat16
        assert facula.mm(there, there).dtype == facula.bfloat16
    finally:
        facula.set_autocast_enabled("toy", False)
        facula.set_autocast_dtype("toy", facula.float16)


def test_autocast_where_no_device_is(toy):
    with pytest.warns(UserWarning, match="cuda is not available"):
        assert not facula.autocast("cuda")._enabled
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        facula.autocast("meta")
    assert not facula.is_autocast_available("meta") and facula.is_autocast_available("toy")


# --- a program without accelerators


@pytest.mark.parametrize(
    "call",
    [
        "facula.Stream()",
        "facula.Event()",
        "facula.ones(2).pin_memory()",
        "facula.empty(2, pin_memory=True)",
        "facula.accelerator.current_device_index()",
        "facula.accelerator.synchronize()",
    ],
)
def test_without_an_accelerator(call):
    body = f"import facula\ntry:\n    {call}\nexcept RuntimeError as e:\n    print(e)"
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)
    assert done.stdout.strip() == "Cannot access accelerator device when none is available."


def test_questions_without_an_accelerator():
    body = """
import facula
a = facula.accelerator
print(a.current_accelerator(), a.is_available(), a.device_count(), a.memory_allocated(),
      dict(a.memory_stats()), a.empty_cache(), facula.ones(2).is_pinned())
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)
    assert done.stdout.split() == ["None", "False", "0", "0", "{}", "None", "False"], done.stderr

"""Memory: what errors tell, and statistics."""

import threading

import facula
import isolated
import pytest
from facula.utils import memory

MIB = 1 << 20


@pytest.mark.parametrize("size", [2**45, 2**60, (2**30, 2**30)])
def test_absurd_sizes_raise(size):
    with pytest.raises(RuntimeError, match="not enough memory: you tried to allocate"):
        facula.empty(size)


@pytest.mark.parametrize("size", [2**61, 2**63 - 1, (2**40, 2**40)])
def test_sizes_beyond_bytes_raise(size):
    with pytest.raises(RuntimeError, match="overflow"):
        facula.empty(size)


def _complaint():
    with pytest.raises(RuntimeError) as caught:
        facula.empty(2**60)
    return str(caught.value)


def test_errors_name_the_largest_holders():
    held = facula.empty(64 * MIB, 2, dtype=facula.float64)
    first = _complaint().splitlines()[1]
    assert first.strip() == f"{1024 * MIB} bytes: float64 [{64 * MIB}, 2]"
    del held
    assert str(1024 * MIB) not in _complaint()


def test_small_blocks_are_not_listed():
    held = facula.empty(16)
    assert "float32 [16]" not in _complaint()
    del held


@pytest.mark.eager("memory is allocated at the end")
def test_tracking_names_the_line():
    with memory.track_allocations():
        held = facula.empty(48 * MIB)
        sum_of_two = held + held
        text = _complaint()
    assert text.count(f"{__file__}:") >= 2 and f"float32 [{48 * MIB}]" in text
    del held, sum_of_two
    held = facula.empty(48 * MIB)
    assert __file__ not in _complaint()
    del held


def test_statistics():
    before = memory.memory_stats()
    held = facula.empty(MIB)
    during = memory.memory_stats()
    assert during["allocated"] - before["allocated"] >= 4 * MIB
    assert during["allocations"] > before["allocations"]
    del held
    memory.reset_peak_memory_stats()
    memory.empty_cache()
    assert memory.memory_stats()["cached"] == 0


@pytest.mark.skipif(isolated.SANITIZED, reason="the sanitizer's allocator keeps freed blocks away")
def test_a_large_block_goes_back_to_the_thread_that_gave_it():
    own = facula.empty(1 * MIB)
    address = own.data_ptr()
    other_lives, own_is_free = threading.Event(), threading.Event()

    def give():
        block = facula.empty(1 * MIB)
        other_lives.set()
        own_is_free.wait()
        del block

    worker = threading.Thread(target=give)
    worker.start()
    other_lives.wait()
    del own
    own_is_free.set()
    worker.join()  # whose block is now the one that was given last
    assert facula.empty(1 * MIB).data_ptr() == address

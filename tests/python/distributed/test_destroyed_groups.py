"""Groups that were taken down: who keeps them keeps neither memory nor files."""

import os

import facula
import facula.distributed as dist
import pytest
from facula.distributed import threads


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_files_go_with_the_group_whoever_keeps_it():
    kept = []

    def work(rank):
        kept.append(dist.group.WORLD)
        kept.append(dist.init_device_mesh("cpu", (2, 1)))
        dist.all_reduce(facula.ones(1))

    before = open_files()
    for _ in range(3):
        threads.run(work, 2)
    assert open_files() <= before + 2 and len(kept) == 12


def test_calls_on_a_destroyed_group_say_so():
    kept = []
    threads.run(lambda rank: kept.append(dist.group.WORLD), 1)
    with pytest.raises(dist.DistBackendError, match="was destroyed"):
        kept[0].barrier()
    kept[0].shutdown()  # once more does nothing

"""Where the threads of parallel loops may run."""

import os
import time

import facula
import pytest


def processors_of_threads():
    return [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]


def test_threads_woken_elsewhere_may_run_anywhere_afterwards():
    before = facula.get_num_threads()
    own = os.sched_getaffinity(0)
    x = facula.ones(1 << 20)
    try:
        facula.set_num_threads(2)
        for _ in range(50):
            time.sleep(0.001)  # the other thread falls asleep
            x.exp()
        # A thread is barred from a processor only from the call that wakes it until it runs.
        for _ in range(100):
            if all(found == own for found in processors_of_threads()):
                return
            x.exp()
            time.sleep(0.001)
        pytest.fail(f"threads are kept to {processors_of_threads()}; the process to {own}")
    finally:
        facula.set_num_threads(before)

"""Times of facula's collectives over one engine, as a rank: calls.py BACKEND RANK SIZE FOLDER.

The same conversation as `timed_calls.h`: lines from this rank's pipe, seconds from rank 0.
"""

import sys
import time
from pathlib import Path

import facula
import facula.distributed as dist


def main():
    backend, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    facula.set_num_threads(1)
    if backend == "mpi":
        dist.init_process_group("mpi")
        rank = dist.get_rank()
    else:
        store = f"file://{folder}/store"
        dist.init_process_group(backend, init_method=store, rank=rank, world_size=size)
    with Path(folder, f"rank{rank}").open() as lines:
        seconds = Path(folder, "seconds").open("w") if rank == 0 else None
        for line in lines:
            name, elements, repetitions = line.split()
            call = call_of(name, facula.zeros(int(elements)))
            call()
            dist.barrier()
            began = time.perf_counter()
            for _ in range(int(repetitions)):
                call()
            took = (time.perf_counter() - began) / int(repetitions)
            dist.barrier()
            if seconds:
                print(took, file=seconds, flush=True)
    dist.destroy_process_group()


def call_of(name, values):
    """The collective of this name on these values."""
    if name == "all_reduce":
        return lambda: dist.all_reduce(values)
    return lambda: dist.broadcast(values, 0)


if __name__ == "__main__":
    main()

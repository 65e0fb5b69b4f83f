"""Memory of a loader's processes over epochs: a dataset of Python objects, read by forked workers.

    python bench/loader_memory.py [--library torch] [--objects 1000000] [--epochs 100]

Reading an object changes its reference count, and so copies the page that the parent shared; that
is over when each object was read once. What grows after that is a leak. Prints the memory that the
processes use together (shared pages counted once) after the second epoch and at the end.
"""

import argparse
import importlib
import os


def used(pids):
    """Bytes of memory that processes use together."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            found = [line.split()[1] for line in file if line.startswith("Pss:")]
        total += int(found[0]) * 1024
    return total


class Objects:
    """A dataset of Python objects.

    Args:
        count (int): how many.
    """

    def __init__(self, count):
        self.all = [str(i) for i in range(count)]

    def __len__(self):
        return len(self.all)

    def __getitem__(self, i):
        return self.all[i]


def growth(m, objects, epochs, workers=2, persistent=True, log=lambda text: None):
    """Bytes used after the second epoch, and at the end.

    Args:
        m: facula or torch.
        objects (int): size of the dataset.
        epochs (int): how often it is read, at least 3.
        workers (int): how many processes read.
        persistent (bool): the same processes for all epochs.
        log (callable): is told what is used after each tenth epoch.
    """
    loader = m.utils.data.DataLoader(
        Objects(objects),
        batch_size=max(objects // 50, 1),
        shuffle=True,
        num_workers=workers,
        collate_fn=len,
        persistent_workers=persistent,
        multiprocessing_context="fork",
    )
    early = now = 0
    for epoch in range(epochs):
        iterator = iter(loader)
        count = 0
        for number, size in enumerate(iterator):
            count += size
            if number == 40:
                now = used([os.getpid(), *(worker.pid for worker in iterator._workers)])
        assert count == objects
        if epoch == 1:
            early = now
        if epoch % 10 == 1:
            log(f"epoch {epoch + 1}: {now / 2**20:.1f} MB")
    return early, now


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", default="facula")
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--fresh", action="store_true", help="new workers for each epoch")
    options = parser.parse_args()
    m = importlib.import_module(options.library)
    early, late = growth(
        m, options.objects, options.epochs, persistent=not options.fresh, log=print
    )
    print(
        f"{early / 2**20:.1f} MB after 2 epochs, {late / 2**20:.1f} MB after {options.epochs}: "
        f"{100 * (late / early - 1):+.2f} %"
    )


if __name__ == "__main__":
    main()

"""Workers that are threads of this process."""

from __future__ import annotations

import queue
import threading

from facula.utils.data._utils.worker import Work, set_worker_info


class ThreadPool:
    """Workers of a loader as threads.

    They share the dataset and the random generators of the process. What a dataset does outside of
    the interpreter's lock - facula's operators on large tensors, files - runs at the same time.

    Args:
        settings (list of Settings): one for each worker.
    """

    def __init__(self, settings):
        self.answers = queue.SimpleQueue()
        self.tasks = [queue.SimpleQueue() for _ in settings]
        self.epoch = 0
        self.workers = [
            threading.Thread(
                target=self._run, args=(s, tasks), name=f"DataLoader worker {i}", daemon=True
            )
            for i, (s, tasks) in enumerate(zip(settings, self.tasks, strict=True))
        ]
        for worker in self.workers:
            worker.start()

    def _run(self, settings, tasks):
        set_worker_info(settings.info(), in_process=False)

        def give(answer):
            self.answers.put((settings.worker_id, answer))

        Work(settings, tasks.get, lambda: self.epoch, give, None).run()

    def begin_epoch(self, epoch):
        """Tell the workers that an epoch begins; tasks of older ones are dropped."""
        self.epoch = epoch
        for tasks in self.tasks:
            tasks.put(epoch)

    def send(self, worker_id, task):
        """Give a worker a task."""
        self.tasks[worker_id].put(task)

    def receive(self, timeout):
        """The next answer: (worker, answer); None after `timeout` seconds (None: for ever)."""
        try:
            return self.answers.get(timeout=timeout)
        except queue.Empty:
            return None

    def describe(self, worker_id):
        """Which thread a worker is, and where it is now."""
        import sys
        import traceback

        thread = self.workers[worker_id]
        frame = sys._current_frames().get(thread.ident)
        where = "".join(traceback.format_stack(frame)) if frame else ""
        return f"worker {worker_id} (thread {thread.name!r}) is at\n{where}"

    def close(self):
        """Have the workers stop after what they do now."""
        self.epoch = -1
        for tasks in self.tasks:
            tasks.put(None)

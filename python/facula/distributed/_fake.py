"""A group of one process that pretends to be one rank of many: nothing is sent."""

from facula.distributed._process_group import ProcessGroup, Work

__all__ = ["FakeProcessGroup"]


class FakeProcessGroup(ProcessGroup):
    """Ranks of which only this one is there. Results hold what a program of equal ranks could have.

    Args:
        rank (int): the number of this process.
        size (int): how many ranks there would be.
    """

    def __init__(self, rank, size, name="", desc="undefined"):
        super().__init__(rank, size, None, name, "fake", desc)

    def _run(
        self, call, inputs, outputs, opts, root=-1, copies=(), result=None, parts=None, shown=None
    ):
        for i, output in enumerate(outputs):
            source = inputs[i % len(inputs)] if inputs else output
            if source is not output and source.numel() == output.numel():
                output.detach().copy_(source)
        return Work(None, outputs if result is None else result, copies)

    def send(self, tensors, dstRank, tag=0):
        """Nothing is sent."""
        return Work(result=tensors)

    def recv(self, tensors, srcRank, tag=0):
        """The tensor stays as it is."""
        return Work(result=tensors)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """All ranks are there."""

    def abort(self):
        """There is nothing to abort."""

"""What operators and collectives cost: seconds by bytes, operations and ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send")


@dataclass(frozen=True)
class Network:
    """Machines of some ranks each; a latency and a bandwidth within machines and between them.

    Large collectives pass over rings through all machines, one for each rank of a machine, so that
    every rank's connection is used; small ones over trees. See Thakur, Rabenseifner, Gropp,
    Optimization of collective communication operations in MPICH, 2005, for the terms.

    Args:
        ranks_per_machine (int): ranks that are connected by the faster links.
        latency, bandwidth (float): seconds and bytes per second of a rank, within a machine.
        outer_latency, outer_bandwidth (float): the same between machines.

    Example:
        >>> one = Network(8, 5e-6, 300e9, 15e-6, 25e9)
        >>> round(one.seconds("all_reduce", 1e9, 8) * 1e3, 1)
        5.9
        >>> round(one.seconds("all_reduce", 1e9, 64) * 1e3, 1)
        8.9
    """

    ranks_per_machine: int
    latency: float
    bandwidth: float
    outer_latency: float
    outer_bandwidth: float

    def _steps_latency(self, ranks):
        inside = min(ranks, self.ranks_per_machine)
        machines = math.ceil(ranks / self.ranks_per_machine)
        return (
            math.ceil(math.log2(inside)) * self.latency
            + math.ceil(math.log2(machines)) * self.outer_latency
        )

    def _pass_seconds(self, nbytes, ranks):
        """Each rank receives `nbytes` less its own part, all at once."""
        inside = min(ranks, self.ranks_per_machine)
        machines = math.ceil(ranks / self.ranks_per_machine)
        within = nbytes * (ranks - 1) / ranks / self.bandwidth if inside > 1 else 0.0
        between = nbytes * (machines - 1) / machines / inside / self.outer_bandwidth
        return max(within, between)

    def seconds(self, call, nbytes, ranks):
        """How long a collective takes.

        Args:
            call (str): one of `COLLECTIVES`, or "barrier".
            nbytes (float): of the whole: the tensor that is reduced, gathered or sent; for
                all_to_all what one rank sends.
            ranks (int): that take part.
        """
        if ranks <= 1:
            return 0.0
        latency = self._steps_latency(ranks)
        crosses = ranks > self.ranks_per_machine
        if call == "send":
            return (
                self.outer_latency + nbytes / self.outer_bandwidth
                if crosses
                else self.latency + nbytes / self.bandwidth
            )
        if call == "barrier":
            return 2 * latency
        if call == "all_to_all":
            speed = self.outer_bandwidth if crosses else self.bandwidth
            return latency + nbytes * (ranks - 1) / ranks / speed
        passes = 2 if call in ("all_reduce", "broadcast") else 1
        return passes * (latency + self._pass_seconds(nbytes, ranks))


@dataclass(frozen=True)
class SharedMemory:
    """Ranks of one machine that move data with their own processors, as the engine `local` does.

    All bytes that are read and written share the machine's bandwidth, and ranks that outnumber the
    processors take turns.

    Args:
        processors (int): of the machine.
        latency (float): seconds of a rank in a call without data.
        bandwidth (float): bytes per second that one processor copies.
    """

    processors: int
    latency: float
    bandwidth: float

    def seconds(self, call, nbytes, ranks):
        """How long a collective takes; see `Network.seconds`."""
        if ranks <= 1:
            return 0.0
        turns = max(1.0, ranks / self.processors)
        used = min(ranks, self.processors)
        # Bytes that all ranks together copy: in, reduced, and out again.
        copied = {
            "all_reduce": 2 * ranks * nbytes,
            "reduce_scatter": ranks * nbytes,
            "all_gather": ranks * nbytes,
            "broadcast": ranks * nbytes,
            "all_to_all": ranks * nbytes,
            "send": 2 * nbytes,
            "barrier": 0,
        }[call]
        return self.latency * turns + copied / (self.bandwidth * used)


@dataclass(frozen=True)
class Machine:
    """What one rank computes with.

    Args:
        operations (float): of products, per second, as reached and not as advertised.
        bandwidth (float): bytes per second of the memory, as reached.
        overhead (float): seconds that an operator takes at least.
        memory (float): bytes that it has.
        network (Network or SharedMemory): how ranks are connected.
    """

    operations: float
    bandwidth: float
    overhead: float
    memory: float
    network: object

    def seconds(self, operations, nbytes):
        """How long an operator takes: the slower of computing and moving, never less than calling.

        Args:
            operations (float): multiplications and additions of products.
            nbytes (float): read and written.
        """
        return max(operations / self.operations, nbytes / self.bandwidth, self.overhead)


# Peaks as the makers print them, times what large programs reach: 0.55 of products, 0.8 of memory.
MACHINES = {
    "a100": Machine(312e12 * 0.55, 2.0e12 * 0.8, 4e-6, 80e9, Network(8, 6e-6, 240e9, 15e-6, 22e9)),
    "h100": Machine(989e12 * 0.5, 3.35e12 * 0.8, 4e-6, 80e9, Network(8, 6e-6, 360e9, 15e-6, 45e9)),
    "cpu": Machine(2e12 * 0.6, 200e9 * 0.8, 2e-6, 256e9, Network(1, 2e-6, 20e9, 30e-6, 10e9)),
}

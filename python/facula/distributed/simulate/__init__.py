"""How long a step of a program would take on many ranks, and what memory each would need.

One process is rank 0 of all. The program is the real one - `DistributedDataParallel`,
`fully_shard`, the plans of `pipelining` - on the meta device: nothing is computed or sent, but a
clock moves on by what operators and collectives would take. The command
`python -m facula.distributed.simulate --help` has machines and models; docs/distributed_cost.md
says what is modelled.
"""

from facula.distributed.simulate.clock import Clock, SimulatedProcessGroup, simulate
from facula.distributed.simulate.cost import MACHINES, Machine, Network, SharedMemory

__all__ = [
    "MACHINES",
    "Clock",
    "Machine",
    "Network",
    "SharedMemory",
    "SimulatedProcessGroup",
    "simulate",
]

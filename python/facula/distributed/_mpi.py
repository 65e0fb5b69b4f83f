"""Which MPI there is: its mpirun starts the processes, and knows their ranks."""

from __future__ import annotations

import os
import warnings

from facula._C import _distributed

# Which MPI to use: "openmpi" or "mpich"; default that of the mpirun that has started the process.
_VARIABLE = "FACULA_DISTRIBUTED_MPI"
# The engines, and what their mpirun sets.
_ENGINES = {"openmpi": "OMPI_COMM_WORLD_SIZE", "mpich": "PMI_SIZE"}


def is_available():
    """Whether this build has an engine for an MPI that is installed."""
    return any(not _distributed.why_not(engine) for engine in _ENGINES)


def engine():
    """The name of the engine for the MPI that has started this process, or for one that is there.

    Raises:
        RuntimeError: there is none.
        ValueError: the variable asks for one that does not exist.
    """
    wanted = os.environ.get(_VARIABLE)
    if wanted is not None and wanted not in _ENGINES:
        raise ValueError(f"{_VARIABLE}: expected one of {sorted(_ENGINES)}; got {wanted!r}")
    started = [name for name, variable in _ENGINES.items() if variable in os.environ]
    reasons = {}
    for name in [wanted] if wanted else started or _ENGINES:
        reasons[name] = _distributed.why_not(name)
        if not reasons[name]:
            return name
    raise RuntimeError(
        "init_process_group(): expected an engine for MPI, which a build has where OpenMPI or "
        f"MPICH is installed; got {reasons}"
    )


def world(rank, world_size):
    """The (rank, number of ranks) that mpirun gives; a warning if the caller has others in mind."""
    found = _distributed.engine_world(engine())
    for name, given, real in (("rank", rank, found[0]), ("world_size", world_size, found[1])):
        if given not in (-1, real):
            warnings.warn(
                f"init_process_group(): {name} is {real}, as mpirun has it; got {given}",
                stacklevel=3,
            )
    return found

"""Starts processes that are workers of rpc, and checks what they print."""

import os
import subprocess
import sys
import textwrap

_START = """
import os, sys, time
import facula
import facula.distributed.rpc as rpc
import facula.distributed.autograd as dist_autograd
rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def init(**options):
    rpc.init_rpc(
        f"w{rank}", rank=rank, world_size=size,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            init_method=f"file://{folder}/store", **options
        ),
    )

def error_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return error

"""


def run(functions, main, folder, size=2, timeout=60):
    """Run a program in several processes.

    Args:
        functions (str): defined in all of them.
        main (str): run by rank 0 between `init` and `shutdown`.
        folder (path): for the store.
        size (int): the number of workers.

    Returns:
        str: what rank 0 prints
    """
    body = textwrap.indent(textwrap.dedent(main).strip(), "    ")
    program = (
        f"{_START}{textwrap.dedent(functions)}\ninit()\nif rank == 0:\n{body}\nrpc.shutdown()\n"
    )
    results = start(program, folder, size, timeout)
    for code, _, errors in results:
        assert code == 0, errors
    return results[0][1]


def start(program, folder, size=2, timeout=60):
    """Run a whole program in several processes; returns (exit code, output, errors) of each."""
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(program if program.startswith(_START) else _START + textwrap.dedent(program))
    command = [sys.executable, path]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        outputs = [p.communicate(timeout=timeout) for p in processes]
    finally:
        for p in processes:
            p.kill()
    return [(p.returncode, *o) for p, o in zip(processes, outputs, strict=True)]

"""torchrun: `python -m facula.distributed.run --nproc-per-node 4 train.py` starts ranks.

Each rank finds its number and where to meet the others in its environment (RANK, LOCAL_RANK,
WORLD_SIZE, MASTER_ADDR, MASTER_PORT), which `init_process_group()` reads. When a rank fails the
others are ended, and all are started again as often as `--max-restarts` allows.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid

from facula.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from facula.distributed.elastic.multiprocessing.api import python_program
from facula.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from facula.distributed.launcher.api import LaunchConfig, elastic_launch

# Option -> (default, what it is); names with dashes may be written with underscores.
_OPTIONS = {
    "nnodes": ("1:1", "the number of machines, or the least and the most as LEAST:MOST"),
    "nproc-per-node": ("1", "ranks on each machine: a number, or auto, cpu, gpu"),
    "rdzv-backend": ("static", "how machines meet: c10d, or static"),
    "rdzv-endpoint": ("", "where they meet, as HOST:PORT"),
    "rdzv-id": ("none", "the name of the run"),
    "rdzv-conf": ("", "further options of the meeting, as KEY=VALUE,..."),
    "max-restarts": (0, "how often all ranks are started again"),
    "monitor-interval": (0.1, "seconds between looks at the ranks"),
    "start-method": ("spawn", "of processes that run a function"),
    "event-log-handler": ("null", "has no effect"),
    "role": ("default", "what the ranks are called"),
    "log-dir": (None, "the folder for files with the ranks' output"),
    "log-line-prefix-template": (None, "what lines on the console begin with"),
    "local-ranks-filter": ("", "the ranks that may write to the console, as 0,1"),
    "duplicate-stdout-filters": ("", "words of the lines to copy to a file of all ranks"),
    "duplicate-stderr-filters": ("", "words of the lines to copy to a file of all ranks"),
    "node-rank": (0, "the number of this machine, with static"),
    "master-addr": ("127.0.0.1", "the first machine, with static"),
    "master-port": (29500, "its port, with static"),
    "local-addr": (None, "has no effect"),
    "signals-to-handle": ("SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals that end the ranks"),
    "shutdown-timeout": (30, "seconds that ranks have to end before they are killed"),
}
_FLAGS = {
    "standalone": "one machine, on a free port",
    "no-python": "the script is a program of any kind",
    "run-path": "run the script in the rank's own interpreter",
    "virtual-local-rank": "LOCAL_RANK is 0 for all ranks",
}


def _spellings(name):
    return [f"--{name}", *([f"--{name.replace('-', '_')}"] if "-" in name else [])]


def get_args_parser():
    """The parser of the command line (argparse.ArgumentParser)."""
    parser = argparse.ArgumentParser(prog="torchrun", description="Starts a program on many ranks.")
    for name, (default, text) in _OPTIONS.items():
        # As PyTorch: a variable PET_NNODES of the environment is the default of --nnodes.
        value = os.environ.get(f"PET_{name.replace('-', '_').upper()}", default)
        kind = type(default) if default is not None else str
        parser.add_argument(*_spellings(name), type=kind, default=value, help=text)
    for name, text in _FLAGS.items():
        parser.add_argument(*_spellings(name), action="store_true", help=text)
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module")
    parser.add_argument(
        "-r", "--redirects", default="0", help="output to files: 1 stdout, 2 stderr, 3 both"
    )
    parser.add_argument(
        "-t", "--tee", default="0", help="output to files and, with prefixes, to the console"
    )
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args=None):
    """Read a command line (list of str; default that of this process)."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes):
    """Read "2" as (2, 2), and "1:4" as (1, 4).

    Example:
        >>> parse_min_max_nnodes("1:4")
        (1, 4)
    """
    parts = nnodes.split(":")
    if len(parts) > 2 or not all(p.isdigit() for p in parts):
        raise RuntimeError(f"--nnodes: expected a number or LEAST:MOST; got {nnodes!r}")
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node):
    """Read --nproc-per-node.

    Args:
        nproc_per_node (str): a number; "cpu" for one rank on each core, "gpu" on each device,
            "auto" for devices if there are any.

    Raises:
        ValueError: something else, or there are no devices.
    """
    if nproc_per_node.isdigit() and int(nproc_per_node) > 0:
        return int(nproc_per_node)
    import facula

    devices = facula.cuda.device_count()
    if nproc_per_node == "cpu" or (nproc_per_node == "auto" and not devices):
        return os.cpu_count() or 1
    if nproc_per_node in ("gpu", "auto"):
        if devices:
            return devices
        raise ValueError("--nproc-per-node: gpu needs a device; there is none")
    raise ValueError(
        f"--nproc-per-node: expected a number, auto, cpu or gpu; got {nproc_per_node!r}"
    )


def _pairs(text):
    pairs = [p.partition("=") for p in text.split(",") if p.strip()]
    if not all(separator for _, separator, _ in pairs):
        raise ValueError(f"--rdzv-conf: expected KEY=VALUE,...; got {text!r}")
    return {key.strip(): value.strip() for key, _, value in pairs}


def config_from_args(args):
    """What a command line means: (LaunchConfig, program, list of its arguments)."""
    least, most = parse_min_max_nnodes(args.nnodes)
    configs = _pairs(args.rdzv_conf)
    endpoint, backend, run_id = args.rdzv_endpoint, args.rdzv_backend, args.rdzv_id
    if args.standalone:
        endpoint, backend, run_id = "", "c10d", uuid.uuid4().hex
        least = most = 1
    elif backend == "static":
        configs.setdefault("rank", args.node_rank)
        endpoint = endpoint or f"{args.master_addr}:{args.master_port}"
    elif backend != "c10d":
        raise ValueError(f"--rdzv-backend: expected c10d or static; got {backend!r}")
    ranks = {int(r) for r in args.local_ranks_filter.split(",") if r.strip()}
    logs = DefaultLogsSpecs(
        args.log_dir,
        Std.from_str(args.redirects),
        Std.from_str(args.tee),
        ranks or None,
        [w for w in args.duplicate_stdout_filters.split(",") if w],
        [w for w in args.duplicate_stderr_filters.split(",") if w],
    )
    config = LaunchConfig(
        least,
        most,
        determine_local_world_size(args.nproc_per_node),
        logs,
        run_id,
        args.role,
        endpoint,
        backend,
        configs,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template=args.log_line_prefix_template,
        signals_to_handle=args.signals_to_handle,
        shutdown_timeout=args.shutdown_timeout,
    )
    if args.virtual_local_rank:
        raise NotImplementedError("--virtual-local-rank is not implemented")
    if args.run_path:
        return config, _run_script, [args.training_script, *args.training_script_args]
    if args.no_python:
        return config, args.training_script, list(args.training_script_args)
    start = ["-u", *(["-m"] if args.module else []), args.training_script]
    return config, python_program(), start + list(args.training_script_args)


def _run_script(path, *args):
    """A script in the interpreter of a rank."""
    import runpy

    sys.argv = [path, *args]
    runpy.run_path(path, run_name="__main__")


def run(args):
    """Start what a command line asks for.

    Args:
        args (Namespace): of `parse_args`.
    """
    config, program, arguments = config_from_args(args)
    elastic_launch(config, program)(*arguments)


@record
def main(args=None):
    """The program torchrun: ends with status 1 if ranks failed, and with 128 + n for a signal n."""
    try:
        run(parse_args(args))
    except ChildFailedError as error:
        if "TORCHELASTIC_ERROR_FILE" in os.environ:
            raise  # a launcher within a launcher
        print(error, file=sys.stderr, flush=True)
        sys.exit(1)
    except SignalException as error:
        print(f"torchrun: {error}; all ranks have ended", file=sys.stderr, flush=True)
        sys.exit(128 + error.sigval)


if __name__ == "__main__":
    main()

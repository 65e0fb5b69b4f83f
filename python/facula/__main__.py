"""The command line: `python -m facula`, and `facula` where the package is installed."""

from __future__ import annotations

import argparse
import sys

_RUN = """Runs a program that says `import torch` with facula under that name, unchanged, and so the
processes that it starts. What facula lacks is an AttributeError or ImportError that names it.
"""
_RUN_MORE = """examples:
  python -m facula run train.py --epochs 3
  python -m facula run -m pytest tests
  python -m facula run -c "import torch; print(torch.ones(3))"

FACULA_AS_TORCH=1 in the environment does the same for every Python that finds an installed facula:
notebooks, test runners, tools. Uninstalled, PYTHONPATH has to name {home} as well.
"""


def _parser():
    from facula import _run

    parser = argparse.ArgumentParser(
        prog="facula", description="A deep-learning framework with PyTorch's Python API."
    )
    parser.add_argument("--version", action="store_true", help="print facula's version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a program that says `import torch`",
        description=_RUN,
        epilog=_RUN_MORE.format(home=_run.HOME),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="facula run [-m MODULE | -c CODE | SCRIPT] [ARGS ...]",
    )
    run.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    commands.add_parser("env", help="print the environment switches and what they are set to")
    return parser


def main(args=None):
    """Run the command line.

    Args:
        args (list[str] | None): the arguments; those of the process if None.

    Returns:
        int: the exit status.
    """
    from facula import _run

    args = sys.argv[1:] if args is None else args
    # argparse would take the options of the program for its own.
    if args[:1] == ["run"] and args[1:] and args[1] not in ("-h", "--help"):
        return _run.run(args[1:])
    parser = _parser()
    options = parser.parse_args(args)
    if options.version:
        from facula import version

        print(f"facula {version.facula}")
    elif options.command == "env":
        from facula.utils import env

        print(env.table())
    elif options.command == "run":
        parser.parse_args(["run", "--help"])
    else:
        parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())

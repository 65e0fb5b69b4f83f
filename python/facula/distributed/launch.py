"""`python -m facula.distributed.launch`: torchrun by its name of old."""

from __future__ import annotations

from facula.distributed.run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args):
    """Read a command line; with --use-env as of old, which is what happens anyway."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="has no effect")
    return parser.parse_args(args)


def launch(args):
    """Start what a command line asks for."""
    run(args)


def main(args=None):
    """The program."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()

"""python -m facula.distributed.simulate: steps of large models on many ranks, as a table."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from functools import partial

from facula.distributed.simulate import check, plans
from facula.distributed.simulate.cost import MACHINES
from facula.distributed.simulate.models import SIZES

_PLANS = {
    "ddp": plans.ddp,
    "fully_shard": plans.fully_shard,
    **{name: partial(plans.pipeline, schedule=name) for name in plans.ORDERS},
}


def _numbers(text):
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers by comma; got {text!r}") from None
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers above 0; got {text!r}")
    return found


def _positive(text):
    (number,) = _numbers(text)
    return number


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="python -m facula.distributed.simulate",
        description="Runs a training step of a decoder on the meta device, as rank 0 of many, and "
        "prints what it would take there; docs/distributed_cost.md says what is modelled.",
    )
    add = parser.add_argument
    add("--model", choices=sorted(SIZES), default="7b", help="the decoder (7b)")
    add("--ranks", type=_numbers, default=[8, 64, 512, 4096], help="by comma (8,64,512,4096)")
    add("--machine", choices=sorted(MACHINES), default="a100", help="of each rank (a100)")
    add("--plans", default=",".join(_PLANS), help=f"by comma, of {', '.join(_PLANS)}")
    add("--batch", type=_positive, default=4, help="sequences of a rank (4)")
    add("--length", type=_positive, default=2048, help="tokens of a sequence (2048)")
    add("--stages", type=_positive, default=8, help="ranks of a pipeline (8)")
    add("--checkpoint", action="store_true", help="blocks compute forward again in backward")
    add("--svg", metavar="FILE", help="write a figure too (needs matplotlib)")
    add("--check", action="store_true", help="compare the model with ranks of this machine")
    arguments = parser.parse_args(words)
    arguments.plans = arguments.plans.split(",")
    unknown = sorted(set(arguments.plans) - set(_PLANS))
    if unknown:
        parser.error(f"expected --plans of {', '.join(_PLANS)}; got {', '.join(unknown)}")
    return arguments


def _run(arguments):
    """(plan, ranks, Step or why there is none) for each plan and number of ranks."""
    machine = MACHINES[arguments.machine]
    task = plans.Task(
        SIZES[arguments.model],
        arguments.batch,
        arguments.length,
        is_checkpointed=arguments.checkpoint,
    )
    for name in arguments.plans:
        more = {"stages": arguments.stages} if name in plans.ORDERS else {}
        for ranks in arguments.ranks:
            if sys.stderr.isatty():
                print(f"\r\033[K{name} on {ranks} ranks ...", end="", file=sys.stderr, flush=True)
            try:
                yield name, ranks, _PLANS[name](machine, ranks, task, **more)
            except ValueError as error:
                yield name, ranks, str(error)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _print_table(found, arguments):
    memory = MACHINES[arguments.machine].memory
    tokens = arguments.batch * arguments.length
    print("| plan | ranks | ms a step | tokens/s a rank | waits | GB moved | peak GB |")
    print("|---|---|---|---|---|---|---|")
    for name, ranks, step in found:
        if isinstance(step, str):
            print(f"| {name} | {ranks} | {step} | | | | |")
            continue
        fits = "" if step.peak <= memory else f" (more than {memory / 1e9:.0f})"
        print(
            f"| {name} | {ranks} | {step.seconds * 1e3:,.0f} | {tokens / step.seconds:,.0f} | "
            f"{step.waited / step.seconds:.0%} | {step.sent / 1e9:.1f} | "
            f"{step.peak / 1e9:.1f}{fits} |"
        )


def _draw(found, arguments):
    try:
        import matplotlib
    except ImportError:
        raise RuntimeError("--svg: expected matplotlib to be installed; it is not") from None
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    tokens = arguments.batch * arguments.length
    for name in arguments.plans:
        mine = [(r, s) for n, r, s in found if n == name and not isinstance(s, str)]
        if not mine:
            continue
        ranks = [r for r, _ in mine]
        left.plot(ranks, [tokens / s.seconds for _, s in mine], marker="o", label=name)
        right.plot(ranks, [s.peak / 1e9 for _, s in mine], marker="o", label=name)
    right.axhline(MACHINES[arguments.machine].memory / 1e9, color="grey", linestyle=":")
    for axis, title in ((left, "tokens a second and rank"), (right, "peak memory of a rank, GB")):
        axis.set(xscale="log", xlabel="ranks", title=title)
        axis.set_ylim(bottom=0)
        axis.set_xticks(arguments.ranks, [str(r) for r in arguments.ranks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    left.legend()
    figure.suptitle(f"{arguments.model} decoder on {arguments.machine}, simulated")
    figure.tight_layout()
    figure.savefig(arguments.svg, metadata={"Date": None})


def _print_check():
    network, pairs = check.check()
    print(
        f"fitted to 2 and 8 ranks: {network.latency * 1e6:.1f} us a rank and call, "
        f"{network.bandwidth / 1e9:.2f} GB/s of each of {network.processors} processors\n"
    )
    print("| what | ranks | bytes | measured, us | modelled, us | modelled / measured |")
    print("|---|---|---|---|---|---|")
    for p in pairs:
        print(
            f"| {p.what} | {p.ranks} | {p.nbytes or '-'} | {p.measured * 1e6:,.0f} | "
            f"{p.modelled * 1e6:,.0f} | {p.modelled / p.measured:.2f} |"
        )
    off = statistics.median(abs(math.log(p.modelled / p.measured)) for p in pairs)
    print(f"\nmedian factor between the two: {math.exp(off):.2f}")


def main(words=None):
    """Print tables.

    Args:
        words (list of str): arguments of the command line.

    Returns:
        int: 0, or 2 where the figure cannot be written
    """
    arguments = _arguments(words)
    if arguments.check:
        _print_check()
        return 0
    found = list(_run(arguments))
    _print_table(found, arguments)
    if arguments.svg:
        try:
            _draw(found, arguments)
        except (OSError, RuntimeError) as error:
            print(f"simulate: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

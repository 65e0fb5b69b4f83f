"""What the example programs share: options, progress, checkpoints, resume, the picture of a run."""

import argparse
import csv
from pathlib import Path

import torch


def positive(kind):
    """A type for argparse: a number of this kind above zero."""

    def parse(text):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def argument_parser(program, text, steps, lr, batch_size):
    """A parser with the options that every example has; a program adds its own.

    Args:
        program (str): the program's name, and the default folder of what it writes.
        text (str): its docstring, of which the first line is shown by --help.
        steps (int), lr (float), batch_size (int): defaults.
    """
    parser = argparse.ArgumentParser(prog=program, description=text.splitlines()[0])
    parser.add_argument("--steps", type=positive(int), default=steps, help=f"default {steps}")
    parser.add_argument("--batch-size", type=positive(int), default=batch_size)
    parser.add_argument("--lr", type=positive(float), default=lr, help=f"learning rate ({lr})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out-dir",
        type=Path,
        default=Path(f"{program}-out"),
        help="folder of the checkpoint, the losses and the picture",
    )
    parser.add_argument("--resume", action="store_true", help="go on from the folder's checkpoint")
    parser.add_argument(
        "--checkpoint-every", type=positive(int), default=100, metavar="STEPS", help="default 100"
    )
    parser.add_argument(
        "--double", action="store_true", help="compute in float64, where rounding shows later"
    )
    parser.add_argument("--no-plot", action="store_true", help="write no picture")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def begin(options):
    """Sets the seed and the dtype of a run."""
    if options.double:
        torch.set_default_dtype(torch.float64)
    torch.manual_seed(options.seed)


class Training:
    """A training run: its losses so far, and what a checkpoint has to keep of it.

    A checkpoint holds the random generator's state, so that a run that is resumed draws the same
    batches, and gives the same losses, as one that was never stopped.

    Args:
        options (argparse.Namespace): the options of `argument_parser`.
        parts: what belongs into a checkpoint, by name: the model, the optimizer, and whatever
            else has `state_dict` and `load_state_dict`.

    Example:
        training = Training(options, model=model, optimizer=optimizer)
        for step in training.steps():
            ...
            training.record(loss.item())
        training.finish()
    """

    def __init__(self, options, **parts):
        self.options = options
        self.parts = parts
        self.losses = []
        self.figures = {}
        self.checkpoint = options.out_dir / "checkpoint.pt"
        options.out_dir.mkdir(parents=True, exist_ok=True)
        if options.resume:
            self.load()

    def steps(self):
        """Yields the number of each step that is left to do; `record` is called once in each."""
        every = self.options.checkpoint_every
        with self.progress_bar() as bar:
            while (step := len(self.losses)) < self.options.steps:
                yield step
                if len(self.losses) != step + 1:
                    raise RuntimeError("record() must be called once in each step")
                bar.set_postfix({n: f"{v:.4g}" for n, v in self.figures.items()}, refresh=False)
                bar.update()
                if len(self.losses) % every == 0:
                    self.save()
        self.save()

    def progress_bar(self):
        """tqdm's bar over the steps, which shows the newest figures."""
        from tqdm import tqdm

        return tqdm(
            total=self.options.steps,
            initial=len(self.losses),
            unit=" steps",
            mininterval=0.2,
            disable=self.options.quiet,
        )

    def record(self, loss, **figures):
        """Notes a step's loss, and further figures for the progress bar."""
        self.losses.append(loss)
        self.figures = {"loss": loss, **figures}

    def save(self):
        """Writes the checkpoint."""
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state |= {"losses": self.losses, "random": torch.get_rng_state()}
        torch.save(state, self.checkpoint)

    def load(self):
        """Reads the checkpoint of the folder back."""
        if not self.checkpoint.exists():
            raise SystemExit(f"there is no {self.checkpoint} to resume from")
        state = torch.load(self.checkpoint)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.losses = state["losses"]
        torch.set_rng_state(state["random"])

    def finish(self, draw=None):
        """Writes the losses and the picture.

        Args:
            draw (callable): draws what the model can do into a figure of matplotlib, which is the
                picture's lower part.
        """
        with open(self.options.out_dir / "losses.csv", "w", newline="") as file:
            csv.writer(file).writerows([("step", "loss"), *enumerate(self.losses)])
        if not self.options.no_plot:
            self.save_picture(draw)

    def save_picture(self, draw):
        """Writes a PNG: the loss curve, and below it what `draw` draws."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(10, 8 if draw else 4), layout="constrained")
        top, bottom = figure.subfigures(2, 1) if draw else (figure, None)
        axes = top.subplots()
        axes.plot(self.losses, linewidth=1)
        axes.set(xlabel="step", ylabel="loss", title=self.options.out_dir.name)
        if draw:
            draw(bottom)
        figure.savefig(self.options.out_dir / "picture.png", dpi=100)
        pyplot.close(figure)

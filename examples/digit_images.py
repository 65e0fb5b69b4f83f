"""The handwritten digits that several examples train on."""

import gzip
from pathlib import Path

import torch

DATA = Path(__file__).resolve().parent / "data" / "digits.csv.gz"


def load_digits():
    """Images (1797, 64) of 8 by 8 pixels, in [0, 1], and the digits (1797,)."""
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        rows = torch.tensor([[int(value) for value in line.split(",")] for line in file])
    return rows[:, :64] / 16, rows[:, 64]

"""Loads the extension and uses its operator: python run.py [path of the library]."""

import sys
from pathlib import Path

import facula
from facula.utils import cpp_extension


def load(path=None):
    """The library that was built, or one built now with the compiler that is there."""
    if path is not None:
        return facula.ops.load_library(path)
    cpp_extension.load("squareplus", Path(__file__).with_name("squareplus.cpp"))


def main():
    load(*sys.argv[1:2])
    squareplus = facula.ops.example.squareplus
    x = facula.linspace(-2, 2, 5, dtype=facula.float64, requires_grad=True)
    y = squareplus(x, 1.0)
    y.sum().backward()
    print("values:   ", [round(v, 4) for v in y.tolist()])
    print("gradients:", [round(v, 4) for v in x.grad.tolist()])
    print("gradcheck:", facula.autograd.gradcheck(squareplus, (x,)))
    print("vmap:     ", tuple(facula.vmap(squareplus)(facula.ones(4, 3)).shape))
    print("meta:     ", squareplus(facula.ones(2, device="meta")).device)


if __name__ == "__main__":
    main()

"""Loads the device and uses it: python run.py [path of the library]."""

import sys
from pathlib import Path

import facula
from facula.utils import cpp_extension


def load(path=None):
    """The library that was built, or one built now with the compiler that is there."""
    if path is not None:
        return facula.ops.load_library(path)
    cpp_extension.load("abacus", Path(__file__).with_name("abacus.cpp"))


def main():
    load(*sys.argv[1:2])
    x = facula.arange(3.0).to("abacus")
    print("device: ", x.device, "of", facula.accelerator.device_count())
    print("kernel: ", (-x).tolist(), facula.neg(x, out=facula.empty(3, device="abacus")).tolist())
    print("in place:", x.neg_().to("abacus:1").cpu().tolist())
    print("memory: ", facula.accelerator.memory_allocated() > 0)
    try:
        x + 1
    except NotImplementedError as error:
        print("missing:", error)


if __name__ == "__main__":
    main()

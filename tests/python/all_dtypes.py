"""The samples of the table in every dtype there is, also those that hardly any kernel takes.

As a program it prints, as JSON, [operator, facts] of each row; facts are {"dtypes": those that the
first sample runs with, "unset": calls whose results depend on what memory held before}:

    python tests/python/all_dtypes.py --family reduce [--samples 3]
"""

import argparse
import json
import os
import sys
import warnings

import facula
from samples import load_ops
from samples.common import Sample, T, find, make_arguments, seed_of
from unset_memory import LEAVES_UNSET, runs_differ

# Each dtype, and the one whose values it is made from; whose bytes, where it has no numbers.
DTYPES = {
    "bool": "bool",
    "uint8": "uint8",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint8",
    "uint32": "uint8",
    "uint64": "uint8",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "float64": "float64",
    "float8_e5m2": "float32",
    "float8_e4m3fn": "float32",
    "float8_e4m3fnuz": "float32",
    "float8_e8m0fnu": "float32",
    "float4_e2m1fn_x2": "uint8",
    "bits16": "int16",
    "uint4": "uint8",
    "bcomplex32": "complex64",
    "complex32": "complex64",
    "complex64": "complex64",
    "complex128": "complex128",
}


def arguments(op, index, dtype):
    """(args, kwargs) of a sample with all tensors under test, and a dtype= that is given, in it."""
    sample, base = op.samples[index], DTYPES[dtype]
    under_test = set()

    def note(leaf, number):
        if isinstance(leaf, T) and leaf.dtype is None:
            under_test.add(number)
        return leaf

    sample.map(note)
    args, kwargs = make_arguments(facula, sample, base, seed_of(op, index))
    wanted = getattr(facula, dtype)

    def convert(leaf, number):
        if number not in under_test or dtype == base:
            return leaf
        return leaf.to(wanted) if wanted._has_numbers else leaf.contiguous().view(wanted)

    made = Sample(*args, **kwargs).map(convert)
    if isinstance(made.kwargs.get("dtype"), facula.dtype):
        made.kwargs["dtype"] = wanted
    return made.args, made.kwargs


def _call(op, index, dtype):
    args, kwargs = arguments(op, index, dtype)
    return [find(facula, op.name)(*args, **kwargs), args]


def runs(op, dtype):
    """Whether the first sample has a result in the dtype."""
    try:
        _call(op, 0, dtype)
    except Exception:
        return False
    return True


def facts_of(op, samples):
    """What is printed for an operator."""
    unset = []
    for index in range(min(samples, len(op.samples))):
        for dtype in DTYPES:
            if LEAVES_UNSET.search(op.name):
                continue
            if what := runs_differ(lambda i=index, d=dtype: _call(op, i, d)):
                unset.append(f"{op.samples[index]} in {dtype}: {what}")
    return {"dtypes": [d for d in DTYPES if runs(op, d)], "unset": unset}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="")
    parser.add_argument("--samples", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [op for op in load_ops() if op.samples and options.family in ("", op.family)]
    print(json.dumps([[op.name, facts_of(op, options.samples)] for op in chosen]))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()

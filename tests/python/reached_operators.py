"""Which operators the tables of samples and cases reach, found by running them under modes.

A function mode sees what a table calls by name, a dispatch mode what those calls and their
gradients come down to. Both are needed: composites end above the dispatch mode.
"""

import warnings

import facula
import quantized_cases
import sparse_cases
from facula.overrides import TorchFunctionMode
from facula.utils._python_dispatch import TorchDispatchMode
from samples import load_ops
from samples.checks import is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of

CASES = (
    (quantized_cases, ("CASES",)),
    (sparse_cases, ("CASES", "GRADIENTS")),
)


class _Names(TorchFunctionMode):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.add(func._schema.name.partition("::")[2])
        return func(*args, **(kwargs or {}))


def _run_sample(op, index, dtype):
    """One sample and the gradients of its results."""
    args, kwargs = make_arguments(facula, op.samples[index], dtype, seed_of(op, index), grad=True)
    inputs = [t for t in tensors_of([args, kwargs]) if is_tensor(t) and t.requires_grad]
    results = tensors_of(find(facula, op.name)(*args, **kwargs))
    smooth = [r for r in results if is_tensor(r) and r.requires_grad]
    if inputs and smooth:
        cotangents = [facula.ones_like(r) for r in smooth]
        facula.autograd.grad(smooth, inputs, cotangents, allow_unused=True)


def _programs():
    """Everything that is run, as functions without arguments."""
    for op in load_ops():
        for index, _ in op.numbered_samples(op.dtype_names()[0]):
            yield lambda o=op, i=index: _run_sample(o, i, o.dtype_names()[0])
    for module, tables in CASES:
        for table in tables:
            for case in getattr(module, table).values():
                yield lambda m=module, c=case: c(m.Inputs(facula))


def reached_names():
    """Names of operators and functions that the tables reach, without overloads."""
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in _programs():
            for mode in (_Names, _Operators):
                try:
                    with mode(seen):
                        program()
                except Exception:  # the suites say whether a case may raise
                    continue
    return seen


def is_smooth(op):
    """Whether a row has a sample whose floating point inputs give floating point results."""

    def continuous(value):
        return is_tensor(value) and (value.is_floating_point() or value.is_complex())

    for dtype in op.dtype_names():
        for index, sample in op.numbered_samples(dtype):
            args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index))
            if not any(map(continuous, tensors_of([args, kwargs]))):
                continue
            try:
                results = tensors_of(find(facula, op.name)(*args, **kwargs))
            except RuntimeError:  # the suites say whether a sample may raise
                continue
            if any(map(continuous, results)):
                return True
    return False

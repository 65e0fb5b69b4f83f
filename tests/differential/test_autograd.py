"""Programs of autograd in both libraries: values, flags, warnings, classes and texts of errors."""

import re
import warnings

import facula
import pytest
import torch
from autograd_cases import (  # noqa: F401
    CASES,
    backward_and_grad,
    functions,
    functions_more,
    hooks,
    inference_and_modes,
    inplace,
    leaves_and_edges,
    nodes,
    saved_tensors,
    views_and_data,
)

# Where only the text of the error differs, and why.
OTHER_TEXT = {
    "g_batched_shape": "PyTorch's shows the shape of nothing",
    "g_batched_none": "vmap's text has a sign of its own for 0",
    "fn_grad_complex": "PyTorch's is that of an internal check",
    "raw_saved_hooks_bad": "PyTorch's is its binding generator's",
    "sth_types": "PyTorch's is its binding generator's",
    "requires_grad_int": "one text for all three ways to ask",
    "requires_grad_int_ctor": "one text for all three ways to ask",
}
KNOWN = {
    "ip_copy": "nodes of PyTorch's hand-written derivatives have names of their own",
    "ip_copy_dtype": "nodes of PyTorch's hand-written derivatives have names of their own",
    "ip_fill": "the digit of a node counts PyTorch's table of derivatives",
    "ip_masked_fill": "the digit of a node counts PyTorch's table of derivatives",
    "ip_t": "t_ is transpose_ here",
}


def plain(text):
    """A text without addresses, the library's name, and what our errors add."""
    text = re.sub(r"0x[0-9a-f]+", "0x", str(text).replace("facula", "torch"))
    text = re.sub(r" It was saved by .*?\. Hint", " Hint", text)
    return text.split(" (Triggered internally")[0].strip()


def value_of(v):
    """Something that compares equal for equal results of both libraries."""
    if isinstance(v, (torch.Tensor, facula.Tensor)):
        numbers = v.detach().reshape(-1).tolist()
        rounded = [round(x, 5) if isinstance(x, float) else x for x in numbers]
        return tuple(v.shape), plain(v.dtype), rounded
    if isinstance(v, dict):
        return {k: value_of(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [value_of(x) for x in v]
    return v if isinstance(v, (int, float, type(None))) else plain(v)


def outcome(program, library):
    """What a program gives: its value, or class and text of its error; and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = "value", value_of(program(library))
        except Exception as error:
            result = type(error).__name__, plain(error)
        finally:
            library.set_grad_enabled(True)
            library.autograd.set_detect_anomaly(False)
    return result, sorted({type(w.message).__name__ for w in caught})


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    """Both libraries do the same."""
    if name in KNOWN:
        pytest.xfail(KNOWN[name])
    theirs, their_warnings = outcome(CASES[name], torch)
    ours, our_warnings = outcome(CASES[name], facula)
    if name in OTHER_TEXT:
        assert ours[0] == theirs[0]
    else:
        assert ours == theirs
    assert our_warnings == their_warnings or name == "b_create"  # which is said once

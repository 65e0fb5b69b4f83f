"""Functions and methods written in Python say which argument is no tensor, and what is old."""

import os
import subprocess
import sys
from pathlib import Path

import facula
import pytest

X = facula.ones(3)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: facula.is_same_size(3, X), r"is_same_size\(\): argument 'input' \(position 1\)"),
        (lambda: facula.is_same_size(X, 3), r"is_same_size\(\): argument 'other' \(position 2\)"),
        (lambda: X.is_set_to(3), r"is_set_to\(\): argument 'tensor' \(position 1\)"),
        (lambda: facula.svd_lowrank(3), r"svd_lowrank\(\): argument 'A' \(position 1\)"),
        (lambda: facula.pca_lowrank(3), r"pca_lowrank\(\): argument 'A' \(position 1\)"),
        (lambda: facula.detach_(3), r"detach_\(\): argument 'input' \(position 1\)"),
    ],
)
def test_an_argument_that_is_no_tensor_is_named(call, text):
    with pytest.raises(TypeError, match=text + " must be Tensor, not int"):
        call()


def test_a_removed_name_says_what_is_there_instead():
    with pytest.raises(RuntimeError, match="in favour of linalg.cholesky"):
        facula.cholesky(facula.eye(2))


def warnings_of(*lines):
    """What a process that runs these lines warns of."""
    program = "\n".join(
        ["import warnings, facula", "warnings.simplefilter('always')", "A = facula.eye(3)", *lines]
    )
    path = str(Path(facula.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stderr.splitlines() if "Warning:" in line]


@pytest.mark.parametrize(
    "line, instead",
    [
        ("facula.lu(A)", "linalg.lu_factor"),
        ("facula.set_default_tensor_type('torch.FloatTensor')", "set_default_dtype"),
    ],
)
def test_an_old_function_says_once_what_is_newer(line, instead):
    (told,) = warnings_of(line, line)
    assert "is deprecated in favour of " + instead in told


def test_contiguous_preserves_what_is_contiguous():
    x = facula.ones(2, 3)
    assert x.contiguous(memory_format=facula.preserve_format) is x
    with pytest.raises(RuntimeError, match="must name a layout"):
        x.t().contiguous(memory_format=facula.preserve_format)


@pytest.mark.parametrize("margin, far", [(1.0, [0, 0, 6]), (2.7, [1, 0, 7]), (-0.5, [0, 0, 5])])
def test_hinge_embedding_loss_of_integers_is_of_integers(margin, far):
    """The margin takes their dtype first, as 2.7 becomes 2."""
    x, target = facula.tensor([1, 2, -5, 3]), facula.tensor([-1, -1, -1, 1])
    loss = facula.nn.functional.hinge_embedding_loss
    found = loss(x, target, margin=margin, reduction="none")
    assert found.dtype == facula.int64 and found.tolist() == [*far, 3]
    with pytest.raises(NotImplementedError, match="mean"):
        loss(x, target, margin=margin)

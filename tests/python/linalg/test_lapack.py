"""The library of linear algebra: it is opened when it is first needed, and found or asked for."""

import os
import subprocess
import sys

import pytest

FACTOR = "import facula; facula.linalg.lu_factor(facula.eye(40)); print('factored')"


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    return result.stdout.strip(), result.stderr.strip().rpartition("\n")[2]


def library():
    folder = pytest.importorskip("scipy_openblas32").get_lib_dir()
    return next(f"{folder}/{name}" for name in os.listdir(folder) if name.startswith("libscipy"))


def test_is_opened_when_a_factor_is_wanted():
    opened = "any('openblas' in line for line in open('/proc/self/maps'))"
    code = (
        f"import facula; facula.eye(9) @ facula.eye(9); print({opened}); {FACTOR}; print({opened})"
    )
    assert run(code) == ("False\nfactored\nTrue", "")


def test_the_package_is_found_without_being_imported():
    out, err = run(f"{FACTOR}; import sys; print('scipy_openblas32' in sys.modules)")
    assert (out, err) == ("factored\nFalse", "")


def test_a_library_may_be_named():
    assert run(FACTOR, FACULA_LAPACK=library()) == ("factored", "")


@pytest.mark.parametrize(
    ("path", "text"),
    [("/nowhere/liblapack.so", "cannot open"), ("libm.so.6", "has neither dgetrf_ nor")],
)
def test_a_wrong_library_is_told(path, text):
    out, err = run(FACTOR, FACULA_LAPACK=path)
    assert out == "" and "RuntimeError: LAPACK: expected in FACULA_LAPACK" in err and text in err


def test_without_any_library_the_error_says_what_to_install():
    # No package on the path: a folder that has only facula.
    code = (
        "import sys, importlib.util; find = importlib.util.find_spec;"
        "importlib.util.find_spec = lambda n, p=None: None if 'openblas' in n else find(n, p);"
        f"{FACTOR}"
    )
    out, err = run(code)
    assert out == "factored" or "pip install scipy-openblas32" in err


def test_small_matrices_need_no_library():
    code = "import facula; print(facula.linalg.solve(facula.eye(3), facula.ones(3)).tolist())"
    assert run(code, FACULA_LAPACK="/nowhere/liblapack.so") == ("[1.0, 1.0, 1.0]", "")


def test_threads_that_meet_at_the_first_use():
    code = """
import facula, threading
ready = threading.Barrier(4)
def work():
    ready.wait()
    facula.linalg.lu_factor(facula.eye(40))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print('factored')
"""
    assert run(code) == ("factored", "")

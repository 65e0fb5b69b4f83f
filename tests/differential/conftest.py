"""The differential suites need PyTorch; without it they are skipped as a whole."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if collect_ignore_glob:
        terminalreporter.write_line("tests/differential: PyTorch is not installed, nothing was run")


# What PyTorch warns of where facula has nothing to say. Other warnings are errors (pyproject.toml).
PYTORCH_WARNS = (
    "(var|std)\\(\\). degrees of freedom",
    "torch.searchsorted\\(\\).* non-contiguous",
    "index_reduce\\(\\) is in beta",
    "reduction. .mean. divides",
    "Using torch.cross without",
    "Using padding='same' with even",
    "Since version 1.3.0, affine_grid",
    "Default grid_sample and affine_grid",
    "ComplexHalf support",
    "An output with one or more elements was resized",
    "to - 1 is out of bounds",
    "Using a non-tuple sequence for multidimensional",
    "torch.chain_matmul is deprecated",
    "torch.range is deprecated",
    "torch.triangular_solve is deprecated",
    "The given buffer is not writable",
    "Casting complex values to real",
)


def pytest_configure(config):
    for message in PYTORCH_WARNS:
        config.addinivalue_line("filterwarnings", f"ignore:{message}")

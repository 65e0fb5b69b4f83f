"""A loop compiled by Cython on the memory of tensors, through NumPy.  needs: Cython"""

import importlib.util
import os
import tempfile

import cython
import torch
from Cython.Build import cythonize
from setuptools import Extension
from setuptools.dist import Distribution

SOURCE = """
# cython: language_level=3, boundscheck=False
def count_runs(const long long[:] steps, double[:] lengths):
    cdef Py_ssize_t i, runs = 0
    for i in range(steps.shape[0]):
        if i and steps[i] == steps[i - 1]:
            lengths[runs - 1] += 1
        else:
            lengths[runs] = 1
            runs += 1
    return runs
"""


def build():
    """The module, compiled in a folder of its own."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "runs.pyx")
    with open(path, "w") as file:
        file.write(SOURCE)
    modules = cythonize([Extension("runs", [path])], quiet=True, build_dir=folder)
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = folder
    command.ensure_finalized()
    command.run()
    spec = importlib.util.spec_from_file_location("runs", command.get_ext_fullpath("runs"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


torch.manual_seed(0)
steps = torch.randint(0, 3, (500,))
lengths = torch.zeros(500, dtype=torch.float64)
runs = build().count_runs(steps.numpy(), lengths.numpy())  # writes to the tensor's memory
values, counts = torch.unique_consecutive(steps, return_counts=True)
assert torch.equal(lengths[:runs].long(), counts) and not cython.compiled
print(f"runs {runs} longest {lengths.max():.0f} mean {lengths[:runs].mean():.4f}")

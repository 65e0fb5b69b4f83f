"""A report of the system that facula runs on, to put into bug reports.

Example:
    $ python -m facula.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import namedtuple
from importlib import metadata

import facula

TORCH_AVAILABLE = True

SystemEnv = namedtuple(
    "SystemEnv",
    "torch_version is_debug_build cuda_compiled_version gcc_version clang_version cmake_version "
    "os libc_version python_version python_platform is_cuda_available cuda_runtime_version "
    "cuda_module_loading nvidia_driver_version nvidia_gpu_models cudnn_version is_xpu_available "
    "pip_version pip_packages conda_packages hip_compiled_version hip_runtime_version "
    "miopen_runtime_version caching_allocator_config is_xnnpack_available cpu_info "
    "rocm_compiled_version",
)

COMMON_PATTERNS = ["torch", "facula", "numpy", "triton", "optree"]
PIP_PATTERNS = ["mypy", "flake8", "onnx"]
CONDA_PATTERNS = ["cudatoolkit", "soumith", "mkl", "magma"]
NVIDIA_PATTERNS = ["nvidia", "cudnn", "cublas", "nccl"]

env_info_fmt = """\
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCm SDK used to build PyTorch: {rocm_compiled_version}
HIP used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}"""


# --- programs of the system


def run(command):
    """Run a command (text for the shell, or list); returns its status, output and errors."""
    done = subprocess.run(
        command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace"
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda, command):
    """The output of a command; None where it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda, command, regex):
    """What the first group of a pattern finds in a command's output; None where there is none."""
    output = run_and_read_all(run_lambda, command)
    found = None if output is None else re.search(regex, output)
    return found.group(1) if found else None


def run_and_return_first_line(run_lambda, command):
    """The first line of a command's output; None where it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


# --- one fact each


def get_gcc_version(run_lambda):
    """The version of GCC (text), or None."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda):
    """The version of Clang (text), or None."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (\S+)")


def get_cmake_version(run_lambda):
    """The version of CMake (text), or None."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_driver_version(run_lambda):
    """The version of NVIDIA's driver (text), or None."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    return run_and_return_first_line(run_lambda, query)


def get_gpu_info(run_lambda):
    """The names of NVIDIA's devices, one a line, or None."""
    listing = run_and_read_all(run_lambda, "nvidia-smi -L")
    return None if listing is None else re.sub(r" \(.+?\)", "", listing)


def get_running_cuda_version(run_lambda):
    """The version of the CUDA toolkit (text), or None."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cpu_info(run_lambda):
    """What `lscpu` says."""
    status, output, errors = run_lambda("lscpu")
    return output if status == 0 else errors


def get_platform():
    """The kind of system: "linux", "darwin" or "win32"."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


def check_release_file(run_lambda):
    """The distribution's name as /etc/os-release has it, or None."""
    pattern = r'PRETTY_NAME="(.*)"'
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", pattern)


def get_os(run_lambda):
    """The system's name and machine (text)."""
    name = check_release_file(run_lambda) if get_platform() == "linux" else platform.platform()
    return f"{name or get_platform()} ({platform.machine()})"


def get_python_platform():
    """What `platform.platform` says."""
    return platform.platform()


def get_libc_version():
    """The C library and its version (text)."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_pip_packages(run_lambda, patterns=None):
    """The version of pip's kind, and the installed packages whose names hold a pattern.

    Returns:
        tuple of str: "pip3", and a line `name==version` for each package.
    """
    wanted = PIP_PATTERNS + COMMON_PATTERNS + NVIDIA_PATTERNS if patterns is None else patterns
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in metadata.distributions()
        if d.metadata["Name"] and any(p in d.metadata["Name"] for p in wanted)
    }
    return f"pip{sys.version_info[0]}", "\n".join(sorted(found, key=str.lower))


def get_conda_packages(run_lambda, patterns=None):
    """Lines of `conda list` that hold a pattern; None without conda."""
    listing = (
        run_and_read_all(run_lambda, [os.environ["CONDA_EXE"], "list"])
        if ("CONDA_EXE" in os.environ)
        else None
    )
    if listing is None:
        return None
    wanted = CONDA_PATTERNS + COMMON_PATTERNS + NVIDIA_PATTERNS if patterns is None else patterns
    lines = (line for line in listing.splitlines() if not line.startswith("#"))
    return "\n".join(line for line in lines if any(p in line for p in wanted))


def get_cuda_module_loading_config():
    """How CUDA loads modules: "N/A", as this build has no CUDA."""
    return "N/A"


def get_cachingallocator_config():
    """The settings of the device's allocator that the environment holds, as a dict."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def is_xnnpack_available():
    """Whether XNNPACK is there: False."""
    return False


# --- the report


def get_env_info():
    """All facts, as a SystemEnv."""
    pip_version, pip_packages = get_pip_packages(run)
    version = sys.version.replace("\n", " ")
    return SystemEnv(
        torch_version=str(facula.__version__),
        is_debug_build=str(facula.version.debug),
        cuda_compiled_version=facula.version.cuda,
        rocm_compiled_version="N/A",
        hip_compiled_version="N/A",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(facula.cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=None,
        is_xpu_available="False",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        pip_version=pip_version,
        pip_packages=pip_packages,
        conda_packages=get_conda_packages(run),
        caching_allocator_config=get_cachingallocator_config() or "N/A",
        is_xnnpack_available=str(is_xnnpack_available()),
        cpu_info=get_cpu_info(run),
    )


def pretty_str(envinfo):
    """A SystemEnv as the text of a report."""
    facts = envinfo._asdict()
    for kind, key in ((facts["pip_version"], "pip_packages"), ("conda", "conda_packages")):
        lines = (facts[key] or "Could not collect").splitlines()
        facts[key] = "\n".join(f"[{kind}] {line}" for line in lines)
    for name, value in facts.items():
        if value is None or value == "":
            facts[name] = "Could not collect"
        elif isinstance(value, str) and "\n" in value and name == "nvidia_gpu_models":
            facts[name] = f"\n{value}"
    return env_info_fmt.format(**facts)


def get_pretty_env_info():
    """The report of this system, as text.

    Example:
        >>> facula.utils.collect_env.get_pretty_env_info().startswith("PyTorch version:")
        True
    """
    return pretty_str(get_env_info())


def main():
    """Print the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()

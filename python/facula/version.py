"""What this build of facula is, and which PyTorch's API it follows."""

from facula.torch_version import TorchVersion

__all__ = ["__version__", "debug", "cuda", "facula", "git_version", "hip", "rocm", "xpu"]

facula = "0.1.0"
pytorch = "2.15.0"  # whose names, values and texts are the oracle
debug = False
git_version = "unknown"
# Versions of the accelerators' toolkits: this build has none of them.
cuda = hip = rocm = xpu = None
# Programs that say `import torch` compare the version with PyTorch's.
__version__ = TorchVersion(f"{pytorch}+facula") if __name__ == "torch.version" else facula

"""What this build of facula is."""

from facula import __version__

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"]

debug = False
git_version = "unknown"
# Versions of the accelerators' toolkits: this build has none of them.
cuda = hip = rocm = xpu = None

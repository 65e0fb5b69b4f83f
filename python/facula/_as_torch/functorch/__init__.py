"""The package functorch where `import torch` means facula."""

from torch.functorch import *  # noqa: F403
from torch.functorch import make_fx  # noqa: F401

"""`functorch.compile` where `import torch` means facula."""

from torch.functorch.compile import *  # noqa: F403

"""What the machine under the operators can do."""

from facula.backends import cpu

__all__ = ["cpu"]

"""Comparing results in tests, and making inputs for them."""

from facula.testing._comparison import assert_close
from facula.testing._creation import make_tensor

__all__ = ["assert_close", "make_tensor"]

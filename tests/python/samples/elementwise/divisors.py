"""Common divisors and multiples."""

import numpy as np
from samples.common import Op
from samples.elementwise.minmax import pairs

OPS = [
    Op("gcd", pairs(), np.gcd, "int64 int32", grad=False),
    Op("lcm", pairs(), np.lcm, "int64 int32", grad=False),
]

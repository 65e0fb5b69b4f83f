"""Joe and Kuo's table of primitive polynomials and first direction numbers, for 21201 dimensions.

S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM
Journal on Scientific Computing 30 (2008); their file new-joe-kuo-6.21201.

joe_kuo.bin is compressed by zlib. It has planes of bytes: three for the polynomials (low byte
first, a bit for each coefficient), then for k = 1, 2, ... those of the halves of the odd numbers
m_k, of each dimension whose polynomial has at least degree k, in as many bytes as k - 1 bits need.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path

import facula

DIMENSIONS = 21201
BITS = 30
_DEGREES = 18


@functools.lru_cache(maxsize=1)
def _table():
    """Polynomials (DIMENSIONS,), their degrees, and first numbers m (DIMENSIONS, 18), as int64."""
    packed = bytearray(zlib.decompress((Path(__file__).parent / "joe_kuo.bin").read_bytes()))
    planes = facula.frombuffer(packed, dtype=facula.uint8)
    at = 0

    def read(rows, width):
        nonlocal at
        total = facula.zeros(rows, dtype=facula.int64)
        for byte in range(width):
            total |= planes[at : at + rows].long() << (8 * byte)
            at += rows
        return total

    polynomials = read(DIMENSIONS, 3)
    degrees = facula.stack([(polynomials >> bit) > 0 for bit in range(1, _DEGREES + 1)]).sum(0)
    numbers = facula.zeros(DIMENSIONS, _DEGREES, dtype=facula.int64)
    for k in range(_DEGREES):
        there = degrees > k
        numbers[there, k] = 2 * read(int(there.sum()), (k + 7) // 8) + 1
    return polynomials, degrees, numbers


def direction_numbers(dimension):
    """Direction numbers of the first dimensions, as numerators over 2**30.

    Args:
        dimension (int): how many dimensions, at most 21201.

    Returns:
        Tensor: int64, of shape (dimension, 30).

    Example:
        >>> direction_numbers(2)[:, :3] >> 27
        tensor([[4, 2, 1],
                [4, 6, 5]])
    """
    polynomials, degrees, numbers = (part[:dimension] for part in _table())
    result = facula.ones(dimension, BITS, dtype=facula.int64) << facula.arange(BITS - 1, -1, -1)
    for degree in range(1, int(degrees.max()) + 1):
        chosen = (degrees == degree).nonzero().flatten()
        if len(chosen):
            result[chosen] = _continued(polynomials[chosen], degree, numbers[chosen])
    return result


def _continued(polynomials, degree, numbers):
    """All direction numbers of dimensions whose polynomials have one degree."""
    columns = [numbers[:, k] << (BITS - 1 - k) for k in range(degree)]
    for _ in range(BITS - degree):
        value = columns[-degree] ^ (columns[-degree] >> degree)
        for k in range(1, degree):
            value = value ^ columns[-k] * (polynomials >> (degree - k) & 1)
        columns.append(value)
    return facula.stack(columns, 1)

"""Numbers that fill the unit cube more evenly than random ones: Sobol's sequence."""

from __future__ import annotations

from operator import index

import facula
from facula.quasirandom import directions

__all__ = ["SobolEngine"]


def _integer(function, name, given):
    """What was given as int; TypeError where it is no integer."""
    if not hasattr(given, "__index__"):
        kind = type(given).__name__
        raise TypeError(f"{function}(): expected an integer as {name}; got {kind}")
    return index(given)


class SobolEngine:
    """Draws points of Sobol's sequence, of which the first 2**m are spread evenly for every m.

    Method: I. M. Sobol, 1967, in the order of Gray's code (I. A. Antonov and V. M. Saleev, 1979),
    with direction numbers by S. Joe and F. Y. Kuo, 2008. Scrambling is J. Matousek's (1998): a
    random lower triangular matrix over the digits and a random shift, drawn as PyTorch draws them.

    Args:
        dimension (int): of the points, from 1 to 21201.
        scramble (bool): whether the sequence is scrambled.
        seed (int, optional): for scrambling; the default generator without one.

    Raises:
        TypeError: a dimension that is no integer. ValueError: another dimension.

    Example:
        >>> facula.quasirandom.SobolEngine(2).draw(4)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500],
                [0.2500, 0.7500]])
    """

    MAXBIT = directions.BITS
    MAXDIM = directions.DIMENSIONS

    def __init__(self, dimension, scramble=False, seed=None):
        dimension = _integer("SobolEngine", "dimension", dimension)
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine(): expected a dimension from 1 to {self.MAXDIM}; got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = directions.direction_numbers(dimension)
        self.shift = facula.zeros(dimension, dtype=facula.int64)
        if scramble:
            self._scramble()
        self.reset()

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points of the sequence.

        Args:
            n (int): how many; all draws together at most 2**30.
            out (Tensor, optional): gets the points, in its dtype.
            dtype (facula.dtype, optional): float32 or float64; the default dtype without one.

        Returns:
            Tensor: of shape (n, dimension).

        Raises:
            ValueError: fewer points than none, or more than there are.
            NotImplementedError: another dtype.

        Example:
            >>> facula.quasirandom.SobolEngine(1).draw(3, dtype=facula.float64)
            tensor([[0.0000],
                    [0.5000],
                    [0.7500]], dtype=facula.float64)
        """
        n = self._count("draw", n)
        dtype = out.dtype if out is not None else dtype or facula.get_default_dtype()
        if not isinstance(dtype, facula.dtype):
            raise TypeError(f"draw(): expected a dtype; got {type(dtype).__name__}")
        if dtype not in (facula.float32, facula.float64):
            raise NotImplementedError(f"draw(): expected float32 or float64; got {dtype}")
        if self.num_generated + n > 2**self.MAXBIT:
            raise ValueError(
                f"draw(): expected at most {2**self.MAXBIT} points in all; got "
                f"{self.num_generated} before and {n} now"
            )
        numerators = self._numerators(self.num_generated, n)
        self._advance(n, numerators[-1] if n else self.quasi)
        points = numerators.to(dtype) * 2.0**-self.MAXBIT
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points, where that leaves the number of all points a power of 2.

        Args:
            m (int): the logarithm of how many.
            out (Tensor, optional): gets the points, in its dtype.
            dtype (facula.dtype, optional): float32 or float64; the default dtype without one.

        Returns:
            Tensor: of shape (2**m, dimension).

        Raises:
            ValueError: the number of all points would be no power of 2, which spoils their balance.

        Example:
            >>> facula.quasirandom.SobolEngine(3).draw_base2(4).shape
            facula.Size([16, 3])
        """
        m = _integer("draw_base2", "m", m)
        if m < 0:
            raise ValueError(f"draw_base2(): expected a logarithm of at least 0; got {m}")
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"draw_base2(): expected a power of 2 of points in all, as they are balanced then; "
                f"got {self.num_generated} before and 2**{m} now (draw() takes any number)"
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self):
        """Go back to the sequence's first point; returns the engine."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        self._first_point = (self.quasi / 2.0**self.MAXBIT).reshape(1, -1)
        return self

    def fast_forward(self, n):
        """Leave out the next `n` points; returns the engine.

        Args:
            n (int): how many.

        Example:
            >>> facula.quasirandom.SobolEngine(1).fast_forward(2).draw()
            tensor([[0.7500]])
        """
        n = self._count("fast_forward", n)
        if n:
            self._advance(n, self._numerators(self.num_generated + n - 1, 1)[0])
        return self

    def __repr__(self):
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(parts)})"

    def _count(self, method, n):
        """A number of points as an int, checked."""
        n = _integer(method, "n", n)
        # The first point is not computed but kept, hence at least one before any was drawn.
        least = 0 if self.num_generated else 1
        if n < least:
            raise ValueError(f"{method}(): expected at least {least} points; got {n}")
        return n

    def _advance(self, n, last):
        self.num_generated += n
        self.quasi = last.clone()

    def _numerators(self, start, n):
        """Points number start, start + 1, ... as numerators (n, dimension) over 2**30.

        A point is the exclusive or of the direction numbers that Gray's code of its number has. The
        code of a number's low bits and that of its high bits come together by exclusive or too, so
        that one table of the low bits serves every block of as many points.
        """
        low = max(n - 1, 0).bit_length()
        table = self.shift.reshape(1, -1)
        for bit in range(low):
            table = facula.cat([table, table.flip(0) ^ self.sobolstate[:, bit]])
        first, last = start >> low, (start + max(n, 1) - 1) >> low
        blocks = [table ^ self._unshifted(block << low) for block in range(first, last + 1)]
        skipped = start - (first << low)
        return facula.cat(blocks)[skipped : skipped + n]

    def _unshifted(self, number):
        """The point of one number in the sequence without a shift."""
        code = number ^ number >> 1
        point = facula.zeros(self.dimension, dtype=facula.int64)
        for bit in range(code.bit_length()):
            if code >> bit & 1:
                point = point ^ self.sobolstate[:, bit]
        return point

    def _scramble(self):
        generator = None
        if self.seed is not None:
            generator = facula.Generator()
            generator.manual_seed(self.seed)
        bits, dimension = self.MAXBIT, self.dimension
        digits = facula.randint(2, (dimension, bits), device="cpu", generator=generator)
        self.shift = digits @ (2 ** facula.arange(bits))
        matrices = facula.randint(2, (dimension, bits, bits), device="cpu", generator=generator)
        matrices = matrices.tril(-1) + facula.eye(bits, dtype=facula.int64)
        # Digits in the order of their weight; sums of at most 30 of them are exact in float32.
        weights = facula.arange(bits - 1, -1, -1)
        state = (self.sobolstate.unsqueeze(1) >> weights.reshape(-1, 1)) & 1
        scrambled = (matrices.float() @ state.float()).long() & 1
        self.sobolstate = (scrambled << weights.reshape(-1, 1)).sum(1)

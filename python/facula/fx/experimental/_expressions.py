"""Integer expressions in the sizes of arguments: polynomials with //, %, max and min.

They are our own and not sympy's, because facula needs no other package at run time, and what sizes
are made of is little. An expression is a sum of products; equal ones compare equal and print as
PyTorch prints them.
"""

from __future__ import annotations

import math
import operator

RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Symbol(str):
    """The name of a size."""

    __slots__ = ()

    def __repr__(self):
        return str(self)

    def value(self, sizes):
        """Its size."""
        return sizes[str(self)]

    def symbols(self):
        """Itself, as a set."""
        return {str(self)}


class Call:
    """A function of two expressions: `//`, `Mod`, `Max` or `Min`."""

    _FUNCTIONS = {"//": operator.floordiv, "Mod": operator.mod, "Max": max, "Min": min}

    def __init__(self, name, a, b):
        self.name, self.a, self.b = name, a, b

    def __repr__(self):
        if self.name == "//":
            return f"({_within(self.a)}//{_within(self.b)})"
        first, second = self.a, self.b
        if self.name != "Mod" and second.is_number():
            first, second = second, first
        return f"{self.name}({first}, {second})"

    def __eq__(self, other):
        return isinstance(other, Call) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def value(self, sizes):
        """Its value for given sizes, which may have one for the whole call."""
        if repr(self) in sizes:
            return sizes[repr(self)]
        return self._FUNCTIONS[self.name](self.a.value(sizes), self.b.value(sizes))

    def symbols(self):
        """The names in it."""
        return self.a.symbols() | self.b.symbols()


def _within(expression):
    text = str(expression)
    return f"({text})" if " " in text else text


class Expression:
    """A sum of products.

    Args:
        terms (dict): tuple of factors to its coefficient; () for the constant.
    """

    def __init__(self, terms):
        self.terms = {factors: n for factors, n in terms.items() if n}

    @classmethod
    def of(cls, value):
        """The expression of a number, a symbol or a call."""
        if isinstance(value, Expression):
            return value
        return cls({(): value} if isinstance(value, int) else {(value,): 1})

    def __add__(self, other):
        terms = dict(self.terms)
        for factors, n in Expression.of(other).terms.items():
            terms[factors] = terms.get(factors, 0) + n
        return Expression(terms)

    def __mul__(self, other):
        terms = {}
        for a, n in self.terms.items():
            for b, m in Expression.of(other).terms.items():
                factors = tuple(sorted(a + b, key=repr))
                terms[factors] = terms.get(factors, 0) + n * m
        return Expression(terms)

    def __sub__(self, other):
        return self + Expression.of(other) * -1

    def __floordiv__(self, other):
        other = Expression.of(other)
        if other.is_number() and all(n % other.number() == 0 for n in self.terms.values()):
            return Expression({f: n // other.number() for f, n in self.terms.items()})
        return Expression.of(Call("//", self, other))

    def __mod__(self, other):
        other = Expression.of(other)
        if other.is_number() and all(n % other.number() == 0 for n in self.terms.values()):
            return Expression({})
        return Expression.of(Call("Mod", self, other))

    def is_number(self):
        """Whether no size is in it."""
        return not any(self.terms)

    def number(self):
        """The constant part."""
        return self.terms.get((), 0)

    def symbols(self):
        """The names of the sizes in it, as a set."""
        return {s for factors in self.terms for factor in factors for s in factor.symbols()}

    def value(self, sizes):
        """Its value for sizes by name."""
        return sum(
            n * math.prod(factor.value(sizes) for factor in factors)
            for factors, n in self.terms.items()
        )

    def __eq__(self, other):
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __str__(self):
        order = sorted(self.terms, key=lambda factors: (-len(factors), repr(factors)))
        text = " + ".join(_term(factors, self.terms[factors]) for factors in order) or "0"
        return text.replace("+ -", "- ")

    __repr__ = __str__


def _term(factors, n):
    product = "*".join(map(repr, factors))
    if not factors:
        return str(n)
    return product if n == 1 else f"-{product}" if n == -1 else f"{n}*{product}"


class Relation:
    """A comparison of two expressions."""

    def __init__(self, op, a, b):
        self.op, self.a, self.b = op, a, b

    def holds(self, sizes):
        """Whether it holds for sizes by name."""
        return RELATIONS[self.op](self.a.value(sizes), self.b.value(sizes))

    def opposite(self):
        """What holds where this does not."""
        return Relation(OPPOSITE[self.op], self.a, self.b)

    def symbols(self):
        """The names of the sizes in it, as a set."""
        return self.a.symbols() | self.b.symbols()

    def bounds(self):
        """`(symbol, least, greatest)` where it says no more than that, or None."""
        difference = self.a - self.b
        symbols = [f for f in difference.terms if f]
        if len(symbols) != 1 or len(symbols[0]) != 1 or not isinstance(symbols[0][0], Symbol):
            return None
        n, c = difference.terms[symbols[0]], difference.number()
        op = self.op if n > 0 else {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(self.op)
        low = {">": -c // n + 1, ">=": -(c // n)}.get(op)
        high = {"<": -(c // n) - 1, "<=": -c // n}.get(op)
        if low is None and high is None:
            return None
        return str(symbols[0][0]), low, high

    def __str__(self):
        if self.op in ("==", "!="):
            return f"{'Eq' if self.op == '==' else 'Ne'}({self.a}, {self.b})"
        return f"{self.a} {self.op} {self.b}"

    __repr__ = __str__

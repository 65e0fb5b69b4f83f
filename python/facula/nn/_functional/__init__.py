"""The functions of facula.nn.functional that are more than one operator, by theme."""

from __future__ import annotations


def same_as(operator, least, most):
    """Mark a function that is an operator when given few arguments.

    Args:
        operator: called in the function's place, which costs no Python frame.
        least, most: how many arguments, by position and none by keyword, both take alike; the
            defaults of the others are alike, too.

    Returns:
        A decorator.
    """

    def mark(function):
        function._direct = (operator, least, most)
        return function

    return mark


def by_method(function):
    """Mark a function that calls a method of its argument: overrides are told of the method."""
    function._by_method = True
    return function

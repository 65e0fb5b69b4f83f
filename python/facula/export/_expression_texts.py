"""Expressions of sizes as the text that .pt2 files have: calls like `Mul(Integer(2), ...)`."""

from __future__ import annotations

import ast
import functools
import operator

from facula.fx.experimental._expressions import Call, Expression, Symbol

_NAME_OF = {"//": "FloorDiv", "Mod": "Mod", "Max": "Max", "Min": "Min"}


def text_of(expression):
    """The text of an expression.

    Args:
        expression (Expression): of sizes.

    Returns:
        str
    """
    terms = [_term(factors, n) for factors, n in expression.terms.items()]
    if not terms:
        return "Integer(0)"
    return terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


def _term(factors, n):
    texts = [_factor(factor) for factor in factors]
    if n != 1 or not texts:
        texts.insert(0, f"Integer({n})")
    return texts[0] if len(texts) == 1 else f"Mul({', '.join(texts)})"


def _factor(factor):
    if isinstance(factor, Call):
        return f"{_NAME_OF[factor.name]}({text_of(factor.a)}, {text_of(factor.b)})"
    return f"Symbol('{factor}', positive=True, integer=True)"


def _call(name):
    return lambda a, b: Expression.of(Call(name, a, b))


def _power(base, exponent):
    if not exponent.is_number() or exponent.number() < 0:
        raise NotImplementedError(f"load(): expected whole powers of sizes; got {exponent}")
    return functools.reduce(operator.mul, [base] * exponent.number(), Expression.of(1))


_FUNCTIONS = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": _call("Max"),
    "Min": _call("Min"),
    "Pow": _power,
    "PowByNatural": _power,
}
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


def parse(text):
    """The expression that a text is of.

    Raises:
        NotImplementedError: it has functions that facula's expressions have not.
    """
    try:
        return _parsed(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError):
        raise _unknown(text) from None


def _parsed(node):
    if isinstance(node, ast.Name):
        return Expression.of(Symbol(node.id))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Expression.of(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _parsed(node.operand) * -1
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_parsed(node.left), _parsed(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _parsed_call(node)
    raise _unknown(ast.unparse(node))


def _parsed_call(node):
    name = node.func.id
    if name == "Symbol":
        return Expression.of(Symbol(ast.literal_eval(node.args[0])))
    if name == "Integer":
        return Expression.of(int(ast.literal_eval(node.args[0])))
    if name not in _FUNCTIONS or not node.args:
        raise _unknown(ast.unparse(node))
    return functools.reduce(_FUNCTIONS[name], map(_parsed, node.args))


def _unknown(text):
    return NotImplementedError(f"load(): expected an expression of whole sizes; got {text!r}")

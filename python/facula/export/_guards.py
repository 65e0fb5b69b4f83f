"""Conditions on sizes as the texts that .pt2 files have: `L['x'].size()[0] % 2 == 0`."""

from __future__ import annotations

import ast
import operator

from facula.fx.experimental._expressions import RELATIONS, Call
from facula.utils import _pytree as pytree


def sources(program):
    """How each leaf of the arguments is called in conditions: `L['d']['a']`, list[str]."""
    signature = program.module_call_graph[0].signature
    in_spec = signature.in_spec
    numbered = pytree.tree_unflatten(list(range(in_spec.num_leaves)), in_spec)
    args, kwargs = numbered
    names = signature.forward_arg_names or []
    by_name = dict(zip(names, [*args, *kwargs.values()], strict=False))
    found = {}
    for name, nest in by_name.items():
        for path, leaf in pytree.tree_leaves_with_path(nest):
            found[leaf] = f"L['{name}']{pytree.keystr(path)}"
    return [found.get(i, f"L['{i}']") for i in range(in_spec.num_leaves)]


def texts_of(program):
    """The conditions that a program's dynamic sizes have to keep, as texts.

    Args:
        program (ExportedProgram): may have been loaded, with texts of its own.

    Returns:
        list[str]
    """
    texts = list(program._guard_texts)
    if program._sizes is None or texts:
        return texts
    names, of_symbol = sources(program), {}
    for (leaf, dim), expression in program._expressions.items():
        of_symbol.setdefault(str(expression), f"{names[leaf]}.size()[{dim}]")
    for condition in program._sizes.conditions:
        if condition.symbols() <= set(of_symbol):
            left, right = (_text(e, of_symbol) for e in (condition.a, condition.b))
            texts.append(f"{left} {condition.op} {right}")
    return texts


def _text(expression, names):
    terms = []
    for factors, n in expression.terms.items():
        parts = [_factor_text(factor, names) for factor in factors]
        if n != 1 or not parts:
            parts.insert(0, str(n))
        terms.append("*".join(parts))
    return f"({' + '.join(terms)})" if len(terms) > 1 else terms[0] if terms else "0"


def _factor_text(factor, names):
    if not isinstance(factor, Call):
        return names[str(factor)]
    a, b = _text(factor.a, names), _text(factor.b, names)
    if factor.name in ("Max", "Min"):
        return f"{factor.name.lower()}({a}, {b})"
    return f"({a} {'%' if factor.name == 'Mod' else '//'} {b})"


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_RELATIONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class TextCheck:
    """Checks arguments for a condition that a file has as text; it is read, never executed.

    Args:
        text (str): `L['x'].size()[0] != 3`.
        names (list[str]): how the leaves are called in it.
    """

    def __init__(self, text, names):
        self.text, self.names = text, names
        self.tree = ast.parse(text, mode="eval").body

    def __call__(self, leaves):
        try:
            holds = self._value(self.tree, leaves)
        except _NotUnderstoodError:
            return
        if not holds:
            raise AssertionError(f"Guard failed: {self.text}")

    def _value(self, node, leaves):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            a, b = self._value(node.left, leaves), self._value(node.right, leaves)
            return _OPERATORS[type(node.op)](a, b)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            value = self._value(node.operand, leaves)
            return -value if isinstance(node.op, ast.USub) else not value
        if isinstance(node, ast.BoolOp):
            decided = all if isinstance(node.op, ast.And) else any
            return decided([self._value(one, leaves) for one in node.values])
        if isinstance(node, ast.Compare) and all(type(op) in _RELATIONS for op in node.ops):
            values = [self._value(one, leaves) for one in (node.left, *node.comparators)]
            pairs = zip(node.ops, values, values[1:], strict=False)
            return all(RELATIONS[_RELATIONS[type(op)]](a, b) for op, a, b in pairs)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("max", "min"):
            chosen = max if node.func.id == "max" else min
            return chosen(self._value(one, leaves) for one in node.args)
        return self._source(node, leaves)

    def _source(self, node, leaves):
        """A size of an argument, or an argument."""
        text = ast.unparse(node)
        if text in self.names:
            return leaves[self.names.index(text)]
        if isinstance(node, ast.Subscript) and text.partition(".size()[")[0] in self.names:
            name, _, dim = text.partition(".size()[")
            return leaves[self.names.index(name)].shape[int(dim.rstrip("]"))]
        raise _NotUnderstoodError(text)


class _NotUnderstoodError(Exception):
    """A part of a condition that facula has no meaning for: the check is left out."""


def checks(program):
    """The checks of a loaded program's conditions.

    Returns:
        list[TextCheck]
    """
    if not program._guard_texts:
        return []
    names = sources(program)
    return [TextCheck(text, names) for text in program._guard_texts]

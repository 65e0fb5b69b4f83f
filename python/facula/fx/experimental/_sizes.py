"""Sizes of a traced program's arguments as symbols.

Tensors have plain sizes in C++. So a symbolic size has a *stand-in* while a program is traced: a
large prime that occurs nowhere else, with which the shape rules compute. A number in the trace that
an expression of the symbols has with the stand-ins is that expression; a large number that no
expression is found for makes the trace fail rather than be wrong, and the trace is checked against
that of the sample. Comparisons in Python are decided by the sample's sizes and noted as conditions.
"""

from __future__ import annotations

import contextlib
import operator

import facula
from facula._symbolic import SymBool, SymInt
from facula.fx.experimental._expressions import RELATIONS, Call, Expression, Relation, Symbol
from facula.fx.experimental._unbacked import UnbackedSymbols, holds_for_all, refuse
from facula.overrides import TorchFunctionMode
from facula.utils._pytree import tree_map

_STAND_INS = (10007, 14009, 18013, 22003, 26003, 30011, 34019, 38011, 42013, 46021, 50021, 54001)
_LARGEST_CONSTANT = 5000  # above it, numbers near stand-ins are taken for expressions of them
_FUNCTIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
# What is no whole number, or no product: of numbers it fixes them.
_FIXING = {"/": operator.truediv, "**": operator.pow}


class Fixed(Exception):
    """A program asked for the number behind symbols, which fixes their sizes."""

    def __init__(self, symbols):
        super().__init__(f"sizes that are numbers: {sorted(symbols)}")
        self.symbols = set(symbols)


class Undecided(RuntimeError):  # noqa: N818  (it says what the trace is)
    """A number in a trace comes from symbolic sizes, and no expression for it is found."""


class SizeNode:
    """The expression of a symbolic int."""

    def __init__(self, sizes, expr):
        self.sizes, self.expr = sizes, expr

    shape_env = property(lambda self: self.sizes)
    hint = property(lambda self: self.expr.value(self.sizes.samples))

    def fixed(self):
        """The number, which makes the sizes in the expression constants.

        Raises:
            GuardOnDataDependentSymNode: data decide it.
        """
        self.sizes.refuse_data(self.expr)
        raise Fixed(self.expr.symbols())

    def stand_in(self):
        """The number that stands for it in the trace."""
        return self.sizes.stand_in_of(self.expr)

    def binary(self, op, other, swapped=False):
        """A new symbolic int, computed with another or with a number; a tensor with a tensor."""
        if isinstance(other, facula.Tensor):
            pair = (other, self.stand_in()) if swapped else (self.stand_in(), other)
            return (_FUNCTIONS | _FIXING)[op](*pair)
        if op in _FIXING:
            pair = (other, self.fixed()) if swapped else (self.fixed(), other)
            return _FIXING[op](*pair)
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        a, b = self.expr, _expression_of(other)
        return self.sizes.computed(op, *((b, a) if swapped else (a, b)))

    def compare(self, op, other):
        """A comparison with another or with a number."""
        if isinstance(other, facula.Tensor):
            return RELATIONS[op](self.stand_in(), other)
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        relation = Relation(op, self.expr, _expression_of(other))
        if (relation.a - relation.b).is_number():
            return holds_for_all(relation)
        return SymBool(RelationNode(self.sizes, relation))


def _expression_of(value):
    return value.node.expr if isinstance(value, SymInt) else Expression.of(int(value))


class RelationNode:
    """The comparison of a symbolic bool."""

    def __init__(self, sizes, expr):
        self.sizes, self.expr = sizes, expr

    def decided(self):
        """Whether it holds for the sample; what follows relies on it.

        Raises:
            GuardOnDataDependentSymNode: data decide it.
        """
        if self.sizes.has_data(self.expr):
            holds = self.known()
            return self.sizes.refuse_data(self.expr) if holds is None else holds
        holds = self.expr.holds(self.sizes.samples)
        self.sizes.rely_on(self.expr if holds else self.expr.opposite())
        return holds

    def has_data(self):
        """Whether data decide it."""
        return self.sizes.has_data(self.expr)

    def known(self):
        """Whether it holds, as far as that is known without a sample; None where it is not."""
        return self.sizes.unbacked.decided(self.expr)

    def expect(self):
        """Whether it holds; what data decide is taken for true, and checked by the graph."""
        if not self.sizes.has_data(self.expr):
            return self.decided()
        if self.known() is False:
            return False
        self.sizes.check_in_graph(self.expr)
        return True

    def opposite(self):
        """The opposite, not decided."""
        return SymBool(RelationNode(self.sizes, self.expr.opposite()))


class Sizes:
    """The symbols of a trace: their samples and stand-ins, and conditions that were relied on."""

    def __init__(self):
        self.samples, self.stand_ins, self.conditions = {}, {}, []
        self.unbacked = UnbackedSymbols()
        self._slices = {}  # (size, start, end, step) -> the number that stands for the length
        self._sized = {}  # symbol without a sample -> (tensor, dim) that has this size
        self.answers_items = False
        self.writes_checks = True
        self._by_number, self._proxies = {}, {}
        self._tracer, self._inputs = None, []
        self.places = {}  # symbol -> (input, dim) that it can be read from; dim None for a number

    # --- symbols and numbers

    def add(self, name, sample):
        """A new symbol; returns its expression."""
        if self._count() == len(_STAND_INS):
            raise NotImplementedError(
                f"export(): at most {len(_STAND_INS)} sizes may be dynamic at once"
            )
        self.samples[name] = sample
        self.stand_ins[name] = _STAND_INS[self._count()]
        return self.known(Expression.of(Symbol(name)))

    def _count(self):
        return len(self.stand_ins) - len(self.unbacked.ranges)

    def known(self, expression):
        """Let the number of an expression stand for it; returns the expression."""
        self._by_number.setdefault(self.stand_in_of(expression), expression)
        return expression

    def stand_in_of(self, expression):
        """The number that stands for an expression in the trace."""
        return expression.value(self.stand_ins)

    def expression(self, number):
        """The expression that a number in the trace stands for; the number itself where none does.

        Raises:
            Undecided: the number comes from stand-ins in a way that is not known.
        """
        if abs(number) <= _LARGEST_CONSTANT // 2 or abs(number) >= 1 << 60:
            return Expression.of(number)
        found = self._by_number.get(number)
        if found is None:
            found = self._search(number)
            self._by_number[number] = found
        return found

    def _search(self, number):
        known = [e for e in self._by_number.values() if e.symbols()]
        for e in known:
            for other in known:
                for candidate in (e + other, e - other, e * other):
                    if candidate.value(self.stand_ins) == number:
                        return candidate
        for divisor in range(1, 17):
            for e in known:
                factor, rest = divmod(number * divisor, e.value(self.stand_ins))
                if factor and not rest:
                    return (e * factor) // divisor
        for e in known:
            value = e.value(self.stand_ins)
            factor = round(number / value) if value else 0
            if factor and abs(number - factor * value) <= 64:
                return e * factor + (number - factor * value)
        for e in known:
            value = e.value(self.stand_ins)
            divisor = round(value / number) if number else 0
            if 2 <= divisor <= 64:
                shift = value - number * divisor
                low = number - (value // divisor)
                if 0 <= shift < divisor or abs(low) <= 64:
                    return Expression.of(Call("//", e, Expression.of(divisor))) + low
        # What numbers from data make of it shows where the trace is checked.
        if number <= _LARGEST_CONSTANT or not self._count():
            return Expression.of(number)
        raise Undecided(f"no expression of the sizes {list(self.samples)} is known for {number}")

    def number(self, value):
        """A plain int for a number that is none of the symbols', else a SymInt."""
        found = self.expression(value)
        return value if found.is_number() else SymInt(SizeNode(self, found))

    def size_of(self, tensor):
        """The sizes of a tensor: a tuple, or None where none is symbolic."""
        found = [self.number(n) for n in _plain_shape(tensor)]
        return tuple(found) if any(isinstance(n, SymInt) for n in found) else None

    def texts(self, shape):
        """A shape as expressions, for printing."""
        shown = []
        for number in shape:
            try:
                shown.append(str(self.expression(number)))
            except Undecided:
                shown.append("?")
        return shown

    # --- arithmetic

    def computed(self, op, a, b):
        """A SymInt of two expressions, with a node in the graph that is written."""
        if op in ("max", "min"):
            result = Expression.of(Call("Max" if op == "max" else "Min", a, b))
        else:
            result = _FUNCTIONS[op](a, b)
        if result.is_number():
            return result.number()
        self._tell_apart(result)
        self.known(result)
        self._note(op, a, b, result)
        return SymInt(SizeNode(self, result))

    def _tell_apart(self, expression):
        """Give remainders, maxima and minima stand-ins that are no other expression's."""
        calls = {factor for factors in expression.terms for factor in factors}
        for call in calls:
            if not isinstance(call, Call) or call.name == "//" or repr(call) in self.stand_ins:
                continue
            if self._count() == len(_STAND_INS):
                raise Undecided(f"there is no stand-in left for {call}")
            self.stand_ins[repr(call)] = _STAND_INS[self._count()]

    def _note(self, op, a, b, result):
        if self._tracer is None or result in self._proxies:
            return
        target = _FUNCTIONS.get(op) or (facula.sym_max if op == "max" else facula.sym_min)
        name = {"%": "mod"}.get(op, target.__name__)
        given = tuple(self.argument(e) for e in (a, b))
        self.stands_for(
            result, self._tracer.create_proxy("call_function", target, given, {}, name=name)
        )

    def stands_for(self, expression, proxy):
        """Let a proxy stand for an expression."""
        self._proxies[expression] = proxy
        proxy.node.meta["val"] = SymInt(SizeNode(self, expression))

    def argument(self, expression):
        """What stands in a graph for an expression: a proxy, or a number."""
        if expression.is_number():
            return expression.number()
        if expression not in self._proxies:
            self._write(expression)
        return self._proxies[expression]

    def answer(self, relation):
        """What stands in a graph for a comparison: a proxy."""
        target = RELATIONS[relation.op]
        given = self.argument(relation.a), self.argument(relation.b)
        proxy = self._tracer.create_proxy("call_function", target, given, {}, name=target.__name__)
        proxy.node.meta["val"] = SymBool(RelationNode(self, relation))
        return proxy

    def starts_at(self, tracer, inputs):
        """Let symbols be read from the proxies of inputs when they are first used."""
        self._tracer, self._inputs = tracer, inputs
        for symbol, (position, dim) in self.places.items():
            if dim is None:
                self.stands_for(Expression.of(Symbol(symbol)), inputs[position])

    @contextlib.contextmanager
    def within(self, tracer, operands, inputs):
        """Context manager: another graph is written, whose inputs stand for these operands."""
        before = self._tracer, self._inputs, self._proxies, self.places, self._sized
        self._proxies, self.places, self._sized = {}, {}, {}
        for position, value in enumerate(operands):
            for dim, expression in self._dims(value):
                if str(expression) in self.samples:
                    self.places.setdefault(str(expression), (position, dim))
        try:
            self.starts_at(tracer, inputs)
            yield
        finally:
            self._tracer, self._inputs, self._proxies, self.places, self._sized = before

    def _dims(self, value):
        if isinstance(value, SymInt):
            return [(None, value.node.expr)]
        if not isinstance(value, facula.Tensor):
            return []
        return [(dim, self.expression(n)) for dim, n in enumerate(_plain_shape(value))]

    def _write(self, expression):
        """Nodes for an expression that no line of the program computes.

        Raises:
            Undecided: it is a symbol that no input has.
        """
        name = str(expression)
        if name in self._sized:
            tensor, dim = self._sized[name]
            self._read_size(expression, self._tracer.unwrap_proxy(tensor), dim)
            return
        if name in self.places:
            position, dim = self.places[name]
            self._read_size(expression, self._inputs[position], dim)
            return
        if name in self.samples:
            raise Undecided(f"the size {name} is that of no operand")
        total = None
        for factors, n in expression.terms.items():
            product = Expression.of(n)
            for factor in factors:
                if isinstance(factor, Call):
                    op = {"Max": "max", "Min": "min", "Mod": "%"}.get(factor.name, factor.name)
                    if Expression.of(factor) not in self._proxies:
                        self.argument(factor.a), self.argument(factor.b)
                        self._note(op, factor.a, factor.b, Expression.of(factor))
                step = product * Expression.of(factor)
                if product != Expression.of(1):
                    self._note("*", product, Expression.of(factor), step)
                product = step
            if total is not None:
                self._note("+", total, product, total + product)
                product = total + product
            total = product

    def _read_size(self, expression, proxy, dim):
        size = facula.ops.aten.sym_size.int
        node = self._tracer.create_proxy(
            "call_function", size, (proxy, dim), {}, name="sym_size_int"
        )
        self.stands_for(expression, node)

    # --- numbers from data

    def _add_unbacked(self, low, high):
        name = f"u{len(self.unbacked.ranges)}"
        self.stand_ins[name] = self.unbacked.stand_in()
        self.unbacked.ranges[name] = low, high
        return self.known(Expression.of(Symbol(name)))

    def size(self, limit=None, least=0):
        """The number that stands for the size of a result which data decide."""
        constant = limit is not None and self.expression(limit).is_number()
        found = self._add_unbacked(least, limit if constant else None)
        if limit is not None and not constant:
            self.unbacked.assume(Relation("<=", found, self.expression(limit)))
        return self.stand_in_of(found)

    def known_size_of_slice(self, size, start, end, step):
        """The number for the length of a slice whose ends data decide; None for a new one."""
        parts = self._parts_of_slice(size, start, end, step)
        size, start, end, step = parts
        if start == Expression.of(0) and step == Expression.of(1):
            fits = [Relation(">=", end, Expression.of(0)), Relation("<=", end, size)]
            if all(self.unbacked.decided(relation) for relation in fits):
                return self.stand_in_of(end)
        return self._slices.get(parts)

    def size_of_slice(self, dim, size, start, end, step):
        """The number for the length of a slice whose ends data decide; equal slices have one."""
        found = self.known_size_of_slice(size, start, end, step)
        if found is not None:
            return found
        found = self.size(size)
        parts = self._parts_of_slice(size, start, end, step)
        self._slices[parts] = found
        self.unbacked.derived[str(self.expression(found))] = lambda samples: _length(
            *(part.value(samples) for part in parts)
        )
        return found

    def _parts_of_slice(self, size, start, end, step):
        to_the_end = end >= 1 << 60
        return tuple(map(self.expression, (size, start, size if to_the_end else end, step)))

    def item(self, tracer, call):
        """The number that stands for the int which a call reads out of a tensor.

        Args:
            tracer: gets the call.
            call (tuple): operator, arguments, keywords.
        """
        if not self.answers_items:
            refuse(call[0])
        proxy = tracer.create_proxy("call_function", *call, name=call[0].overloadpacket.__name__)
        found = self._add_unbacked(None, None)
        self.stands_for(found, proxy)
        return self.stand_in_of(found)

    def note_results(self, tensors):
        """Let symbols be read from the tensors that a call has given."""
        for tensor in tensors:
            for dim, n in enumerate(_plain_shape(tensor)):
                found = self._by_number.get(n)
                if found is not None and str(found) in self.unbacked:
                    if found not in self._proxies:
                        self._sized.setdefault(str(found), (tensor, dim))

    def is_symbolic(self, value):
        """Whether an argument is a number from data."""
        if not self.unbacked.ranges or abs(value) <= _LARGEST_CONSTANT // 2:
            return False
        try:
            return self.has_data(self.expression(value))
        except Undecided:
            return False

    def has_data(self, expression):
        """Whether data decide the value of an expression or a comparison."""
        return any(name in self.unbacked for name in expression.symbols())

    def refuse_data(self, expression):
        """Raise GuardOnDataDependentSymNode where data decide a value."""
        from facula.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

        if self.has_data(expression):
            raise GuardOnDataDependentSymNode(
                expression,
                f"Could not guard on data-dependent expression {expression}: it has the value of "
                "no tensor yet. Say by torch._check() what holds, or use torch.cond()",
            )

    def check_in_graph(self, relation):
        """Take a comparison for true, and let the graph check it."""
        self.unbacked.assume(relation)
        if not self.writes_checks:
            return
        proxy = self.answer(relation)
        text = f"Runtime assertion failed for expression {relation} on node '{proxy.node.name}'"
        self._tracer.create_proxy(
            "call_function",
            facula.ops.aten._assert_scalar.default,
            (proxy, text),
            {},
            name="_assert_scalar_default",
        )

    def rely_on(self, relation):
        """Note a condition that the trace depends on."""
        if relation.symbols() and str(relation) not in {str(r) for r in self.conditions}:
            self.conditions.append(relation)

    # --- traces

    def replaced(self, value):
        """An argument of a node: numbers that stand for expressions become proxies."""
        if isinstance(value, int) and not isinstance(value, bool):
            return self.argument(self.expression(value))
        return value

    @contextlib.contextmanager
    def tracing(self, tracer):
        """Context manager: sizes that a program reads are symbolic."""
        self._tracer = tracer
        with _SizesMode(self):
            yield


def _plain_shape(tensor):
    with facula._C.DisableTorchFunction():
        return tuple(tensor.shape)


_ABOUT_VALUES = frozenset(("tensor", "as_tensor", "scalar_tensor"))


class _SizesMode(TorchFunctionMode):
    """Answers questions about sizes with symbols, and gives operators stand-ins."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", None)
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", None)
        if name in ("shape", "size") and args and isinstance(args[0], facula.Tensor):
            found = self.sizes.size_of(args[0])
            if found is not None:
                return self._size(found, *args[1:], **kwargs)
        if name in ("numel", "nelement", "__len__"):
            return self.sizes.number(func(*args, **kwargs))
        if name in ("item", "tolist"):
            return self._read_out(func, args, kwargs)
        if name == "__getitem__" and self._reads_by_data(args[1]):
            return self._item_by_data(args[0], _parts(args[1]))
        plain = tree_map(self._stand_in, (args, kwargs))
        if name in _ABOUT_VALUES:
            tree_map(_fix, (args, kwargs))
        return func(*plain[0], **plain[1])

    def _size(self, found, *dim, **kwargs):
        dim = dim or tuple(kwargs.values())
        return found[int(dim[0])] if dim and dim[0] is not None else found

    def _read_out(self, func, args, kwargs):
        self.sizes.answers_items = True
        try:
            found = func(*args, **kwargs)
        finally:
            self.sizes.answers_items = False
        return tree_map(lambda n: self.sizes.number(n) if type(n) is int else n, found)

    def _reads_by_data(self, index):
        """Whether data decide an index; only numbers and slices may be beside it."""
        parts = _parts(index)
        plain = all(isinstance(part, (int, slice, SymInt)) for part in parts)
        return plain and any(map(self._is_data, parts))

    def _is_data(self, index):
        if isinstance(index, slice):
            return any(map(self._is_data, (index.start, index.stop, index.step)))
        return isinstance(index, SymInt) and self.sizes.has_data(index.node.expr)

    def _item_by_data(self, tensor, indices):
        """What an index gives, by operators: indexing would compare it with the sizes."""
        for dim, index in reversed(list(enumerate(indices))):
            if isinstance(index, slice):
                parts = tree_map(self._stand_in, (index.start, index.stop, index.step))
                start, end, step = (
                    default if part is None else part
                    for part, default in zip(parts, (0, _END, 1), strict=True)
                )
                if (start, end, step) != (0, _END, 1):
                    tensor = facula.ops.aten.slice.Tensor(tensor, dim, start, end, step)
            else:
                tensor = facula.ops.aten.select.int(tensor, dim, self._stand_in(index))
        return tensor

    def _stand_in(self, value):
        if isinstance(value, SymInt):
            return self.sizes.stand_in_of(value.node.expr)
        return bool(value) if isinstance(value, SymBool) else value


_END = (1 << 63) - 1


def _parts(index):
    return index if isinstance(index, tuple) else (index,)


def _length(size, start, end, step):
    return len(range(size)[start:end:step])


def _fix(value):
    return int(value) if isinstance(value, SymInt) else value

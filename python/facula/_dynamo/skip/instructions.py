"""What each instruction of CPython 3.11 may work on in a function whose Python is to be skipped.

A rule is called before its instruction runs, with the values on the frame's stack. It refuses, or
returns None or a check of the stack after the instruction.
"""

from __future__ import annotations

import types
from collections import OrderedDict

import facula
from facula import _C
from facula._dynamo.skip import calls
from facula._dynamo.skip.values import (
    FACT,
    METHOD,
    OPERATOR,
    VALUE,
    Refused,
    is_argument,
    is_return_type,
    is_simple,
    is_tensor,
    look_up,
    read_attribute,
    read_truth,
)

DICT_SUBCLASSES = (OrderedDict,)
_ITERATORS = tuple(
    type(i)
    for i in (
        iter(()),
        iter([]),
        iter(range(0)),
        iter({}),
        iter({}.values()),
        iter({}.items()),
        reversed([]),
        enumerate(()),
        zip(strict=False),
        iter(OrderedDict().values()),
        iter(facula.Size(())),
    )
)
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
# Containers from anywhere, whose items are watched or cannot change; and what the call has to make.
WALKED = frozenset((tuple, list, range, str, facula.Size))
WALKED_ONCE = frozenset((*_ITERATORS, *_VIEWS))
_SINGLETONS = (None, True, False, Ellipsis, NotImplemented)

RULES = {}


def _rule(*names):
    def put(function):
        RULES.update(dict.fromkeys(names, function))
        return function

    return put


@_rule(
    *"RESUME NOP CACHE PRECALL POP_TOP PUSH_NULL COPY SWAP LOAD_CONST LOAD_FAST STORE_FAST "
    "DELETE_FAST MAKE_CELL COPY_FREE_VARS JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT "
    "POP_JUMP_FORWARD_IF_NONE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE "
    "POP_JUMP_BACKWARD_IF_NOT_NONE BUILD_TUPLE BUILD_SLICE LIST_TO_TUPLE RETURN_VALUE "
    "LIST_APPEND YIELD_VALUE".split()
)
def _nothing_outside(reader, frame, instruction, stack):
    return None


@_rule("KW_NAMES")
def _keywords(reader, frame, instruction, stack):
    frame.keywords = frame.code.co_consts[instruction.arg]


# ---- names


def _takes_top(reader):
    return lambda stack: reader.outside(stack[-1])


@_rule("LOAD_GLOBAL")
def _global(reader, frame, instruction, stack):
    name, function = instruction.argval, frame.function
    names, builtins = function.__globals__, frame.frame.f_builtins
    if type(names) is not dict or type(builtins) is not dict:
        raise Refused("its globals are no dict")
    reader.program.watch_item(names, name)
    if name not in names:
        reader.program.watch_item(builtins, name)
    return _takes_top(reader)


def _free_cell(frame, name):
    """The cell of a name of an enclosing function; None for the frame's own."""
    free = frame.code.co_freevars
    return frame.function.__closure__[free.index(name)] if name in free else None


@_rule("LOAD_CLOSURE")
def _closure(reader, frame, instruction, stack):
    if _free_cell(frame, instruction.argval) is None:
        return lambda after: reader.make_fresh(after[-1])
    return None


@_rule("LOAD_DEREF")
def _cell(reader, frame, instruction, stack):
    cell = _free_cell(frame, instruction.argval)
    if cell is None or reader.is_fresh(cell):
        return None
    reader.program.watch_cell(cell)
    return _takes_top(reader)


@_rule("STORE_DEREF")
def _store_cell(reader, frame, instruction, stack):
    cell = _free_cell(frame, instruction.argval)
    if cell is not None and not reader.is_fresh(cell):
        raise Refused(f"it sets {instruction.argval} of an enclosing function")


@_rule("MAKE_FUNCTION")
def _function(reader, frame, instruction, stack):
    return lambda after: reader.make_fresh(after[-1])


# ---- attributes


def _checks_attribute(reader, frame, found, at):
    """The check of an attribute that is `at(stack)` after the instruction."""
    if isinstance(found, types.FunctionType):
        frame.expected = found
        return None
    if found == VALUE:
        return lambda stack: reader.outside(at(stack))
    if found == OPERATOR:
        return lambda stack: reader.take_known(at(stack))
    return None


@_rule("LOAD_ATTR")
def _attribute(reader, frame, instruction, stack):
    found = read_attribute(reader, stack[-1], instruction.argval)
    return _checks_attribute(reader, frame, found, lambda after: after[-1])


@_rule("LOAD_METHOD")
def _method(reader, frame, instruction, stack):
    found = read_attribute(reader, stack[-1], instruction.argval)
    if found in (METHOD, FACT):
        return None
    # Of a method, there are function and object; of anything else, nothing and the object.
    return _checks_attribute(
        reader, frame, found, lambda after: after[-1] if after[-2] is _C._no_value else after[-2]
    )


# ---- calls


@_rule("CALL")
def _call(reader, frame, instruction, stack):
    first, *rest = stack[-(instruction.arg + 2) :]
    names, frame.keywords = frame.keywords, ()
    values = rest if first is _C._no_value else [first, *rest]
    positional = len(values) - 1 - len(names)
    return calls.check_call(
        reader,
        frame,
        values[0],
        values[1 : 1 + positional],
        dict(zip(names, values[1 + positional :], strict=False)),
    )


@_rule("CALL_FUNCTION_EX")
def _call_unpacked(reader, frame, instruction, stack):
    keywords = stack[-1] if instruction.arg & 1 else {}
    positional, function = (
        stack[-2 - (instruction.arg & 1) + 1],
        stack[-3 - (instruction.arg & 1) + 1],
    )
    if type(positional) is not tuple or type(keywords) is not dict:
        raise Refused("it passes on arguments that are no tuple or dict")
    return calls.check_call(reader, frame, function, list(positional), keywords)


# ---- operators


def _checks_result(reader, stack, operands):
    """The check of an operator's result on the top of the stack."""
    if all(is_simple(v) for v in operands):
        return None
    if any(is_tensor(v) for v in operands) and all(is_argument(v) for v in operands):
        return reader.calls_operator(operands)
    return False


def _refuse_operands(instruction, operands):
    names = " and ".join(type(v).__name__ for v in operands)
    raise Refused(f"it uses {instruction.opname} on {names}")


@_rule("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "COMPARE_OP")
def _operator(reader, frame, instruction, stack):
    operands = stack[-2:] if instruction.opname == "COMPARE_OP" else stack[-1:]
    check = _checks_result(reader, stack, operands)
    if check is False:
        _refuse_operands(instruction, operands)
    return check


@_rule("BINARY_OP")
def _binary(reader, frame, instruction, stack):
    check = _checks_result(reader, stack, stack[-2:])
    if check is not False:
        return check
    left, right = stack[-2:]
    sequences = type(left) in (list, tuple) and type(right) in (list, tuple, int)
    in_place = instruction.argrepr.endswith("=")
    if not sequences or (in_place and type(left) is list and not reader.is_fresh(left)):
        _refuse_operands(instruction, stack[-2:])

    def note(after):
        if type(after[-1]) is list:
            reader.make_fresh(after[-1])

    return note


@_rule("IS_OP")
def _identity(reader, frame, instruction, stack):
    left, right = stack[-2:]
    if any(v is s for v in (left, right) for s in _SINGLETONS):
        return
    if is_tensor(left) and is_tensor(right):
        return reader.compare_identity(left, right)
    for value in (left, right):
        if is_tensor(value) or is_simple(value) or type(value) in (list, dict, tuple):
            raise Refused("it asks whether two values are the same object")


@_rule("CONTAINS_OP")
def _contains(reader, frame, instruction, stack):
    needle, container = stack[-2:]
    if type(container) is dict and is_simple(needle):
        if not reader.is_own(container):
            reader.program.watch_item(container, needle)
        return
    plain = type(container) in (list, frozenset) and all(is_simple(v) for v in container)
    if not is_simple(needle) or not (plain or is_simple(container)):
        _refuse_operands(instruction, stack[-2:])


# ---- branches


@_rule(
    *"POP_JUMP_FORWARD_IF_TRUE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE "
    "POP_JUMP_BACKWARD_IF_FALSE JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP UNARY_NOT".split()
)
def _branch(reader, frame, instruction, stack):
    read_truth(reader, stack[-1])


# ---- containers


def _makes_fresh(reader, frame, instruction, stack):
    return lambda after: reader.make_fresh(after[-1])


RULES["BUILD_LIST"] = _makes_fresh


@_rule("BUILD_MAP", "BUILD_CONST_KEY_MAP")
def _map(reader, frame, instruction, stack):
    n = instruction.arg
    constant = instruction.opname == "BUILD_CONST_KEY_MAP"
    keys = stack[-1] if constant else stack[len(stack) - 2 * n :: 2]
    if not all(is_simple(k) for k in keys):
        raise Refused("it makes a dict whose keys are not simple")
    return lambda after: reader.make_fresh(after[-1])


@_rule("MAP_ADD")
def _map_add(reader, frame, instruction, stack):
    if not is_simple(stack[-2]):
        raise Refused("it makes a dict whose keys are not simple")


@_rule("LIST_EXTEND", "DICT_MERGE", "DICT_UPDATE")
def _extend(reader, frame, instruction, stack):
    frame.resumes = True
    reader.walk(stack[-1])


@_rule("FORMAT_VALUE", "BUILD_STRING")
def _text(reader, frame, instruction, stack):
    n = instruction.arg if instruction.opname == "BUILD_STRING" else 1 + (instruction.arg >> 2 & 1)
    if not all(is_simple(v) for v in stack[len(stack) - n :]):
        raise Refused("it makes a text of a value that is not simple")


@_rule("UNPACK_SEQUENCE")
def _unpack(reader, frame, instruction, stack):
    value = stack[-1]
    frame.resumes = True
    plain = type(value) in (tuple, list, facula.Size) or is_return_type(type(value))
    if not plain and not reader.is_own_generator(value):
        raise Refused(f"it unpacks a {type(value).__name__}")


@_rule("UNPACK_EX")
def _unpack_rest(reader, frame, instruction, stack):
    _unpack(reader, frame, instruction, stack)
    before = instruction.arg & 0xFF
    return lambda after: reader.make_fresh(after[-1 - before])


@_rule("GET_ITER")
def _iterator(reader, frame, instruction, stack):
    value = stack[-1]
    kind = type(value)
    plain = kind in WALKED or kind in (dict, *DICT_SUBCLASSES)
    if plain or kind in WALKED_ONCE or kind is types.GeneratorType:
        reader.walk(value)
        return _makes_fresh(reader, frame, instruction, stack)
    found = look_up(kind, "__iter__")
    if is_tensor(value) or not isinstance(found, types.FunctionType):
        raise Refused(f"it walks through a {kind.__name__}")
    reader.program.watch_instance(value)
    reader.program.watch_name(kind, "__iter__")
    frame.expected = found

    def check(after):
        reader.walk(after[-1])
        reader.make_fresh(after[-1])

    return check


@_rule("FOR_ITER")
def _next(reader, frame, instruction, stack):
    frame.resumes = True
    if not reader.is_fresh(stack[-1]):
        raise Refused(f"it walks through a {type(stack[-1]).__name__}")


@_rule("BINARY_SUBSCR")
def _item(reader, frame, instruction, stack):
    container, key = stack[-2:]
    kind = type(container)
    if is_tensor(container) and is_argument(key):
        return reader.calls_operator((container, key))
    if kind in (dict, *DICT_SUBCLASSES) and is_simple(key):
        if reader.is_own(container):
            return None
        reader.program.watch_item(container, key)
        return _takes_top(reader)
    if kind in (tuple, list, str, range, facula.Size) and is_simple(key) or is_return_type(kind):
        return (
            lambda after: type(after[-1]) is list
            and type(key) is slice
            and reader.make_fresh(after[-1])
        )
    found = look_up(kind, "__getitem__")
    if not isinstance(found, types.FunctionType):
        _refuse_operands(instruction, stack[-2:])
    reader.program.watch_instance(container)
    reader.program.watch_name(kind, "__getitem__")
    frame.expected = found
    return None


@_rule("STORE_SUBSCR")
def _store_item(reader, frame, instruction, stack):
    value, container, key = stack[-3:]
    if is_tensor(container) and is_argument(key) and is_argument(value):
        return reader.calls_operator((container, key, value), gives=False)
    if not reader.is_fresh(container) or not is_simple(key):
        raise Refused(f"it changes a {type(container).__name__} that it did not make")

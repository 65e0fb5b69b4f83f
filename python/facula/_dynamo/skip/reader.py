"""Reads one call of a function: every instruction of its frames, with the values it works on.

CPython runs the call; the reader only looks on. It follows one rule: each value is either a tensor
that the program knows, or follows from what the program watches. What it does not know it refuses,
and nothing is stored.
"""

from __future__ import annotations

import dis
import inspect
import types

from facula import _C
from facula._dynamo.skip import calls, instructions
from facula._dynamo.skip.values import Refused, is_return_type, is_tensor, read_truth

_CALL, _EXCEPTION, _RETURN, _OPCODE = 0, 1, 3, 7
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_OTHERS = "lt le eq ne gt ge neg pos abs invert getitem setitem len torch_function torch_dispatch"
# Methods that stand for Python's operators, or take the place of operators' own.
_SPECIAL_METHODS = tuple(f"__{p}{name}__" for name in _BINARY.split() for p in ("", "r", "i"))
_SPECIAL_METHODS += tuple(f"__{name}__" for name in _OTHERS.split())
_decoded = {}


def _decode(code):
    """The instructions of a code by offset, each with the offset of the one after it."""
    found = _decoded.get(code)
    if found is None:
        listed = list(dis.get_instructions(code))
        after = [i.offset for i in listed[1:]] + [None]
        found = _decoded[code] = {i.offset: (i, n) for i, n in zip(listed, after, strict=False)}
    return found


def _tensors_in(values):
    """The tensors in a nest of lists, tuples and slices."""
    for value in values:
        if type(value) in (list, tuple):
            yield from _tensors_in(value)
        elif type(value) is slice:
            yield from _tensors_in((value.start, value.stop, value.step))
        elif is_tensor(value):
            yield value


class Frame:
    """A frame that is read, and what its latest instruction has left to check."""

    def __init__(self, frame, function):
        self.frame = frame
        self.function = function
        self.code = frame.f_code
        self.instructions = _decode(self.code)
        self.keywords = ()
        self.expected = None  # the function that the instruction may call
        self.called = False  # whether it did
        self.walks = False  # whether what that function gives is walked through
        self.resumes = False  # whether it may run generators that the call has made
        self.asks_truth = False  # whether it asks for the truth of what they give
        self.check = None  # of the values on the stack after the instruction
        self.next = None  # offsets of instructions that may come next


class Reader:
    """Reads a call and builds the program that may stand for it.

    Attributes:
        program: what is watched and called.
        reason (str): why there is no program; None while there may be one.
    """

    def __init__(self):
        self.program = _C._SkipProgram()
        self.reason = None
        self.frames = []
        self._root = None
        self._result = None
        self._fresh = {}  # objects that the call has made, by id, which keeps them alive
        self._watched_kinds = set()
        self._generators = {}  # frames of generators that the call has made, by id
        self._given = {}  # lists and dicts among the arguments

    # ---- running

    def run(self, function, args, kwargs):
        """Call `function` and look on; what it raises passes through."""
        self._prepare(function, args, kwargs)
        if self.reason is not None:
            return function(*args, **kwargs)
        _C._watch_frames(self._look)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.reason = self.reason or f"it raised {type(error).__name__}"
            raise
        finally:
            _C._watch_frames(None)
            self.program.end()

    def _prepare(self, function, args, kwargs):
        try:
            for given in self.program.take_arguments(args, kwargs):
                self._given[id(given)] = given
            self._root = calls.root_function(self, function)
            self.program.begin()
        except (Refused, RuntimeError, TypeError) as error:
            self.reason = str(error)

    def finish(self, result):
        """The program, after the call gave `result`."""
        if self.frames or self._root is not None:
            raise Refused("it left frames that were not read to their end")
        self._check_result(result, set())
        self.program.finish(result)
        return self.program

    def _check_result(self, value, seen):
        if type(value) not in (list, dict, tuple):
            return
        if type(value) is not tuple:
            if id(value) not in self._fresh:
                raise Refused(f"it returns a {type(value).__name__} that it did not make")
            if id(value) in seen:
                raise Refused("it returns the same list twice")
            seen.add(id(value))
        for item in value.values() if type(value) is dict else value:
            self._check_result(item, seen)

    # ---- events

    def _look(self, event, frame, function, offset, stack):
        try:
            if event == _OPCODE:
                self._instruction(frame, offset, stack)
            elif event == _CALL:
                self._enter(frame, function)
            elif event == _RETURN:
                self._leave(frame, stack[0])
            else:
                raise Refused("it raises an exception on its way")
        except Exception as error:
            self.reason = f"{error} ({self._place()})"
            for f in self.frames:
                f.frame.f_trace_opcodes = False
            return False
        return True

    def _place(self):
        if not self.frames:
            return "at its beginning"
        frame = self.frames[-1].frame
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def _enter(self, frame, function):
        if id(frame) in self._generators:
            return self._resume(frame, function)
        expected = self.frames[-1].expected if self.frames else self._root
        if function is not expected:
            raise Refused(f"{frame.f_code.co_qualname}() runs without being called by it")
        if self.frames:
            self.frames[-1].expected = None
            self.frames[-1].called = True
        self._root = None
        self.check_function(function)
        code = frame.f_code
        if code.co_flags & inspect.CO_VARKEYWORDS:
            at = code.co_argcount + code.co_kwonlyargcount
            at += 1 if code.co_flags & inspect.CO_VARARGS else 0
            self.make_fresh(frame.f_locals[code.co_varnames[at]])
        self.frames.append(Frame(frame, function))

    def check_function(self, function):
        """Watch what a call of a function depends on, but for what its instructions read."""
        code = function.__code__
        if code.co_flags & _COROUTINE:
            raise Refused(f"{code.co_qualname}() is a coroutine")
        if code.co_exceptiontable:
            raise Refused(f"{code.co_qualname}() handles exceptions or has a with statement")
        if id(function) in self._fresh:
            return
        self.program.watch_function(function)
        for value in function.__defaults__ or ():
            self.outside(value)
        for value in (function.__kwdefaults__ or {}).values():
            self.outside(value)

    def _resume(self, frame, function):
        """Go on with a generator, which only an instruction of the call can have asked for."""
        if not self.frames or not self.frames[-1].resumes:
            raise Refused(f"{frame.f_code.co_qualname}() runs without being called by it")
        f = self._generators[id(frame)] or Frame(frame, function)
        self._generators[id(frame)] = f
        f.next = f.check = None
        self.frames.append(f)

    def make_generator(self, generator):
        """Note a generator that the call itself has made."""
        self.make_fresh(generator)
        self.make_fresh(generator.gi_frame)
        self._generators[id(generator.gi_frame)] = None

    def _leave(self, frame, value):
        if not self.frames or self.frames[-1].frame is not frame:
            raise Refused("a frame ends that was not read")
        last = self.frames.pop()
        if not self.frames:
            return
        if self.frames[-1].walks:
            self.walk(value)
        if self.frames[-1].asks_truth and id(last.frame) in self._generators:
            read_truth(self, value)

    def _instruction(self, frame, offset, stack):
        if not self.frames or self.frames[-1].frame is not frame:
            raise Refused("a frame runs that was not read from its beginning")
        f = self.frames[-1]
        if f.next is not None and offset not in f.next:
            raise Refused("instructions run in an order that was not expected")
        if f.check is not None:
            check, f.check = f.check, None
            check(stack)
        f.expected, f.called, f.walks, f.resumes, f.asks_truth = None, False, False, False, False
        found, after = f.instructions[offset]
        while found.opname == "EXTENDED_ARG":
            found, after = f.instructions[after]
        # Inline caches have no instructions of their own in the listing.
        f.next = {after}
        if found.opcode in dis.hasjrel or found.opcode in dis.hasjabs:
            f.next.add(found.argval)
        rule = instructions.RULES.get(found.opname)
        if rule is None:
            raise Refused(f"it has an instruction {found.opname}")
        f.check = rule(self, f, found, stack)

    # ---- values

    def make_fresh(self, value):
        """Note an object that the call itself has made."""
        self._fresh[id(value)] = value

    def is_fresh(self, value):
        """Whether the call itself has made an object."""
        return id(value) in self._fresh

    def is_own(self, value):
        """Whether what a list or dict has follows from the arguments and the call."""
        return id(value) in self._fresh or id(value) in self._given

    def outside(self, value):
        """Take a value that was read from where other code can put things."""
        kind = type(value)
        if is_tensor(value):
            self.program.hold(value)
        elif kind is tuple:
            for item in value:
                self.outside(item)
        elif kind is slice:
            self.outside((value.start, value.stop, value.step))
        elif kind in (types.MethodType, types.BuiltinFunctionType):
            self.outside(value.__self__)
        elif is_return_type(kind):
            raise Refused("the result of an operator comes from elsewhere")
        elif kind is list:
            if self.is_own(value):
                raise Refused("a list comes both as an argument and from elsewhere")
            self.program.watch_list(value)
            for item in value:
                self.outside(item)
        elif kind is dict and self.is_own(value):
            raise Refused("a dict comes both as an argument and from elsewhere")

    def walk(self, value):
        """Take all items of a container or iterator that is walked through."""
        kind = type(value)
        if kind in (dict, *instructions.DICT_SUBCLASSES):
            self.walk_dict(value)
        elif kind in instructions.WALKED_ONCE or kind is types.GeneratorType:
            # Of one from elsewhere the call would take what nobody gives back.
            if id(value) not in self._fresh:
                raise Refused(f"it walks through a {kind.__name__} that it did not make")
        elif kind not in instructions.WALKED:
            raise Refused(f"it walks through a {kind.__name__}")

    def is_own_generator(self, value):
        """Whether a value is a generator that the call has made."""
        return type(value) is types.GeneratorType and id(value) in self._fresh

    def walk_dict(self, value):
        """Take all items of a dict."""
        if self.is_own(value):
            return
        self.program.watch_dict(value)
        for key, item in value.items():
            self.outside(key)
            self.outside(item)

    def calls_operator(self, values, gives=True):
        """What has to hold after operators were called with values by the binding.

        A tensor among them that no operator took as a tensor was read for the number in it.
        """
        self.program.forget_used()
        for value in values:
            if is_tensor(value):
                self.watch_operators(type(value))

        def check(stack):
            for tensor in _tensors_in(values):
                if not self.program.was_used(tensor):
                    raise Refused("an operator reads the number in a tensor")
            if not gives:
                return
            self.take_known(stack[-1])
            # Operators on lists give the list that they were given.
            if type(stack[-1]) is list and not any(stack[-1] is v for v in values):
                self.make_fresh(stack[-1])

        return check

    def compare_identity(self, left, right):
        """Take the answer whether two tensors are the same object.

        Of arguments it follows from that they differ from each other and from tensors held.
        """
        if not (self.program.is_known(left) and self.program.is_known(right)):
            raise Refused("it compares a tensor of unknown origin")
        if left is not right:
            self.program.need_distinct_arguments()

    def watch_operators(self, kind):
        """Watch the methods of a class of tensors that stand for Python's operators."""
        if kind not in self._watched_kinds:
            self._watched_kinds.add(kind)
            for name in _SPECIAL_METHODS:
                self.program.watch_name(kind, name)

    def take_known(self, value):
        """Take what an operator gave: tensors that the program knows, in tuples and lists."""
        if is_tensor(value):
            if not self.program.is_known(value):
                raise Refused("an operator gives a tensor of unknown origin")
        elif isinstance(value, (tuple, list)):
            for item in value:
                self.take_known(item)
        else:
            raise Refused(f"an operator gives a {type(value).__name__}")

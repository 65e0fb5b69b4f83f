"""A pickle reader that never executes anything.

It builds containers, numbers, strings and what `_globals` allows, and no more: a callable of the
file is called only when it is one of our rebuild functions, or when the user allowed it.
"""

import _codecs
import io
import pickle
from _pickle import UnpicklingError
from collections import Counter, OrderedDict
from struct import Struct

import facula

from . import _rebuild
from ._globals import safe_global, user_globals

# Hashing a tuple recurses in C and can take exponential time when parts are shared.
_MAX_KEY_NODES = 10_000
_MAX_KEY_DEPTH = 100
# Copies and keys cost more than the bytes of the file that ask for them: a few of them may name the
# same large object again and again. So they are counted, against what was read of the file.
_FREE_WORK = 1_000_000
_WORK_PER_BYTE = 4
_CHEAP_KEYS = frozenset({str, bool, float, type(None)})
_CHUNK = 1 << 16
_U16, _U32, _I32, _U64 = Struct("<H"), Struct("<I"), Struct("<i"), Struct("<Q")
_F64 = Struct(">d")
_MARK = object()


_MALFORMED = (
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


_SIZED = (tuple, list, dict, set, str, bytes, bytearray)


def _shown(value):
    # Only functions and classes: the text of other values may be large, or recurse deeply.
    is_short = isinstance(value, (type, int, str)) or hasattr(value, "__qualname__")
    return f"{value!r:.80}" if is_short else f"an object of {type(value)}"


def _key_cost(key):
    """How many parts Python hashes and compares for a dict key or set member.

    Raises:
        UnpicklingError: there are too many of them, or they stand too deep for Python's stack.
    """
    if isinstance(key, (bytes, str, frozenset)):
        return len(key) >> 6
    if isinstance(key, int):
        return key.bit_length() >> 6
    if not isinstance(key, tuple):
        return 0
    level, nodes = [key], 0
    for _ in range(_MAX_KEY_DEPTH):
        parts = [part for item in level for part in item]
        nodes += len(parts) + sum(_key_cost(part) for part in parts if type(part) is not tuple)
        level = [part for part in parts if isinstance(part, tuple)]
        if not level:
            return nodes
        if nodes > _MAX_KEY_NODES:
            break
    raise UnpicklingError("a key is nested too deeply")


def _items_of(args, name):
    if not args:
        return []
    if len(args) != 1 or not isinstance(args[0], (list, tuple, set)):
        raise UnpicklingError(f"{name} takes one list")
    return args[0]


def _make_set(args):
    return set(_items_of(args, "set"))


def _make_ordered_dict(args):
    result = OrderedDict()
    for pair in _items_of(args, "OrderedDict"):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UnpicklingError("OrderedDict takes pairs")
        result[pair[0]] = pair[1]
    return result


def _make_counter(args):
    if not args or isinstance(args[0], dict):
        return Counter(*args)
    return Counter(_items_of(args, "Counter"))


# What these are given becomes keys: what a call of them hashes, from its arguments.
_KEYS_OF = {
    set: lambda args: _items_of(args, "set"),
    OrderedDict: lambda args: [pair[0] for pair in _items_of(args, "OrderedDict") if pair],
    Counter: lambda args: args[0] if args else (),
}


def _make_bytearray(args):
    # bytearray(number) would allocate as much as the file asks for.
    if args and not isinstance(args[0], (bytes, str)):
        raise UnpicklingError("bytearray takes bytes")
    return bytearray(*args)


def _make_complex(args):
    if any(type(part) not in (int, float) for part in args):
        raise UnpicklingError("complex takes numbers")
    return complex(*args)


def _make_bytes(args):
    if len(args) != 2 or not isinstance(args[0], str) or args[1] != "latin1":
        raise UnpicklingError("encode takes a string and latin1")
    return _codecs.encode(args[0], "latin1")


def _make_size(args):
    items = _items_of(args, "Size")
    if any(type(item) is not int for item in items):
        raise UnpicklingError("Size takes integers")
    return facula.Size(items)


def _make_device(args):
    if not args or len(args) > 2 or not isinstance(args[0], str) or len(args[0]) > 100:
        raise UnpicklingError("device takes a name and an index")
    return facula.device(*args)


def _make_parameter(args):
    if not args or not all(isinstance(arg, (facula.Tensor, bool)) for arg in args):
        raise UnpicklingError("Parameter takes a tensor and a bool")
    return _rebuild.rebuild_parameter(args[0], args[1] if len(args) > 1 else True, None)


def _makers():
    from facula.nn.parameter import Parameter

    return {
        set: _make_set,
        OrderedDict: _make_ordered_dict,
        Counter: _make_counter,
        bytearray: _make_bytearray,
        complex: _make_complex,
        _codecs.encode: _make_bytes,
        facula.Size: _make_size,
        facula.device: _make_device,
        Parameter: _make_parameter,
    }


class SafeUnpickler:
    """Reads one pickle from a stream of bytes.

    Args:
        stream: a seekable file object, read from its position; left after the pickle.
        persistent_load (callable): gives the object for a persistent id.
        encoding (str): of strings written by Python 2.
        allowed (iterable): functions and classes that may be named, beside those for all.
    """

    def __init__(self, stream, persistent_load, *, encoding="utf-8", allowed=()):
        self._stream, self._start = stream, stream.tell()
        self._data = bytearray()
        self._persistent_load = persistent_load
        self._encoding = encoding
        self._user = user_globals(allowed)
        self._user_objects = list(self._user.values())
        # By identity: what a file calls a function may be anything, and must not be hashed.
        self._makers = {id(kind): (kind, make) for kind, make in _makers().items()}
        self._functions = frozenset(map(id, _rebuild.FUNCTIONS.values()))
        self._work = 0
        self._at = 0
        self._stack = []
        self._memo = {}
        self._foreign_error = None

    def load(self):
        """The object of the pickle.

        Raises:
            EOFError: the pickle ends too early.
            UnpicklingError: it is malformed, or names what is not allowed.
        """
        try:
            return self._run()
        except _MALFORMED as error:
            if error is self._foreign_error:
                raise
            text = f"malformed pickle at byte {self._at}: {type(error).__name__}: {error}"
            raise UnpicklingError(text) from error

    def _run(self):
        stop = ord(".")
        while True:
            code = self._take(1)[0]
            if code == stop:
                self._stream.seek(self._start + self._at)
                return self._pop()
            step = _STEPS.get(code)
            if step is None:
                raise UnpicklingError(f"Unsupported operand {code} at byte {self._at - 1}")
            step(self)

    def _spend(self, work):
        self._work += work
        if self._work > _FREE_WORK + _WORK_PER_BYTE * len(self._data):
            raise UnpicklingError("it copies or compares far more than its size")

    def _spend_on(self, args):
        """Counts what a call copies of its arguments: the items of containers, one level deep."""
        for arg in args:
            if not isinstance(arg, _SIZED):
                continue
            self._spend(len(arg))
            if isinstance(arg, tuple):
                self._spend(sum(len(part) for part in arg if isinstance(part, _SIZED)))

    def _spend_on_key(self, key):
        if type(key) not in _CHEAP_KEYS:
            self._spend(_key_cost(key))

    def _take(self, count):
        end = self._at + count
        while end > len(self._data):
            self._read_more()
        piece = bytes(self._data[self._at : end])
        self._at = end
        return piece

    def _read_more(self):
        # In pieces, so that a count that lies allocates no more than the file has.
        piece = self._stream.read(_CHUNK)
        if not piece:
            raise EOFError(f"load(): the pickle ends at byte {len(self._data)}, within an item")
        self._data += piece

    def _line(self):
        end = self._data.find(b"\n", self._at)
        while end < 0:
            searched = len(self._data)
            try:
                self._read_more()
            except EOFError as error:
                raise UnpicklingError("pickle data was truncated") from error
            end = self._data.find(b"\n", searched)
        line = self._data[self._at : end]
        self._at = end + 1
        return line.decode("utf-8")

    def _number(self, form):
        return form.unpack(self._take(form.size))[0]

    def _sized(self, form):
        return self._take(self._number(form))

    def _push(self, value):
        self._stack.append(value)

    def _pop(self):
        value = self._stack.pop()
        if value is _MARK:
            raise UnpicklingError("a mark stands where a value is expected")
        return value

    def _top(self, *kinds):
        value = self._stack[-1]
        if not isinstance(value, kinds):
            raise UnpicklingError(f"cannot add items to {type(value).__name__}")
        return value

    def _pop_to_mark(self):
        for index in range(len(self._stack) - 1, -1, -1):
            if self._stack[index] is _MARK:
                items = self._stack[index + 1 :]
                del self._stack[index:]
                return items
        raise UnpicklingError("no mark on the stack")

    def _set_items(self, items):
        target = self._top(dict)
        if len(items) % 2:
            raise UnpicklingError("a key has no value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._spend_on_key(key)
            target[key] = value

    def _append(self, items):
        self._top(list).extend(items)

    def _add_items(self):
        items = self._pop_to_mark()
        for item in items:
            self._spend_on_key(item)
        self._top(set).update(items)

    def _frozen(self):
        items = self._pop_to_mark()
        for item in items:
            self._spend_on_key(item)
        self._push(frozenset(items))

    def _put(self, index):
        if not self._stack or self._stack[-1] is _MARK:
            raise UnpicklingError("nothing to remember")
        self._memo[index] = self._stack[-1]

    def _get(self, index):
        if index not in self._memo:
            raise UnpicklingError(f"Memo value not found at index {index}")
        self._push(self._memo[index])

    def _global(self, module, name):
        self._push(safe_global(module, name, self._user))

    def _stack_global(self):
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise UnpicklingError("STACK_GLOBAL requires str")
        self._global(module, name)

    def _is_user_allowed(self, target):
        return any(target is allowed for allowed in self._user_objects)

    def _reduce(self):
        args, function = self._pop(), self._pop()
        if not isinstance(args, tuple):
            raise UnpicklingError("arguments of a call are not a tuple")
        if self._is_user_allowed(function):
            self._push(self._call_foreign(function, args))
            return
        self._spend_on(args)
        if id(function) in self._functions:
            self._push(self._rebuild(function, args))
        elif id(function) in self._makers:
            self._push(self._make(function, args))
        else:
            raise UnpicklingError(
                f"load(): weights_only=True does not call this function: {_shown(function)}"
            )

    def _make(self, function, args):
        kind, make = self._makers[id(function)]
        if kind in _KEYS_OF:
            for key in _KEYS_OF[kind](args):
                if type(key) not in _CHEAP_KEYS:
                    self._spend(_key_cost(key))
        return make(args)

    def _rebuild(self, function, args):
        if function is not _rebuild.rebuild_from_type:
            return function(*args)
        inner, new_type, *_ = args
        is_ours = id(inner) in self._functions and inner is not _rebuild.rebuild_from_type
        if not is_ours and not self._is_user_allowed(inner):
            raise UnpicklingError(f"Trying to rebuild a tensor with {_shown(inner)}")
        return function(*args)

    def _new_object(self):
        args, kind = self._pop(), self._pop()
        if not self._is_user_allowed(kind):
            raise UnpicklingError(
                f"Trying to call __new__ of {_shown(kind)}, which add_safe_globals has not allowed"
            )
        self._push(kind.__new__(kind, *args))

    def _build(self):
        state = self._pop()
        self._spend_on((state,))
        target = self._stack[-1]
        if type(target) is OrderedDict:
            self._set_dict(target, state)
        elif type(target) in self._tensor_types():
            _rebuild.set_state(target, state)
        elif self._is_user_allowed(type(target)):
            self._build_user_object(target, state)
        else:
            raise UnpicklingError(
                "load(): weights_only=True builds tensors, parameters, OrderedDicts and classes "
                f"of add_safe_globals(); got {_shown(target)}"
            )

    def _tensor_types(self):
        from facula.nn.parameter import Parameter

        return facula.Tensor, Parameter

    def _set_dict(self, target, state):
        if not isinstance(state, dict) or any(not isinstance(name, str) for name in state):
            raise UnpicklingError("attributes are not a dict with names")
        target.__dict__.update(state)

    def _build_user_object(self, target, state):
        if hasattr(type(target), "__setstate__"):
            target.__setstate__(state)
        else:
            _rebuild.set_state(target, state)

    def _persistent(self):
        self._push(self._call_foreign(self._persistent_load, (self._pop(),)))

    def _call_foreign(self, function, args):
        # An error of the user's code is not one of the file: it passes unchanged.
        try:
            return function(*args)
        except Exception as error:
            self._foreign_error = error
            raise

    def _integer_line(self):
        line = self._line()
        if line in ("00", "01"):
            return line == "01"
        return int(line.rstrip("L"))

    def _text_line(self):
        line = self._line()
        if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
            raise UnpicklingError("a string is not quoted")
        raw = _codecs.escape_decode(line[1:-1].encode("latin1"))[0]
        return self._old_text(raw)

    def _old_text(self, raw):
        return raw if self._encoding == "bytes" else raw.decode(self._encoding)

    def _protocol(self):
        version = self._take(1)[0]
        if version > 5:
            raise UnpicklingError(f"unsupported pickle protocol: {version}")

    def _dict_of(self, items):
        self._push({})
        self._set_items(items)


def _text(raw):
    return raw.decode("utf-8", "surrogatepass")


def _long(raw):
    return int.from_bytes(raw, "little", signed=True)


def _pushes(make):
    return lambda self: self._push(make(self))


def _tuple_of(count):
    def step(self):
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    return step


def _set_item(self):
    value, key = self._pop(), self._pop()
    self._set_items([key, value])


def _append_one(self):
    value = self._pop()
    self._append([value])


def _top_copy(self):
    value = self._pop()
    self._stack += [value, value]


_BYTE = Struct("B")
_STEPS = {
    ord(code): step
    for code, step in {
        "\x80": SafeUnpickler._protocol,
        "\x95": lambda self: self._take(8),
        "(": lambda self: self._stack.append(_MARK),
        "0": lambda self: self._stack.pop(),
        "1": lambda self: self._pop_to_mark(),
        "2": _top_copy,
        "N": _pushes(lambda self: None),
        "\x88": _pushes(lambda self: True),
        "\x89": _pushes(lambda self: False),
        "I": _pushes(SafeUnpickler._integer_line),
        "L": _pushes(SafeUnpickler._integer_line),
        "J": _pushes(lambda self: self._number(_I32)),
        "K": _pushes(lambda self: self._number(_BYTE)),
        "M": _pushes(lambda self: self._number(_U16)),
        "\x8a": _pushes(lambda self: _long(self._sized(_BYTE))),
        "\x8b": _pushes(lambda self: _long(self._sized(_U32))),
        "F": _pushes(lambda self: float(self._line())),
        "G": _pushes(lambda self: self._number(_F64)),
        "S": _pushes(SafeUnpickler._text_line),
        "T": _pushes(lambda self: self._old_text(self._sized(_U32))),
        "U": _pushes(lambda self: self._old_text(self._sized(_BYTE))),
        "V": _pushes(lambda self: self._line().encode("latin1").decode("raw-unicode-escape")),
        "X": _pushes(lambda self: _text(self._sized(_U32))),
        "\x8c": _pushes(lambda self: _text(self._sized(_BYTE))),
        "\x8d": _pushes(lambda self: _text(self._sized(_U64))),
        "B": _pushes(lambda self: self._sized(_U32)),
        "C": _pushes(lambda self: self._sized(_BYTE)),
        "\x8e": _pushes(lambda self: self._sized(_U64)),
        "\x96": _pushes(lambda self: bytearray(self._sized(_U64))),
        "]": _pushes(lambda self: []),
        ")": _pushes(lambda self: ()),
        "}": _pushes(lambda self: {}),
        "\x8f": _pushes(lambda self: set()),
        "l": lambda self: self._push(self._pop_to_mark()),
        "t": lambda self: self._push(tuple(self._pop_to_mark())),
        "d": lambda self: self._dict_of(self._pop_to_mark()),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "a": _append_one,
        "e": lambda self: self._append(self._pop_to_mark()),
        "s": _set_item,
        "u": lambda self: self._set_items(self._pop_to_mark()),
        "\x90": SafeUnpickler._add_items,
        "\x91": SafeUnpickler._frozen,
        "p": lambda self: self._put(int(self._line())),
        "q": lambda self: self._put(self._number(_BYTE)),
        "r": lambda self: self._put(self._number(_U32)),
        "\x94": lambda self: self._put(len(self._memo)),
        "g": lambda self: self._get(int(self._line())),
        "h": lambda self: self._get(self._number(_BYTE)),
        "j": lambda self: self._get(self._number(_U32)),
        "c": lambda self: self._global(self._line(), self._line()),
        "\x93": SafeUnpickler._stack_global,
        "R": lambda self: self._reduce(),
        "\x81": lambda self: self._new_object(),
        "b": lambda self: self._build(),
        "Q": SafeUnpickler._persistent,
    }.items()
}


class _Unknown:
    """Stands for whatever a pickle would have built."""

    def extend(self, items):
        """Drops items."""

    update = extend

    def __setitem__(self, key, value):
        """Drops an item."""


class ScanningUnpickler(SafeUnpickler):
    """Walks through a pickle for its persistent ids and its end; calls and imports nothing."""

    def _global(self, module, name):
        last = module == "torch" or module in ("torch.cuda", "torch.storage")
        is_storage = last and name.endswith("Storage")
        self._push(safe_global(module, name, {}) if is_storage else _Unknown())

    def _top(self, *kinds):
        value = self._stack[-1]
        return value if isinstance(value, _Unknown) else super()._top(*kinds)

    def _reduce(self):
        del self._stack[-2:]
        self._push(_Unknown())

    _new_object = _reduce

    def _build(self):
        self._pop()


class _Anything:
    """Stands for an object of any class, and for any function: whatever is done to it is lost."""

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return self

    def __setstate__(self, state):
        pass

    def append(self, item):
        """Drops an item."""

    extend = add = update = append

    def __setitem__(self, key, value):
        pass


class FastScanner(pickle.Unpickler):
    """What ScanningUnpickler does at C's speed, for files that are trusted.

    Args:
        stream: a file object of bytes.
        note (callable): is shown each persistent id.
    """

    def __init__(self, stream, note):
        super().__init__(stream, encoding="latin1")
        self._note = note

    def persistent_load(self, pid):
        """Shows a persistent id."""
        self._note(pid)
        return _Anything()

    def find_class(self, module, name):
        """A storage class, or what stands for anything."""
        is_storage = module in ("torch", "torch.cuda", "torch.storage") and name.endswith("Storage")
        return safe_global(module, name, {}) if is_storage else _Anything


def unsafe_globals(data):
    """Names in a pickle that weights_only=True refuses; returns a sorted list of strings."""
    import pickletools

    from ._globals import is_safe_global

    found, texts = set(), []
    for opcode, argument, _ in pickletools.genops(io.BytesIO(data)):
        if "UNICODE" in opcode.name:
            texts.append(argument)
        elif opcode.name in ("GLOBAL", "INST"):
            found.add(tuple(argument.split(" ", 1)))
        elif opcode.name == "STACK_GLOBAL":
            found.add(tuple(texts[-2:]))
    return sorted(".".join(pair) for pair in found if not is_safe_global(*pair))

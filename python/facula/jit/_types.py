"""TorchScript's types as objects: what annotations and schemas of operators are made of.

They stand for themselves - compared, printed, taken apart - as programs and packages name them in
annotations; there is no compiler that would check values by them.
"""

from __future__ import annotations

import facula


class Type:
    """A type of TorchScript; its subclasses have `get()` or are built from other types."""

    _text = ""
    _parts = ()

    def __init__(self):
        raise TypeError(f"{type(self).__name__}: expected to be asked for by get()")

    def kind(self):
        """The name of the class."""
        return type(self).__name__

    def str(self):
        """The type as schemas write it."""
        return self.annotation_str

    @property
    def annotation_str(self):
        """The type as annotations write it."""
        if not self._parts:
            return self._text
        return f"{self._text}[{', '.join(part.annotation_str for part in self._parts)}]"

    def containedTypes(self):
        """The types that this one is built from."""
        return list(self._parts)

    def isSubtypeOf(self, other):
        """Whether a value of this type is one of another type, too."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, OptionalType):
            return isinstance(self, NoneType) or _inside(self).isSubtypeOf(other.getElementType())
        if isinstance(other, UnionType):
            members = self._parts if isinstance(self, UnionType) else (self,)
            return all(any(one.isSubtypeOf(of) for of in other._parts) for one in members)
        if isinstance(other, TupleType) and isinstance(self, TupleType):
            pairs = zip(self._parts, other._parts, strict=False)
            return len(self._parts) == len(other._parts) and all(a.isSubtypeOf(b) for a, b in pairs)
        return isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))

    def is_interface_type(self):
        """Whether the type is an interface."""
        return False

    def __eq__(self, other):
        if not isinstance(other, Type):
            return NotImplemented
        return type(self) is type(other) and self._parts == other._parts

    __hash__ = None

    def __repr__(self):
        return self.annotation_str


def _inside(kind):
    return kind.getElementType() if isinstance(kind, OptionalType) else kind


class _Simple(Type):
    """A type without parts, of which there is one object."""

    @classmethod
    def get(cls):
        """The type."""
        if "_instance" not in cls.__dict__:
            cls._instance = object.__new__(cls)
        return cls._instance


def _simple(name, text, about):
    return type(name, (_Simple,), {"_text": text, "__doc__": about, "__module__": __name__})


AnyType = _simple("AnyType", "Any", "Every value.")
BoolType = _simple("BoolType", "bool", "True and False.")
ComplexType = _simple("ComplexType", "complex", "Complex numbers.")
DeviceObjType = _simple("DeviceObjType", "Device", "Devices.")
FloatType = _simple("FloatType", "float", "Floating-point numbers.")
IntType = _simple("IntType", "int", "Integers.")
NoneType = _simple("NoneType", "NoneType", "None.")
NumberType = _simple("NumberType", "number", "Integers, floating-point and complex numbers.")
PyObjectType = _simple("PyObjectType", "PyObject", "Any object of Python.")
StreamObjType = _simple("StreamObjType", "Stream", "Streams of a device.")
StringType = _simple("StringType", "str", "Text.")
SymBoolType = _simple("SymBoolType", "bool", "Truth that depends on sizes.")
SymIntType = _simple("SymIntType", "int", "Sizes that may be unknown.")


class TensorType(_Simple):
    """Tensors; one made by `create_from_tensor` also knows a geometry."""

    _text = "Tensor"
    _example = None

    @classmethod
    def create_from_tensor(cls, tensor):
        """The type of tensors with this one's dtype, device and geometry."""
        made = object.__new__(cls)
        made._example = tensor
        return made

    @classmethod
    def getInferred(cls):
        """The type of what bears no annotation."""
        return cls.get()

    def __eq__(self, other):
        return super().__eq__(other) and self._known() == other._known()

    __hash__ = None

    def _known(self):
        return self.dtype(), self.device(), self.sizes(), self.strides()

    def _of_example(self, question):
        return None if self._example is None else question(self._example)

    def dtype(self):
        """The dtype, or None where it is open."""
        return self._of_example(lambda t: t.dtype)

    def device(self):
        """The device, or None where it is open."""
        return self._of_example(lambda t: t.device)

    def dim(self):
        """The number of dimensions, or None where it is open."""
        return self._of_example(lambda t: t.dim())

    def sizes(self):
        """The sizes, or None where they are open."""
        return self._of_example(lambda t: list(t.shape))

    def strides(self):
        """The strides, or None where they are open."""
        return self._of_example(lambda t: list(t.stride()))

    def requires_grad(self):
        """Whether gradients are asked for, or False where it is open."""
        return bool(self._of_example(lambda t: t.requires_grad))

    def scalarType(self):
        """The dtype's name in C++, or None where it is open."""
        return self._of_example(lambda t: str(t.dtype).rpartition(".")[2].capitalize())

    def undefined(self):
        """Whether such a tensor is known to be undefined."""
        return False


def _checked(owner, parts):
    for part in parts:
        if not isinstance(part, Type):
            raise TypeError(
                f"{type(owner).__name__}(): expected types of TorchScript; got {part!r}"
            )
    return tuple(parts)


class _OfOne(Type):
    """A type built from one other."""

    def __init__(self, element):
        self._parts = _checked(self, (element,))

    def getElementType(self):
        """The type that this one is built from."""
        return self._parts[0]


class AwaitType(_OfOne):
    """A value that is computed when it is waited for."""

    _text = "Await"


class FutureType(_OfOne):
    """A value that another thread computes."""

    _text = "Future"


class RRefType(_OfOne):
    """A value that is on another machine."""

    _text = "RRef"


class OptionalType(_OfOne):
    """A value of another type, or None."""

    _text = "Optional"

    @classmethod
    def ofTensor(cls):
        """A tensor or None."""
        return cls(TensorType.get())


class ListType(_OfOne):
    """Lists of values of one type."""

    _text = "List"

    @classmethod
    def ofInts(cls):
        """Lists of integers."""
        return cls(IntType.get())

    @classmethod
    def ofFloats(cls):
        """Lists of floating-point numbers."""
        return cls(FloatType.get())

    @classmethod
    def ofComplexDoubles(cls):
        """Lists of complex numbers."""
        return cls(ComplexType.get())

    @classmethod
    def ofBools(cls):
        """Lists of truth values."""
        return cls(BoolType.get())

    @classmethod
    def ofStrings(cls):
        """Lists of text."""
        return cls(StringType.get())

    @classmethod
    def ofTensors(cls):
        """Lists of tensors."""
        return cls(TensorType.get())


class DictType(Type):
    """Dicts with keys of one type and values of another."""

    _text = "Dict"

    def __init__(self, key, value):
        self._parts = _checked(self, (key, value))

    def getKeyType(self):
        """The type of keys."""
        return self._parts[0]

    def getValueType(self):
        """The type of values."""
        return self._parts[1]


class TupleType(Type):
    """Tuples with a type for each place."""

    _text = "Tuple"

    def __init__(self, elements):
        self._parts = _checked(self, elements)

    def elements(self):
        """The types of the places."""
        return list(self._parts)


class UnionType(Type):
    """A value of one of several types."""

    _text = "Union"

    def __init__(self, members):
        self._parts = tuple(sorted(_checked(self, members), key=lambda part: part.annotation_str))


class _Named(Type):
    """Types that TorchScript's compiler makes from classes, of which facula makes none."""

    def __init__(self, *args):
        raise NotImplementedError(
            f"{type(self).__name__}(): made by TorchScript's compiler, which facula does not have"
        )


class ClassType(_Named):
    """A compiled class."""


class EnumType(_Named):
    """A compiled enumeration."""


class InterfaceType(_Named):
    """A compiled interface."""


class InferredType:
    """A type that was found, or the reason why none was."""

    def __init__(self, found):
        if not isinstance(found, (Type, str)):
            raise TypeError(f"InferredType(): expected a type or a reason; got {found!r}")
        self._found = found

    def success(self):
        """Whether a type was found."""
        return isinstance(self._found, Type)

    def type(self):
        """The type; RuntimeError where there is none."""
        if not self.success():
            raise RuntimeError(f"InferredType.type(): expected a type; got {self._found}")
        return self._found

    def reason(self):
        """Why there is no type; RuntimeError where there is one."""
        if self.success():
            raise RuntimeError(f"InferredType.reason(): expected a reason; got {self._found!r}")
        return self._found


for _value in list(globals().values()):
    if isinstance(_value, type) and _value.__module__ == __name__:
        _value.__module__ = facula.__name__

"""GDB pretty-printers: `print x` shows a tensor's dtype, sizes, strides, device and first values.

gdb -x tools/gdb/facula_printers.py --args .venv/bin/python script.py
"""

import gdb
import gdb.printing

SHOWN_VALUES = 8
# How memory of a dtype is read; dtypes that C++ has no plain type for are shown without values.
PLAIN_TYPES = {
    "Bool": "bool",
    "UInt8": "unsigned char",
    "Int8": "signed char",
    "Int16": "short",
    "Int32": "int",
    "Int64": "long",
    "UInt16": "unsigned short",
    "UInt32": "unsigned int",
    "UInt64": "unsigned long",
    "Float32": "float",
    "Float64": "double",
}


def enum_name(value):
    """The enumerator's name without its class: `Float32`."""
    return str(value).rsplit("::", 1)[-1]


def geometry(impl):
    """Sizes and strides of a TensorImpl, as two lists of integers."""
    dims = int(impl["ndim"])
    inline_dims = (impl["inline_"].type.range()[1] + 1) // 2
    numbers = impl["inline_"] if dims <= inline_dims else impl["heap_"]
    both = [int(numbers[i]) for i in range(2 * dims)]
    return both[:dims], both[dims:]


def first_values(impl, sizes, strides):
    """The first values along the last dimension; empty when there is nothing to read."""
    plain = PLAIN_TYPES.get(enum_name(impl["dtype"]))
    storage = impl["storage"]["p_"]
    if plain is None or not storage or int(impl["numel"]) == 0:
        return []
    memory = storage["data_"]
    if not memory:
        return []
    address = memory.cast(gdb.lookup_type(plain).pointer()) + int(impl["offset"])
    count = sizes[-1] if sizes else 1
    step = strides[-1] if strides else 1
    return [str((address + i * step).dereference()) for i in range(min(count, SHOWN_VALUES))]


def describe(impl):
    """One line for a TensorImpl."""
    sizes, strides = geometry(impl)
    dtype, device = enum_name(impl["dtype"]), enum_name(impl["device"]["type"])
    text = f"{dtype}{sizes} strides {strides} on {device}"
    if int(impl["offset"]):
        text += f" offset {int(impl['offset'])}"
    if impl["autograd"]:
        text += " with autograd"
    values = first_values(impl, sizes, strides)
    return f"{text} {{{', '.join(values)}{', ...' if int(impl['numel']) > len(values) else ''}}}"


class ImplPrinter:
    """Prints a facula::TensorImpl."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return describe(self.value)
        except gdb.error as error:
            return f"<unreadable tensor: {error}>"


class TensorPrinter:
    """Prints a facula::Tensor through its pointer."""

    def __init__(self, value):
        self.pointer = value["impl_"]["p_"]

    def to_string(self):
        if not self.pointer:
            return "undefined tensor"
        return ImplPrinter(self.pointer.dereference()).to_string()


class SmallVectorPrinter:
    """Prints a facula::SmallVector as a list."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        size = int(self.value["size_"])
        shown = [str(self.value["data_"][i]) for i in range(min(size, 32))]
        return f"[{', '.join(shown)}{', ...' if size > 32 else ''}]"


def make_collection():
    """All printers, by the name of the C++ type."""
    collection = gdb.printing.RegexpCollectionPrettyPrinter("facula")
    collection.add_printer("TensorImpl", "^facula::TensorImpl$", ImplPrinter)
    collection.add_printer("Tensor", "^facula::Tensor$", TensorPrinter)
    collection.add_printer("SmallVector", "^facula::SmallVector<.*>$", SmallVectorPrinter)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), make_collection(), replace=True)

"""Modules that hold other modules or parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict

import facula
from facula.nn.modules.module import Module, _addindent
from facula.nn.parameter import Parameter


def _position(index, length):
    """A checked, non-negative position. Raises IndexError, TypeError."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


def _is_mapping(value):
    return hasattr(value, "keys") and hasattr(value, "__getitem__")


def _pairs_of(values, method):
    """The (key, value) pairs of a mapping or of an iterable of pairs. Raises TypeError."""
    kind = type(values).__name__
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{method}(): expected a mapping or pairs of key and value; got {kind}")
    if _is_mapping(values):
        return list(values.items())
    pairs = []
    for i, pair in enumerate(values):
        if not hasattr(pair, "__iter__"):
            raise TypeError(
                f"{_owner(method)} update sequence element #{i} should be Iterable; "
                f"is{type(pair).__name__}"
            )
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{_owner(method)} update sequence element #{i} has length "
                f"{len(pair)}; 2 is required"
            )
        pairs.append(tuple(pair))
    return pairs


def _owner(method):
    return method.partition(".")[0]


class Container(Module):
    """Old container: the keyword arguments become child modules."""

    def __init__(self, **kwargs) -> None:
        super().__init__()
        import warnings

        warnings.warn("nn.Container is deprecated; nn.Module does all that it did", stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """A chain of modules; each gets the output of the one before.

    Args:
        args: modules, or one OrderedDict from name to module.

    Example:
        >>> model = facula.nn.Sequential(facula.nn.Linear(4, 8), facula.nn.ReLU())
        >>> model(facula.zeros(1, 4)).shape
        facula.Size([1, 8])
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input):
        """Pass `input` through every module in order."""
        for module in self.__dict__["_modules"].values():
            input = module(input)
        return input

    def _key(self, index):
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber()

    def _renumber(self):
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return self.extend(list(other))

    def _check_factor(self, factor):
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))

    def append(self, module):
        """Add `module` at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put `module` before position `index`; returns self. Raises IndexError, AssertionError."""
        if not isinstance(module, Module):
            raise AssertionError(f"expected a Module; got {type(module).__name__}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index + n if index < 0 else index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self, sequential):
        """Add every module of an iterable at the end; returns self."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key):
        """Take out and return the module at position `key`."""
        module = self[key]
        del self[key]
        return module


class ModuleList(Module):
    """A list of modules.

    Args:
        modules: an iterable of modules, or None.
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _key(self, index):
        return str(_position(index, len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = (
            [str(k) for k in range(len(self))[index]]
            if isinstance(index, slice)
            else [self._key(index)]
        )
        for key in keys:
            delattr(self, key)
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for i, module in enumerate([*self, *other]):
            combined.add_module(str(i), module)
        return combined

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self):
        if not len(self):
            return self._get_name() + "()"
        groups = []
        for i, text in enumerate(repr(module) for module in self):
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        lines = []
        for first, last, text in groups:
            label = f"({first})" if first == last else f"({first}-{last})"
            count = "" if first == last else f"{last - first + 1} x "
            lines.append(f"{label}: {count}{_addindent(text, 2)}")
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module):
        """Put `module` before position `index`."""
        modules = list(self)
        modules.insert(index, module)
        for i, m in enumerate(modules):
            self._modules[str(i)] = m

    def append(self, module):
        """Add `module` at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Take out and return the module at position `key`."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules):
        """Add every module of an iterable at the end; returns self. Raises TypeError."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                f"ModuleList.extend(): expected an iterable; got {type(modules).__name__}"
            )
        for position, module in enumerate(modules, start=len(self)):
            self.add_module(str(position), module)
        return self


class ModuleDict(Module):
    """A dict of modules that keeps insertion order.

    Args:
        modules: a mapping or an iterable of (name, module), or None.
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove every module."""
        self._modules.clear()

    def pop(self, key):
        """Take out and return the module named `key`."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add every pair of a mapping or of an iterable of pairs. Raises TypeError, ValueError."""
        for name, module in _pairs_of(modules, "ModuleDict.update"):
            self[name] = module


def _describe(value, style):
    """How ParameterList and ParameterDict show one entry."""
    if not isinstance(value, facula.Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    place = "" if value.device.type == "cpu" else f" (GPU {value.get_device()})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    dtype = value.dtype if style == "list" else _typename_of(value)
    return f"{kind} containing: [{dtype} of size {size}{place}]"


def _typename_of(value):
    return facula.typename(value.data)


def _trained(value):
    """A Tensor as a Parameter; anything else as it is."""
    plain = isinstance(value, facula.Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


class ParameterList(Module):
    """A list of parameters; tensors that are appended become Parameters.

    Args:
        values: an iterable of tensors or other objects, or None.
    """

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _key(self, index):
        return str(_position(index, len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(len(self))[index]])
        return getattr(self, self._key(index))

    def __setitem__(self, index, value):
        name = str(index) if index == len(self) else self._key(index)
        setattr(self, name, _trained(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add `value` at the end; returns self."""
        size = len(self)
        self._size = size + 1
        self[size] = value
        return self

    def extend(self, values):
        """Add every value of an iterable at the end; returns self. Raises TypeError."""
        if not hasattr(values, "__iter__") or isinstance(values, facula.Tensor):
            raise TypeError(
                f"ParameterList.extend(): expected an iterable; got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        """One line per entry."""
        return "\n".join(f"  ({i}): {_describe(value, 'list')}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters that keeps insertion order; tensors become Parameters.

    Args:
        parameters: a mapping or an iterable of (name, value), or None.
    """

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: keys must be strings; got {type(key).__name__}")
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _trained(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new ParameterDict with the same entries."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        """The value at `key`, which is `default` when there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove every entry."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Take out and return the value at `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take out and return the last (key, value)."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, self._key_to_attr(key))
        return key, value

    def get(self, key, default=None):
        """The value at `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with `default` at every key."""
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """The (name, value) pairs."""
        return ((k, self[k]) for k in self._keys)

    def values(self):
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters):
        """Add every pair of a mapping or of an iterable of pairs. Raises TypeError, ValueError."""
        for key, value in _pairs_of(parameters, "ParametersDict.update"):
            self[key] = value

    def extra_repr(self):
        """One line per entry."""
        return "\n".join(f"  ({k}): {_describe(value, 'dict')}" for k, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other):
        copy = ParameterDict(other)
        copy.update(self)
        return copy

    def __ior__(self, other):
        self.update(other)
        return self

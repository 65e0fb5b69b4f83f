"""A segment: the calls of a captured function between two breaks, and what they depend on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import facula

_CONSTANTS = (
    str,
    bytes,
    bool,
    complex,
    type(None),
    type(...),
    type,
    facula.dtype,
    facula.device,
    facula.layout,
    facula.memory_format,
)


@dataclass(frozen=True, slots=True)
class Input:
    """Stands for a tensor that a segment was given, in recorded arguments."""

    number: int


@dataclass(frozen=True, slots=True)
class Result:
    """Stands for a tensor that a call of the segment gave."""

    number: int


@dataclass(frozen=True, slots=True)
class Number:
    """Stands for an int or float among recorded arguments: the place in `Segment.values`."""

    place: int


@dataclass
class Call:
    """A recorded call.

    Attributes:
        function (callable): with `args` and `kwargs`, in which tensors and numbers are `Input`,
            `Result` and `Number`.
        results (list): a path of indices into what it returns, and the Input or Result there.
        state (tuple): grad mode, and autocast as `autocast_state` gives it.
        line (tuple): file and line of the program.
    """

    function: object
    args: tuple
    kwargs: dict
    results: list
    state: tuple
    line: tuple


@dataclass
class Segment:
    """What was recorded since the last break.

    Attributes:
        state (tuple): what the modes were at the start of the function or the first call.
        inputs (list of Tensors): in the order in which calls met them.
        calls (list of Call): in their order.
        examples (dict): fake tensors by Input and Result.
        structure (list): all that programs depend on but numbers, hashable.
        values (list): the numbers: sizes of inputs (`sizes`: place -> Input and dimension), and
            constants in arguments (all other places).
    """

    state: tuple = None
    inputs: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    examples: dict = field(default_factory=dict)
    structure: list = field(default_factory=list)
    values: list = field(default_factory=list)
    sizes: dict = field(default_factory=dict)
    held: list = field(default_factory=list)
    result_count: int = 0
    storages: dict = field(default_factory=dict)

    def add_input(self, tensor, example):
        """The Input for a tensor that the segment has not met."""
        given = Input(len(self.inputs))
        self.inputs.append(tensor)
        self.examples[given] = example
        storage = self.storages.setdefault(tensor.untyped_storage()._cdata, len(self.storages))
        dense = tensor.is_contiguous()
        self.structure.append(
            (
                type(tensor),
                tensor.dtype,
                tensor.device,
                tensor.dim(),
                tensor.requires_grad,
                tensor.is_leaf,
                dense,
                storage,
                tensor.is_conj(),
                tensor.untyped_storage().nbytes() == 0,
            )
        )
        for dim, size in enumerate(tensor.shape):
            self.sizes[len(self.values)] = (given, dim)
            self.values.append(size)
        if not dense:
            self.structure.append(tensor.stride())
        return given

    def add_result(self, example):
        """The Result for a new tensor."""
        result = Result(self.result_count)
        self.result_count += 1
        self.examples[result] = example
        return result

    def freeze(self, value, of_tensor):
        """Arguments as they are recorded; what they are goes into the structure and values.

        Args:
            value: a nest of Tensors and constants.
            of_tensor (callable): gives the Input or Result of a tensor.
        """
        structure = self.structure
        if isinstance(value, facula.Tensor):
            given = of_tensor(value)
            structure.append(given)
            return given
        kind = type(value)
        if kind in (int, float):
            structure.append(kind)
            self.values.append(value)
            return Number(len(self.values) - 1)
        if kind in _CONSTANTS or isinstance(value, _CONSTANTS):
            structure.append((kind, value))
            return value
        if kind in (tuple, list, facula.Size):
            structure.append((kind, len(value)))
            parts = [self.freeze(part, of_tensor) for part in value]
            return parts if kind is list else tuple(parts)
        if kind is dict:
            structure.append((kind, *value))
            return {name: self.freeze(part, of_tensor) for name, part in value.items()}
        if kind is slice:
            structure.append(kind)
            parts = (value.start, value.stop, value.step)
            return slice(*(self.freeze(part, of_tensor) for part in parts))
        # Anything else is itself, and is kept alive for as long as its id means it.
        structure.append((kind, id(value)))
        self.held.append(value)
        return value


def same_number(a, b):
    """Whether two numbers give the same bits; NaN is itself and -0.0 is not 0.0."""
    if a != b:
        return a != a and b != b
    return a != 0 or not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b)


def autocast_state():
    """Arguments of `_enter_autocast` for what is on now, or None."""
    if not facula.is_autocast_enabled("cpu"):
        return None
    cached = facula.is_autocast_cache_enabled()
    return "cpu", facula.get_autocast_dtype("cpu"), True, cached

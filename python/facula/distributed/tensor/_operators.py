"""A call of an operator on DTensors: its arguments by name, and the specs of its tensors."""

from __future__ import annotations

import contextlib
import functools

import facula
from facula.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from facula.utils._python_dispatch import _get_current_dispatch_mode_stack


class Operator:
    """What the record of an operator tells, read once.

    Args:
        func (OpOverload): the operator.
    """

    def __init__(self, func):
        schema_name, _, self.overload = func.name().rpartition("::")[2].partition(".")
        self.func = func
        self.arguments = func._arguments()  # (name, type, keyword only, default, ...)
        self.returns = func._returns()
        self.written = [a[0] for a in self.arguments if a[6]]
        self.names = [a[0] for a in self.arguments]
        facts = facula._C._properties(func)
        self.flags = frozenset(facts["flags"])
        self.family = facts["family"]
        self.dims, self.sizes = facts["dims"], facts["sizes"]
        is_factory = "factory" in self.flags
        # _unsafe_view returns a view, though its schema does not say so.
        self.is_view = facts["view"] or (self.family == "sizes" and not is_factory)
        is_variant = self.written and schema_name.endswith("_") and schema_name[:1] != "_"
        self.name = schema_name[:-1] if is_variant else schema_name

    @property
    def is_pointwise(self):
        """Whether it computes element by element, with broadcasting."""
        return "pointwise" in self.flags or self.family == "pointwise"

    def bind(self, args, kwargs):
        """The arguments by name, with defaults."""
        values = dict(zip(self.names, args, strict=False))
        values.update(kwargs)
        for name, _, _, default, has_default, _, _ in self.arguments:
            if name not in values and has_default:
                values[name] = default
        return values

    def split(self, values):
        """Positional and keyword arguments of values by name."""
        args = [values[a[0]] for a in self.arguments if not a[2]]
        kwargs = {a[0]: values[a[0]] for a in self.arguments if a[2] and a[0] in values}
        return args, kwargs

    def __call__(self, values):
        args, kwargs = self.split(values)
        return self.func(*args, **kwargs)


@functools.cache
def operator_of(func):
    """The Operator of an OpOverload."""
    return Operator(func)


class Slot:
    """A tensor among the arguments: its argument, and its place in it if that is a list."""

    __slots__ = ("index", "name")

    def __init__(self, name, index=None):
        self.name, self.index = name, index

    def of(self, values):
        """The value of the slot."""
        value = values[self.name]
        return value if self.index is None else value[self.index]

    def put(self, values, value):
        """Set the value of the slot."""
        if self.index is None:
            values[self.name] = value
        else:
            values[self.name][self.index] = value


def slots_of(values):
    """The tensors among arguments, in order."""
    slots = []
    for name, value in values.items():
        if isinstance(value, facula.Tensor):
            slots.append(Slot(name))
        elif isinstance(value, (list, tuple)):
            slots += [Slot(name, i) for i, v in enumerate(value) if isinstance(v, facula.Tensor)]
    return slots


class ShapesUnknown(Exception):
    """An operator does not run without data."""


class Call:
    """An operator and its arguments, as sharding rules see them: specs in place of tensors.

    Args:
        op (Operator): the operator.
        values (dict): arguments by name; DTensorSpec for tensors.
        slots (list of Slot): the tensors.
        mesh (DeviceMesh): that of all of them.
    """

    def __init__(self, op, values, slots, mesh):
        self.op, self.values, self.slots, self.mesh = op, values, slots, mesh
        self.specs = [s.of(values) for s in slots]
        self._outputs = None

    def __getitem__(self, name):
        return self.values[name]

    def get(self, name, default=None):
        """An argument, or a default where the operator has none of that name."""
        return self.values.get(name, default)

    @property
    def first(self):
        """The spec of the first tensor."""
        return self.specs[0]

    def place_of(self, name):
        """The number of the slot of a tensor argument, or None where it is absent."""
        return next((i for i, s in enumerate(self.slots) if s.name == name), None)

    def dims(self, name="dim", ndim=None):
        """An argument that names dimensions: a set, counted from the front; None for all."""
        ndim = self.first.ndim if ndim is None else ndim
        given = self.get(name)
        if given is None:
            return None
        given = [given] if isinstance(given, int) else list(given)
        return {d % max(1, ndim) for d in given}

    @property
    def outputs(self):
        """The shapes, strides and dtypes of the tensors that it returns."""
        if self._outputs is None:
            try:
                self._outputs = [meta_of(t) for t in flat_tensors(self.run_on_meta())]
            except Exception as error:
                raise ShapesUnknown(str(self.op.func)) from error
        return self._outputs

    def run_on_meta(self, make=None):
        """What it returns for tensors without data.

        Args:
            make (callable): makes a tensor of a spec; default as the spec says.
        """
        values = {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in self.values.items()}
        for slot, spec in zip(self.slots, self.specs, strict=True):
            slot.put(values, (make or meta_tensor)(spec))
        if "device" in values:
            values["device"] = facula.device("meta")
        if "pin_memory" in values:
            values["pin_memory"] = None
        if "generator" in values:
            values["generator"] = None
        with _without_modes():
            return self.op(values)


@contextlib.contextmanager
def _without_modes():
    """Hide what runs without data from modes: it is no part of the program."""
    modes = _get_current_dispatch_mode_stack()
    for _ in modes:
        facula._C._pop_dispatch_mode()
    try:
        yield
    finally:
        for mode in modes:
            facula._C._push_dispatch_mode(mode)


def meta_tensor(spec):
    """A tensor without data of a spec's global shape."""
    meta = spec.tensor_meta
    return facula.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")


def meta_of(tensor):
    """The TensorMeta of a tensor; None of None."""
    if tensor is None:
        return None
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


def flat_tensors(result):
    """The tensors of what an operator returns, in order; None for a tensor that is absent."""
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in (flat_tensors(r) if r is not None else [None])]
    return [result] if isinstance(result, facula.Tensor) else []


def frozen(value):
    """A value that can be hashed, for keys."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    # True and 1 are the same key, but not the same argument.
    return (type(value), value) if isinstance(value, (bool, int, float)) else value


__all__ = ["Call", "DTensorSpec", "Operator", "Slot", "flat_tensors", "operator_of", "slots_of"]

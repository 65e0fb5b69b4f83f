"""Which sizes of an exported program's arguments may differ from call to call."""

from __future__ import annotations

import hashlib
import inspect

import facula
from facula.fx.experimental._expressions import Expression, Symbol
from facula.fx.experimental._sizes import Sizes
from facula.utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHint:
    """What is asked of a dimension that has no name: AUTO, DYNAMIC or STATIC."""

    def __init__(self, kind, min=None, max=None):
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min=None, max=None):
        """The same with bounds."""
        return _DimHint(self.kind, min, max)

    def __repr__(self):
        bounds = (("min", self.min), ("max", self.max))
        shown = [f"{name}={value}" for name, value in bounds if value is not None]
        return f"DimHint({', '.join([self.kind, *shown])})"


class Dim:
    """A dimension whose size may differ, by a name; equal names have equal sizes.

    `Dim.AUTO` asks for as much freedom as the program leaves, `Dim.DYNAMIC` raises where it leaves
    none, `Dim.STATIC` fixes the size. `2 * dim` and `dim + 1` are sizes that follow from another.

    Args:
        name (str): an identifier.
        min, max (int | None): bounds, both allowed.

    Example:
        >>> batch = Dim("batch", max=64)
        >>> shapes = ({0: batch},)
        >>> program = facula.export.export(facula.nn.ReLU(), (facula.ones(3, 2),), None,
        ...                                dynamic_shapes=shapes)
        >>> list(program.range_constraints.values())
        [VR[0, 64]]
    """

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        if not isinstance(name, str) or not name.isidentifier():
            raise AssertionError(f"Dim(): expected an identifier as the name; got {name!r}")
        low = 0 if min is None else min
        if max is not None and max <= low:
            raise AssertionError(f"Dim(): expected min < max; got {low} and {max}")
        self.__name__, self.min, self.max = name, low, max

    def __add__(self, other):
        return _DerivedDim(self, 1, _number("+", other))

    __radd__ = __add__

    def __sub__(self, other):
        return _DerivedDim(self, 1, -_number("-", other))

    def __mul__(self, other):
        return _DerivedDim(self, _number("*", other), 0)

    __rmul__ = __mul__

    def __repr__(self):
        parts = [f"'{self.__name__}'"]
        if self.min > 0 and not (self.min <= 2 and self.max is not None) or self.max is None:
            parts.append(f"min={self.min}")
        if self.max is not None:
            parts.append(f"max={self.max}")
        return f"Dim({', '.join(parts)})"


def _number(op, value):
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotImplementedError(f"Dim: expected an int to {op} with; got {value!r}")
    return value


class _DerivedDim(Dim):
    """A multiple of a dimension, and a number more."""

    def __init__(self, root, factor, shift):
        if isinstance(root, _DerivedDim):
            factor, shift = root.factor * factor, root.shift * factor + shift
            root = root.root
        self.root, self.factor, self.shift = root, factor, shift
        self.__name__ = str(Expression.of(Symbol(root.__name__)) * factor + shift)
        self.min = root.min * factor + shift
        self.max = None if root.max is None else root.max * factor + shift

    def __repr__(self):
        return self.__name__


def dims(*names, min=None, max=None):
    """Several dimensions with the same bounds.

    Returns:
        tuple of Dim

    Example:
        >>> dims("a", "b", max=8)
        (Dim('a', max=8), Dim('b', max=8))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Dynamic shapes by tensor: `shapes[x] = {0: dim}`, for arguments within nests."""

    def __init__(self):
        self._shapes, self._tensors = {}, {}

    def __setitem__(self, tensor, shape):
        if not isinstance(tensor, facula.Tensor):
            raise AssertionError(
                f"ShapesCollection: expected a tensor; got {type(tensor).__name__}"
            )
        if id(tensor) in self._shapes and self._shapes[id(tensor)] != shape:
            raise AssertionError("ShapesCollection: the tensor has another shape already")
        self._shapes[id(tensor)], self._tensors[id(tensor)] = shape, tensor

    def __getitem__(self, tensor):
        return self._shapes.setdefault(id(tensor), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The shapes as `export` takes them.

        Args:
            m (Module): the program.
            args (tuple), kwargs (dict): what it is called with.
        """
        bound = inspect.signature(m.forward).bind(*args, **(kwargs or {})).arguments
        return pytree.tree_map(lambda leaf: self._shapes.get(id(leaf)), dict(bound))


class AdditionalInputs:
    """More samples of arguments: the dimensions in which they differ are dynamic."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """Add the arguments of another call."""
        if not isinstance(args, tuple):
            raise AssertionError(f"add(): expected args as a tuple; got {type(args).__name__}")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The shapes as `export` takes them: DYNAMIC where samples differ."""
        signature = inspect.signature(m.forward)
        samples = [(args, kwargs or {}), *self._examples]
        bound = [dict(signature.bind(*a, **k).arguments) for a, k in samples]

        def shape(first, *others):
            if not isinstance(first, facula.Tensor):
                return None
            sizes = zip(first.shape, *(other.shape for other in others), strict=True)
            return tuple(Dim.DYNAMIC if len(set(one)) > 1 else None for one in sizes)

        return pytree.tree_map(shape, bound[0], *bound[1:])


class ValueRanges:
    """The least and the greatest value of a symbol; None where there is no greatest."""

    def __init__(self, lower, upper):
        self.lower, self.upper = lower, upper

    def __eq__(self, other):
        return isinstance(other, ValueRanges) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


class _Place:
    """A dynamic dimension of an argument."""

    def __init__(self, leaf, name, source, dim, sample, spec):
        self.leaf, self.name, self.source, self.dim = leaf, name, source, dim
        self.sample, self.spec = sample, spec

    def shown(self):
        """How errors name it."""
        return f"{self.source}.size()[{self.dim}]"


class Plan:
    """The dynamic dimensions of a call, and the symbols that they get.

    Args:
        arguments (dict): parameter to value.
        dynamic_shapes: as `export` takes it.
        names (list[str]): of the leaves.
    """

    def __init__(self, arguments, dynamic_shapes, names):
        self.places, self.leaves = [], []
        specs = _by_argument(arguments, dynamic_shapes)
        for argument, value in arguments.items():
            for path, leaf in pytree.tree_leaves_with_path(value):
                source = f"L['{argument}']{pytree.keystr(path)}"
                self._add(leaf, names[len(self.leaves)], source, _at(specs.get(argument), path))
                self.leaves.append(leaf)

    def _add(self, leaf, name, source, spec):
        if spec is None or not isinstance(leaf, facula.Tensor):
            return
        by_dim = spec.items() if isinstance(spec, dict) else enumerate(spec)
        for dim, one in by_dim:
            if not -leaf.dim() <= dim < leaf.dim():
                raise _user_error(
                    f"dynamic_shapes of {name} names the dimension {dim}; got {leaf.dim()} dims"
                )
            sample = leaf.shape[dim]
            if isinstance(one, int) and not isinstance(one, bool) and one != sample:
                raise _user_error(f"expected size {one} of {name} in dim {dim}; got {sample}")
            fixed = isinstance(one, int) or one is None or getattr(one, "kind", "") == "STATIC"
            if fixed or (getattr(one, "kind", "") == "AUTO" and sample < 2):
                continue
            if not isinstance(one, (Dim, _DimHint)):
                raise _user_error(f"expected a Dim for {name} in dim {dim}; got {one!r}")
            position = len(self.leaves)
            self.places.append(_Place(position, name, source, dim % leaf.dim(), sample, one))

    def symbols(self, fixed, merged):
        """The symbols of a try.

        Args:
            fixed (set): positions in `places` that are constants.
            merged (bool): whether unnamed dimensions with equal samples are one symbol.

        Returns:
            tuple: Sizes, and the expressions by (leaf, dim).
        """
        groups = {}
        for i, place in enumerate(self.places):
            if i not in fixed:
                groups.setdefault(self._group(place, merged), []).append(i)
        sizes, expressions, self.members = Sizes(), {}, {}
        for group in groups.values():
            name = self._symbol(group)
            root = self.places[group[0]].spec
            shift, factor = getattr(root, "shift", 0), getattr(root, "factor", 1)
            sample = (self.places[group[0]].sample - shift) // factor
            symbol = sizes.add(name, sample)
            self.members[name] = group
            for i in group:
                place, spec = self.places[i], self.places[i].spec
                size = symbol * getattr(spec, "factor", 1) + getattr(spec, "shift", 0)
                if size.value(sizes.samples) != place.sample:
                    raise _user_error(
                        f"expected {place.shown()} = {spec!r} with {sample} for the dimension; "
                        f"got {place.sample}"
                    )
                expressions[place.leaf, place.dim] = sizes.known(size)
        return sizes, expressions

    def _group(self, place, merged):
        spec = place.spec
        if isinstance(spec, Dim):
            return getattr(spec, "root", spec).__name__
        return ("size", place.sample) if merged else (place.leaf, place.dim)

    def _symbol(self, group):
        """The symbol's name, by the place of its last dimension, as PyTorch numbers them."""
        plain = [i for i in group if not isinstance(self.places[i].spec, _DerivedDim)]
        place = self.places[(plain or group)[-1]]
        number = int(hashlib.sha256(place.shown().encode()).hexdigest(), 16) % 100
        while f"s{number}" in self.members:
            number += 1
        return f"s{number}"

    def places_of(self, symbols):
        """The positions in `places` of symbols."""
        return {i for name in symbols for i in self.members[name]}

    def check_fixed(self, fixed):
        """Raise where a dimension had to be a constant that was asked to be dynamic.

        Raises:
            facula._dynamo.exc.UserError: there is one.
        """
        for i in sorted(fixed):
            spec = self.places[i].spec
            if isinstance(spec, Dim) or spec.kind == "DYNAMIC":
                name = spec.__name__ if isinstance(spec, Dim) else self.places[i].shown()
                raise _user_error(
                    f"Constraints violated ({name}): expected a program for every size of "
                    f"{self.places[i].shown()}; got one for {self.places[i].sample} alone. "
                    "Dim.AUTO takes what the program leaves free"
                )

    def ranges(self, sizes):
        """The values of each symbol, narrowed by the conditions.

        Raises:
            facula._dynamo.exc.UserError: a named dimension may not have all the values asked for.
        """
        ranges = {}
        for name, group in self.members.items():
            spec = self.places[group[0]].spec
            root = getattr(spec, "root", spec)
            named = isinstance(root, Dim)
            low = root.min if named else max(2, root.min or 0)
            ranges[Symbol(name)] = ValueRanges(low, root.max)
        for condition in sizes.conditions:
            self._narrow(ranges, condition)
        for name, (low, high) in sizes.unbacked.ranges.items():
            ranges[Symbol(name)] = ValueRanges(low, high)
        return ranges

    def _narrow(self, ranges, condition):
        bounds = condition.bounds()
        if bounds is None:
            return
        name, low, high = bounds
        found = ranges[Symbol(name)]
        narrower = (low is not None and low > found.lower) or (
            high is not None and (found.upper is None or high < found.upper)
        )
        spec = self.places[self.members[name][0]].spec
        if narrower and isinstance(spec, Dim):
            raise _user_error(
                f"Constraints violated ({spec.__name__}): expected a program for all sizes in "
                f"[{spec.min}, {spec.max}]; got one that needs {condition}"
            )
        if low is not None:
            found.lower = max(found.lower, low)
        if high is not None:
            found.upper = high if found.upper is None else min(found.upper, high)


def _by_argument(arguments, dynamic_shapes):
    if isinstance(dynamic_shapes, dict):
        unknown = set(dynamic_shapes) - set(arguments)
        if unknown:
            raise _user_error(
                f"expected the names of arguments, {list(arguments)}, in dynamic_shapes; got "
                f"{sorted(unknown)}"
            )
        return dynamic_shapes
    if not isinstance(dynamic_shapes, (tuple, list)) or len(dynamic_shapes) != len(arguments):
        raise _user_error(
            f"expected dynamic_shapes for {len(arguments)} arguments; got {dynamic_shapes!r}"
        )
    return dict(zip(arguments, dynamic_shapes, strict=True))


def _at(spec, path):
    """The part of a nest of shapes at a path."""
    for key in path:
        if spec is None:
            return None
        for attribute in ("idx", "key", "name"):
            if hasattr(key, attribute):
                part = getattr(key, attribute)
        try:
            spec = spec[part]
        except (KeyError, IndexError, TypeError):
            raise _user_error(
                f"expected dynamic_shapes with the arguments' nests; got {spec!r}"
            ) from None
    return spec


def _user_error(message):
    from facula._dynamo.exc import UserError

    return UserError(f"export(): {message}")

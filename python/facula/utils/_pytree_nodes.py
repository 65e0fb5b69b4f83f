"""The types that `facula.utils._pytree` takes apart, and the keys of their children."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import facula

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = Callable[[Iterable, Context], PyTree]
FlattenWithKeysFn = Callable[[PyTree], tuple[list, Context]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class NodeDef(NamedTuple):
    """How containers of one type are taken apart and put together."""

    type: type
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


class _SerializeNodeDef(NamedTuple):
    """How specs of one type are written to a file."""

    typ: type
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict = {}
SUPPORTED_SERIALIZED_TYPES: dict = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict = {}
CONSTANT_NODES: set = set()
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


# --- key paths: where a leaf is


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step of a path: the index of a sequence's item."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item of `sequence` that this step leads to."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step of a path: the key of a mapping's value."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value of `mapping` that this step leads to."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step of a path: the name of an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The attribute of `obj` that this step leads to."""
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def keystr(kp):
    """A path as text.

    Example:
        >>> keystr((MappingKey("a"), SequenceKey(0)))
        "['a'][0]"
    """
    return "".join(str(step) for step in kp)


def key_get(obj, kp):
    """What a path leads to from `obj`.

    Example:
        >>> key_get({"a": [7]}, (MappingKey("a"), SequenceKey(0)))
        7
    """
    for step in kp:
        obj = step.get(obj)
    return obj


# --- kinds of tuples


def is_namedtuple(obj):
    """Whether an object is a namedtuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls):
    """Whether a class is one of namedtuples."""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj):
    """Whether an object is a namedtuple."""
    return is_namedtuple_class(type(obj))


_STRUCTSEQ_COUNTS = ("n_fields", "n_sequence_fields", "n_unnamed_fields")


def is_structseq(obj):
    """Whether an object is a tuple with names made in C (`struct_time`), or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    """Whether a class is one of tuples with names made in C."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(cls.__dict__.get(name), int) for name in _STRUCTSEQ_COUNTS)
    )


def is_structseq_instance(obj):
    """Whether an object is a tuple with names made in C."""
    return is_structseq_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


# --- registration


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make a type of objects one of containers.

    Args:
        cls (type): the type; its subclasses are not meant.
        flatten_fn: gives the children (list) and a context for an object.
        unflatten_fn: gives an object for children and context.
        serialized_type_name (str): the type's name in what `treespec_dumps` writes.
        to_dumpable_context, from_dumpable_context: context to what JSON can hold, and back.
        flatten_with_keys_fn: as `flatten_fn`, with pairs of key and child.

    Raises:
        ValueError: the type is registered; one of the two dumpable functions is missing.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
        >>> facula.utils._pytree.tree_leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _register(
    cls,
    flatten_fn,
    unflatten_fn,
    flatten_with_keys_fn=None,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
):
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, name, to_dumpable_context, from_dumpable_context
    )
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(cls, flatten_fn, unflatten_fn, *strings, **options):
    """`register_pytree_node` by its name of old; functions to and from text are ignored."""
    import warnings

    warnings.warn(
        "torch.utils._pytree._register_pytree_node is deprecated. "
        "Please use torch.utils._pytree.register_pytree_node instead.",
        FutureWarning,
        stacklevel=2,
    )
    for name in ("to_str_fn", "maybe_from_str_fn"):
        options.pop(name, None)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls):
    """Make a registered type one of leaves again."""
    del SUPPORTED_NODES[cls]
    node = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(node.serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls, *, serialized_type_name):
    """Give a class of namedtuples a name in what `treespec_dumps` writes."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Make a dataclass one of containers, whose fields are the children.

    Args:
        cls (type): the dataclass.
        field_names (list of str): the fields that are children; all that `__init__` takes unless
            given.
        drop_field_names (list of str): fields that are left out, and get their defaults.
        serialized_type_name (str): the class's name in what `treespec_dumps` writes.

    Raises:
        ValueError: the fields given are not those of the class.
    """
    known = [f.name for f in dataclasses.fields(cls) if f.init]
    dropped = set(drop_field_names or ())
    names = list(known) if field_names is None else list(field_names)
    missing, unknown = set(known) - set(names) - dropped, set(names) - set(known)
    if unknown or (field_names is not None and missing):
        raise ValueError(
            f"register_dataclass(): field_names must be the fields of {cls.__name__} that "
            f"__init__ takes; missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    names = [name for name in names if name not in dropped]

    # A field that is None is no child: its name is noted, so that optional tensors may be absent.
    def flatten(obj):
        there = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [getattr(obj, name) for name in there], [there, absent]

    def flatten_with_keys(obj):
        children, context = flatten(obj)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children, strict=True)], context

    def unflatten(children, context):
        there, absent = context
        return cls(**dict(zip(there, children, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of an object without children that belongs to the spec."""

    value: Any


def register_constant(cls):
    """Let objects of a type be parts of specs instead of leaves.

    Raises:
        TypeError: the type has no `__eq__` or `__hash__` of its own.
    """
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) is getattr(object, method) or getattr(cls, method) is None:
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` "
                "implementation."
            )
    register_pytree_node(
        cls,
        lambda obj: ([], ConstantNode(obj)),
        lambda children, context: context.value,
        flatten_with_keys_fn=lambda obj: ([], ConstantNode(obj)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    """Whether a type was given to `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec):
    """Whether a spec is that of such a constant."""
    return isinstance(spec._context, ConstantNode)


# --- the types that are containers from the start


def _numbered(flatten):
    """A flatten_with_keys_fn for sequences."""

    def with_keys(obj):
        children, context = flatten(obj)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return with_keys


def _mapped(flatten):
    """A flatten_with_keys_fn for mappings."""

    def with_keys(obj):
        children, context = flatten(obj)
        return [(MappingKey(k), child) for k, child in zip(obj, children, strict=True)], context

    return with_keys


# Programs give some of these to register_pytree_node for classes of their own.


def _list_flatten(d):
    return list(d), None


def _dict_flatten(d):
    return list(d.values()), list(d)


def _defaultdict_flatten(d):
    return list(d.values()), [d.default_factory, list(d)]


def _deque_flatten(d):
    return list(d), d.maxlen


def _namedtuple_flatten(d):
    return list(d), type(d)


def _list_unflatten(values, context):
    return list(values)


def _tuple_unflatten(values, context):
    return tuple(values)


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_unflatten(values, context):
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


def _namedtuple_unflatten(values, context):
    return context(*values)


def _namedtuple_flatten_with_keys(d):
    pairs = zip(type(d)._fields, d, strict=True)
    return [(GetAttrKey(name), child) for name, child in pairs], type(d)


_tuple_flatten = _list_flatten
_ordereddict_flatten = _odict_flatten = _dict_flatten
_odict_unflatten = _ordereddict_unflatten
_list_flatten_with_keys = _tuple_flatten_with_keys = _numbered(_list_flatten)
_deque_flatten_with_keys = _numbered(_deque_flatten)
_dict_flatten_with_keys = _ordereddict_flatten_with_keys = _mapped(_dict_flatten)
_defaultdict_flatten_with_keys = _mapped(_defaultdict_flatten)


def _dumped_defaultdict(context):
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _loaded_defaultdict(dumped):
    names = ("default_factory_module", "default_factory_name", "dict_context")
    if not isinstance(dumped, dict) or set(dumped) != set(names):
        raise ValueError(f"treespec_loads(): expected keys {names} of a defaultdict; got {dumped}")
    from importlib import import_module

    module, name, keys = (dumped[n] for n in names)
    return [getattr(import_module(module), name), keys]


def _dumped_namedtuple(cls):
    node = SUPPORTED_SERIALIZED_TYPES.get(cls)
    if node is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a "
            "serialized_type_name. Please register using `_register_namedtuple`."
        )
    return node.serialized_type_name


def _loaded_namedtuple(name):
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if cls is None:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
            "serialized name."
        )
    return cls


def _register_builtin_types():
    sequence = _list_flatten, _tuple_unflatten, _tuple_flatten_with_keys
    _register(tuple, *sequence, "builtins.tuple")
    # A size becomes a tuple: what another size may be, maps may not give.
    _register(facula.Size, *sequence, "torch.Size")
    _register(list, _list_flatten, _list_unflatten, _list_flatten_with_keys, "builtins.list")
    _register(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys, "builtins.dict")
    _register(
        OrderedDict,
        _dict_flatten,
        _ordereddict_unflatten,
        _dict_flatten_with_keys,
        "collections.OrderedDict",
    )
    _register(
        namedtuple,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        _namedtuple_flatten_with_keys,
        "collections.namedtuple",
        _dumped_namedtuple,
        _loaded_namedtuple,
    )
    _register(
        defaultdict,
        _defaultdict_flatten,
        _defaultdict_unflatten,
        _defaultdict_flatten_with_keys,
        "collections.defaultdict",
        _dumped_defaultdict,
        _loaded_defaultdict,
    )
    _register(
        deque,
        _deque_flatten,
        _deque_unflatten,
        _deque_flatten_with_keys,
        "collections.deque",
    )


_register_builtin_types()


def _is_named_result(cls):
    """Whether a class is that of an operator's named results; it is registered at first sight."""
    if not is_structseq_class(cls) or not cls.__module__.endswith("return_types"):
        return False
    _register(
        cls,
        _list_flatten,
        lambda children, context: cls(children),
        _list_flatten_with_keys,
        f"torch.return_types.{cls.__name__}",
    )
    return True


def _node_of(tree):
    """The NodeDef of an object; None for a leaf."""
    cls = type(tree)
    node = SUPPORTED_NODES.get(cls)
    if node is not None:
        return node
    if not isinstance(tree, tuple):
        return None
    if is_namedtuple_class(cls):
        return SUPPORTED_NODES[namedtuple]
    return SUPPORTED_NODES[cls] if _is_named_result(cls) else None


def _get_node_type(tree):
    """The registered type of an object: its own, or `namedtuple` for all of those."""
    return namedtuple if type(tree) not in SUPPORTED_NODES and is_namedtuple(tree) else type(tree)


def tree_is_leaf(tree, is_leaf=None):
    """Whether an object is a leaf.

    Args:
        is_leaf: a function; where it says True, a container is a leaf as well.

    Example:
        >>> tree_is_leaf(1), tree_is_leaf([1])
        (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


_is_leaf = tree_is_leaf

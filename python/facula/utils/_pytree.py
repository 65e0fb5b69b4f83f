"""Nested containers of leaves: flattening, mapping, and the same nest of other leaves.

A *node* is a container whose type is registered: list, tuple, dict, OrderedDict, defaultdict,
deque, every namedtuple, `facula.Size`, the named results of operators, and what programs register.
All else is a *leaf*, None too. A TreeSpec is the nest without its leaves.
"""

from __future__ import annotations

import json
import sys
import types
from collections import OrderedDict, defaultdict, deque
from enum import Enum

from facula.utils._pytree_nodes import (  # noqa: F401 (names that programs import from here)
    BUILTIN_TYPES,
    CONSTANT_NODES,
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFn,
    FlattenWithKeysFn,
    FromDumpableContextFn,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    ToDumpableContextFn,
    UnflattenFn,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_constant_holder,
    _is_leaf,
    _is_namedtuple_instance,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _node_of,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _private_register_pytree_node,
    _register_namedtuple,
    _register_pytree_node,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    key_get,
    keystr,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_is_leaf,
)

__all__ = [
    "PyTree",
    "Context",
    "FlattenFn",
    "UnflattenFn",
    "DumpableContext",
    "ToDumpableContextFn",
    "FromDumpableContextFn",
    "PyTreeSpec",
    "TreeSpec",
    "LeafSpec",
    "keystr",
    "key_get",
    "register_pytree_node",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_unflatten",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_map",
    "tree_map_with_path",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
]

# --- specs


class TreeSpec:
    """A nest without its leaves: a type of container, its context, and specs of the children.

    Args:
        type: the container's type; None for a leaf.
        context: what `flatten_fn` gave beside the children.
        children_specs (list of TreeSpec): one for each child.
    """

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs):
        self.type, self._context, self._children = type, context, list(children_specs)
        self.num_children = len(self._children)
        if type is None:
            self.num_nodes = self.num_leaves = 1
        else:
            self.num_nodes = 1 + sum(child.num_nodes for child in self._children)
            self.num_leaves = sum(child.num_leaves for child in self._children)

    @property
    def context(self):
        """What `flatten_fn` gave beside the children."""
        return self._context

    @property
    def children_specs(self):
        """The specs of the children, as a list."""
        return self._children

    def is_leaf(self):
        """Whether this is the spec of a leaf."""
        return self.type is None

    def children(self):
        """The specs of the children, as a list of its own."""
        return list(self._children)

    def child(self, index):
        """The spec of one child."""
        return self._children[index]

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self):
        context = self._context
        if self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        try:
            found = hash(context)
        except TypeError:
            found = 0  # a context that has no hash does not tell specs apart
        return hash((self.type, found, tuple(self._children)))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        children = f",\n{' ' * (indent + 2)}".join(
            child.__repr__(indent + 2) for child in self._children
        )
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def flatten_up_to(self, tree):
        """The parts of `tree` that stand where this spec has leaves.

        Raises:
            ValueError: `tree` is another nest.

        Example:
            >>> tree_structure([1, 2]).flatten_up_to([[3, 4], 5])
            [[3, 4], 5]
        """
        found = []
        self._collect(tree, found)
        return found

    def _collect(self, tree, found):
        if self.type is None:
            found.append(tree)
            return
        for spec, child in zip(self._children, self._matching(tree), strict=True):
            spec._collect(child, found)

    def _matching(self, tree):
        """The children of `tree` in the order of this node's; ValueError where they do not fit."""
        type_ = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and type_ in STANDARD_DICT_TYPES
        if type_ is not self.type and not both_dicts:
            kind = "Node type" if self.type in BUILTIN_TYPES else "Type"
            raise ValueError(f"{kind} mismatch; expected {self.type!r}, but got {type_!r}.")
        if both_dicts:
            return self._matching_values(tree)
        children, context = SUPPORTED_NODES[type_].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        # How long a deque may grow is not a matter of its shape.
        if context != self._context and self.type is not deque:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}."
                if self.type not in BUILTIN_TYPES
                else f"Node type mismatch; expected {self._context!r}, but got {context!r}."
            )
        return children

    def _matching_values(self, tree):
        expected = self._context if self.type is not defaultdict else self._context[1]
        missing, extra = set(expected) - set(tree), set(tree) - set(expected)
        if missing or extra:
            texts = [f"missing key(s): {missing}"] * bool(missing)
            texts += [f"extra key(s): {extra}"] * bool(extra)
            raise ValueError(f"Node keys mismatch; {'; '.join(texts)}.")
        return [tree[key] for key in expected]

    def unflatten(self, leaves):
        """The nest of this spec with these leaves.

        Raises:
            ValueError: there are more or fewer leaves than the spec has.
        """
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        unflatten = SUPPORTED_NODES[self.type].unflatten_fn
        return unflatten([child._build(leaves) for child in self._children], self._context)


PyTreeSpec = TreeSpec


class _LeafSpecMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, TreeSpec) and instance.is_leaf()

    def __call__(cls):
        return _LEAF_SPEC


class LeafSpec(TreeSpec, metaclass=_LeafSpecMeta):
    """The spec of a leaf, which prints as `*`."""

    __slots__ = ()


_LEAF_SPEC = TreeSpec(None, None, [])


def treespec_leaf():
    """The spec of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable=(), /):
    """The spec of a tuple, from specs of its items."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    """The spec of a dict, from specs of its values."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


# --- flattening


def tree_flatten(tree, is_leaf=None):
    """The leaves of a nest (list), and its TreeSpec.

    Args:
        is_leaf: a function; where it says True, a container is a leaf.

    Example:
        >>> tree_flatten({"a": 1, "b": (2, 3)})
        ([1, 2, 3], TreeSpec(dict, ['a', 'b'], [*,
          TreeSpec(tuple, None, [*,
            *])]))
    """
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves, is_leaf):
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF_SPEC
    node = _node_of(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(node.type, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_iter(tree, is_leaf=None):
    """An iterator over the leaves of a nest."""
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves of a nest, as a list.

    Example:
        >>> tree_leaves([1, (2, None)])
        [1, 2, None]
    """
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments, as a list."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def tree_structure(tree, is_leaf=None):
    """The TreeSpec of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves, treespec):
    """The nest of a spec with these leaves.

    Raises:
        TypeError: `treespec` is no TreeSpec.
        ValueError: there are more or fewer leaves than the spec has.

    Example:
        >>> tree_unflatten([5, 6], tree_structure([1, (2,)]))
        [5, (6,)]
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def _generate_key_paths(key_path, tree, is_leaf=None):
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        yield key_path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """Pairs of path and leaf, as a list.

    Example:
        >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_generate_key_paths((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """Pairs of path and leaf (list), and the TreeSpec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


# --- maps


def _columns(tree, rests, is_leaf):
    """Leaves of `tree`, what stands at their places in `rests`, and the spec."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return [leaves, *(spec.flatten_up_to(rest) for rest in rests)], spec


def tree_map(func, tree, *rests, is_leaf=None):
    """The same nest with `func` applied to every leaf.

    Args:
        func: takes a leaf of `tree`, and what stands at its place in each of `rests`.
        tree, rests: nests; `rests` have that of `tree` as their upper part.
        is_leaf: a function; where it says True, a container is a leaf.

    Raises:
        ValueError: one of `rests` is another nest.

    Example:
        >>> tree_map(lambda a, b: a * b, [1, (2, 3)], [4, (5, 6)])
        [4, (10, 18)]
    """
    columns, spec = _columns(tree, rests, is_leaf)
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call `func` on every leaf, as `tree_map` does; returns `tree`."""
    for row in zip(*_columns(tree, rests, is_leaf)[0], strict=True):
        func(*row)
    return tree


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """`tree_map` with a function that takes a leaf's path first."""
    columns, spec = _columns(tree, rests, is_leaf)
    paths = [path for path, _ in _generate_key_paths((), tree, is_leaf)]
    return spec.unflatten([func(*row) for row in zip(paths, *columns, strict=True)])


def _predicate(selector):
    """A selector - a type, a tuple or union of types, a function - as a function."""
    if isinstance(selector, (type, tuple, types.UnionType)):
        return lambda value: isinstance(value, selector)
    if callable(selector):
        return selector
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred, /):
    """A decorator: a function of leaves leaves others than the selected ones as they are."""
    selected = _predicate(type_or_types_or_pred)

    def decorate(func):
        return lambda value: func(value) if selected(value) else value

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """`tree_map` of the selected leaves; the others stay.

    Args:
        type_or_types_or_pred: a type, a tuple or union of types, or a function of leaves.

    Example:
        >>> tree_map_only(int, lambda n: n + 1, [1, "a"])
        [2, 'a']
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """Call `func` on the selected leaves; returns `tree`."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for a leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree` repeated to fit `treespec`, where a leaf may stand for a whole part.

    Returns:
        list of leaves, or None when the two do not fit together.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec._context:
        return None
    found = []
    for child, spec in zip(children, treespec._children, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def treespec_pprint(treespec):
    """A spec as text, the leaves as asterisks in the containers themselves.

    Example:
        >>> treespec_pprint(tree_structure([1, {"a": 2}]))
        "[*, {'a': *}]"
    """
    from pprint import pformat

    return pformat(treespec.unflatten([_Asterisk()] * treespec.num_leaves))


class _Asterisk:
    def __repr__(self):
        return "*"


# --- specs as text


class EnumEncoder(json.JSONEncoder):
    """JSON of contexts: an enum's member is written with its class."""

    def default(self, obj):
        """What is written for an object that JSON does not know."""
        if not isinstance(obj, Enum):
            return super().default(obj)
        cls = type(obj)
        return {"__enum__": True, "fqn": f"{cls.__module__}:{cls.__qualname__}", "name": obj.name}


def enum_object_hook(obj):
    """The member that EnumEncoder wrote; other dicts stay."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    cls = sys.modules[module]
    for part in name.split("."):
        cls = getattr(cls, part)
    return cls[obj["name"]]


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if node is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if node.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    return {
        "type": node.serialized_type_name,
        "context": _dumped_context(spec, node),
        "children_spec": [_to_json(child) for child in spec._children],
    }


def _dumped_context(spec, node):
    if node.to_dumpable_context is not None:
        return node.to_dumpable_context(spec._context)
    try:
        return json.dumps(spec._context, cls=EnumEncoder)
    except TypeError as error:
        raise TypeError(
            f"treespec_dumps(): the context of {spec.type} is not JSON; register it with "
            "to_dumpable_context and from_dumpable_context"
        ) from error


def _from_json(entry):
    name = entry["type"]
    if name is None and entry["context"] is None and not entry["children_spec"]:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    node = SUPPORTED_SERIALIZED_TYPES[cls]
    load = node.from_dumpable_context
    if load is None:
        context = json.loads(entry["context"], object_hook=enum_object_hook)
    else:
        context = load(entry["context"])
    return TreeSpec(cls, context, [_from_json(child) for child in entry["children_spec"]])


def treespec_dumps(treespec, protocol=None):
    """A spec as JSON text, which `treespec_loads` reads.

    Args:
        protocol (int): the version of the format; 1.

    Raises:
        NotImplementedError: a type was registered without a name for files.
        TypeError: a context is not JSON.
        ValueError: another protocol.

    Example:
        >>> spec = tree_structure([1, {"a": 2}])
        >>> treespec_loads(treespec_dumps(spec)) == spec
        True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    if protocol is None:
        protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _to_json(treespec)), cls=EnumEncoder)


def treespec_loads(serialized):
    """The spec that `treespec_dumps` wrote.

    Raises:
        ValueError: another protocol.
        NotImplementedError: a type that is not registered here.
    """
    protocol, entry = json.loads(serialized, object_hook=enum_object_hook)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(entry)


pytree_to_str = treespec_dumps
str_to_pytree = treespec_loads


def _retrieve_constant(spec):
    """The constant of such a spec."""
    return tree_unflatten([], spec)

"""Nests: the same leaves, specs, texts, paths and errors as torch.utils._pytree."""

import dataclasses
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from enum import Enum

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
from same_program import outcome, programs  # noqa: E402

Point = namedtuple("Point", "x y")
Named = namedtuple("Named", "x")


class Color(Enum):
    RED = 1


def tree_of(t):
    return {
        "b": [1, (2, None)],
        "a": Point(3, OrderedDict(x=1)),
        "d": defaultdict(int, {"q": 1}),
        "dq": deque([1, [2]], maxlen=4),
        "e": [(), {}],
        "m": t.max(t.tensor([[1.0, 2.0]]), 1),
        "s": t.ones(2, 3).shape,
    }


def utils(t):
    __import__(f"{t.__name__}.utils._pytree")
    return t.utils._pytree


def program_flatten(t):
    return utils(t).tree_flatten(tree_of(t))


def program_paths(t):
    p = utils(t)
    return [
        (p.keystr(path), path, p.key_get(tree_of(t), path))
        for path, _ in p.tree_leaves_with_path(tree_of(t))
    ]


def program_round_trip(t):
    p = utils(t)
    leaves, spec = p.tree_flatten(tree_of(t))
    made = p.tree_unflatten(leaves, spec)
    made["m"] = list(made["m"])
    return made, spec.num_nodes, spec.num_leaves, spec.num_children


def program_dumps(t):
    p = utils(t)
    spec = p.tree_structure({k: v for k, v in tree_of(t).items() if k not in ("a", "m")})
    return p.treespec_dumps(spec), p.treespec_loads(p.treespec_dumps(spec)) == spec


def program_dumps_of_a_namedtuple_without_a_name(t):
    return utils(t).treespec_dumps(utils(t).tree_structure(Point(1, 2)))


def program_dumps_of_a_namedtuple_with_a_name(t):
    p = utils(t)
    p._register_namedtuple(Named, serialized_type_name="test.Named")
    text = p.treespec_dumps(p.tree_structure(Named(1)))
    return text, p.treespec_loads(text)


def program_dumps_of_an_enum(t):
    p = utils(t)
    text = p.treespec_dumps(p.tree_structure({Color.RED: 1, 2: 3}))
    return text.replace(__name__, "here"), p.treespec_loads(text)


def program_map_with_rests(t):
    return utils(t).tree_map(lambda *a: a, {"a": 1, "b": [2]}, {"b": [[3]], "a": 4})


def mismatched(left, right):
    return lambda t: utils(t).tree_map(lambda *a: a, left, right)


program_mismatch_of_types = mismatched([1, 2], (3, 4))
program_mismatch_of_lengths = mismatched([1, 2], [3])
program_mismatch_of_keys = mismatched({"a": 1, "b": 2}, {"c": 3, "a": 4})
program_mismatch_with_a_leaf = mismatched([1, [2]], [3, 4])
program_dicts_of_two_kinds = mismatched({"a": 1}, OrderedDict(a=3))
program_deques_of_two_lengths = mismatched(deque([1], maxlen=2), deque([1]))


def program_leaves_that_are_containers(t):
    p = utils(t)
    return p.tree_flatten(
        [1, None, [], (2, [3])], is_leaf=lambda x: isinstance(x, (list, tuple)) and len(x) < 3
    )


def program_broadcast(t):
    p = utils(t)
    spec = p.tree_structure([1, [2, (3, 4)]])
    return [p._broadcast_to_and_flatten(x, spec) for x in (1, [1, None], [1, [5, 6]], (1, 2), [1])]


def program_only(t):
    p = utils(t)
    kinds = (int, (int, float), lambda x: x == 1, int | str)
    return [p.tree_map_only(kind, lambda x: [x], [1, "a", 2.0, None]) for kind in kinds]


def program_only_of_no_kind(t):
    return utils(t).tree_map_only(3, lambda x: x, [1])


def program_questions(t):
    p = utils(t)
    tree = [1, ("a", 2)]
    return [
        p.tree_all(lambda x: x, tree),
        p.tree_any(lambda x: x == 2, tree),
        p.tree_all_only(int, lambda x: x > 1, tree),
        p.tree_any_only(str, lambda x: x == "a", tree),
        p.tree_is_leaf(None),
        p.arg_tree_leaves(1, [2], a=(3,)),
        p.is_namedtuple(Point),
        p.is_namedtuple_instance(Point(1, 2)),
        p.is_structseq(sys.version_info),
        p.is_structseq_class(Point),
        p.tree_leaves(sys.version_info) == [sys.version_info],
        p.treespec_pprint(p.tree_structure(tree)),
        p.treespec_tuple([p.treespec_leaf()]),
        p.treespec_dict(a=p.treespec_leaf()),
    ]


def program_wrong_number_of_leaves(t):
    return utils(t).tree_unflatten([1], utils(t).tree_structure([1, 2]))


def program_no_spec(t):
    return utils(t).tree_unflatten([1], 3)


def program_registered_twice(t):
    return utils(t).register_pytree_node(list, None, None)


def program_registered(t):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    p = utils(t)
    p.register_pytree_node(Pair, lambda v: ([v.a, v.b], "note"), lambda c, _: Pair(*c))
    spec = p.tree_structure([Pair(1, [2])])
    made = p.tree_map(lambda x: x + 1, Pair(1, [2]))
    return spec, made.a, made.b, outcome(lambda _: p.treespec_dumps(spec), t).replace(__name__, "")


def program_registered_with_the_functions_of_dicts(t):
    class Output(OrderedDict):
        pass

    p = utils(t)
    p.register_pytree_node(
        Output,
        p._dict_flatten,
        p._ordereddict_unflatten,
        flatten_with_keys_fn=p._dict_flatten_with_keys,
    )
    return p.tree_leaves_with_path(Output(b=1, a=[2])), p.tree_structure(Output(a=1))


def program_functions_of_builtin_types(t):
    p, found = utils(t), []
    values = {"list": [1], "tuple": (1,), "dict": {"a": 1}, "ordereddict": OrderedDict(a=1)}
    values |= {"defaultdict": defaultdict(int, a=1), "deque": deque([1], 2), "namedtuple": Named(1)}
    for name, value in values.items():
        flat = getattr(p, f"_{name}_flatten")(value)
        keyed = getattr(p, f"_{name}_flatten_with_keys")(value)
        found.append((flat, keyed, getattr(p, f"_{name}_unflatten")(*flat)))
    return found


def program_registered_without_keys(t):
    class Box(list):
        pass

    p = utils(t)
    p.register_pytree_node(Box, lambda v: (list(v), None), lambda c, _: Box(c))
    return p.tree_flatten_with_path(Box([1]))


def program_dataclass(t):
    @dataclasses.dataclass
    class Data:
        x: int
        y: int = 3
        z: int | None = None

    p = utils(t)
    p.register_dataclass(Data)
    leaves, spec = p.tree_flatten(Data(1))
    made = p.tree_unflatten([5, 6], spec)
    return leaves, spec, (made.x, made.y, made.z), p.tree_leaves_with_path(Data(1))


def program_constant_without_equality(t):
    class Plain:
        pass

    return utils(t).register_constant(Plain)


def program_equality_of_specs(t):
    p = utils(t)
    ones = [p.tree_structure(x) for x in ([1], [2], (1,), {"a": 1}, OrderedDict(a=1), [[1]])]
    return [[a == b for a in ones] for b in ones], hash(ones[0]) == hash(ones[1])


PROGRAMS = programs(globals())


@pytest.mark.parametrize("name", PROGRAMS)
def test_nests_agree(name):
    assert outcome(PROGRAMS[name], facula) == outcome(PROGRAMS[name], torch)

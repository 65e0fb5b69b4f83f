"""utils._pytree, utils.weak, utils.collect_env and __config__ without PyTorch at hand."""

import copy
import gc

import facula
import pytest
from facula.utils import _pytree as pytree
from facula.utils import collect_env, weak


def test_leaves_stand_in_order_and_go_back():
    tree = {"a": [1, (2, {"b": None})], "c": facula.max(facula.ones(1, 2), 1)}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves[:3] == [1, 2, None] and len(leaves) == 5
    again = pytree.tree_unflatten(leaves, spec)
    assert again["a"] == tree["a"] and type(again["c"]) is type(tree["c"])


def test_specs_are_equal_by_shape_and_hash():
    one, two = pytree.tree_structure([1, {"a": 2}]), pytree.tree_structure([3, {"a": 4}])
    assert one == two and hash(one) == hash(two)
    assert one != pytree.tree_structure([1, {"b": 2}])
    assert one != 3


def test_other_nests_are_refused():
    with pytest.raises(ValueError, match="missing key"):
        pytree.tree_map(max, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="holds 2 items"):
        pytree.tree_structure([1, 2]).unflatten([1])
    with pytest.raises(NotImplementedError, match="not registered"):
        pytree.treespec_loads('[1, {"type": "no.such", "context": "null", "children_spec": []}]')
    with pytest.raises(ValueError, match="protocol"):
        pytree.treespec_loads("[9, null]")


def test_constants_are_parts_of_specs():
    class Note(str):
        __slots__ = ()

    pytree.register_constant(Note)
    leaves, spec = pytree.tree_flatten([Note("a"), 1])
    assert leaves == [1] and spec != pytree.tree_structure([Note("b"), 1])
    assert pytree._retrieve_constant(spec.child(0)) == "a" and pytree.is_constant_class(Note)
    pytree._deregister_pytree_node(Note)
    assert pytree.tree_leaves([Note("a")]) == ["a"]


def test_one_implementation_serves_func():
    from facula.func import vmap

    out = vmap(lambda pair: {"sum": pair[0] + pair[1]}, in_dims=((0, None),))(
        (facula.ones(3), facula.ones(()))
    )
    assert out["sum"].tolist() == [2, 2, 2]


def test_weak_dictionaries_know_keys_by_identity():
    x, y = facula.ones(2), facula.ones(2)
    notes = weak.WeakIdKeyDictionary({x: 1})
    notes[y] = 2
    assert notes[x] == 1 and notes.pop(y) == 2 and y not in notes
    assert copy.copy(notes) == notes == copy.deepcopy(notes) and (notes | {y: 3})[y] == 3
    for key in notes:  # a key that dies meanwhile disturbs nobody
        del x, key
        gc.collect()
        break
    else:
        pytest.fail("no key was seen")
    gc.collect()
    assert len(notes) == 0
    with pytest.raises(KeyError):
        notes[y]


def test_weak_references_compare_by_identity():
    x = facula.ones(2)
    first, second = weak.WeakIdRef(x), weak.WeakIdRef(x)
    assert first == second and hash(first) == hash(second) == id(x)
    assert weak.WeakIdRef(facula.ones(2)) != first
    with pytest.raises(AssertionError):
        weak.TensorWeakRef(3)


def test_the_report_names_the_system():
    report = collect_env.get_pretty_env_info()
    assert f"PyTorch version: {facula.__version__}" in report
    assert "Is CUDA available: False" in report and "{" not in report.split("CPU:")[0]


def test_the_build_describes_itself():
    assert facula.backends.cpu.get_cpu_capability() in facula.__config__.show()
    assert str(facula.get_num_threads()) in facula.__config__.parallel_info()


def test_assert_raises_its_message():
    facula._assert(facula.ones(1) > 0, "fine")
    with pytest.raises(AssertionError, match="no good"):
        facula._assert(facula.zeros(1), "no good")

"""cond and while_loop as Python runs them, tags of operators, and what the CPU can do."""

import facula
import pytest

X = facula.tensor([1.0, 2.0])


@pytest.mark.parametrize("pred", [True, False, facula.tensor(True), facula.tensor([0])])
def test_cond_runs_one_branch_and_gradients_flow(pred):
    x = X.clone().requires_grad_()
    facula.cond(pred, lambda x: 2 * x, lambda x: 3 * x, (x,)).sum().backward()
    assert x.grad.tolist() == ([2, 2] if bool(pred) else [3, 3])


def test_while_loop_carries_nested_values():
    start = (facula.tensor(0), {"x": X})
    i, nest = facula.while_loop(lambda i, n: i < 3, lambda i, n: (i + 1, {"x": n["x"] * 2}), start)
    assert i.item() == 3 and nest["x"].tolist() == [8, 16]


@pytest.mark.parametrize(
    "call",
    [
        lambda: facula.cond("yes", abs, abs, (X,)),
        lambda: facula.cond(X > 0, abs, abs, (X,)),
        lambda: facula.cond(True, abs, 3, (X,)),
        lambda: facula.cond(True, abs, abs, X),
        lambda: facula.while_loop(3, abs, (X,)),
        lambda: facula.while_loop(lambda x: x, lambda x: (x,), (X,)),
        lambda: facula.while_loop(lambda x: True, lambda x: x, (X,)),
        lambda: facula.while_loop(lambda x: True, lambda x: (x[:1],), (X,)),
        lambda: facula.while_loop(lambda x: 1, lambda x: (x,), (X,)),
    ],
)
def test_what_is_no_branch_or_loop_raises(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()


def test_tags_tell_what_records_know():
    names = {"add.Tensor": "pointwise", "add_.Tensor": "inplace", "add.out": "out"}
    names.update(
        {"nonzero.default": "dynamic_output_shape", "one_hot.default": "dynamic_output_shape"}
    )
    names.update(
        {"item.default": "data_dependent_output", "equal.default": "data_dependent_output"}
    )
    for overload, tag in names.items():
        packet, _, name = overload.partition(".")
        found = getattr(getattr(facula.ops.aten, packet), name).tags
        assert facula.Tag[tag] in found and found == sorted(found, key=int), overload
    assert repr(facula.Tag.core) == "<Tag.core: 0>" and int(facula.Tag.view_copy) == 19


def test_capabilities_of_the_cpu_can_only_be_read():
    found = facula.cpu.get_capabilities()
    assert found["num_logical_cores"] >= found["num_physical_cores"] >= 1
    with pytest.raises(TypeError):
        found["avx2"] = True


def test_both_kinds_of_storage_are_storages():
    from facula.types import Storage

    assert isinstance(X.untyped_storage(), Storage) and not isinstance(X, Storage)

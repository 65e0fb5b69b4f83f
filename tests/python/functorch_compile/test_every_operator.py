"""Every operator of the table of samples, compiled: values, strides and gradients are eager's."""

import warnings

import facula
import pytest
from facula.functorch.compile import aot_function, min_cut_rematerialization_partition, nop
from facula.utils._pytree import tree_leaves
from samples import load_ops
from samples.common import find, make_arguments, seed_of

# A program has no memory that an argument could be given, and no lazy bit of a result.
UNRECORDED = {"ops.aten.set_data", "ops.aten._neg_view"}
OPS = [
    op
    for op in load_ops()
    if "float32" in op.dtype_names() and "empty" not in op.name and op.name not in UNRECORDED
]
# Under a mode the layers of recurrent networks run by their parts, which round otherwise.
ROUNDED = {"gru", "lstm", "rnn_tanh", "rnn_relu"}
UNKNOWN = "depends on data|depend on data|reads no numbers|has a size but no memory"


def _tensors(nest):
    return [t for t in tree_leaves(nest) if isinstance(t, facula.Tensor)]


def _run(function, op, index, sample):
    args, kwargs = make_arguments(facula, sample, "float32", seed_of(op, index), grad=bool(op.grad))
    facula.manual_seed(0)
    results = function(*args, **kwargs)
    losses = [r.abs().sum() if r.is_complex() else r.float().sum() for r in _tensors(results)]
    losses = [loss for loss in losses if loss.requires_grad]
    if losses:
        sum(losses).backward()
    given = _tensors((args, kwargs))
    return _tensors(results) + given + [t.grad for t in given if t.is_leaf]


def _differs(a, b, exact):
    if a is None or b is None:
        return a is not b
    if (a.shape, a.dtype, a.requires_grad) != (b.shape, b.dtype, b.requires_grad):
        return True
    a, b = (t.detach().resolve_conj().resolve_neg() for t in (a, b))
    if a.layout is not facula.strided:
        return False
    same = facula.allclose(a, b, rtol=1e-5, atol=1e-5 if not exact else 1e-6, equal_nan=True)
    return not same or (a.numel() > 1 and a.stride() != b.stride())


@pytest.mark.parametrize("family", sorted({op.family for op in OPS}))
def test_samples_give_eager_s_results_compiled(family):
    wrong = []
    for op in (op for op in OPS if op.family == family):
        function = find(facula, op.name)
        compiled = aot_function(
            lambda *args, _f=function, **kwargs: _f(*args, **kwargs),
            nop,
            partition_fn=min_cut_rematerialization_partition,
        )
        for index, sample in list(op.numbered_samples("float32"))[-1:]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected = _run(function, op, index, sample)
                except (TypeError, RuntimeError):  # the row has no gradient for such arguments
                    continue
                try:
                    results = _run(compiled, op, index, sample)
                except (NotImplementedError, RuntimeError) as error:
                    if not any(text in str(error) for text in UNKNOWN.split("|")):
                        wrong.append((op.name, index, str(error)))
                    continue
            exact = op.name not in ROUNDED
            if any(_differs(a, b, exact) for a, b in zip(results, expected, strict=True)):
                wrong.append((op.name, index))
    assert not wrong

"""facula.masked without PyTorch: slices without elements, errors, MaskedTensor's own promises."""

import copy
import doctest
import pickle

import facula
import pytest
from facula import masked
from facula.masked import _ops, maskedtensor
from masked_cases import ERRORS, MASKS

NOTHING = facula.zeros(3, dtype=facula.bool)


@pytest.mark.parametrize("module", [_ops, maskedtensor])
def test_examples(module):
    assert doctest.testmod(module, extraglobs={"facula": facula, "masked": masked}).failed == 0


@pytest.mark.parametrize("name", _ops.__all__)
def test_documentation(name):
    text = getattr(masked, name).__doc__
    assert "Args:" in text and "Returns:" in text and ">>> " in text


EMPTY = [
    ("sum", 0.0),
    ("prod", 1.0),
    ("amax", -facula.inf),
    ("amin", facula.inf),
    ("logsumexp", -facula.inf),
    ("norm", 0.0),
    ("mean", facula.nan),
    ("var", facula.nan),
    ("argmax", 0.0),
]


@pytest.mark.parametrize("name, identity", EMPTY)
def test_slices_without_elements_give_the_identity(name, identity):
    found = getattr(masked, name)(facula.ones(3), mask=NOTHING)
    facula.testing.assert_close(found, facula.tensor(identity), equal_nan=True)


@pytest.mark.parametrize("label, call, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(label, call, error):
    with pytest.raises(error):
        call(masked, facula.arange(6.0).reshape(2, 3), facula.tensor(MASKS["full"]))


def test_masked_elements_get_no_gradient():
    x = facula.tensor([1.0, facula.nan, 3.0], requires_grad=True)
    masked.mean(x, mask=facula.tensor([True, False, True])).backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def both():
    mask = facula.tensor([True, False, True])
    return masked.masked_tensor(facula.tensor([1.0, 2.0, 3.0]), mask), mask


def test_masked_tensors_are_copies():
    data, mask = facula.ones(2), facula.tensor([True, True])
    a = masked.MaskedTensor(data, mask)
    data[0], mask[1] = 5.0, False
    assert a.get_data().tolist() == [1.0, 1.0] and a.get_mask().tolist() == [True, True]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies(copied):
    a, mask = both()
    again = copied(a)
    assert masked.is_masked_tensor(again) and repr(again) == repr(a)


def test_reductions_take_masked_tensors():
    a, mask = both()
    assert masked.sum(a).item() == 4.0
    assert masked.sum(a, mask=facula.tensor([True, True, False])).item() == 1.0


def test_saved_results_keep_their_class():
    a = masked.masked_tensor(facula.ones(2), facula.tensor([True, False]), requires_grad=True)
    a.exp().tanh().sum().backward()
    assert masked.is_masked_tensor(a.grad)
    assert masked.is_masked_tensor(a.data)


BAD = [
    (lambda x, k: masked.masked_tensor(x, k.float()), TypeError),
    (lambda x, k: masked.masked_tensor(x * 1j, k), TypeError),
    (lambda x, k: masked.masked_tensor([1.0], k), TypeError),
    (lambda x, k: masked.masked_tensor(masked.masked_tensor(x, k), k), TypeError),
    (lambda x, k: masked.masked_tensor(x, k[:2]), ValueError),
    (lambda x, k: masked.masked_tensor(x, k) + masked.masked_tensor(x, ~k), ValueError),
    (lambda x, k: masked.masked_tensor(x, k)[1].item(), ValueError),
    (lambda x, k: masked.masked_tensor(x, k) @ x, TypeError),
    (lambda x, k: masked.masked_tensor(x, k).median(), TypeError),
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_masked_tensors(index):
    call, error = BAD[index]
    with pytest.raises(error):
        call(facula.ones(3), facula.tensor([True, False, True]))

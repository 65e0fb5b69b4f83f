"""NumPy beside tensors, sequences as indices, tensors among elements, tuples of results."""

import collections
import copy
import pickle
import warnings

import facula
import numpy as np
import pytest

T = facula


def _t():
    return facula.arange(2.0)


def _i():
    return facula.arange(2)


def _g():
    return facula.ones(2, requires_grad=True)


def _kind(f):
    """Class, dtype and values of what f gives, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            r = f()
        except Exception as error:
            return type(error)
    if isinstance(r, facula.Tensor):
        return str(r.dtype).split(".")[1], r.tolist()
    return r


BESIDE = [
    (lambda: np.float32(2) * _t(), ("float32", [0.0, 2.0])),
    (lambda: np.float64(2) * _t(), ("float32", [0.0, 2.0])),
    (lambda: np.int64(2) * _i(), ("int64", [0, 2])),
    (lambda: np.float64(2.5) * _i(), ("float32", [0.0, 2.5])),
    (lambda: np.float32(3) - _t(), ("float32", [3.0, 2.0])),
    (lambda: np.float32(3) ** _t(), ("float32", [1.0, 3.0])),
    (lambda: np.float32(3) == _t(), ("bool", [False, False])),
    (lambda: np.float32(1) >= _t(), ("bool", [True, True])),
    (lambda: np.int64(3) & _i(), ("int64", [0, 1])),
    (lambda: (np.float32(3) * _g()).requires_grad, True),
    (lambda: _t() * np.ones(2), ("float64", [0.0, 1.0])),
    (lambda: _t() + np.ones(2), ("float64", [1.0, 2.0])),
    (lambda: _t() * np.array(2.0), ("float64", [0.0, 2.0])),
    (lambda: _g() * np.ones(2), RuntimeError),
    (lambda: np.ones(2) * _t(), TypeError),
    (lambda: np.ones(2) / (_t() + 1), ("float64", [1.0, 0.5])),
    (lambda: _t() == np.ones(2), ("bool", [False, True])),
    (lambda: np.ones(2) == _t(), ("bool", [False, True])),
    (lambda: _t() != np.ones(2), ("bool", [True, False])),
    (lambda: _t() < np.ones(2), TypeError),
    (lambda: np.sqrt(_t()), ("float32", [0.0, 1.0])),
    (lambda: np.add(_t(), 1), ("float32", [1.0, 2.0])),
    (lambda: np.add(np.ones(2), _t()), ("float64", [1.0, 2.0])),
    (lambda: np.greater(_t(), 0), ("uint8", [0, 1])),
    (lambda: np.add.reduce(_t()), ("float32", 1.0)),
    (lambda: np.sin(facula.tensor(0.0)), ("float32", 0.0)),
    (lambda: np.sqrt(_g()), RuntimeError),
    (lambda: type(np.concatenate([_t(), _t()])), np.ndarray),
    (lambda: facula.Tensor.__array_priority__, 1000),
    (lambda: _t().__array_wrap__(np.array([1.5])), ("float64", [1.5])),
]


@pytest.mark.parametrize("case", range(len(BESIDE)))
def test_beside_numpy(case):
    f, expected = BESIDE[case]
    assert _kind(f) == expected


def test_in_place_with_an_array():
    t = _t()
    t += np.ones(2, dtype=np.float32)
    assert t.tolist() == [1.0, 2.0]


X = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
# The index, the rows or elements that it takes, and whether it is taken for a tuple.
INDICES = [
    ((range(2), [0, 1]), [0.0, 4.0], False),
    ((range(0, -2, -1), 0), [0.0, 3.0], False),
    (range(2), X, False),
    (range(0), [], False),
    ([[0, 1], [1, 2]], [1.0, 5.0], True),
    ([[0, 1]], X, True),
    ([0, 1], X, False),
    ([slice(0, 1), 1], [1.0], True),
    ([None, 0], [X[0]], True),
    ([Ellipsis, 0], [0.0, 3.0], True),
    ([0, [1, 2]], [1.0, 2.0], True),
    ([np.array([0, 1]), 1], [1.0, 4.0], True),
    ([range(2), range(2)], [0.0, 4.0], True),
    ([facula.tensor(0), facula.tensor(1)], 1.0, True),
    ([[[0, 1], [1, 2]]], IndexError, True),
    ([True, False], [X[0]], False),
    ([[0]] * 33, [[X[0]]] * 33, False),
    ([], [], False),
    (np.array([[0, 1], [1, 0]]), [[X[0], X[1]], [X[1], X[0]]], False),
    (collections.deque([0, 1]), X, False),
    (collections.UserList([[0, 1], [1, 2]]), [1.0, 5.0], True),
    (([0, 1], [1, 2]), [1.0, 5.0], False),
    ("a", TypeError, False),
    (b"a", TypeError, False),
    ({}, IndexError, False),
    ({0}, IndexError, False),
]


@pytest.mark.parametrize("case", range(len(INDICES)))
def test_sequences_as_indices(case):
    index, expected, warns = INDICES[case]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = facula.tensor(X)[index].tolist()
        except Exception as error:
            found = type(error)
    assert found == expected
    assert any("non-tuple sequence" in str(w.message) for w in said) == warns


def test_assignment_by_sequences():
    x = facula.tensor(X)
    x[range(2), range(2)] = 9
    with pytest.warns(UserWarning, match="non-tuple"):
        x[[[0, 1], [2, 2]]] = 7
    assert x.tolist() == [[9.0, 1.0, 7.0], [3.0, 9.0, 7.0]]


AMONG = [
    (lambda x: T.tensor([x[0], x[1]]), ValueError),
    (lambda x: T.tensor([x[0, 0], x[1, 1]]), ("float32", [0.0, 4.0])),
    (lambda x: T.tensor([T.ones(1), T.ones(1)]), ("float32", [1.0, 1.0])),
    (lambda x: T.tensor([T.ones(1, 1), 2]), ("float32", [1.0, 2.0])),
    (lambda x: T.tensor([[x[0, 0], 1.0]]), ("float32", [[0.0, 1.0]])),
    (lambda x: T.tensor([x[0], [1.0, 2.0, 3.0]]), ValueError),
    (lambda x: T.tensor([T.ones(0)]), ValueError),
    (lambda x: T.as_tensor([x[0], x[1]]), ValueError),
    (lambda x: T.asarray([x[0], x[1]]), ValueError),
    (lambda x: T.FloatTensor([x[0], x[1]]), ValueError),
    (lambda x: x.new_tensor([x[0], x[1]]), ValueError),
    (lambda x: T.tensor([_i(), _i()]), TypeError),
    (lambda x: T.tensor([x[0]], dtype=T.int64), TypeError),
    (lambda x: T.tensor([_i()], dtype=T.float32), ValueError),
    (lambda x: T.tensor([x > 0]), TypeError),
    (lambda x: T.tensor([T.ones(1, dtype=T.bool)]), ("bool", [True])),
]


@pytest.mark.parametrize("case", range(len(AMONG)))
def test_tensors_among_elements(case):
    f, expected = AMONG[case]
    assert _kind(lambda: f(facula.tensor(X))) == expected


def test_tuples_of_results():
    r = facula.tensor(X).max(0)
    kind = facula.return_types.max
    assert type(r) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    for made in (pickle.loads(pickle.dumps(r)), copy.copy(r), copy.deepcopy(r)):
        assert type(made) is kind
        assert (made.values.tolist(), made.indices.tolist()) == (X[1], [1, 1, 1])
    assert r.__reduce__()[0] is kind
    assert facula.return_types.kthvalue.__name__ == "kthvalue"
    for name in ("max", "sort"):
        out = facula.empty(0), facula.empty(0, dtype=facula.int64)
        made = getattr(facula, name)(facula.ones(2, 2), 0, out=out)
        assert type(made) is getattr(facula.return_types, f"{name}_out"), name
    with pytest.raises(AttributeError):
        facula.return_types.nothing  # noqa: B018

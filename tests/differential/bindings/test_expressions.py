"""Expressions of a user's day, evaluated with both libraries: equal text, or the same error."""

import warnings

import facula
import numpy
import pytest
import torch

EXPRESSIONS = [
    # NumPy beside tensors gives tensors
    "np.float32(2) * t",
    "t * np.ones(2)",
    "np.ones(2) - g",
    "np.sqrt(t)",
    "np.add(t, t)",
    "np.ones(2) == t",
    "np.ones((2, 2)) @ t.double()",
    # indices
    "x[range(2), [0, 1]]",
    "x[[[0, 1], [1, 2]]]",
    "x[[slice(None), 0]]",
    # tensors of tensors, types
    "m.tensor([x[0], x[1]])",
    "m.tensor([x[0, 0], x[1, 1]])",
    "x.type(m.LongTensor)",
    "x.type()",
    "m.tensor([1], dtype=m.uint16).type()",
    "m.clamp(t, min=m.tensor(0.0, dtype=m.float64)).dtype",
    "m.nn.functional.huber_loss(t, m.tensor(1.0, dtype=m.float64)).dtype",
    # storages
    "m.FloatStorage([1, 2, 3, 4])[1:3]",
    "m.FloatStorage([1, 2]).double()",
    "m.empty(0).set_(m.FloatStorage([1, 2, 3]))",
    "m.asarray(m.FloatStorage([1, 2]).untyped(), dtype=m.float32)",
    # None for a list that is empty by default
    "m.amax(x, dim=None)",
    "x.amin(None, True)",
    "m.roll(x, 1, None)",
    "m.flip(x, None)",
    "m.prod(x, dim=None)",
    # names of arguments
    "m.swapaxes(x, axis0=0, axis1=1)",
    "x.swapaxes(axis0=0, axis1=1)",
    "m.swapaxes(x, dim0=0, dim1=1)",
    "x.clone().swapaxes_(0, 1)",
    # functions (not those of nn.functional) reduce nothing unless told
    "m.hinge_embedding_loss(t, t)",
    "m.kl_div(t, t)",
    "m.binary_cross_entropy_with_logits(t, t)",
    "m.ops.aten.mse_loss(t, t)",
    "m.nn.functional.kl_div(t, t)",
    # the order of arguments of the first releases
    "m.addcmul(t, 2, t, t)",
    "t.addcdiv(2, t, t)",
    "m.add(t, 2, t)",
    "t.clone().sub_(2, t)",
    "m.addmm(2, x, 3, x, x)",
    "x.addmm(2, x, x)",
    "m.addmm(x, 2, x, x)",
    # transposed scalars
    "m.tensor(1.0).mH",
    "m.tensor(1j).H",
    "m.tensor(1j).adjoint()",
    "t.mH",
    # parts of complex tensors
    "put(z, 'real', t)",
    "put(z, 'imag', 3)",
    "put(t.clone(), 'real', m.ones(2))",
    "put(t.clone(), 'imag', m.ones(2))",
    "put(z, 'real', m.ones(3))",
    "put(z.clone().requires_grad_(), 'real', t)",
]


def _put(tensor, name, value):
    setattr(tensor, name, value)
    return tensor


def _answer(m, expression):
    t = m.tensor([1.0, 2.0])
    names = {
        "m": m,
        "np": numpy,
        "put": _put,
        "t": t,
        "g": m.tensor([1.0, 2.0], requires_grad=True),
        "x": m.arange(9.0).reshape(3, 3),
        "z": m.zeros(2, dtype=m.complex64),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(expression, names)).replace("facula", "torch")  # noqa: S307
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_answers_are_equal(expression):
    assert _answer(facula, expression) == _answer(torch, expression)

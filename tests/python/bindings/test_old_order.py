"""The order of arguments of PyTorch's first releases, which works and warns."""

import facula
import pytest

X, Y, Z = facula.tensor([1.0, 2.0]), facula.tensor([3.0, 5.0]), facula.tensor([7.0, 11.0])
M, N = facula.tensor([[1.0, 2.0], [3.0, 4.0]]), facula.tensor([[5.0, 6.0], [7.0, 8.0]])
B, C = M[None], N[None]

# name, arguments after self in the old order, in today's, keywords of today's; self's place
CASES = [
    ("add", X, (2, Y), (Y,), {"alpha": 2}),
    ("sub", X, (2, Y), (Y,), {"alpha": 2}),
    ("addcmul", X, (2, Y, Z), (Y, Z), {"value": 2}),
    ("addcdiv", X, (2, Y, Z), (Y, Z), {"value": 2}),
]
PRODUCTS = [
    ("addmm", M, (M, N)),
    ("addmv", X, (M, Y)),
    ("addr", M, (X, Y)),
    ("baddbmm", B, (B, C)),
    ("addbmm", M, (B, C)),
]


@pytest.mark.parametrize("name,self,old,new,keywords", CASES, ids=[c[0] for c in CASES])
def test_number_before_the_tensors(name, self, old, new, keywords):
    function, expected = getattr(facula, name), getattr(facula, name)(self, *new, **keywords)
    with pytest.warns(UserWarning, match=f"{name}\\(\\): the order of arguments"):
        assert facula.equal(function(self, *old), expected)
    with pytest.warns(UserWarning):
        assert facula.equal(getattr(self, name)(*old), expected)
    with pytest.warns(UserWarning):
        assert facula.equal(getattr(self.clone(), name + "_")(*old), expected)
    out = facula.empty(2)
    with pytest.warns(UserWarning):
        assert function(self, *old, out=out) is out
    assert facula.equal(out, expected)


@pytest.mark.parametrize("name,self,factors", PRODUCTS, ids=[c[0] for c in PRODUCTS])
def test_factors_before_the_tensors(name, self, factors):
    function = getattr(facula, name)
    both = function(self, *factors, beta=2, alpha=3)
    one = function(self, *factors, beta=2)
    with pytest.warns(UserWarning):
        assert facula.equal(function(2, self, 3, *factors), both)
    with pytest.warns(UserWarning):
        assert facula.equal(function(2, self, *factors), one)
    with pytest.warns(UserWarning):
        assert facula.equal(getattr(self, name)(2, 3, *factors), both)
    with pytest.warns(UserWarning):
        assert facula.equal(getattr(self.clone(), name + "_")(2, *factors), one)


def test_other_orders_raise():
    for wrong in ((Y, X, 2), (X, 2, Y, Z)):
        with pytest.raises(TypeError):
            facula.add(*wrong)
    with pytest.raises(TypeError):
        facula.addmm(2, M, 3, M)

"""Views and .data."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, names
from autograd_cases import leaf4 as leaf


@case
def data_set(T):
    x = leaf(T)
    x.data = T.ones(2)
    return x, x.requires_grad, x._version


@case
def data_set_dtype(T):
    x = leaf(T)
    x.data = T.ones(4, dtype=T.float64)
    return x


@case
def data_set_int(T):
    x = leaf(T)
    x.data = T.ones(4, dtype=T.int64)
    return x


@case
def data_set_type(T):
    x = leaf(T)
    x.data = 3


@case
def data_set_backward(T):
    x = leaf(T)
    y = x * x
    x.data = T.ones(4) * 10
    y.sum().backward()
    return x.grad


@case
def data_set_grad_shape(T):
    x = leaf(T)
    x.sum().backward()
    x.data = T.ones(2)
    x.sum().backward()
    return x.grad


@case
def data_get(T):
    x = leaf(T)
    d = x.data
    d.mul_(2)
    return x, d.requires_grad, x._version, d._version


@case
def data_nonleaf(T):
    x = leaf(T)
    y = x * 1
    y.data = T.ones(4) * 5
    (y * y).sum().backward()
    return x.grad


@case
def view_base(T):
    x = T.ones(4)
    v = x[:2]
    w = v.view(2, 1)
    return v._is_view(), v._base is x, w._base is x, x._is_view(), x._base


@case
def view_base_grad(T):
    x = leaf(T)
    v = x[:2]
    w = v.view(2, 1)
    return v._base is x, w._base is x, names(v, w)


@case
def view_as_self(T):
    x = T.ones(4)
    v = x.view_as(x)
    return v._is_view(), v._base is x


@case
def view_detach(T):
    x = leaf(T)
    d = x.detach()
    return d._is_view(), d._base


@case
def view_leaf_state(T):
    x = T.ones(4)
    v = x[:2]
    x.requires_grad_()
    return v.requires_grad


@case
def view_leaf_state2(T):
    x = T.ones(4)
    v = x[:2]
    v.requires_grad_()
    return x.requires_grad, v.is_leaf, v.requires_grad


@case
def view_leaf_requires_inplace(T):
    x = T.ones(4)
    v = x[:2]
    v.requires_grad_()
    v.mul_(2)


@case
def view_leaf_requires_inplace_base(T):
    x = T.ones(4)
    v = x[:2]
    v.requires_grad_()
    x.mul_(2)
    return v.requires_grad, v.is_leaf


@case
def view_mult_then_index(T):
    x = leaf(T)
    y = x * 1
    a = y.unbind()[0]
    return a._is_view(), a._base is y


@case
def view_real(T):
    x = T.ones(2, dtype=T.complex64, requires_grad=True)
    y = x * 1
    T.view_as_real(y).mul_(2)
    (y.abs() ** 2).sum().backward()
    return names(y), T.view_as_real(x.grad)


@case
def view_realattr(T):
    x = T.ones(2, dtype=T.complex64, requires_grad=True)
    y = x * 1
    y.real.mul_(3)
    y.real.sum().backward()
    return names(y), T.view_as_real(x.grad)


@case
def view_dtype(T):
    x = T.ones(2, requires_grad=True)
    return (x * 1).view(T.int32).requires_grad


@case
def view_diag(T):
    x = T.ones(3, 3, requires_grad=True)
    y = x * 1
    y.diagonal().mul_(3)
    y.sum().backward()
    return x.grad, names(y)


@case
def view_asstrided(T):
    x = leaf(T)
    y = x * 1
    y.as_strided((2,), (2,)).mul_(3)
    y.sum().backward()
    return x.grad, names(y)


@case
def view_contig_noop(T):
    x = leaf(T)
    return x.contiguous() is x, x.to(T.float32) is x, x.reshape(4) is x, x.reshape(4)._is_view()

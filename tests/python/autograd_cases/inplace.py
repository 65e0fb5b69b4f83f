"""Changes in place under autograd."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, names
from autograd_cases import leaf4 as leaf


@case
def ip_leaf(T):
    leaf(T).mul_(2)


@case
def ip_leaf_setitem(T):
    leaf(T)[0] = 3


@case
def ip_leaf_view(T):
    leaf(T)[:2].mul_(2)


@case
def ip_leaf_view_nogradkind(T):
    x = leaf(T)
    with T.no_grad():
        v = x[:2]
    v.mul_(2)


@case
def ip_nograd_leaf(T):
    x = leaf(T)
    with T.no_grad():
        x.mul_(2)
    return x, x._version, x.is_leaf


@case
def ip_nograd_leaf_view(T):
    x = leaf(T)
    with T.no_grad():
        x[:2].mul_(2)
    return x


@case
def ip_view(T):
    x = leaf(T)
    y = x * 1
    v = y[:2]
    v.mul_(3)
    y.sum().backward()
    return x.grad, names(y, v), v._is_view(), v._base is y


@case
def ip_view_of_view(T):
    x = leaf(T)
    y = x * 1
    v = y[1:]
    w = v[1:]
    w.mul_(3)
    n = names(y, v, w)
    (y.sum() + v.sum() + w.sum()).backward()
    return x.grad, n, w._base is y


@case
def ip_base_then_view(T):
    x = leaf(T)
    y = x * 1
    v = y[:2]
    y.mul_(3)
    n = names(y, v)
    v.sum().backward()
    return x.grad, n


@case
def ip_view_transposed(T):
    x = T.arange(6.0).view(2, 3).requires_grad_()
    y = x * 1
    y.t()[0].mul_(5)
    y.sum().backward()
    return x.grad, names(y)


@case
def ip_view_view(T):
    x = T.arange(6.0).requires_grad_()
    y = x * 1
    v = y.view(2, 3)
    v.mul_(5)
    v.sum().backward()
    return x.grad, names(y, v)


@case
def ip_view_neg_index(T):
    x = T.arange(6.0).requires_grad_()
    y = x * 1
    y[::2] = 0
    y.sum().backward()
    return x.grad, names(y)


@case
def ip_setitem_value(T):
    x = leaf(T)
    v = T.ones(2, requires_grad=True)
    y = x * 1
    y[:2] = v * 2
    (y * y).sum().backward()
    return x.grad, v.grad, names(y)


@case
def ip_plain_base(T):
    v = T.ones(2, requires_grad=True)
    b = T.zeros(4)
    b[:2] = v
    n = names(b)
    b.sum().backward()
    return v.grad, n, b.requires_grad


@case
def ip_plain_base_view_after(T):
    v = T.ones(2, requires_grad=True)
    b = T.zeros(4)
    w = b[1:3]
    b[:2] = v
    n = names(b, w)
    (w * w).sum().backward()
    return v.grad, n, w.requires_grad


@case
def ip_plain(T):
    v = T.ones(2, requires_grad=True)
    b = T.zeros(2)
    b.add_(v)
    b.sum().backward()
    return v.grad, names(b)


@case
def ip_plain_detached_alias(T):
    v = T.ones(2, requires_grad=True)
    b = T.zeros(2)
    d = b.detach()
    b.add_(v)
    return d.requires_grad


@case
def ip_detached(T):
    x = leaf(T)
    y = x * 1
    d = y.detach()
    d.mul_(2)
    return names(y), y, d.requires_grad, d._is_view(), d._version == y._version


@case
def ip_detach_(T):
    x = leaf(T)
    y = x * 1
    z = y.detach_()
    return z is y, y.requires_grad, y.grad_fn, y.is_leaf


@case
def ip_detach_view(T):
    x = leaf(T)
    y = x * 1
    v = y[:2]
    v.detach_()


@case
def ip_detach_leafview(T):
    x = T.ones(3)
    v = x[:2]
    v.detach_()
    return v._is_view()


@case
def ip_unbind(T):
    x = leaf(T)
    y = x * 1
    a, *_ = y.unbind()
    a.mul_(2)


@case
def ip_chunk(T):
    x = leaf(T)
    y = x * 1
    a, b = y.chunk(2)
    a.mul_(2)


@case
def ip_split(T):
    x = leaf(T)
    y = x * 1
    a, b = y.split(2)
    a.mul_(2)


@case
def ip_split_plain(T):
    y = T.ones(4)
    a, b = y.split(2)
    a.mul_(2)
    return y


@case
def ip_split_plain_thenreq(T):
    y = T.ones(4)
    a, b = y.split(2)
    a.mul_(T.ones(2, requires_grad=True))
    return y


@case
def ip_unbind_nograd(T):
    x = leaf(T)
    y = x * 1
    with T.no_grad():
        a, *_ = y.unbind()
    a.mul_(2)


@case
def ip_view_nograd(T):
    x = leaf(T)
    y = x * 1
    with T.no_grad():
        v = y[:2]
    v.mul_(2)


@case
def ip_view_nograd_both(T):
    x = leaf(T)
    y = x * 1
    with T.no_grad():
        v = y[:2]
        v.mul_(2)
    y.sum().backward()
    return x.grad, y


@case
def ip_view_nograd_read(T):
    x = leaf(T)
    y = x * 1
    with T.no_grad():
        v = y[:2]
    return v.requires_grad, v._is_view(), v.grad_fn


@case
def ip_view_nograd_then_base(T):
    x = leaf(T)
    y = x * 1
    with T.no_grad():
        v = y[:2]
    y.mul_(2)
    return v.requires_grad, v.grad_fn


@case
def ip_expand(T):
    x = leaf(T)
    y = x * 1
    y.expand(2, 4).mul_(2)


@case
def ip_expand1(T):
    x = T.ones(1, requires_grad=True)
    y = x * 1
    y.expand(4).add_(2)


@case
def ip_self(T):
    x = leaf(T)
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    return x.grad


@case
def ip_self_overlap(T):
    x = leaf(T)
    y = x * 1
    y[1:].add_(y[:-1])


@case
def ip_of_saved_ok(T):
    x = leaf(T)
    y = x * 1
    z = y + 1
    y.mul_(2)
    (z + y).sum().backward()
    return x.grad


@case
def ip_add_requires(T):
    x = T.ones(4)
    x.add_(leaf(T))
    return x.requires_grad, x.is_leaf


@case
def ip_int(T):
    x = T.ones(4, dtype=T.int64)
    x.add_(leaf(T))


@case
def ip_copy(T):
    x = leaf(T)
    b = T.zeros(4)
    b.copy_(x)
    b.sum().backward()
    return x.grad, names(b)


@case
def ip_copy_dtype(T):
    x = leaf(T)
    b = T.zeros(4, dtype=T.float64)
    b.copy_(x)
    b.sum().backward()
    return x.grad, names(b)


@case
def ip_zero(T):
    x = leaf(T)
    y = x * 1
    y.zero_()
    y.sum().backward()
    return x.grad, names(y)


@case
def ip_fill(T):
    x = leaf(T)
    y = x * 1
    v = T.tensor(2.0, requires_grad=True)
    y.fill_(v)
    y.sum().backward()
    return x.grad, v.grad, names(y)


@case
def ip_masked_fill(T):
    x = leaf(T)
    y = x * 1
    y.masked_fill_(y > 2, 0)
    y.sum().backward()
    return x.grad, names(y)


@case
def ip_random(T):
    x = leaf(T)
    y = x * 1
    y.uniform_()
    y.sum().backward()
    return x.grad, names(y)


@case
def ip_resize(T):
    x = leaf(T)
    x.resize_(2)


@case
def ip_resize_nonleaf(T):
    y = leaf(T) * 1
    y.resize_(2)


@case
def ip_set(T):
    x = leaf(T)
    x.set_(T.ones(2))


@case
def ip_t(T):
    x = T.ones(2, 3, requires_grad=True)
    y = x * 1
    y.t_()
    (y * T.arange(6.0).view(3, 2)).sum().backward()
    return x.grad, names(y)


@case
def ip_t_leaf(T):
    x = T.ones(2, 3, requires_grad=True)
    x.t_()


@case
def ip_squeeze_leaf(T):
    x = T.ones(1, 3, requires_grad=True)
    x.squeeze_()


@case
def ip_unsqueeze(T):
    x = T.ones(3, requires_grad=True)
    y = x * 1
    y.unsqueeze_(0)
    y.sum().backward()
    return x.grad, names(y)


@case
def out_req(T):
    x = leaf(T)
    o = T.empty(4)
    T.mul(x, 2, out=o)


@case
def out_req2(T):
    x = T.ones(4)
    o = leaf(T)
    T.mul(x, 2, out=o)


@case
def out_nograd(T):
    x = leaf(T)
    o = T.empty(4)
    with T.no_grad():
        T.mul(x, 2, out=o)
    return o

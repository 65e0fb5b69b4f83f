"""Custom Functions: results, marks, saving."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf
from autograd_cases import function_of as mk


@case
def fn_basic(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf(T)
    y = F.apply(x)
    y.sum().backward()
    return x.grad, y.grad_fn.name(), type(y.grad_fn).__name__


@case
def fn_nonreq(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g)
    y = F.apply(T.ones(2))
    return y.requires_grad, y.grad_fn


@case
def fn_nobackward(T):
    F = mk(T, lambda ctx, x: x * 2)
    F.apply(leaf(T)).sum().backward()


@case
def fn_noforward(T):
    F = type("F", (T.autograd.Function,), {})
    F.apply(leaf(T))


@case
def fn_bothvjp(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g, vjp=lambda ctx, g: g)
    F.apply(leaf(T)).sum().backward()


@case
def fn_vjp(T):
    F = mk(T, lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2)
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_instantiate(T):
    F = mk(T, lambda ctx, x: x * 2)
    F()


@case
def fn_instantiate_call(T):
    F = mk(T, lambda ctx, x: x * 2)
    F()(leaf(T))


@case
def fn_nonstatic(T):
    class F(T.autograd.Function):
        def forward(self, x):
            return x

    F.apply(leaf(T))


@case
def fn_count_few(T):
    F = mk(T, lambda ctx, x, y: x * 2, lambda ctx, g: g)
    F.apply(leaf(T), leaf(T)).sum().backward()


@case
def fn_count_many(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: (g, g))
    F.apply(leaf(T)).sum().backward()


@case
def fn_count_many_none(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: (g, None, None))
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_nontensor_grad(T):
    F = mk(T, lambda ctx, x, n: x * n, lambda ctx, g: (g, g))
    x = leaf(T)
    F.apply(x, 2).sum().backward()
    return x.grad


@case
def fn_grad_type(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: 3)
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_none(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: None)
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_shape(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: T.ones(2))
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_shape_expandable(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: T.ones(5, 3))
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_shape_smaller(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: T.ones(1))
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_dtype(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g.double())
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_complex(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g * 1j)
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_grad_list(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: [g])
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_needs(T):
    L = []
    F = mk(
        T,
        lambda ctx, x, n, y: (L.append(ctx.needs_input_grad), x * 2)[1],
        lambda ctx, g: (L.append(ctx.needs_input_grad), (g, None, None))[1],
    )
    F.apply(leaf(T), 3, T.ones(3)).sum().backward()
    return L


@case
def fn_needs_nograd(T):
    L = []
    F = mk(T, lambda ctx, x: (L.append(ctx.needs_input_grad), x * 2)[1], lambda ctx, g: g)
    with T.no_grad():
        y = F.apply(leaf(T))
    return L, y.requires_grad


@case
def fn_needs_grad_inputs(T):
    L = []
    F = mk(T, lambda ctx, x, y: x * y, lambda ctx, g: (L.append(ctx.needs_input_grad), (g, g))[1])
    a, b = leaf(T), leaf(T)
    y = F.apply(a, b)
    T.autograd.grad(y.sum(), a)
    return L


@case
def fn_materialize(T):
    L = []
    F = mk(T, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: (L.append((g, h)), g)[1])
    a, b = F.apply(leaf(T))
    a.sum().backward()
    return L


@case
def fn_nomaterialize(T):
    L = []
    F = mk(
        T,
        lambda ctx, x: (ctx.set_materialize_grads(False), (x * 2, x * 3))[1],
        lambda ctx, g, h: (L.append((g, h)), g)[1],
    )
    a, b = F.apply(leaf(T))
    a.sum().backward()
    return L


@case
def fn_nondiff(T):
    L = []

    def f(ctx, x):
        y = x * 2
        z = x * 3
        ctx.mark_non_differentiable(z)
        return y, z

    F = mk(T, f, lambda ctx, g, h: (L.append(h), g)[1])
    a, b = F.apply(leaf(T))
    a.sum().backward()
    return L, b.requires_grad, b.grad_fn


@case
def fn_nondiff_int(T):
    def f(ctx, x):
        return x * 2, (x * 3).long()

    F = mk(T, f, lambda ctx, g, h: g)
    a, b = F.apply(leaf(T))
    return a.requires_grad, b.requires_grad


@case
def fn_nondiff_all(T):
    def f(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    F = mk(T, f, lambda ctx, g: g)
    a = F.apply(leaf(T))
    return a.requires_grad


@case
def fn_nondiff_bad(T):
    def f(ctx, x):
        ctx.mark_non_differentiable(3)
        return x * 2

    F = mk(T, f, lambda ctx, g: g)
    a = F.apply(leaf(T))
    return a.requires_grad


@case
def fn_dirty(T):
    def f(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    y = x * 1
    z = F.apply(y)
    z.sum().backward()
    return x.grad, z is y, y.grad_fn.name(), y._version


@case
def fn_dirty_leaf(T):
    def f(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    F.apply(x)


@case
def fn_dirty_notreturned(T):
    def f(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x * 1

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    y = x * 1
    F.apply(y)


@case
def fn_dirty_view(T):
    def f(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    y = x * 1
    z = F.apply(y[:2])
    y.sum().backward()
    return x.grad, y.grad_fn.name(), z.grad_fn.name()


@case
def fn_dirty_view_multi(T):
    def f(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x.sum()

    F = mk(T, f, lambda ctx, g, h: g * 2)
    x = leaf(T)
    y = x * 1
    z = F.apply(y[:2])


@case
def fn_dirty_noninput(T):
    def f(ctx, x):
        y = x * 1
        ctx.mark_dirty(y)
        return y

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x)
    y.sum().backward()
    return x.grad


@case
def fn_dirty_nontensor(T):
    def f(ctx, x):
        ctx.mark_dirty(3)
        return x * 2

    F = mk(T, f, lambda ctx, g: g * 2)
    F.apply(leaf(T))


@case
def fn_inplace_unmarked(T):
    def f(ctx, x):
        x.mul_(2)
        return x

    F = mk(T, f, lambda ctx, g: g * 2)
    x = leaf(T)
    y = x * 1
    z = F.apply(y)
    z.sum().backward()
    return x.grad, z is y


@case
def fn_return_input(T):
    F = mk(T, lambda ctx, x: x, lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x)
    y.sum().backward()
    return x.grad, y is x, y._is_view(), y.grad_fn.name()


@case
def fn_return_input_nonreq(T):
    F = mk(T, lambda ctx, x: x, lambda ctx, g: g * 2)
    x = T.ones(2)
    y = F.apply(x)
    return y is x


@case
def fn_return_input_view(T):
    F = mk(T, lambda ctx, x: x.view(3), lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x * 1)
    y.sum().backward()
    return x.grad, y._is_view(), y.grad_fn.name()


@case
def fn_return_view_inplace(T):
    F = mk(T, lambda ctx, x: x.view(3), lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x * 1)
    y.mul_(2)


@case
def fn_return_multiview_inplace(T):
    F = mk(T, lambda ctx, x: (x[:2], x[2:]), lambda ctx, g, h: T.cat([g, h]))
    x = leaf(T)
    a, b = F.apply(x * 1)
    a.mul_(2)


@case
def fn_return_input_inplace(T):
    F = mk(T, lambda ctx, x: x, lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x * 1)
    y.mul_(2)


@case
def fn_return_same_twice(T):
    def f(ctx, x):
        y = x * 2
        return y, y

    F = mk(T, f, lambda ctx, g, h: g + h)
    x = leaf(T)
    a, b = F.apply(x)
    (a.sum() + b.sum()).backward()
    return x.grad, a is b


@case
def fn_return_nontensor(T):
    F = mk(T, lambda ctx, x: (x * 2, 5), lambda ctx, g, h: (g,)[0])
    x = leaf(T)
    a, b = F.apply(x)
    a.sum().backward()
    return x.grad, b


@case
def fn_return_nontensor_grads(T):
    L = []
    F = mk(T, lambda ctx, x: (x * 2, 5, None), lambda ctx, *g: (L.append(g), g[0])[1])
    x = leaf(T)
    a, b, c = F.apply(x)
    a.sum().backward()
    return x.grad, L


@case
def fn_return_only_number(T):
    F = mk(T, lambda ctx, x: 5, lambda ctx, g: g)
    return F.apply(leaf(T))


@case
def fn_return_none(T):
    F = mk(T, lambda ctx, x: None, lambda ctx, g: g)
    return F.apply(leaf(T))


@case
def fn_return_list(T):
    F = mk(T, lambda ctx, x: [x * 2], lambda ctx, g: g)
    y = F.apply(leaf(T))
    return type(y).__name__, y[0].requires_grad

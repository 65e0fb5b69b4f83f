"""Custom Functions: setup_context, saving, double backward, transforms."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf
from autograd_cases import function_of as mk


@case
def fn_list_arg(T):
    F = mk(T, lambda ctx, x: x[0] * 2, lambda ctx, g: g)
    y = F.apply([leaf(T)])
    return y.requires_grad


@case
def fn_kwargs(T):
    F = mk(T, lambda ctx, x, n=1: x * n, lambda ctx, g: (g, None))
    return F.apply(leaf(T), n=3)


@case
def fn_setup(T):
    def setup(ctx, inputs, output):
        x, n = inputs
        ctx.n = n
        ctx.save_for_backward(x, output)

    F = mk(
        T,
        lambda x, n: x * n,
        lambda ctx, g: (g * ctx.n + ctx.saved_tensors[0] * ctx.saved_tensors[1], None),
        setup_context=setup,
    )
    x = leaf(T)
    F.apply(x, 4).sum().backward()
    return x.grad


@case
def fn_setup_kwargs(T):
    def setup(ctx, inputs, output):
        ctx.n = inputs

    F = mk(T, lambda x, n=2: x * n, lambda ctx, g: (g, None), setup_context=setup)
    x = leaf(T)
    return F.apply(x, n=4)


@case
def fn_setup_default(T):
    L = []

    def setup(ctx, inputs, output):
        L.append(len(inputs))

    F = mk(T, lambda x, n=2: x * n, lambda ctx, g: (g, None), setup_context=setup)
    x = leaf(T)
    F.apply(x)
    return L


@case
def fn_setup_returns(T):
    F = mk(T, lambda x: x * 2, lambda ctx, g: g, setup_context=lambda ctx, i, o: 3)
    return F.apply(leaf(T))


@case
def fn_save_bad(T):
    F = mk(T, lambda ctx, x: (ctx.save_for_backward(3), x * 2)[1], lambda ctx, g: g)
    F.apply(leaf(T))


@case
def fn_save_none(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(None, x), x * 2)[1],
        lambda ctx, g: g * (ctx.saved_tensors[0] is None),
    )
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_save_tuple(T):
    F = mk(T, lambda ctx, x: (ctx.save_for_backward((x, x)), x * 2)[1], lambda ctx, g: g)
    F.apply(leaf(T))


@case
def fn_save_twice(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x, x), ctx.save_for_backward(x), x * 2)[2],
        lambda ctx, g: g * len(ctx.saved_tensors),
    )
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_save_output(T):
    def f(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    F = mk(T, f, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(T)
    y = F.apply(x)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    return g, T.autograd.grad(g.sum(), x)


@case
def fn_save_intermediate(T):
    def f(ctx, x):
        t = x * 3
        ctx.save_for_backward(t)
        return x * 2

    F = mk(T, f, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_saved_freed(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf(T)
    y = F.apply(x).sum()
    y.backward()
    y.backward()


@case
def fn_saved_freed_nosave(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g)
    x = leaf(T)
    y = F.apply(x)
    s = y.sum()
    s.backward()
    s.backward()
    return x.grad


@case
def fn_saved_freed_attr(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf(T)
    y = F.apply(x)
    y.sum().backward()
    y.grad_fn.saved_tensors


@case
def fn_saved_ctx(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf(T)
    y = F.apply(x)
    return y.grad_fn.saved_tensors, y.grad_fn.saved_tensors[0] is x


@case
def fn_saved_variables(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: g * ctx.saved_variables[0],
    )
    x = leaf(T)
    y = F.apply(x).sum().backward()
    return x.grad


@case
def fn_saved_in_forward(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x * len(ctx.saved_tensors))[1],
        lambda ctx, g: g,
    )
    return F.apply(leaf(T))


@case
def fn_double(T):
    F = mk(
        T,
        lambda ctx, x: (ctx.save_for_backward(x), x**3)[1],
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
    )
    x = leaf(T)
    (g,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    (g2,) = T.autograd.grad(g.sum(), x, create_graph=True)
    return g, g2, T.autograd.grad(g2.sum(), x)


@case
def fn_once(T):
    b = T.autograd.function.once_differentiable(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
    F = mk(T, lambda ctx, x: (ctx.save_for_backward(x), x**3)[1], b)
    x = leaf(T)
    (g,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g, g.requires_grad, T.autograd.grad(g.sum(), x)


@case
def fn_once_name(T):
    b = T.autograd.function.once_differentiable(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
    F = mk(T, lambda ctx, x: (ctx.save_for_backward(x), x**3)[1], b)
    x = leaf(T)
    (g,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g.grad_fn.name()


@case
def fn_once_plain(T):
    b = T.autograd.function.once_differentiable(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
    F = mk(T, lambda ctx, x: (ctx.save_for_backward(x), x**3)[1], b)
    x = leaf(T)
    (g,) = T.autograd.grad(F.apply(x).sum(), x)
    return g, g.requires_grad


@case
def fn_raise_fwd(T):
    def f(ctx, x):
        raise KeyError("f")

    F = mk(T, f)
    F.apply(leaf(T))


@case
def fn_raise_bwd(T):
    def f(ctx, x):
        raise KeyError("f")

    F = mk(T, lambda ctx, x: x * 2, f)
    F.apply(leaf(T)).sum().backward()


@case
def fn_grad_mode_in_forward(T):
    L = []
    F = mk(
        T,
        lambda ctx, x: (L.append(T.is_grad_enabled()), x * 2)[1],
        lambda ctx, g: (L.append(T.is_grad_enabled()), g)[1],
    )
    x = leaf(T)
    y = F.apply(x).sum()
    T.autograd.grad(y, x, retain_graph=True)
    T.autograd.grad(y, x, create_graph=True)
    return L


@case
def fn_requires_grad_output_forward(T):
    def f(ctx, x):
        with T.enable_grad():
            z = leaf(T)
            w = z * 2
        return w

    F = mk(T, f, lambda ctx, g: g)
    x = leaf(T)
    y = F.apply(x)
    return y.grad_fn.name()


@case
def fn_hook(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    x = leaf(T)
    y = F.apply(x)
    L = []
    y.grad_fn.register_hook(lambda a, b: L.append(1))
    y.sum().backward()
    return L


@case
def fn_metadata(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    y = F.apply(leaf(T))
    y.grad_fn.metadata["a"] = 1
    return y.grad_fn.metadata, y.grad_fn.next_functions[0][1]


@case
def fn_ctx_apply(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    y = F.apply(leaf(T))
    return y.grad_fn.apply(T.ones(3))


@case
def fn_reentrant(T):
    def b(ctx, g):
        with T.enable_grad():
            z = ctx.x.detach().requires_grad_()
            (z * z).sum().backward()
        return g * z.grad

    def f(ctx, x):
        ctx.x = x
        return x * x

    F = mk(T, f, b)
    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@case
def fn_wrong_setup(T):
    F = mk(T, lambda ctx, x: x * 2, lambda ctx, g: g, setup_context=lambda ctx, i, o: None)
    return F.apply(leaf(T))


@case
def fn_vmap_generate(T):
    F = mk(
        T,
        lambda x: x * 2,
        lambda ctx, g: g * 2,
        setup_context=lambda ctx, i, o: None,
        generate_vmap_rule=True,
    )
    return T.func.vmap(F.apply)(T.ones(2, 3))


@case
def fn_vmap_generate_grad(T):
    F = mk(
        T,
        lambda x: x**2,
        lambda ctx, g: g * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, i, o: ctx.save_for_backward(i[0]),
        generate_vmap_rule=True,
    )
    return T.func.vmap(T.func.grad(lambda x: F.apply(x).sum()))(T.arange(6.0).view(2, 3))


@case
def fn_func_grad(T):
    F = mk(
        T,
        lambda x: x**2,
        lambda ctx, g: g * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, i, o: ctx.save_for_backward(i[0]),
    )
    return T.func.grad(lambda x: F.apply(x).sum())(T.ones(3))


@case
def fn_func_gradgrad(T):
    F = mk(
        T,
        lambda x: x**3,
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, i, o: ctx.save_for_backward(i[0]),
    )
    return T.func.grad(T.func.grad(lambda x: F.apply(x)))(T.tensor(2.0))


@case
def fn_jvp_missing(T):
    F = mk(T, lambda x: x**2, lambda ctx, g: g, setup_context=lambda ctx, i, o: None)
    return F.jvp(None, 1)


@case
def fn_clear_saved(T):
    class F(T.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.saved_tensors
            return g * ctx.saved_tensors[0]

    F.apply(leaf(T)).sum().backward()


@case
def fn_inference(T):
    F = mk(T, lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: g)
    with T.inference_mode():
        y = F.apply(leaf(T))
    return y.requires_grad


@case
def fn_set_materialize_kw(T):
    F = mk(T, lambda ctx, x: (ctx.set_materialize_grads(value=False), x * 2)[1], lambda ctx, g: g)
    return F.apply(leaf(T))


@case
def fn_save_for_forward_bad(T):
    F = mk(T, lambda ctx, x: (ctx.save_for_forward(3), x * 2)[1], lambda ctx, g: g)
    return F.apply(leaf(T))


@case
def fn_save_for_forward(T):
    F = mk(T, lambda ctx, x: (ctx.save_for_forward(x), x * 2)[1], lambda ctx, g: g)
    return F.apply(leaf(T))

"""Hooks of saved tensors, versions, errors of changed tensors."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf


@case
def raw_saved(T):
    x = leaf(T)
    f = x.sin().grad_fn
    r = f._raw_saved_self
    return type(r).__name__


@case
def raw_saved_hooks(T):
    x = leaf(T)
    f = x.sin().grad_fn
    L = []
    f._raw_saved_self.register_hooks(
        lambda t: (L.append("pack"), t * 2)[1], lambda t: (L.append("unpack"), t)[1]
    )
    v = f._saved_self
    return L, v


@case
def raw_saved_hooks_twice(T):
    x = leaf(T)
    f = x.sin().grad_fn
    f._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    f._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


@case
def raw_saved_hooks_bad(T):
    x = leaf(T)
    f = x.sin().grad_fn
    f._raw_saved_self.register_hooks(lambda t: t, 3)


@case
def raw_saved_hooks_inplace(T):
    x = leaf(T)
    f = (x * 1).sin().grad_fn
    f._raw_saved_self.register_hooks(lambda t: t.mul_(2), lambda t: t)


@case
def raw_saved_hooks_badret(T):
    x = leaf(T)
    f = x.sin().grad_fn
    f._raw_saved_self.register_hooks(lambda t: t, lambda t: 3)
    f._saved_self


@case
def raw_saved_hooks_noargs(T):
    x = leaf(T)
    f = x.sin().grad_fn
    f._raw_saved_self.register_hooks(lambda: 3, lambda t: 3)


@case
def sth_basic(T):
    x = leaf(T)
    L = []
    with T.autograd.graph.saved_tensors_hooks(
        lambda t: (L.append("p"), t * 2)[1], lambda t: (L.append("u"), t)[1]
    ):
        y = x * x
    y.sum().backward()
    return L, x.grad


@case
def sth_output(T):
    x = leaf(T)
    L = []
    with T.autograd.graph.saved_tensors_hooks(
        lambda t: (L.append((t.is_leaf, t.requires_grad)), t)[1], lambda t: t
    ):
        y = x.exp()
    y.sum().backward()
    return L, x.grad


@case
def sth_nested(T):
    x = leaf(T)
    L = []
    with T.autograd.graph.saved_tensors_hooks(lambda t: (L.append("o"), t)[1], lambda t: t):
        with T.autograd.graph.saved_tensors_hooks(lambda t: (L.append("i"), t)[1], lambda t: t):
            y = x.sin()
        y = y.sin()
    y.sum().backward()
    return L, x.grad


@case
def sth_obj(T):
    x = leaf(T)
    D = {}

    def pack(t):
        D[len(D)] = t.detach().clone()
        return len(D) - 1

    with T.autograd.graph.saved_tensors_hooks(pack, lambda k: D[k]):
        y = x * x
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    return g


@case
def sth_disable(T):
    x = leaf(T)
    with T.autograd.graph.disable_saved_tensors_hooks("nope"):
        with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x * x


@case
def sth_disable_inside(T):
    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        with T.autograd.graph.disable_saved_tensors_hooks("nope"):
            y = x * x


@case
def sth_disable_ok(T):
    x = leaf(T)
    with T.autograd.graph.disable_saved_tensors_hooks("nope"):
        y = x * x
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    return y


@case
def sth_unpack_wrong(T):
    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    y.sum().backward()


@case
def sth_inplace_pack(T):
    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        y = (x * 1).sin()


@case
def sth_raise(T):
    x = leaf(T)

    def p(t):
        raise KeyError("pk")

    with T.autograd.graph.saved_tensors_hooks(p, lambda t: t):
        y = (x * 1).sin()


@case
def sth_version(T):
    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = x * 1
        y = z.sin()
        z.mul_(2)
    y.sum().backward()
    return x.grad


@case
def sth_custom_function(T):
    L = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x

    x = leaf(T)
    with T.autograd.graph.saved_tensors_hooks(
        lambda t: (L.append("p"), t + 1)[1], lambda t: (L.append("u"), t)[1]
    ):
        y = F.apply(x)
    y.sum().backward()
    return L, x.grad


@case
def sth_not_called_nograd(T):
    x = T.ones(3)
    L = []
    with T.autograd.graph.saved_tensors_hooks(lambda t: (L.append("p"), t)[1], lambda t: t):
        y = x * x
    return L


@case
def sth_types(T):
    with T.autograd.graph.saved_tensors_hooks(3, 4):
        return leaf(T) * leaf(T)


@case
def save_on_cpu(T):
    x = leaf(T)
    with T.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    y.backward()
    return x.grad


@case
def allow_mutation(T):
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        a = T.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
    return a.grad


@case
def allow_mutation_outside(T):
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        a = T.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
    b.sin_()
    out.sum().backward()
    return a.grad


@case
def allow_mutation_nested(T):
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        with T.autograd.graph.allow_mutation_on_saved_tensors():
            pass


@case
def allow_mutation_view(T):
    with T.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        a = T.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b[0].zero_()
        out.backward()
    return a.grad


@case
def increment_version(T):
    x = T.ones(2)
    v = x._version
    T.autograd.graph.increment_version(x)
    T.autograd.graph.increment_version([x, x])
    return x._version - v


@case
def increment_version_backward(T):
    x = leaf(T)
    z = x * 1
    y = z.sin()
    T.autograd.graph.increment_version(z)
    y.sum().backward()


@case
def ver_basic(T):
    x = leaf(T)
    z = x * 1
    y = z.sin()
    z.mul_(2)
    y.sum().backward()


@case
def ver_output(T):
    x = leaf(T)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


@case
def ver_output2(T):
    x = leaf(T)
    y = x.exp()
    z = y * 1
    y.add_(2)
    z.sum().backward()


@case
def ver_view(T):
    x = leaf(T)
    z = x * 1
    y = z.sin()
    z[0] = 5
    y.sum().backward()


@case
def ver_ctx(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x

    x = leaf(T)
    z = x * 1
    y = F.apply(z)
    z.mul_(2)
    y.sum().backward()


@case
def ver_detached(T):
    x = leaf(T)
    z = x * 1
    y = z.sin()
    z.detach().mul_(2)
    y.sum().backward()


@case
def ver_data(T):
    x = leaf(T)
    z = x * 1
    y = z.sin()
    z.data.mul_(2)
    y.sum().backward()
    return x.grad


@case
def ver_nograd(T):
    x = leaf(T)
    y = x.sin()
    with T.no_grad():
        x.mul_(2)
    y.sum().backward()


@case
def ver_counts(T):
    x = T.tensor([1.0, 1.0, 1.0])
    v = [x._version]
    x.add_(1)
    v.append(x._version)
    x[0] = 1
    v.append(x._version)
    y = x.view(3)
    y.mul_(2)
    v.append(x._version)
    x.detach().mul_(1)
    v.append(x._version)
    x.data.mul_(1)
    v.append(x._version)
    x.zero_()
    v.append(x._version)
    x.copy_(T.ones(3))
    v.append(x._version)
    return v

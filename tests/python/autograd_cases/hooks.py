"""Hooks of tensors, leaves and nodes: order, results, errors."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf


@case
def hook_order(T):
    L = []
    x = leaf(T)
    y = x * 2
    y.register_hook(lambda g: L.append("t1"))
    y.retain_grad()
    y.register_hook(lambda g: (L.append("t2"), g * 2)[1])
    y.grad_fn.register_prehook(lambda gs: L.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: L.append("post"))
    x.register_hook(lambda g: L.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: L.append(("acc", p.grad.tolist())))
    y.sum().backward()
    return L, y.grad, x.grad


@case
def hook_order2(T):
    L = []
    x = leaf(T)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (L.append("pre"), (gs[0] * 3,))[1])
    y.register_hook(lambda g: (L.append("t1"), g + 1)[1])
    y.retain_grad()
    y.register_hook(lambda g: (L.append("t2"), g * 2)[1])
    y.sum().backward()
    return L, y.grad, x.grad


@case
def hook_order_acc(T):
    L = []
    x = leaf(T)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(lambda g: L.append(("accpre", g[0].tolist())))
    x.register_hook(lambda g: (L.append("tensor"), g * 2)[1])
    acc.register_hook(lambda a, b: L.append(("accpost", len(a), len(b))))
    x.register_post_accumulate_grad_hook(lambda p: L.append("pa"))
    y.sum().backward()
    return L


@case
def hook_bad_return(T):
    x = leaf(T)
    x.register_hook(lambda g: 3)
    x.sum().backward()


@case
def hook_bad_shape(T):
    x = leaf(T)
    y = x * 2
    y.register_hook(lambda g: T.ones(2))
    y.sum().backward()
    return x.grad


@case
def hook_bad_shape_leaf(T):
    x = leaf(T)
    x.register_hook(lambda g: T.ones(2))
    x.sum().backward()
    return x.grad


@case
def hook_bad_dtype(T):
    x = leaf(T)
    y = x * 2
    y.register_hook(lambda g: g.double())
    y.sum().backward()
    return x.grad


@case
def hook_raises(T):
    x = leaf(T)

    def h(g):
        raise KeyError("boo")

    x.register_hook(h)
    x.sum().backward()


@case
def hook_remove(T):
    x = leaf(T)
    h = x.register_hook(lambda g: g * 2)
    h2 = x.register_hook(lambda g: g * 3)
    h.remove()
    x.sum().backward()
    return x.grad


@case
def hook_with(T):
    x = leaf(T)
    with x.register_hook(lambda g: g * 2):
        x.sum().backward()
    x.sum().backward()
    return x.grad


@case
def hook_norequire(T):
    T.ones(1).register_hook(lambda g: g)


@case
def hook_notcallable(T):
    leaf(T).register_hook(3)


@case
def posthook_norequire(T):
    T.ones(1).register_post_accumulate_grad_hook(lambda g: g)


@case
def posthook_nonleaf(T):
    (leaf(T) * 2).register_post_accumulate_grad_hook(lambda g: g)


@case
def posthook_clears(T):
    x = leaf(T)

    def h(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(h)
    x.sum().backward()
    return x.grad


@case
def posthook_returns(T):
    x = leaf(T)
    x.register_post_accumulate_grad_hook(lambda p: 3)
    x.sum().backward()
    return x.grad


@case
def posthook_remove(T):
    x = leaf(T)
    L = []
    h = x.register_post_accumulate_grad_hook(lambda p: L.append(1))
    h.remove()
    x.sum().backward()
    return L


@case
def posthook_two(T):
    x = leaf(T)
    L = []
    x.register_post_accumulate_grad_hook(lambda p: L.append(1))
    x.register_post_accumulate_grad_hook(lambda p: L.append(2))
    x.sum().backward()
    return L


@case
def hooks_dict(T):
    x = leaf(T)
    x.register_hook(lambda g: g)
    return len(x._backward_hooks), type(x._backward_hooks).__name__, x._post_accumulate_grad_hooks


@case
def nodehook_replace(T):
    x = leaf(T)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 5, None))
    y.sum().backward()
    return x.grad


@case
def nodehook_replace_wrongcount(T):
    x = leaf(T)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 5,))
    y.sum().backward()
    return x.grad


@case
def nodehook_replace_tensor(T):
    x = leaf(T)
    y = x.sin()
    y.grad_fn.register_hook(lambda gi, go: gi[0] * 5)
    y.sum().backward()
    return x.grad


@case
def nodehook_badtype(T):
    x = leaf(T)
    y = x.sin()
    y.grad_fn.register_hook(lambda gi, go: 3)
    y.sum().backward()
    return x.grad


@case
def nodehook_args(T):
    x = leaf(T)
    L = []
    y = x * 2
    y.grad_fn.register_hook(
        lambda gi, go: L.append(
            (
                type(gi).__name__,
                [None if g is None else g.tolist() for g in gi],
                [g.tolist() for g in go],
            )
        )
    )
    y.sum().backward()
    return L


@case
def nodeprehook_none(T):
    x = leaf(T, 1.0, 2.0, 3.0, 4.0)
    L = []
    a, b = x.chunk(2)
    a.grad_fn.register_prehook(lambda gs: L.append([None if g is None else g.tolist() for g in gs]))
    a.sum().backward()
    return L


@case
def nodeprehook_replace(T):
    x = leaf(T)
    y = x.sin()
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 0 + 2,))
    y.sum().backward()
    return x.grad


@case
def nodeprehook_count(T):
    x = leaf(T)
    y = x.sin()
    y.grad_fn.register_prehook(lambda gs: (gs[0], gs[0]))
    y.sum().backward()
    return x.grad


@case
def nodeprehook_tensor(T):
    x = leaf(T)
    y = x.sin()
    y.grad_fn.register_prehook(lambda gs: gs[0])
    y.sum().backward()
    return x.grad


@case
def nodehook_handle(T):
    x = leaf(T)
    y = x.sin()
    h = y.grad_fn.register_prehook(lambda gs: (gs[0] * 0 + 2,))
    h.remove()
    y.sum().backward()
    return type(h).__name__


@case
def hook_none_grad(T):
    x = leaf(T, 1.0, 2.0, 3.0, 4.0)
    L = []
    a, b = x.chunk(2)
    b.register_hook(lambda g: L.append(g))
    a.sum().backward()
    return L


@case
def hook_on_inplace(T):
    x = leaf(T)
    y = x * 1
    y.register_hook(lambda g: g * 10)
    y.mul_(2)
    y.register_hook(lambda g: g * 100)
    y.sum().backward()
    return x.grad


@case
def retain_then_inplace(T):
    x = leaf(T)
    y = x * 1
    y.retain_grad()
    y.mul_(2)
    (y * 3).sum().backward()
    return x.grad, y.grad


@case
def hook_then_inplace_then_remove(T):
    x = leaf(T)
    y = x * 1
    h = y.register_hook(lambda g: g * 10)
    y.mul_(2)
    h.remove()
    y.sum().backward()
    return x.grad


@case
def hook_capture_inputs(T):
    x = leaf(T)
    y = x * 2
    L = []
    y.register_hook(lambda g: (L.append(1), g * 10)[1])
    y.grad_fn.register_prehook(lambda g: (L.append("pre"),)[:0] or None)
    r = T.autograd.grad((y * 3).sum(), y)
    return r, L


@case
def hook_leaf_then_nonleaf(T):
    x = leaf(T)
    L = []
    x.register_hook(lambda g: L.append("leafhook"))
    y = x.detach().requires_grad_()
    (x * 2).sum().backward()
    return L


@case
def multi_grad_hook(T):
    a, b = leaf(T), leaf(T)
    L = []
    h = T.autograd.graph.register_multi_grad_hook(
        (a, b), lambda gs: L.append([None if g is None else g.tolist() for g in gs])
    )
    (a * b).sum().backward()
    a.sum().backward()
    h.remove()
    (a * b).sum().backward()
    return L


@case
def multi_grad_any(T):
    a, b = leaf(T), leaf(T)
    L = []
    h = T.autograd.graph.register_multi_grad_hook(
        (a, b), lambda g: L.append(g.tolist()), mode="any"
    )
    (a * b).sum().backward()
    a.sum().backward()
    return L


@case
def multi_grad_mode(T):
    a = leaf(T)
    T.autograd.graph.register_multi_grad_hook((a,), lambda g: 1, mode="foo")


@case
def multi_grad_nonreq(T):
    a = T.ones(1)
    T.autograd.graph.register_multi_grad_hook((a,), lambda g: 1)

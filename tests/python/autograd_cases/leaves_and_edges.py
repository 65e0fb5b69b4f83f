"""Leaves, .grad, accumulation, retain_grad, gradient edges."""

# ruff: noqa: B018, E731, F841
import warnings

from autograd_cases import case, function_of, leaf


@case
def grad_edge_basic(T):
    x = leaf(T)
    y = x * 2
    e = T.autograd.graph.get_gradient_edge(y)
    return type(e).__name__, e.output_nr, e.node.name(), e._fields


@case
def grad_edge_leaf(T):
    x = leaf(T)
    e = T.autograd.graph.get_gradient_edge(x)
    return e.output_nr, e.node.name()


@case
def grad_edge_none(T):
    return T.autograd.graph.get_gradient_edge(T.ones(1))


@case
def grad_edge_input(T):
    x = leaf(T)
    y = x * 2
    e = T.autograd.graph.get_gradient_edge(y)
    return T.autograd.grad(y.sin().sum(), e)


@case
def grad_edge_output(T):
    x = leaf(T)
    y = x * 2
    e = T.autograd.graph.get_gradient_edge(y)
    return T.autograd.grad(e, x, T.ones(3))


@case
def grad_edge_output_nograd(T):
    x = leaf(T)
    y = x * 2
    e = T.autograd.graph.get_gradient_edge(y)
    return T.autograd.grad(e, x)


@case
def grad_edge_backward(T):
    x = leaf(T)
    y = x * 2
    e = T.autograd.graph.get_gradient_edge(y)
    T.autograd.backward(e, T.ones(3))
    return x.grad


@case
def grad_edge_inputs_backward(T):
    x = leaf(T)
    y = (x * 2).sum()
    e = T.autograd.graph.get_gradient_edge(x)
    T.autograd.backward(y, inputs=[e])
    return x.grad


@case
def grad_edge_inputs_backward_nonleaf(T):
    x = leaf(T)
    z = x * 2
    y = z.sum()
    e = T.autograd.graph.get_gradient_edge(z)
    T.autograd.backward(y, inputs=[e])
    return x.grad


@case
def grad_set_shape(T):
    x = leaf(T)
    x.grad = T.ones(2)


@case
def grad_set_dtype(T):
    x = leaf(T)
    x.grad = T.ones(3, dtype=T.float64)


@case
def grad_set_self(T):
    x = leaf(T)
    x.grad = x


@case
def grad_set_type(T):
    x = leaf(T)
    x.grad = 3


@case
def grad_set_ok(T):
    x = leaf(T)
    x.grad = T.ones(3)
    x.sum().backward()
    return x.grad


@case
def grad_set_none(T):
    x = leaf(T)
    x.grad = T.ones(3)
    x.grad = None
    return x.grad


@case
def grad_del(T):
    x = leaf(T)
    x.grad = T.ones(3)
    del x.grad
    return x.grad


@case
def grad_nonleaf_warn(T):
    y = leaf(T) * 2
    return y.grad


@case
def grad_set_nonrequire(T):
    y = T.ones(3)
    y.grad = T.ones(3)
    return y.grad


@case
def accum_inplace_identity(T):
    x = leaf(T)
    x.sum().backward()
    g = x.grad
    x.sum().backward()
    return g is x.grad, g


@case
def accum_create_identity(T):
    x = leaf(T)
    (x * x).sum().backward(create_graph=True)
    g = x.grad
    (x * x).sum().backward(create_graph=True)
    return g is x.grad, g, x.grad


@case
def accum_strides(T):
    x = T.zeros(3, 4).t().requires_grad_()
    (x * 2).backward(T.ones(4, 3))
    return x.grad.stride()


@case
def accum_strides_expand(T):
    x = T.zeros(3, 4, requires_grad=True)
    x.sum().backward()
    return x.grad.stride()


@case
def accum_steals(T):
    x = T.zeros(3, requires_grad=True)
    y = x * 1
    g = T.ones(3)
    y.backward(g)
    x.grad.add_(1)
    return g


@case
def accum_leaf_root(T):
    x = T.zeros(3, requires_grad=True)
    g = T.ones(3)
    x.backward(g)
    x.grad.add_(1)
    return g


@case
def requires_grad_int(T):
    T.ones(2, dtype=T.int64).requires_grad_()


@case
def requires_grad_int_ctor(T):
    T.ones(2, dtype=T.int64, requires_grad=True)


@case
def requires_grad_nonleaf(T):
    y = leaf(T) * 2
    y.requires_grad_(False)


@case
def requires_grad_nonleaf_attr(T):
    y = leaf(T) * 2
    y.requires_grad = False


@case
def requires_grad_nonleaf_true(T):
    y = leaf(T) * 2
    y.requires_grad_(True)
    return y.requires_grad


@case
def requires_grad_type(T):
    y = leaf(T)
    y.requires_grad = 1


@case
def requires_grad_type2(T):
    y = leaf(T)
    y.requires_grad_(1)
    return y.requires_grad


@case
def retain_nonrequire(T):
    T.ones(1).retain_grad()


@case
def retain_leaf(T):
    x = leaf(T)
    x.retain_grad()
    return x.retains_grad


@case
def retain_twice_backward(T):
    x = leaf(T)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return y.grad, y.retains_grad


@case
def retain_clone(T):
    x = leaf(T)
    y = x * 2
    y.retain_grad()
    z = y * 1
    z.backward(T.ones(3))
    return y.grad is x.grad


@case
def seqnr(T):
    x = leaf(T)
    y = x * 2
    z = y * 2
    return z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr(), y.grad_fn._sequence_nr() >= 0


@case
def acc_seqnr(T):
    x = leaf(T)
    y = x * 2
    return y.grad_fn.next_functions[0][0]._sequence_nr()


def accumulation_node(x):
    return x.expand_as(x).grad_fn.next_functions[0][0]


@case
def hooks_of_an_accumulation_node_live_as_long_as_it_is_referred_to(T):
    x, calls = leaf(T), []
    node = accumulation_node(x)
    node.register_hook(lambda *gradients: calls.append("object"))
    (x * 2).sum().backward()
    del node
    (x * 2).sum().backward()
    accumulation_node(x).register_hook(lambda *gradients: calls.append("dropped"))
    node = accumulation_node(x)
    node.register_hook(lambda *gradients: calls.append("graph"))
    y = (x * 2).sum()
    del node
    y.backward()
    return calls


@case
def a_leaf_lives_as_long_as_its_accumulation_node(T):
    import gc
    import weakref

    x = leaf(T)
    node, seen = accumulation_node(x), weakref.ref(x)
    del x
    gc.collect()
    alive = seen() is not None and node.variable is seen()
    del node
    gc.collect()
    return alive, seen() is None


@case
def an_accumulation_node_takes_data_of_another_shape(T):
    x = leaf(T)
    (x * 2).sum().backward()
    x.grad = None
    x.data = T.ones(5)
    (x * 2).sum().backward()
    return x.grad


def _doubling(T):
    """A Function whose gradient comes in float64."""
    return function_of(T, lambda ctx, a: a * 2, lambda ctx, g: g.double())


@case
def grad_dtype_by_default(T):
    x = leaf(T)
    return x.grad_dtype, T.ones(3).grad_dtype, (x * 2).grad_dtype, (x.double() * 2).grad_dtype


@case
def grad_dtype_of_sums(T):
    x = leaf(T)
    before = (x * 2).sum()
    x.grad_dtype = T.float64
    before.backward()
    (x * 2).sum().backward()
    return x.grad, x.grad_dtype, T.autograd.grad((x * 2).sum(), x)


@case
def grad_dtype_any(T):
    x = leaf(T)
    x.grad_dtype = None
    _doubling(T).apply(x).sum().backward()
    first, x.grad = x.grad, None
    x.sum().backward()
    return first, x.grad, x.grad_dtype


@case
def grad_dtype_cast(T):
    x = leaf(T)
    x.grad_dtype = T.float16
    _doubling(T).apply(x).sum().backward()
    return x.grad, x.detach().grad_dtype, x.clone().grad_dtype


@case
def grad_dtype_kept_by_requires_grad(T):
    x = T.ones(2)
    x.grad_dtype = T.float16
    return x.requires_grad_().grad_dtype


@case
def grad_dtype_beside_a_gradient(T):
    x = leaf(T)
    x.sum().backward()
    x.grad_dtype = T.float64


@case
def grad_dtype_of_a_result(T):
    y = leaf(T) * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch looks at .grad first, and warns of that
        y.grad_dtype = T.float64


@case
def grad_dtype_of_another_kind(T):
    leaf(T).grad_dtype = 3


@case
def grad_dtype_checks_assignments(T):
    x = leaf(T)
    x.grad_dtype = T.float64
    x.grad = T.ones(3, dtype=T.float64)
    x.grad = T.ones(3)


@case
def grad_dtype_none_takes_assignments(T):
    x = leaf(T)
    x.grad_dtype = None
    x.grad = T.ones(3, dtype=T.float64)
    return x.grad

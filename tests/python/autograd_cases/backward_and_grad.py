"""backward() and grad(): arguments, errors, which gradients come."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf


@case
def back_nonscalar(T):
    leaf(T).mul(2).backward()


@case
def back_norequires(T):
    T.ones(1).backward()


@case
def back_shape(T):
    leaf(T).mul(2).backward(T.ones(2))


@case
def back_gradtype(T):
    leaf(T).mul(2).backward(3)


@case
def back_gradlist(T):
    x = leaf(T)
    x.mul(2).backward([T.ones(3)])
    return x.grad


@case
def ab_lengths(T):
    x = leaf(T)
    T.autograd.backward([x * 2, x * 3], [T.ones(3)])


@case
def ab_none_nonscalar(T):
    x = leaf(T)
    T.autograd.backward([x * 2, x * 3], [T.ones(3), None])


@case
def ab_two(T):
    x = leaf(T)
    T.autograd.backward([x * 2, x.sum()], [T.ones(3), None])
    return x.grad


@case
def ab_same_root_twice(T):
    x = leaf(T)
    y = x * 2
    T.autograd.backward([y, y], [T.ones(3), T.ones(3)])
    return x.grad


@case
def ab_grad_variables(T):
    x = leaf(T)
    T.autograd.backward(x * 2, grad_variables=T.ones(3))
    return x.grad


@case
def ab_both(T):
    x = leaf(T)
    T.autograd.backward(x * 2, T.ones(3), grad_variables=T.ones(3))


@case
def ab_empty_inputs(T):
    x = leaf(T)
    T.autograd.backward((x * 2).sum(), inputs=[])


@case
def b_empty_inputs(T):
    x = leaf(T)
    (x * 2).sum().backward(inputs=[])


@case
def b_inputs_tuple(T):
    x = leaf(T)
    y = leaf(T)
    (x * y).sum().backward(inputs=(x,))
    return x.grad, y.grad


@case
def b_inputs_nonleaf(T):
    x = leaf(T)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    return x.grad, y.grad, y.is_leaf, y.retains_grad


@case
def b_inputs_nonleaf_and_leaf(T):
    x = leaf(T)
    y = x * 2
    (y * y).sum().backward(inputs=[y, x])
    return x.grad, y.grad


@case
def b_inputs_norequire(T):
    x = leaf(T)
    (x * 2).sum().backward(inputs=[T.ones(3)])


@case
def b_inputs_unreached(T):
    x = leaf(T)
    z = leaf(T)
    (x * 2).sum().backward(inputs=[z])
    return x.grad, z.grad


@case
def b_leaf_itself(T):
    x = T.tensor(2.0, requires_grad=True)
    x.backward()
    return x.grad


@case
def b_leaf_nonscalar(T):
    x = leaf(T)
    x.backward(T.ones(3))
    x.backward(T.ones(3))
    return x.grad


@case
def b_twice(T):
    x = leaf(T)
    y = (x * x).sum()
    y.backward()
    y.backward()


@case
def b_twice_nosaved(T):
    x = leaf(T)
    y = (x + x).sum()
    y.backward()
    y.backward()
    return x.grad


@case
def b_retain(T):
    x = leaf(T)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@case
def b_create(T):
    x = leaf(T)
    y = (x * x * x).sum()
    y.backward(create_graph=True)
    return x.grad, x.grad.requires_grad


@case
def b_int_root(T):
    T.ones(1, dtype=T.int64).backward()


@case
def b_complex_root(T):
    x = T.ones(1, dtype=T.complex64, requires_grad=True)
    (x * 2).sum().backward()


@case
def b_grad_complex_mismatch(T):
    x = leaf(T)
    (x * 2).backward(T.ones(3, dtype=T.complex64))


@case
def b_grad_real_for_complex(T):
    x = T.ones(3, dtype=T.complex64, requires_grad=True)
    (x * 2).backward(T.ones(3))
    return x.grad


@case
def b_grad_f64_for_f32(T):
    x = leaf(T)
    (x * 2).backward(T.ones(3, dtype=T.float64))
    return x.grad


@case
def b_grad_int_for_f32(T):
    x = leaf(T)
    (x * 2).backward(T.ones(3, dtype=T.int64))
    return x.grad


@case
def g_nograd_out(T):
    return T.autograd.grad(T.ones(1), leaf(T))


@case
def g_int_out(T):
    return T.autograd.grad(T.ones(1, dtype=T.int64), leaf(T))


@case
def g_unused(T):
    x = leaf(T)
    z = leaf(T)
    return T.autograd.grad((x * 2).sum(), z)


@case
def g_unused_ok(T):
    x = leaf(T)
    z = leaf(T)
    return T.autograd.grad((x * 2).sum(), [x, z], allow_unused=True)


@case
def g_materialize(T):
    x = leaf(T)
    z = leaf(T)
    return T.autograd.grad((x * 2).sum(), [x, z], materialize_grads=True)


@case
def g_materialize_conflict(T):
    x = leaf(T)
    return T.autograd.grad((x * 2).sum(), [x], materialize_grads=True, allow_unused=False)


@case
def g_only_inputs(T):
    x = leaf(T)
    return T.autograd.grad((x * 2).sum(), [x], only_inputs=False)


@case
def g_in_norequire(T):
    return T.autograd.grad(leaf(T).sum(), T.ones(1))


@case
def g_input_is_output(T):
    x = leaf(T)
    y = x.sum()
    return T.autograd.grad(y, y)


@case
def g_input_is_leaf_output(T):
    x = T.tensor(1.0, requires_grad=True)
    return T.autograd.grad(x, x)


@case
def g_same_twice(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), [x, x])


@case
def g_empty_inputs(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), [])


@case
def g_empty_outputs(T):
    x = leaf(T)
    return T.autograd.grad([], [x])


@case
def g_dict(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), {"a": x})


@case
def g_notensor(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), [3])


@case
def g_notensor2(T):
    x = leaf(T)
    return T.autograd.grad(3, x)


@case
def g_outs_shape(T):
    x = leaf(T)
    return T.autograd.grad(x * x, x, T.ones(2))


@case
def g_outs_seq(T):
    x = leaf(T)
    return T.autograd.grad([x * x, x * 3], [x], [T.ones(3), T.ones(3) * 2])


@case
def g_outs_lengths(T):
    x = leaf(T)
    return T.autograd.grad([x * x, x * 3], [x], [T.ones(3)])


@case
def g_outs_toomany(T):
    x = leaf(T)
    return T.autograd.grad([x * x], [x], [T.ones(3), T.ones(3)])


@case
def g_batched(T):
    x = leaf(T)
    return T.autograd.grad(x * x, x, T.eye(3), is_grads_batched=True)


@case
def g_batched_shape(T):
    x = leaf(T)
    return T.autograd.grad(x * x, x, T.ones(2, 2), is_grads_batched=True)


@case
def g_batched_none(T):
    x = leaf(T)
    return T.autograd.grad((x * x).sum(), x, is_grads_batched=True)


@case
def g_batched_unused(T):
    x = leaf(T)
    z = leaf(T)
    return T.autograd.grad(x * x, [x, z], T.eye(3), is_grads_batched=True, allow_unused=True)


@case
def g_batched_create(T):
    x = leaf(T)
    (g,) = T.autograd.grad(x * x * x, x, T.eye(3), is_grads_batched=True, create_graph=True)
    return g, T.autograd.grad(g.sum(), x)


@case
def g_batched_different(T):
    x = leaf(T)
    return T.autograd.grad([x * x, x * 2], x, [T.eye(3), T.ones(2, 3)], is_grads_batched=True)


@case
def g_nograd_freed(T):
    x = leaf(T)
    y = (x * x).sum()
    T.autograd.grad(y, x)
    T.autograd.grad(y, x)


@case
def g_intermediate(T):
    x = leaf(T)
    y = x * 2
    z = y.sin().sum()
    return T.autograd.grad(z, [y, x])


@case
def g_hooks_leaf(T):
    x = leaf(T)
    x.register_hook(lambda g: g * 10)
    return T.autograd.grad((x * 2).sum(), x)


@case
def g_posthook_not_called(T):
    x = leaf(T)
    L = []
    x.register_post_accumulate_grad_hook(lambda p: L.append(1))
    T.autograd.grad((x * 2).sum(), x)
    return L


@case
def b_nograd_mode(T):
    x = leaf(T)
    y = (x * 2).sum()
    with T.no_grad():
        y.backward()
    return x.grad


@case
def g_create_in_nograd(T):
    x = leaf(T)
    y = (x * x).sum()
    with T.no_grad():
        (g,) = T.autograd.grad(y, x, create_graph=True)
    return g.requires_grad


@case
def b_grad_requires(T):
    x = leaf(T)
    x.sum().backward()
    return x.grad.requires_grad, x.grad.is_leaf, x.grad.grad_fn


@case
def b_detached(T):
    x = leaf(T)
    return (x.detach() * 2).requires_grad


@case
def b_fn_backward_kw(T):
    x = leaf(T)
    (x * x).sum().backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
    return x.grad


@case
def b_multi_out(T):
    x = leaf(T)
    a, b = x.sort()
    a.sum().backward()
    return x.grad


@case
def b_one_of_multi(T):
    x = leaf(T, 1.0, 2.0, 3.0, 4.0)
    a, b = x.chunk(2)
    a.sum().backward()
    return x.grad

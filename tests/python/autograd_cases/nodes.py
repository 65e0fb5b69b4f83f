"""Nodes: names, edges, fields, metadata."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, leaf, saved


@case
def node_repr(T):
    x = leaf(T)
    return repr((x * 2).grad_fn)


@case
def node_identity(T):
    x = leaf(T)
    y = x * 2
    return y.grad_fn is y.grad_fn, y.grad_fn == y.grad_fn, hash(y.grad_fn) == hash(y.grad_fn)


@case
def node_metadata(T):
    x = leaf(T)
    y = x * 2
    y.grad_fn.metadata["a"] = 1
    return y.grad_fn.metadata


@case
def node_metadata_survives(T):
    x = leaf(T)
    y = x * 2
    f = y.grad_fn
    f.metadata["a"] = 1
    z = y * 2
    del f
    return z.grad_fn.next_functions[0][0].metadata


@case
def node_next_nonreq(T):
    x = leaf(T)
    y = x * T.ones(3)
    return [(a if a is None else a.name(), b) for a, b in y.grad_fn.next_functions]


@case
def node_variable(T):
    x = leaf(T)
    y = x * 2
    a = y.grad_fn.next_functions[0][0]
    return a.variable is x, a.name(), type(a).__name__


@case
def node_variable_err(T):
    x = leaf(T)
    y = x * 2
    return y.grad_fn.variable


@case
def node_attr_err(T):
    x = leaf(T)
    y = x * 2
    return y.grad_fn.foo


@case
def node_setattr(T):
    x = leaf(T)
    y = x * 2
    y.grad_fn.foo = 1
    return y.grad_fn.foo


@case
def node_call(T):
    x = leaf(T)
    y = x.sin()
    return y.grad_fn(T.ones(3))


@case
def node_call_mul(T):
    x = leaf(T)
    y = x * T.ones(3)
    return y.grad_fn(T.ones(3))


@case
def node_call_count(T):
    x = leaf(T)
    y = x.sin()
    return y.grad_fn(T.ones(3), T.ones(3))


@case
def node_new(T):
    return type(leaf(T).sin().grad_fn)()


@case
def node_input_metadata(T):
    x = leaf(T)
    m = x.sin().grad_fn._input_metadata
    return len(m), m[0].shape, str(m[0].dtype), str(m[0].device)


@case
def saved_names_mul(T):
    return saved((leaf(T) * leaf(T)).grad_fn)


@case
def saved_mul_one(T):
    x = leaf(T)
    f = (x * T.ones(3)).grad_fn
    return f._saved_self, f._saved_other


@case
def saved_names_mulnum(T):
    return saved((leaf(T) * 2).grad_fn)


@case
def saved_exp(T):
    y = leaf(T).exp()
    return (
        y.grad_fn._saved_result,
        y.grad_fn._saved_result.grad_fn is y.grad_fn,
        y.grad_fn._saved_result is y,
    )


@case
def saved_sum_dim(T):
    y = leaf(T).sum(0)
    f = y.grad_fn
    return f._saved_dim, f._saved_keepdim, f._saved_self_sym_sizes


@case
def saved_pow(T):
    y = leaf(T).pow(3)
    f = y.grad_fn
    return f._saved_exponent, f._saved_self


@case
def saved_leaf_identity(T):
    x = leaf(T)
    y = x.sin()
    return y.grad_fn._saved_self is x


@case
def saved_nonleaf_identity(T):
    x = leaf(T) * 1
    y = x.sin()
    return y.grad_fn._saved_self is x


@case
def saved_freed(T):
    x = leaf(T)
    y = x.sin()
    y.sum().backward()
    y.grad_fn._saved_self


@case
def saved_freed_number(T):
    x = leaf(T)
    y = x.pow(3)
    y.sum().backward()
    return y.grad_fn._saved_exponent


@case
def saved_cat(T):
    x = leaf(T)
    f = T.cat([x, x]).grad_fn
    return saved(f), f._saved_dim


@case
def saved_list(T):
    x = leaf(T)
    f = T.stack([x, x]).grad_fn
    return saved(f)


@case
def saved_index(T):
    x = leaf(T)
    f = x[T.tensor([0, 1])].grad_fn
    return f.name(), saved(f), f._saved_indices

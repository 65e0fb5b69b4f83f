"""Inference mode, grad modes, anomaly mode."""

# ruff: noqa: B018, E731, F841
from autograd_cases import case, names
from autograd_cases import leaf4 as leaf


@case
def inf_basic(T):
    with T.inference_mode():
        x = T.ones(2)
        y = x * 2
        return (
            x.is_inference(),
            y.is_inference(),
            x.requires_grad,
            T.is_inference_mode_enabled(),
            T.is_grad_enabled(),
        )


@case
def inf_version(T):
    with T.inference_mode():
        x = T.ones(2)
    return x._version


@case
def inf_save(T):
    with T.inference_mode():
        x = T.ones(4)
    return leaf(T) * x


@case
def inf_nosave(T):
    with T.inference_mode():
        x = T.ones(4)
    y = leaf(T) + x
    return y.requires_grad


@case
def inf_inplace_outside(T):
    with T.inference_mode():
        x = T.ones(4)
    x.mul_(2)


@case
def inf_inplace_outside_nograd(T):
    with T.inference_mode():
        x = T.ones(4)
    with T.no_grad():
        x.mul_(2)


@case
def inf_inplace_inside(T):
    with T.inference_mode():
        x = T.ones(4)
        x.mul_(2)
        return x


@case
def inf_reqgrad_outside(T):
    with T.inference_mode():
        x = T.ones(4)
    x.requires_grad_()


@case
def inf_reqgrad_inside(T):
    with T.inference_mode():
        x = T.ones(4)
        x.requires_grad_()
        return x.requires_grad


@case
def inf_ctor_req(T):
    with T.inference_mode():
        x = T.ones(4, requires_grad=True)
        return x.requires_grad, (x * 2).requires_grad


@case
def inf_normal_inplace(T):
    x = leaf(T)
    y = x * 1
    with T.inference_mode():
        y.mul_(2)
    return y._version, names(y)


@case
def inf_normal_leaf_inplace(T):
    x = leaf(T)
    with T.inference_mode():
        x.mul_(2)
    return x, x._version


@case
def inf_view_of_normal(T):
    x = leaf(T)
    y = x * 1
    with T.inference_mode():
        v = y[:2]
        r = v.is_inference(), v.requires_grad, v._is_view()
    return r


@case
def inf_view_of_normal_inplace_outside(T):
    x = leaf(T)
    y = x * 1
    with T.inference_mode():
        v = y[:2]
    v.mul_(2)


@case
def inf_view_of_inference_outside(T):
    with T.inference_mode():
        x = T.ones(4)
    v = x[:2]
    return v.is_inference(), v._is_view()


@case
def inf_clone_outside(T):
    with T.inference_mode():
        x = T.ones(4)
    y = x.clone()
    return y.is_inference()


@case
def inf_detach(T):
    with T.inference_mode():
        x = T.ones(4)
    return x.detach().is_inference()


@case
def inf_functional_outside(T):
    with T.inference_mode():
        x = T.ones(4)
    return (x + 1).is_inference()


@case
def inf_mix_inplace(T):
    with T.inference_mode():
        x = T.ones(4)
    y = T.ones(4)
    y.add_(x)
    return y.is_inference()


@case
def inf_mix_inplace_grad(T):
    with T.inference_mode():
        x = T.ones(4)
    y = leaf(T) * 1
    y.mul_(x)


@case
def inf_false_inside(T):
    with T.inference_mode():
        with T.inference_mode(False):
            x = T.ones(4)
            return x.is_inference(), T.is_grad_enabled()


@case
def inf_enable_grad_inside(T):
    x = leaf(T)
    with T.inference_mode():
        with T.enable_grad():
            y = x * 2
            return y.requires_grad, T.is_grad_enabled(), y.is_inference()


@case
def inf_backward(T):
    x = leaf(T)
    y = (x * x).sum()
    with T.inference_mode():
        y.backward()
    return x.grad, x.grad.is_inference()


@case
def inf_data(T):
    with T.inference_mode():
        x = T.ones(4)
    return x.data.is_inference()


@case
def inf_deco(T):
    @T.inference_mode()
    def f():
        return T.ones(1).is_inference()

    @T.inference_mode
    def g():
        return T.ones(1).is_inference()

    @T.inference_mode(False)
    def h():
        return T.ones(1).is_inference()

    return f(), g(), h()


@case
def inf_setdata(T):
    x = leaf(T)
    with T.inference_mode():
        z = T.ones(4)
    x.data = z
    return x.is_inference()


@case
def inf_grad_assign(T):
    x = leaf(T)
    with T.inference_mode():
        z = T.ones(4)
    x.grad = z
    x.sum().backward()
    return x.grad


@case
def mode_nograd_deco(T):
    @T.no_grad()
    def f():
        return T.is_grad_enabled()

    @T.no_grad
    def g():
        return T.is_grad_enabled()

    @T.enable_grad()
    def h():
        return T.is_grad_enabled()

    with T.no_grad():
        r = h()
    return f(), g(), r, f.__name__


@case
def mode_set_grad(T):
    T.set_grad_enabled(False)
    a = T.is_grad_enabled()
    T.set_grad_enabled(True)
    with T.set_grad_enabled(False):
        b = T.is_grad_enabled()
    return a, b, T.is_grad_enabled()


@case
def mode_set_grad_deco(T):
    @T.set_grad_enabled(False)
    def f():
        return T.is_grad_enabled()

    return T.is_grad_enabled(), f(), T.is_grad_enabled()


@case
def mode_set_grad_type(T):
    T.set_grad_enabled(3)


@case
def mode_gen(T):
    @T.no_grad()
    def f():
        yield T.is_grad_enabled()
        yield T.is_grad_enabled()

    L = []
    for v in f():
        L.append((v, T.is_grad_enabled()))
    return L


@case
def mode_class(T):
    @T.no_grad()
    class A:
        def __init__(self):
            self.v = T.is_grad_enabled()

    return A().v


@case
def mode_mt(T):
    with T.autograd.set_multithreading_enabled(False):
        a = (
            T.autograd.is_multithreading_enabled()
            if hasattr(T.autograd, "is_multithreading_enabled")
            else None
        )
    return a


@case
def mode_mt2(T):
    T.autograd.set_multithreading_enabled(False)
    x = leaf(T)
    (x * 2).sum().backward()
    T.autograd.set_multithreading_enabled(True)
    return x.grad


@case
def mode_thread(T):
    import threading

    L = []
    with T.no_grad():
        t = threading.Thread(target=lambda: L.append(T.is_grad_enabled()))
        t.start()
        t.join()
    return L


@case
def var(T):
    return (
        isinstance(T.ones(1), T.autograd.Variable),
        type(T.autograd.Variable(T.ones(1))).__name__,
        T.autograd.Variable(T.ones(1), requires_grad=True).requires_grad,
    )


@case
def unsafe_set_version(T):
    x = T.ones(1)
    v = x._version
    with T.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    return x._version - v


@case
def anom_nan(T):
    x = leaf(T, -1.0)
    with T.autograd.detect_anomaly():
        T.sqrt(x).sum().backward()


@case
def anom_nonan(T):
    x = leaf(T, -1.0)
    with T.autograd.detect_anomaly(check_nan=False):
        T.sqrt(x).sum().backward()
    return 1


@case
def anom_state(T):
    T.autograd.set_detect_anomaly(True)
    a = T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()
    T.autograd.set_detect_anomaly(False)
    return a, T.is_anomaly_enabled()


@case
def anom_ctx(T):
    with T.autograd.set_detect_anomaly(True, check_nan=False):
        a = T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()
    return a, T.is_anomaly_enabled()


@case
def anom_custom(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    with T.autograd.set_detect_anomaly(True):
        F.apply(leaf(T)).sum().backward()


@case
def anom_raise(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("z")

    with T.autograd.set_detect_anomaly(True):
        F.apply(leaf(T)).sum().backward()


@case
def anom_meta(T):
    with T.autograd.set_detect_anomaly(True):
        y = leaf(T) * 2
    return sorted(y.grad_fn.metadata)

"""GradScaler, custom_fwd and settings: the same figures, states and errors as PyTorch's."""

import pickle

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
from same_program import outcome, programs  # noqa: E402


def scaler_of(t, **options):
    return t.amp.GradScaler("cpu", **options)


def one_parameter(t, dtype=None):
    w = t.nn.Parameter(t.ones(2, dtype=dtype))
    return w, t.optim.SGD([w], lr=0.1)


def stepped(t, scaler, w, optimizer, factor=1.0):
    optimizer.zero_grad()
    scaler.scale((w * factor).sum()).backward()
    result = scaler.step(optimizer)
    scaler.update()
    return result, w.detach().tolist(), scaler.state_dict()


def program_steps_grow_and_back_off(t):
    scaler = scaler_of(t, init_scale=4.0, growth_interval=2)
    w, optimizer = one_parameter(t)
    factors = (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0)
    return [stepped(t, scaler, w, optimizer, f) for f in factors]


def program_a_scale_that_would_be_infinite_stays(t):
    scaler = scaler_of(t, init_scale=2.0**126, growth_factor=8.0, growth_interval=1)
    w, optimizer = one_parameter(t)
    return stepped(t, scaler, w, optimizer, 1e-30)


def program_unscale_first(t):
    scaler = scaler_of(t)
    w, optimizer = one_parameter(t)
    scaler.scale((w * w).sum()).backward()
    scaler.unscale_(optimizer)
    grads = w.grad.tolist()
    scaler.step(optimizer)
    return grads, w.detach().tolist(), outcome(lambda _: scaler.unscale_(optimizer), t)


def program_unscale_twice(t):
    scaler = scaler_of(t)
    w, optimizer = one_parameter(t)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def program_step_twice(t):
    scaler = scaler_of(t)
    w, optimizer = one_parameter(t)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    scaler.step(optimizer)


def program_half_gradients(t):
    scaler = scaler_of(t)
    w, optimizer = one_parameter(t, t.float16)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)


def program_nested_outputs(t):
    scaler = scaler_of(t, init_scale=2.0)
    return scaler.scale([t.ones(1), (t.ones(1), t.zeros(1))])


def program_set_scale(t):
    scaler = scaler_of(t)
    scaler.scale(t.ones(1))
    scaler.update(4.0)
    first = scaler.get_scale()
    scaler.update(t.tensor(8.0))
    return first, scaler.get_scale()


def program_pickle(t):
    scaler = scaler_of(t, init_scale=2.0)
    stepped(t, scaler, *one_parameter(t))
    return pickle.loads(pickle.dumps(scaler)).state_dict()


def program_load(t):
    scaler, other = scaler_of(t, init_scale=2.0), scaler_of(t)
    stepped(t, scaler, *one_parameter(t))
    other.load_state_dict(scaler.state_dict())
    return other.state_dict(), other.get_scale()


def program_disabled(t):
    scaler = scaler_of(t, enabled=False)
    w, optimizer = one_parameter(t)
    return stepped(t, scaler, w, optimizer), scaler.get_scale(), scaler.is_enabled()


def program_without_a_device(t):
    return t.amp.GradScaler("cuda").is_enabled() or t.cuda.is_available()


def failing(call):
    return lambda t: call(scaler_of(t), t)


program_update_before_scale = failing(lambda s, t: s.update())
program_step_before_scale = failing(lambda s, t: s.step(one_parameter(t)[1]))
program_update_before_step = failing(lambda s, t: (s.scale(t.ones(1)), s.update()))
program_step_without_gradients = failing(
    lambda s, t: (s.scale(t.ones(1)), s.step(one_parameter(t)[1]))
)
program_scale_of_a_number = failing(lambda s, t: s.scale(3))
program_load_of_nothing = failing(lambda s, t: s.load_state_dict({}))


def program_growth_factor_of_one(t):
    return scaler_of(t, growth_factor=1.0)


def function_under_autocast(cast_inputs):
    def program(t):
        seen = []

        class Product(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32 if cast_inputs else None)
            def forward(ctx, x, y):
                seen.append((str(x.dtype), t.is_autocast_enabled("cpu"), ctx._fwd_used_autocast))
                return x * y

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                seen.append(t.is_autocast_enabled("cpu"))
                return grad, grad

        x = t.ones(2, requires_grad=True)
        with t.autocast("cpu", t.bfloat16):
            Product.apply(x.bfloat16(), x).sum().backward()
        Product.apply(x, x).sum().backward()
        return seen

    return program


program_function_that_casts = function_under_autocast(True)
program_function_that_does_not_cast = function_under_autocast(False)


def program_settings(t):
    return (
        t.get_autocast_gpu_dtype(),
        t.get_autocast_cpu_dtype(),
        t.is_autocast_cpu_enabled(),
        [t.amp.is_autocast_available(d) for d in ("cpu", "cuda", "meta")],
        t.backends.cudnn.set_flags(False)[1:],
        t.backends.cudnn.set_flags(True)[0],
        t.get_float32_matmul_precision(),
        t.backends.cuda.matmul.allow_tf32,
        t.backends.mps.is_available(),
        t.xpu.is_available(),
        t.mtia.device_count(),
        t.mps.device_count(),
    )


def program_tf32_goes_with_the_precision(t):
    t.set_float32_matmul_precision("high")
    try:
        return t.get_float32_matmul_precision(), t.backends.cuda.matmul.allow_tf32
    finally:
        t.set_float32_matmul_precision("highest")


def program_unknown_flag_of_products(t):
    return t.backends.cuda.matmul.nope


def program_wrong_flag(t):
    t.backends.cudnn.benchmark = "x"


def program_wrong_engine(t):
    t.backends.quantized.engine = "x"


def program_absent_device(t):
    calls = (t.xpu.current_device, t.xpu.synchronize, t.mps.synchronize, t.mps.empty_cache)
    return [outcome(lambda _, call=call: call(), t) for call in calls]


PROGRAMS = programs(globals())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree(name):
    assert outcome(PROGRAMS[name], facula) == outcome(PROGRAMS[name], torch)

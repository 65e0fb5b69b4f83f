"""Softmax, norms, pooling, interpolation, losses, optimizer steps, random numbers."""

from bench.kernels.common import In, K, Table


def softmax():
    table = Table("softmax")
    for name in ("softmax", "log_softmax"):

        def apply(m, x, name=name, dim=-1):
            return getattr(m.nn.functional, name)(x, dim)

        for shape in ((1 * K, 64), (64, 10 * K), (4 * K, 10)):
            table.add(name, [In(shape)], apply)
        table.add(f"{name} dim 1", [In((64, 64, 256))], lambda m, x, f=apply: f(m, x, dim=1))
        table.add(name, [In((256, 1 * K), "bfloat16")], apply)
        table.backward(name, [In((256, 1 * K))], apply)
    table.add("softmax", [In((256, 1 * K), "float64")], apply)
    return table.cases


def norms():
    table = Table("norms")

    def layer(m, x, w, b):
        return m.nn.functional.layer_norm(x, x.shape[-1:], w, b)

    def batch(m, x, w, b):
        return m.nn.functional.batch_norm(x, None, None, w, b, training=True)

    def evaluate(m, x, w, b):
        return m.nn.functional.batch_norm(x, w * 0, b.abs() + 1, w, b)

    for shape in ((1 * K, 768), (16 * K, 64)):
        inputs = [In(shape), In(shape[-1:]), In(shape[-1:])]
        table.add("layer_norm", inputs, layer)
        table.backward("layer_norm", inputs, layer)
    table.add("layer_norm", [In((1 * K, 768), "bfloat16"), *[In((768,), "bfloat16")] * 2], layer)
    table.add("rms_norm", [In((1 * K, 768)), In((768,))],
              lambda m, x, w: m.nn.functional.rms_norm(x, (768,), w))  # fmt: skip
    table.backward("rms_norm", [In((1 * K, 768)), In((768,))],
                   lambda m, x, w: m.nn.functional.rms_norm(x, (768,), w))  # fmt: skip
    for layout in ("", "channels_last"):
        inputs = [In((32, 64, 28, 28), layout=layout), In((64,)), In((64,))]
        table.add("batch_norm", inputs, batch)
        table.add("batch_norm eval", inputs, evaluate)
        table.backward("batch_norm", inputs, batch)
    table.add("batch_norm", [In((4 * K, 128)), In((128,)), In((128,))], batch)
    group = [In((16, 64, 28, 28)), In((64,)), In((64,))]
    table.add("group_norm", group, lambda m, x, w, b: m.nn.functional.group_norm(x, 8, w, b))
    table.backward("group_norm", group, lambda m, x, w, b: m.nn.functional.group_norm(x, 8, w, b))
    return table.cases


def pooling():
    table = Table("pooling")
    for layout in ("", "channels_last"):
        inputs = [In((16, 64, 28, 28), layout=layout)]
        for name in ("max_pool2d", "avg_pool2d"):

            def apply(m, x, name=name):
                return getattr(m.nn.functional, name)(x, 2)

            def overlapping(m, x, name=name):
                return getattr(m.nn.functional, name)(x, 3, 2, 1)

            table.add(f"{name} 2", inputs, apply)
            table.add(f"{name} 3/2", inputs, overlapping)
            table.backward(f"{name} 2", inputs, apply)
        table.add("adaptive_avg_pool2d 1", inputs,
                  lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1))  # fmt: skip
        for mode in ("nearest", "bilinear"):

            def scale(m, x, mode=mode):
                return m.nn.functional.interpolate(x, scale_factor=2, mode=mode)

            table.add(f"interpolate {mode}", inputs, scale)
            table.backward(f"interpolate {mode}", inputs, scale, full=bool(layout))

    def bicubic(m, x):
        return m.nn.functional.interpolate(x, scale_factor=2, mode="bicubic")

    table.add("interpolate bicubic", [In((4, 3, 64, 64))], bicubic)
    table.add("grid_sample", [In((8, 16, 32, 32)), In((8, 32, 32, 2), low=-1, high=1)],
              lambda m, x, g: m.nn.functional.grid_sample(x, g, align_corners=False))  # fmt: skip
    table.add("max_pool1d", [In((16, 64, 256))], lambda m, x: m.nn.functional.max_pool1d(x, 2))
    table.add("unfold", [In((8, 32, 28, 28))], lambda m, x: m.nn.functional.unfold(x, 3))
    return table.cases


def losses():
    table = Table("losses")
    pairs = [In((256 * K,), low=0.01, high=0.99)] * 2
    for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "kl_div",
    ):  # fmt: skip

        def apply(m, x, y, name=name):
            more = {"reduction": "sum"} if name == "kl_div" else {}
            return getattr(m.nn.functional, name)(x, y, **more)

        table.add(name, pairs, apply)
        if name in ("mse_loss", "binary_cross_entropy_with_logits"):
            table.backward(name, pairs, apply)

    def cross_entropy(m, x, y):
        return m.nn.functional.cross_entropy(x, y)

    for rows, classes in ((4 * K, 10), (256, 10 * K), (512, 1000)):
        inputs = [In((rows, classes)), In((rows,), "int64", low=0, high=classes)]
        table.add("cross_entropy", inputs, cross_entropy)
        table.backward("cross_entropy", inputs, cross_entropy)
    images = [In((8, 21, 64, 64)), In((8, 64, 64), "int64", low=0, high=21)]
    table.add("cross_entropy", images, cross_entropy)
    table.add("cosine_similarity", [In((4 * K, 128))] * 2,
              lambda m, x, y: m.nn.functional.cosine_similarity(x, y))  # fmt: skip
    return table.cases


OPTIMIZERS = {
    "SGD": lambda m, p: m.optim.SGD(p, lr=1e-3),
    "SGD momentum": lambda m, p: m.optim.SGD(p, lr=1e-3, momentum=0.9),
    "Adam": lambda m, p: m.optim.Adam(p, lr=1e-3),
    "AdamW": lambda m, p: m.optim.AdamW(p, lr=1e-3),
    "RMSprop": lambda m, p: m.optim.RMSprop(p, lr=1e-3),
}
PARAMETERS = {"50 of 1K": [In((1 * K,))] * 50, "4 of 256K": [In((256 * K,))] * 4}


def optimizers():
    table = Table("optimizers")
    for name, make in OPTIMIZERS.items():
        for note, inputs in PARAMETERS.items():
            state = {}

            def step(m, *tensors, make=make, state=state):
                key = m.__name__
                if key not in state:
                    parameters = [t.requires_grad_() for t in tensors]
                    for p in parameters:
                        p.grad = p.detach() * 0.1
                    state[key] = make(m, parameters)
                state[key].step()
                return tensors[0]

            table.add(name, inputs, step, note=note)
    table.add("clip_grad_norm_", [In((64 * K,))] * 8, lambda m, *ts: clip(m, ts), checked=False)
    return table.cases


def clip(m, tensors):
    """Clips gradients, which are made at the first call."""
    for t in tensors:
        if t.grad is None:
            t.grad = t.clone()
    return m.nn.utils.clip_grad_norm_(tensors, 1.0)


def random():
    table = Table("random")
    functions = {
        "rand": lambda m, x: m.rand(1 * K, 256),
        "randn": lambda m, x: m.randn(1 * K, 256),
        "randn f64": lambda m, x: m.randn(256, 256, dtype=m.float64),
        "randint": lambda m, x: m.randint(0, 100, (1 * K, 256)),
        "randperm": lambda m, x: m.randperm(64 * K),
        "bernoulli": lambda m, x: m.bernoulli(x.abs() * 0.5),
        "dropout": lambda m, x: m.nn.functional.dropout(x, 0.1),
        "exponential_": lambda m, x: x.exponential_(),
        "multinomial": lambda m, x: m.multinomial(x[:64].abs(), 4),
    }
    for name, function in functions.items():
        table.add(name, [In((1 * K, 256))], function, checked=False)
    return table.cases

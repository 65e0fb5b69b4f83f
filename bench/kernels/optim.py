"""Optimizer steps."""

from bench.kernels.common import In, K, Table

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
                key = (m.__name__, id(tensors[0]))  # each case made anew begins anew
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

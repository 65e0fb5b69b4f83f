"""Fuzzes short programs: tensors that share memory, changed in place, differentiated, transformed.

    python tests/fuzz/programs.py --seconds 600 [--seed S]

A program makes some tensors and then takes steps: views, changes in place, new sizes and storages,
gradients, functionalize, vmap, exports, and steps that two threads take at once.
"""

import sys

import common

# isort: split
import calls

SIZES = [[3], [2, 3], [3, 3], [2, 3, 4], [1], [], [0, 3], [5, 1], [4, 6], [70], [90, 70]]

VIEWS = [
    "{a}.t()",
    "{a}.transpose(0, -1)",
    "{a}[{i}]",
    "{a}[{i}:]",
    "{a}[::2]",
    "{a}[..., {i}]",
    "{a}[..., 1:]",
    "{a}.unsqueeze({i})",
    "{a}.squeeze()",
    "{a}.expand(2, *{a}.shape)",
    "{a}.view(-1)",
    "{a}.reshape(-1)",
    "{a}.flatten()",
    "{a}.diagonal()",
    "{a}.unfold(0, 2, 1)",
    "{a}.narrow(0, {i}, 1)",
    "{a}.as_strided((2, 2), (1, 1), {i})",
    "{a}.as_strided((2,), (2,))",
    "{a}.unbind(0)[0]",
    "{a}.split(1)[-1]",
    "{a}.chunk(2)[0]",
    "{a}.detach()",
    "{a}.alias()",
    "{a}.view_as({a})",
    "{a}.view(facula.int32)",
    "{a}.real",
    "facula.view_as_real({a}.to(facula.complex64)).conj()",
    "{a}.movedim(0, -1)",
    "{a}.T",
    "{a}.mT",
    "{a}.swapaxes(0, -1)",
    "{a}.select(-1, 0)",
    "{a}.expand_as({b})",
]
VALUES = [
    "{a} + {b}",
    "{a} * {b}",
    "{a} @ {b}",
    "{a}.sin()",
    "{a}.relu()",
    "{a}.sum()",
    "{a}.sum(0)",
    "{a}.mean(-1, keepdim=True)",
    "{a}.max(0)[0]",
    "{a}.sort()[0]",
    "{a}.cumsum(0)",
    "{a}.softmax(-1)",
    "{a}.clone()",
    "{a}.contiguous()",
    "facula.cat([{a}, {b}])",
    "facula.stack([{a}, {a}])",
    "facula.where({a} > 0, {a}, {b})",
    "{a}[{a} > 0]",
    "{a}.index_select(0, facula.tensor([0, 0]))",
    "{a}.gather(0, facula.zeros_like({a}, dtype=facula.int64))",
    "{a}.masked_fill({a} > 0.5, 2.0)",
    "{a}.to(facula.float64)",
    "{a}.pow(2)",
    "{a} / ({b} + 1)",
    "{a}.norm()",
    "{a}.var(0)",
    "{a}.std()",
    "F.layer_norm({a}, {a}.shape[-1:])",
    "F.dropout({a}, 0.5)",
    "F.rrelu({a}, 0.1, 0.4, training=True)",
    "F.mse_loss({a}, {b})",
    "{a}.nonzero()",
    "{a}.unique()",
    "copy.deepcopy({a})",
    "pickle.loads(pickle.dumps({a}.detach()))",
    "facula.from_numpy({a}.detach().numpy())",
    "facula.utils.dlpack.from_dlpack({a}.detach())",
    "facula.func.vmap(lambda x: x * 2)({a})",
    "facula.func.vmap(lambda x: x.sum() + {b})({a})",
    "facula.func.vmap(lambda x, y: x.sin() * y)({a}, {b})",
    "facula.func.vmap(lambda x: x.clone().add_(1))({a})",
    "facula.func.grad(lambda x: (x * x).sum())({a})",
    "facula.func.jvp(lambda x: x * x, ({a},), ({a},))[1]",
    "facula.func.vjp(lambda x: x.sin(), {a})[1]({a})[0]",
    "facula.func.functionalize(lambda x: x.clone().add_(1).t().mul_(2))({a})",
    "facula.func.functionalize(lambda x: (x.add_(1), x[0].fill_(2), x * 2)[2])({a}.clone())",
    "facula.func.functionalize(lambda x, y: x.clone().copy_(y))({a}, {b})",
    "facula.autograd.grad({a}.sum(), [{b}], allow_unused=True)[0]",
    "facula.autograd.grad(({a} * {b}).sum(), [{a}, {b}], create_graph=True)[0]",
    "{a}.grad",
]
CHANGES = [
    "{a}.add_(1)",
    "{a}.mul_({b})",
    "{a}.copy_({b})",
    "{a}.fill_({i})",
    "{a}.zero_()",
    "{a}.relu_()",
    "{a}.sin_()",
    "{a}.clamp_(0, 1)",
    "{a}[{i}] = 5.0",
    "{a}[{a} > 0] = 1.0",
    "{a}[...] = {b}",
    "{a}.index_add_(0, facula.tensor([0]), {b}[:1])",
    "{a}.index_fill_(0, facula.tensor([0]), 1)",
    "{a}.masked_fill_({b} > 0, 3)",
    "{a}.t_()",
    "{a}.transpose_(0, -1)",
    "{a}.squeeze_()",
    "{a}.unsqueeze_(0)",
    "{a}.resize_({i}, 2).zero_()",
    "{a}.resize_(0)",
    "{a}.set_({b})",
    "{a}.set_()",
    "{a}.set_({b}.untyped_storage())",
    "{a}.data = {b}.detach()",
    "{a}.untyped_storage().resize_(0)",
    "{a}.as_strided_((2,), (1,))",
    "{a}.swapaxes_(0, -1)",
    "{a}.detach_()",
    "{a}.requires_grad_()",
    "{a}.requires_grad_(False)",
    "{a}.retain_grad()",
    "{a}.register_hook(lambda g: g * 2)",
    "{a}.register_hook(lambda g: None)",
    "{a}.grad = None",
    "{a}.grad = {b}.detach()",
    "{a}.sum().backward()",
    "{a}.sum().backward(retain_graph=True)",
    "{a}.backward({a})",
    "facula.add({a}, {b}, out={c})",
    "facula.sum({a}, 0, out={c})",
    "facula._foreach_add_([{a}, {b}], 1)",
    "{a}.squeeze(0).add_(1)",
    "with facula.no_grad(): {a}.add_(1)",
    "with facula.inference_mode(): {a}.add_(1)",
    "with facula.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t): {c} = {a} * {a}",
    "with facula.autograd.forward_ad.dual_level(): "
    "{c} = facula.autograd.forward_ad.make_dual({a}, {b}) * 2",
    "gc.collect()",
    "del {a}",
    "n = {a}.grad_fn; w = weakref.ref(n); del n",
    "n = {a}.detach().numpy()",
]
AT_ONCE = [
    "{a} * 2",
    "{a}.sum()",
    "{a}.add_(1)",
    "{a}.sort()",
    "{a}.set_()",
    "{a}.set_(facula.ones(200000))",
    "setattr({a}, 'data', facula.ones(3))",
    "{a}.resize_(10)",
    "{a}.sum().backward()",
    "setattr({a}, 'grad', None)",
    "{a}.clone()",
    "{a}.detach().numpy().sum()",
    "{a}.untyped_storage().resize_(0)",
    "facula.func.vmap(lambda x: x * 2)({a})",
    "gc.collect()",
    "{a} @ {b}",
    "facula.cat([{a}, {b}])",
]


def _tensor(rng):
    sizes = rng.choice(SIZES)
    dtype = rng.choice(["float32"] * 6 + ["float64", "int64", "bfloat16", "complex64"])
    text = calls.laid_out(rng, sizes, f"torch.{dtype}")
    if rng.random() < 0.4 and dtype not in ("int64",):
        text += ".requires_grad_()"
    return text


def _filled(rng, template, names, new=None):
    values = {"a": rng.choice(names), "b": rng.choice(names), "c": new or rng.choice(names)}
    return template.format(**values, i=rng.choice([0, 0, 1, 1, 2, -1, 3]))


def _threads(rng, names):
    bodies = []
    for _ in range(2):
        steps = [_filled(rng, rng.choice(AT_ONCE), names) for _ in range(rng.choice([1, 1, 2]))]
        bodies.append(f"lambda: [{', '.join(steps)}]")
    run = "def run(f):\n    for _ in range(20):\n        try: f()\n        except Exception: pass"
    return [
        common.THREADS,
        run,
        f"ts = [threading.Thread(target=run, args=(f,)) for f in [{', '.join(bodies)}]]",
        "[t.start() for t in ts]; [t.join() for t in ts]",
        "del ts, run",
    ]


def program(rng):
    """One case."""
    names = [f"x{k}" for k in range(rng.choice([2, 2, 3]))]
    lines = [f"{name} = {_tensor(rng)}" for name in names]
    for _ in range(rng.choice([3, 5, 8, 12])):
        draw = rng.random()
        new = f"x{len(names)}"
        if draw < 0.35:
            lines.append(f"{new} = {_filled(rng, rng.choice(VIEWS), names)}")
            names.append(new)
        elif draw < 0.6:
            lines.append(f"{new} = {_filled(rng, rng.choice(VALUES), names)}")
            names.append(new)
        elif draw < 0.97:
            lines.append(_filled(rng, rng.choice(CHANGES), names))
        elif common.THREADS not in lines:
            lines += _threads(rng, names)
    return lines


if __name__ == "__main__":
    sys.exit(common.main(__doc__, __file__, program))

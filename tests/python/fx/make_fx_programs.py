"""Programs whose graphs by `make_fx` are compared: functions of a framework, with arguments."""


def _inputs(torch):
    return {
        "x": torch.arange(12.0).reshape(3, 4) / 7 - 0.5,
        "w": torch.arange(20.0).reshape(5, 4) / 9 - 1,
        "b": torch.arange(5.0),
        "image": torch.arange(96.0).reshape(1, 3, 4, 8) / 50,
        "kernel": torch.ones(4, 3, 3, 3),
        "labels": torch.tensor([0, 1, 2]),
        "heads": torch.ones(2, 2, 3, 4),
        "nest": [torch.ones(2), {"b": torch.ones(2)}],
    }


def _writes(x):
    x.add_(1)
    return x * 2


def _fills_view(x):
    y = x.clone()
    y[0].fill_(3)
    return y


def _sets_items(x):
    y = x.clone()
    y[1] = 0.0
    y[:, 0] = y[:, 1]
    return y


def _unused(x):
    x + 1
    return x * 2


def _forward(torch):
    """name -> (function, names of arguments)"""
    F = torch.nn.functional
    kept = torch.ones(4)

    def constant_written(x):
        t = torch.tensor([1.0, 2.0, 3.0, 4.0])
        t.add_(1)
        return x + t

    def into_out(x):
        y = torch.empty(3, 4)
        torch.add(x, x, out=y)
        return y

    def without_grad(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    return {
        "linear": (lambda x, w, b: F.linear(x, w, b), "x w b"),
        "linear_of_batches": (lambda h, w, b: F.linear(h, w, b), "heads w b"),
        "mlp": (lambda x, w: F.relu(F.linear(x, w)).sum(), "x w"),
        "in_place": (lambda x: x.clone().add_(1).mul_(2), "x"),
        "input_written": (_writes, "x"),
        "views": (lambda x: x.t().reshape(12).view(2, 6)[0, 1:3], "x"),
        "view_filled": (_fills_view, "x"),
        "items_set": (_sets_items, "x"),
        "factories": (lambda x: x + torch.zeros(4) + torch.ones(3, 4) + torch.arange(4), "x"),
        "fills": (
            lambda x: x + torch.full((4,), 2.0) + torch.zeros_like(x) + x.new_ones(4),
            "x",
        ),
        "random": (lambda x: x + torch.rand(3, 4) + torch.randn_like(x), "x"),
        "two_results": (lambda x: torch.max(x, 1), "x"),
        "one_of_two": (lambda x: x.topk(2)[0].sum(), "x"),
        "split": (lambda x: x.split(2, 1)[1] * 2, "x"),
        "unbind": (lambda x: [a + 1 for a in x.unbind(0)], "x"),
        "chunk": (lambda x: x.chunk(2, 1), "x"),
        "scalars": (lambda x: (2 - x) / 3 * x**2 + 2**x, "x"),
        "comparison": (lambda x: torch.where(x > 0, x, 0.0), "x"),
        "remainder": (lambda x: x % 2 + x // 2, "x"),
        "constant": (lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]), "x"),
        "two_constants": (lambda x: x + torch.tensor(2.0) + torch.tensor(3), "x"),
        "closure": (lambda x: x + kept, "x"),
        "closure_twice": (lambda x: x + kept * kept, "x"),
        "number_of_constant": (lambda x: x.sum() * torch.tensor(3.0).item(), "x"),
        "constant_written": (constant_written, "x"),
        "many_arguments": (lambda *xs: xs[0] + xs[1], "x x"),
        "nests": (lambda x, w: {"a": [x.sin(), w]}, "x w"),
        "nest_given": (lambda d: {"sum": d[0] + d[1]["b"]}, "nest"),
        "same_result": (lambda x: (x, x), "x"),
        "cat": (lambda x: torch.cat([x, x], 1).sum(0), "x"),
        "index": (lambda x: x[torch.tensor([0, 1])], "x"),
        "mask": (lambda x: x.masked_fill(x < 0, -1.0), "x"),
        "casts": (lambda x: x.to(torch.float64).to("cpu", torch.int32), "x"),
        "einsum": (lambda x, w: torch.einsum("ij,kj->ik", x, w), "x w"),
        "batched_product": (lambda h: h @ h.transpose(-1, -2), "heads"),
        "convolution": (lambda i, k: F.conv2d(i, k, padding=1).relu(), "image kernel"),
        "pool": (lambda i: F.max_pool2d(i, 2), "image"),
        "mean_pool": (lambda i: F.adaptive_avg_pool2d(i, 1), "image"),
        "activations": (lambda x: F.gelu(x) + F.silu(x), "x"),
        "embedding": (lambda i, w: F.embedding(i, w), "labels w"),
        "cross_entropy": (lambda x, t: F.cross_entropy(x, t), "x labels"),
        "mse": (lambda x: F.mse_loss(x, x * 2), "x"),
        "attention": (lambda h: F.scaled_dot_product_attention(h, h, h), "heads"),
        "no_grad": (without_grad, "x"),
        "detach": (lambda x: x.detach() + 1, "x"),
        "no_argument_used": (lambda x: torch.ones(2) + 1, "x"),
        "result_unused": (_unused, "x"),
        "out": (into_out, "x"),
        "vmap": (lambda x: torch.func.vmap(lambda a: a.sin().sum())(x), "x"),
        "func_grad": (lambda x: torch.func.grad(lambda a: (a.sin() * a).sum())(x), "x"),
        "functionalize": (torch.func.functionalize(_writes), "x"),
    }


def _backward(torch):
    """The same for functions that differentiate; their first argument requires grad."""
    F = torch.nn.functional

    def of(loss):
        return lambda x, *rest: torch.autograd.grad(loss(x, *rest), x)[0]

    return {
        "gradient_of_sin": (of(lambda x: x.sin().sum()), "x"),
        "gradient_of_tanh": (of(lambda x: (x.tanh() * x).sum()), "x"),
        "gradient_of_layer_norm": (of(lambda x: F.layer_norm(x, (4,)).exp().sum()), "x"),
        "gradient_of_softmax": (of(lambda x: (F.softmax(x, -1) * x).sum()), "x"),
        "gradient_of_relu": (of(lambda x: (F.relu(x) + x).sum()), "x"),
        "gradient_of_views": (of(lambda x: (x.t()[1:] * x.view(4, 3)[:3].t()).sum()), "x"),
    }


def _different(torch):
    """The same for programs that facula takes apart otherwise; DIFFERENT says how."""
    F = torch.nn.functional

    def linear_gradient(w, x):
        return torch.autograd.grad(F.linear(x, w).sum(), w)[0]

    def write_through_view(x):
        y = x.clone()
        y[0].add_(1)
        return y

    return {
        "dropout": (lambda x: F.dropout(x, 0.5), "x"),
        "batch_of_one": (lambda x: x[None] @ x[None].transpose(1, 2), "x"),
        "batch_norm": (lambda i: F.batch_norm(i, None, None, training=True), "image"),
        "variance": (lambda x: x.var(), "x"),
        "lists": (lambda x: torch._foreach_add([x, x], 1.0), "x"),
        "whole_slice": (lambda x: x[:3] + 1, "x"),
        "write_through_view": (torch.func.functionalize(write_through_view), "x"),
        "linear_gradient": (linear_gradient, "w x"),
        "square_gradient": (lambda x: torch.autograd.grad((x**2).sum(), x)[0], "x"),
        "forward_mode": (lambda x: torch.func.jvp(torch.sin, (x,), (x,)), "x"),
    }


DIFFERENT = {
    "dropout": "the mask is scaled by div_.Tensor, and empty_like states pin_memory",
    "batch_of_one": "a batch of one is multiplied as matrices",
    "batch_norm": "no empty tensor for the reserve of cuDNN",
    "variance": "the correction is stated",
    "lists": "operators of lists are called element by element",
    "whole_slice": "a slice that takes everything is an alias",
    "write_through_view": "views are written through by as_strided_scatter",
    "square_gradient": "the slope of x**2 is x*2, not pow(x, 1)*2",
    "forward_mode": "no checks of layouts, and cos(x) * tangent",
}


def build(torch):
    """All programs: name -> (function, arguments)."""
    table = _forward(torch) | _different(torch)
    programs = {
        n: (f, [_inputs(torch)[a] for a in names.split()]) for n, (f, names) in table.items()
    }
    for name, (function, names) in _backward(torch).items():
        args = [_inputs(torch)[n] for n in names.split()]
        programs[name] = function, [args[0].requires_grad_(), *args[1:]]
    for name in ("linear_gradient", "square_gradient"):
        programs[name][1][0].requires_grad_()
    return programs

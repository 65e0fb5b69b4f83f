"""Modules that are exported, for a framework: what is compared with PyTorch's programs."""


def _modules(nn, torch):  # noqa: C901  (a list of small modules)
    F = nn.functional

    class Function(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x):
            return self.f(x)

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.add_(x.sum(0))
            return x + self.count

    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift, self.list = torch.ones(4), [torch.ones(4) * 2]
            self.register_buffer("passing", torch.ones(4), persistent=False)

        def forward(self, x):
            return x + self.shift + self.passing + self.list[0] + torch.tensor([1.0, 2.0, 3.0, 4.0])

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x).relu() + x

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return self.block(self.block(x))

    class Nests(nn.Module):
        def forward(self, d, pair, *, scale=2.0, flag=True):
            total = d["a"] * scale + pair[0] - pair[1][0]
            return {"total": total, "rest": [d["b"], (pair[0], 3, None)]} if flag else total

    class Many(nn.Module):
        def forward(self, x, *others, **named):
            return x + others[0] - others[1] * named["z"]

    class WritesInput(nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x + 1

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)
            self.norm, self.pool = nn.BatchNorm2d(4), nn.MaxPool2d(2)
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            x = self.pool(F.gelu(self.norm(self.conv(x))))
            return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.norm = nn.Linear(4, 12), nn.Linear(4, 4), nn.LayerNorm(4)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            q, k, v = (t.view(1, 3, 2, 2).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).reshape(1, 3, 4))

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.position = nn.Embedding(10, 4), nn.Parameter(torch.ones(3, 4))
            self.attention = Attention()
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return F.log_softmax(self.head(self.attention(self.table(ids) + self.position)), -1)

    return locals()


def build(torch):
    """name -> (module, args, kwargs)"""
    nn, F = torch.nn, torch.nn.functional
    m = _modules(nn, torch)
    f = m["Function"]
    x = torch.arange(12.0).reshape(3, 4) / 7 - 0.5
    image = torch.arange(192.0).reshape(1, 3, 8, 8) / 50
    heads = torch.arange(12.0).reshape(1, 3, 4) / 9
    ids = torch.tensor([[1, 2, 3]])
    torch.manual_seed(0)

    def no_argument_used(x):
        return torch.ones(2) + 1

    def unused(x):
        x + 1
        return x.relu()

    def sliced(x):
        y = x.clone()
        y[0] = 1.0
        return y[:, 1:3], y[..., 0]

    programs = {
        "linear": (nn.Linear(4, 3), (x,)),
        "sequential": (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), (x,)),
        "dropout_in_evaluation": (nn.Sequential(nn.Linear(4, 3), nn.Dropout()).eval(), (x,)),
        "batch_norm_in_evaluation": (nn.BatchNorm1d(4).eval(), (x,)),
        "layer_norm": (nn.LayerNorm(4), (x,)),
        "group_norm": (nn.GroupNorm(1, 3), (image,)),
        "buffer_changed": (m["Counter"](), (x,)),
        "constants": (m["Constants"](), (x,)),
        "shared_parameters": (m["Shared"](), (x,)),
        "blocks": (m["Stack"](), (x,)),
        "module_called_twice": (m["Twice"](), (x,)),
        "nests": (m["Nests"](), ({"a": x, "b": x + 1}, (x, [x])), {"scale": 3.0}),
        "many_arguments": (m["Many"](), (x, x, x), {"z": x}),
        "input_written": (m["WritesInput"](), (x,)),
        "convolution": (m["Convolution"]().eval(), (image,)),
        "attention": (m["Attention"](), (heads,)),
        "tokens": (m["Tokens"](), (ids,)),
        "max_with_index": (f(lambda x: x.max(1)), (x,)),
        "first_of_two": (f(lambda x: x.max(1)[0]), (x,)),
        "topk": (f(lambda x: x.topk(2).values), (x,)),
        "split": (f(lambda x: x.split(2, 1)[1] * 2), (x,)),
        "unbind": (f(lambda x: [a + 1 for a in x.unbind(0)]), (x,)),
        "stack_and_cat": (f(lambda x: torch.stack([x, x]).sum(0) + torch.cat([x[:1]] * 3)), (x,)),
        "scalars": (f(lambda x: (2 - x) / 3 * x**2 + 2**x), (x,)),
        "where": (f(lambda x: torch.where(x > 0, x, -x)), (x,)),
        "items_set": (f(sliced), (x,)),
        "index_by_tensor": (f(lambda x: x[torch.tensor([0, 2])]), (x,)),
        "masked_fill": (f(lambda x: x.masked_fill(x < 0, -1.0)), (x,)),
        "casts": (f(lambda x: x.to(torch.float64).to(torch.int32)), (x,)),
        "factories": (f(lambda x: x + torch.zeros(4) + torch.arange(4) + torch.ones_like(x)), (x,)),
        "einsum": (f(lambda x: torch.einsum("ij,kj->ik", x, x)), (x,)),
        "views": (f(lambda x: x.t().reshape(12).view(2, 6)[0, 1:3]), (x,)),
        "matrix_products": (f(lambda x: x @ x.T + torch.matmul(x, x.mT)), (x,)),
        "activations": (f(lambda x: F.silu(x) + F.gelu(x) + F.softplus(x) + x.tanh()), (x,)),
        "softmax": (f(lambda x: F.softmax(x, -1) + x.log_softmax(0)), (x,)),
        "losses": (f(lambda x: F.mse_loss(x, x * 2) + F.l1_loss(x, x + 1)), (x,)),
        "cross_entropy": (f(lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2]))), (x,)),
        "in_place_chain": (f(lambda x: x.clone().add_(1).mul_(2).relu_()), (x,)),
        "numbers_returned": (f(lambda x: (x, 3, None, "text", 2.5, True, [x.relu()])), (x,)),
        "shapes_used": (f(lambda x: x.reshape(x.shape[0] * 2, -1) * x.size(1)), (x,)),
        "no_argument_used": (f(no_argument_used), (x,)),
        "result_unused": (f(unused), (x,)),
        "same_result_twice": (f(lambda x: (x, x)), (x,)),
        "norms_and_means": (f(lambda x: x.norm() + x.mean(0, keepdim=True) + x.std()), (x,)),
        "padding": (f(lambda x: F.pad(x, (1, 2), value=3.0)), (x,)),
        "interpolation": (f(lambda x: F.interpolate(x[None, None], scale_factor=2.0)), (x,)),
    }
    return {name: (*p, {}) if len(p) == 2 else p for name, p in programs.items()}

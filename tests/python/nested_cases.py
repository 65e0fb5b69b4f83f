"""Calls with nested tensors for the tests with and without PyTorch.

`lib` is facula or torch. `x` and `y` are [3, ragged, 4] with the same lengths, `i` holds indices,
`q` and `k` are [3, heads, ragged, 2]; all jagged. `s` and `t` are strided, of sizes that differ.
"""

LENGTHS = (2, 4, 1)
ROWS = sum(LENGTHS)


def numbers(lib, *size):
    """Numbers between -1 and 1 without ties and without zeros."""
    count = 1
    for n in size:
        count *= n
    values = [((7 * i + 3) % (2 * count + 1)) / (count + 0.5) - 1 for i in range(count)]
    return lib.tensor(values).reshape(size)


def inputs(lib):
    """The tensors of the calls, and the plain leaves that they are made of."""
    offsets = lib.tensor([0, 2, 6, 7])
    leaves = {
        "x": numbers(lib, ROWS, 4),
        "y": numbers(lib, ROWS, 4).flip(0) + 0.1,
        "q": numbers(lib, ROWS, 2, 2),
        "k": numbers(lib, ROWS, 2, 2).flip(0),
    }
    leaves = {name: t.requires_grad_() for name, t in leaves.items()}
    jagged = lib.nested.nested_tensor_from_jagged
    made = {n: jagged(t, offsets, min_seqlen=1, max_seqlen=4) for n, t in leaves.items()}
    made["q"], made["k"] = made["q"].transpose(1, 2), made["k"].transpose(1, 2)
    made["i"] = jagged(lib.tensor([0, 2, 1, 1, 2, 0, 2]), offsets)
    made["w"] = numbers(lib, 3, 4)
    for name, sizes in (("s", [(2, 4), (3, 4)]), ("t", [(2, 4), (3, 4)]), ("u", [(2, 3), (1, 2)])):
        parts = [numbers(lib, *size) + len(leaves) / 10 for size in sizes]
        leaves[name] = parts[0].requires_grad_()
        made[name] = lib.nested.as_nested_tensor([leaves[name], *parts[1:]])
    return made, leaves


def functional(lib):
    """torch.nn.functional of a library."""
    return lib.nn.functional


# Label, and the call of the library and the inputs by name.
CALLS = [
    ("add", lambda lib, c: c["x"] + c["y"]),
    ("number", lambda lib, c: 1 - c["x"] * 2),
    ("row", lambda lib, c: c["x"] * c["w"][0]),
    ("each sequence", lambda lib, c: c["x"] + c["w"].unsqueeze(1)),
    ("padded", lambda lib, c: c["x"] + numbers(lib, 3, 4, 4)),
    ("scalar tensor", lambda lib, c: c["x"] * lib.tensor(3.0)),
    ("keepdim of own", lambda lib, c: c["x"] / (c["y"] ** 2).sum(-1, keepdim=True)),
    ("mean of sequence", lambda lib, c: c["x"] - c["x"].mean(1, keepdim=True)),
    ("comparison", lambda lib, c: c["x"] > c["y"]),
    ("where", lambda lib, c: lib.where(c["x"] > 0, c["x"], c["y"])),
    ("where number", lambda lib, c: lib.where(c["x"] > 0, c["x"], 0.5)),
    ("masked_fill", lambda lib, c: c["x"].masked_fill(c["y"] > 0, 2.0)),
    ("alpha", lambda lib, c: lib.add(c["x"], c["y"], alpha=3)),
    ("lerp", lambda lib, c: lib.lerp(c["x"], c["y"], 0.25)),
    ("float + int", lambda lib, c: c["x"] + (c["x"] > 0).int()),
    ("to", lambda lib, c: c["x"].to(lib.float64)),
    ("double", lambda lib, c: c["x"].double()),
    ("clone", lambda lib, c: c["x"].clone()),
    ("detach", lambda lib, c: c["x"].detach()),
    ("zeros_like", lambda lib, c: lib.zeros_like(c["x"])),
    ("full_like", lambda lib, c: lib.full_like(c["x"], 3, dtype=lib.int32)),
    ("frexp", lambda lib, c: lib.frexp(c["x"].detach())),
    ("sum", lambda lib, c: c["x"].sum()),
    ("sum ragged", lambda lib, c: c["x"].sum(1)),
    ("sum ragged keepdim", lambda lib, c: c["x"].sum(1, keepdim=True)),
    ("sum last", lambda lib, c: c["x"].sum(-1)),
    ("sum batch and ragged", lambda lib, c: c["x"].sum((0, 1))),
    ("sum dtype", lambda lib, c: c["x"].sum(1, dtype=lib.float64)),
    ("sum of ints", lambda lib, c: c["i"].int().sum(1)),
    ("sum transposed", lambda lib, c: c["x"].transpose(1, 2).sum(2)),
    ("sum of heads", lambda lib, c: c["q"].sum(1)),
    ("mean", lambda lib, c: c["x"].mean()),
    ("mean ragged", lambda lib, c: c["x"].mean(1)),
    ("mean last", lambda lib, c: c["x"].mean(-1, keepdim=True)),
    ("prod ragged", lambda lib, c: c["x"].prod(1)),
    ("amax ragged", lambda lib, c: c["x"].amax(1)),
    ("amin all", lambda lib, c: c["x"].amin()),
    ("max ragged", lambda lib, c: c["x"].max(1)),
    ("min last", lambda lib, c: c["x"].min(-1)),
    ("max all", lambda lib, c: c["x"].max()),
    ("argmax ragged", lambda lib, c: c["x"].argmax(1)),
    ("argmin last", lambda lib, c: c["x"].argmin(-1)),
    ("any ragged", lambda lib, c: (c["x"] > 0.9).any(1)),
    ("all", lambda lib, c: (c["x"] > -5).all()),
    ("maximum", lambda lib, c: lib.max(c["x"], c["y"])),
    ("softmax last", lambda lib, c: c["x"].softmax(-1)),
    ("softmax ragged", lambda lib, c: lib.softmax(c["x"], 1)),
    ("log_softmax", lambda lib, c: functional(lib).log_softmax(c["x"], dim=-1)),
    ("transpose", lambda lib, c: c["x"].transpose(1, 2)),
    ("permute", lambda lib, c: c["q"].permute(0, 2, 3, 1)),
    ("movedim", lambda lib, c: c["q"].movedim(1, -1)),
    ("contiguous", lambda lib, c: c["x"].transpose(1, 2).contiguous()),
    ("view", lambda lib, c: c["x"].view(3, -1, 2, 2)),
    ("view of own size", lambda lib, c: c["x"].view(3, c["x"].size(1), -1, 2)),
    ("reshape", lambda lib, c: c["x"].reshape(-1, -1, 1, 4)),
    ("unflatten", lambda lib, c: c["x"].unflatten(-1, [2, 2])),
    ("flatten", lambda lib, c: c["q"].transpose(1, 2).flatten(-2)),
    ("unsqueeze", lambda lib, c: c["x"].unsqueeze(1)),
    ("unsqueeze last", lambda lib, c: c["x"].unsqueeze(-1)),
    ("squeeze", lambda lib, c: c["x"].unsqueeze(-1).squeeze(-1)),
    ("expand", lambda lib, c: c["x"].unsqueeze(-1).expand(3, -1, 4, 2)),
    ("expand_as", lambda lib, c: c["x"].sum(-1, keepdim=True).expand_as(c["y"])),
    ("chunk", lambda lib, c: c["x"].chunk(3, -1)),
    ("chunk of batch", lambda lib, c: c["x"].chunk(2, 0)),
    ("split", lambda lib, c: c["x"].split([1, 3], -1)),
    ("select", lambda lib, c: c["x"].select(-1, 2)),
    ("narrow", lambda lib, c: c["x"].narrow(-1, 1, 2)),
    ("sequence", lambda lib, c: c["x"][1]),
    ("element", lambda lib, c: c["x"][-2, 1]),
    ("ellipsis", lambda lib, c: c["x"][..., 1:3]),
    ("unbind", lambda lib, c: c["x"].unbind()),
    ("values", lambda lib, c: c["x"].values()),
    ("cat", lambda lib, c: lib.cat([c["x"], c["y"]], -1)),
    ("stack", lambda lib, c: lib.stack([c["x"], c["y"]], 2)),
    ("masked_select", lambda lib, c: lib.masked_select(c["x"][..., 0], c["y"][..., 0] > 0)),
    ("linear", lambda lib, c: functional(lib).linear(c["x"], c["w"], c["w"][:, 0])),
    ("matmul", lambda lib, c: c["x"] @ c["w"].t()),
    ("matmul by sequence", lambda lib, c: lib.matmul(c["x"], numbers(lib, 3, 4, 2))),
    ("matmul of ragged", lambda lib, c: lib.matmul(c["x"].transpose(1, 2), c["y"])),
    ("bmm", lambda lib, c: lib.bmm(c["x"], numbers(lib, 3, 4, 2))),
    ("bmm of plain", lambda lib, c: lib.matmul(numbers(lib, 3, 5, 4), c["x"].transpose(1, 2))),
    ("layer_norm", lambda lib, c: functional(lib).layer_norm(c["x"], (4,), c["w"][0], c["w"][1])),
    ("rms_norm", lambda lib, c: functional(lib).rms_norm(c["x"], (4,))),
    ("dropout 0", lambda lib, c: functional(lib).dropout(c["x"], 0.0)),
    ("embedding", lambda lib, c: functional(lib).embedding(c["i"], c["w"])),
    ("one_hot", lambda lib, c: functional(lib).one_hot(c["i"], 3)),
    ("conv1d", lambda lib, c: functional(lib).conv1d(c["x"].unsqueeze(2), numbers(lib, 2, 1, 3))),
    ("attention", lambda lib, c: _attention(lib, c["q"], c["k"], c["k"])),
    ("attention scale", lambda lib, c: _attention(lib, c["q"], c["k"], c["k"], scale=0.5)),
    ("to_padded", lambda lib, c: lib.nested.to_padded_tensor(c["x"], -2.0)),
    ("to_padded cut", lambda lib, c: c["x"].to_padded_tensor(0.0, (3, 3, 4))),
    ("to_padded wide", lambda lib, c: c["x"].to_padded_tensor(0.0, (3, 6, 4))),
    ("from_padded", lambda lib, c: _from_padded(lib, c["x"])),
    ("kl_div", lambda lib, c: functional(lib).kl_div(c["x"], c["y"].exp())),
    ("index_put", lambda lib, c: c["x"].index_put(_places(lib), lib.tensor(5.0))),
    ("add_", lambda lib, c: (c["x"] * 1).add_(c["y"])),
    ("relu_", lambda lib, c: (c["x"] * 1).relu_()),
    ("fill_", lambda lib, c: (c["x"] * 1).fill_(2.0)),
    ("copy_", lambda lib, c: (c["x"] * 1).copy_(c["y"])),
    ("strided add", lambda lib, c: c["s"] + c["t"]),
    ("strided number", lambda lib, c: c["u"] * 2),
    ("strided transpose", lambda lib, c: c["s"].transpose(1, 2)),
    ("strided matmul", lambda lib, c: lib.matmul(c["s"], c["t"].transpose(1, 2))),
    ("strided bmm", lambda lib, c: lib.bmm(c["s"], numbers(lib, 2, 4, 3))),
    ("strided linear", lambda lib, c: functional(lib).linear(c["s"], c["w"], c["w"][:, 0])),
    ("strided softmax", lambda lib, c: c["s"].softmax(-1)),
    ("strided sum", lambda lib, c: c["s"].sum(-1, keepdim=True)),
    ("strided padded", lambda lib, c: c["u"].to_padded_tensor(7.0)),
    ("strided view", lambda lib, c: c["s"].view(2, -1, 2, 2)),
    ("strided unbind", lambda lib, c: c["u"].unbind()),
    ("strided layer_norm", lambda lib, c: _strided_norm(lib, c)),
    ("strided embedding", lambda lib, c: functional(lib).embedding(_strided_ids(lib), c["w"])),
    ("strided cat", lambda lib, c: lib.cat([c["s"].detach(), c["u"].detach()])),
    ("strided chunk", lambda lib, c: _strided_chunks(lib)),
    ("strided gelu", lambda lib, c: functional(lib).gelu(c["u"])),
    ("strided values", lambda lib, c: c["u"].values()),
    ("strided from padded", lambda lib, c: _strided_from_padded(lib)),
    ("strided from mask", lambda lib, c: _strided_from_mask(lib)),
    ("strided to jagged", lambda lib, c: _to_jagged(lib, c["s"])),
]


def _attention(lib, *args, **options):
    return functional(lib).scaled_dot_product_attention(*args, **options)


def _from_padded(lib, x):
    dummy = lib._nested_get_jagged_dummy(x)
    padded = x.to_padded_tensor(0.0) * 2
    return lib._nested_from_padded_tensor(padded, lib._nested_get_offsets(x), dummy, 1)


def _places(lib):
    return lib.tensor([1]), lib.tensor([0]), lib.tensor([2])


def _strided_norm(lib, c):
    return functional(lib).layer_norm(c["s"], (4,), c["w"][0], c["w"][1])


def _strided_ids(lib):
    return lib.nested.nested_tensor([lib.tensor([0, 1]), lib.tensor([2])])


def _strided_chunks(lib):
    return lib.nested.nested_tensor([numbers(lib, 2, 4), numbers(lib, 1, 4)]).chunk(2, -1)


def _strided_from_padded(lib):
    return lib._nested_from_padded(numbers(lib, 2, 3, 4), lib.tensor([[1, 2], [3, 4]]))


def _strided_from_mask(lib):
    mask = lib.tensor([[True, False, False], [True, True, False]])
    return lib._nested_tensor_from_mask(numbers(lib, 2, 3, 4), mask)


def _to_jagged(lib, s):
    return lib.nested.as_nested_tensor(list(s.unbind()), layout=lib.jagged)


# Label, the call of the library and the inputs, the class of the exception.
ERRORS = [
    ("other lengths", lambda lib, c: c["x"] + _other(lib), RuntimeError),
    ("plain of wrong shape", lambda lib, c: c["x"] + lib.ones(2, 1, 4), RuntimeError),
    ("plain of more dims", lambda lib, c: c["x"] + lib.ones(1, 3, 1, 4), NotImplementedError),
    ("sum of batch", lambda lib, c: c["x"].sum(0), RuntimeError),
    ("sum of ragged and last", lambda lib, c: c["x"].sum((1, 2)), RuntimeError),
    ("softmax of batch", lambda lib, c: c["x"].softmax(0), RuntimeError),
    ("transpose of batch", lambda lib, c: c["x"].transpose(0, 1), ValueError),
    ("view", lambda lib, c: c["x"].view(3, 7, 4), RuntimeError),
    ("flatten ragged", lambda lib, c: c["x"].flatten(1, 2), RuntimeError),
    ("unsqueeze batch", lambda lib, c: c["x"].unsqueeze(0), RuntimeError),
    ("select ragged", lambda lib, c: c["x"].select(1, 0), RuntimeError),
    ("slice of batch", lambda lib, c: c["x"][0:2], RuntimeError),
    ("sequence out of range", lambda lib, c: c["x"][3], IndexError),
    ("dim out of range", lambda lib, c: c["x"].size(3), IndexError),
    ("cat of batch", lambda lib, c: lib.cat([c["x"], c["y"]], 0), RuntimeError),
    ("two ragged results", lambda lib, c: c["x"] @ c["x"].transpose(1, 2), RuntimeError),
    ("bmm of 2 dims", lambda lib, c: lib.bmm(c["x"], lib.ones(4, 2)), ValueError),
    ("mask", lambda lib, c: _attention(lib, c["q"], c["k"], c["k"], lib.ones(1)), ValueError),
    ("plain key", lambda lib, c: _attention(lib, c["q"], *[lib.ones(3, 2, 4, 2)] * 2), ValueError),
    ("missing rule", lambda lib, c: c["x"].cumsum(1), NotImplementedError),
    ("missing std", lambda lib, c: c["x"].std(1), NotImplementedError),
    ("tolist", lambda lib, c: c["x"].tolist(), RuntimeError),
    ("bool", lambda lib, c: bool(c["x"]), RuntimeError),
    ("item", lambda lib, c: c["x"].item(), RuntimeError),
    ("out", lambda lib, c: lib.sin(c["x"].detach(), out=c["y"].detach()), ValueError),
    ("no list", lambda lib, c: lib.nested.nested_tensor(3), TypeError),
    ("no tensors", lambda lib, c: lib.nested.as_nested_tensor(["a"]), TypeError),
    ("empty", lambda lib, c: lib.nested.nested_tensor([], layout=lib.jagged), RuntimeError),
    ("dims differ", lambda lib, c: _made(lib, [(2,), (2, 3)]), RuntimeError),
    ("layout", lambda lib, c: lib.nested.nested_tensor([], layout=lib.sparse_coo), RuntimeError),
    (
        "no offsets",
        lambda lib, c: lib.nested.nested_tensor_from_jagged(lib.ones(3)),
        RuntimeError,
    ),
    (
        "narrow of dim 2",
        lambda lib, c: lib.nested.narrow(lib.ones(2, 3, 4), 2, 0, 1, layout=lib.jagged),
        RuntimeError,
    ),
    ("strided shape", lambda lib, c: c["s"].shape, RuntimeError),
    ("strided irregular", lambda lib, c: c["s"].size(1), RuntimeError),
    ("strided sizes", lambda lib, c: c["s"] + c["u"], RuntimeError),
    ("strided sum", lambda lib, c: c["s"].sum(1), RuntimeError),
    ("strided missing rule", lambda lib, c: c["s"].cumsum(1), NotImplementedError),
    ("strided out of range", lambda lib, c: c["s"][2], IndexError),
]


def _other(lib):
    return lib.nested.nested_tensor([numbers(lib, n, 4) for n in LENGTHS], layout=lib.jagged)


def _made(lib, sizes):
    return lib.nested.nested_tensor([lib.ones(*s) for s in sizes], layout=lib.jagged)

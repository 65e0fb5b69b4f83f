"""Nested tensors of 32 sequences, 8 to 132 rows of 64 numbers each."""

from bench.kernels.common import In, Table

LENGTHS = [8 + 4 * n for n in range(32)]
ROWS, WIDTH = sum(LENGTHS), 64


def jagged(m, x, *others):
    """One nested tensor of the rows, in the jagged layout."""
    return m.nested.nested_tensor(list(x.split(LENGTHS)), layout=m.jagged), *others


def heads(m, *rows):
    """Nested tensors (sequences, 4 heads, rows, 16), as attention takes them."""
    return [jagged(m, x)[0].unflatten(-1, [4, 16]).transpose(1, 2) for x in rows]


CASES = {
    "relu": (1, jagged, lambda m, t: t.relu()),
    "add": (1, jagged, lambda m, t: t + t),
    "linear": (1, jagged, lambda m, t, w: m.nn.functional.linear(t, w)),
    "softmax": (1, jagged, lambda m, t: t.softmax(-1)),
    "layer_norm": (1, jagged, lambda m, t: m.nn.functional.layer_norm(t, (WIDTH,))),
    "sum of rows": (1, jagged, lambda m, t: t.sum(1)),
    "to_padded_tensor": (1, jagged, lambda m, t: m.nested.to_padded_tensor(t, 0.0)),
    "nested_tensor": (
        1,
        lambda m, x: x.split(LENGTHS),
        lambda m, *parts: m.nested.nested_tensor(list(parts), layout=m.jagged),
    ),
    "attention": (3, heads, lambda m, *t: m.nn.functional.scaled_dot_product_attention(*t)),
}


def nested():
    table = Table("nested")
    for label, (count, prepare, function) in CASES.items():
        inputs = [In((ROWS, WIDTH))] * count + [In((WIDTH, WIDTH))] * (label == "linear")
        table.add(label, inputs, function, prepare=prepare)
    return table.cases

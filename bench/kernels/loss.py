"""Losses and their gradients."""

from bench.kernels.common import In, K, Table


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

"""Interpolation, and sampling at the points of a grid."""

from bench.kernels.common import In, Table


def resampling():
    table = Table("pooling")  # their place in the results of earlier commits
    for layout in ("", "channels_last"):
        inputs = [In((16, 64, 28, 28), layout=layout)]
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
    return table.cases

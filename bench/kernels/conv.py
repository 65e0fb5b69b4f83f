"""Convolutions."""

from bench.kernels.common import In, Table

CONVOLUTIONS = {
    "3x3 64": ((8, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}),
    "3x3 3 to 32": ((16, 3, 32, 32), (32, 3, 3, 3), {"padding": 1}),
    "3x3 stride 2": ((8, 64, 28, 28), (128, 64, 3, 3), {"padding": 1, "stride": 2}),
    "3x3 256, 8x8": ((8, 256, 8, 8), (256, 256, 3, 3), {"padding": 1}),
    "1x1 256 to 64": ((8, 256, 14, 14), (64, 256, 1, 1), {}),
    "1x1 stride 2": ((8, 64, 28, 28), (128, 64, 1, 1), {"stride": 2}),
    "7x7 stride 2": ((2, 3, 112, 112), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
    "depthwise 3x3": ((8, 128, 28, 28), (128, 1, 3, 3), {"padding": 1, "groups": 128}),
    "groups 4": ((8, 64, 28, 28), (64, 16, 3, 3), {"padding": 1, "groups": 4}),
    "dilated": ((4, 32, 28, 28), (32, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "5x5 batch 1": ((1, 32, 32, 32), (32, 32, 5, 5), {"padding": 2}),
}


def convolution():
    table = Table("convolution")
    for label, (image, weight, options) in CONVOLUTIONS.items():
        for layout in ("", "channels_last"):
            inputs = [In(image, layout=layout), In(weight, layout=layout, low=-0.2, high=0.2)]

            def apply(m, x, w, options=options):
                return m.nn.functional.conv2d(x, w, **options)

            note = "cl" if layout else ""
            rare = label in ("dilated", "groups 4", "5x5 batch 1", "1x1 stride 2")
            table.add(label, inputs, apply, note=note, full=rare and bool(layout))
            table.backward(label, inputs, apply, note=note, full=rare)
    bf16 = [In((8, 64, 28, 28), "bfloat16"), In((64, 64, 3, 3), "bfloat16", low=-0.2, high=0.2)]
    table.add("3x3 64 bf16", bf16, lambda m, x, w: m.nn.functional.conv2d(x, w, padding=1), note="")
    table.add("conv1d 64", [In((16, 64, 256)), In((64, 64, 3))],
              lambda m, x, w: m.nn.functional.conv1d(x, w, padding=1), note="")  # fmt: skip
    table.add("conv3d 16", [In((2, 16, 8, 28, 28)), In((16, 16, 3, 3, 3))],
              lambda m, x, w: m.nn.functional.conv3d(x, w, padding=1), note="")  # fmt: skip
    table.add("transposed 4x4", [In((8, 64, 14, 14)), In((64, 32, 4, 4))],
              lambda m, x, w: m.nn.functional.conv_transpose2d(x, w, stride=2, padding=1),
              note="")  # fmt: skip
    return table.cases

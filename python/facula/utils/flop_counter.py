"""How many multiplications and additions operators do: FlopCounterMode.

Counted are products, convolutions and attention, forward and backward; each multiplication with
its addition is two.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from facula import _C
from facula.utils._python_dispatch import TorchDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula", "count_flops"]


def _mm(a, b, *rest, **kwargs):
    return 2 * a[0] * a[1] * b[1]


def _addmm(bias, a, b, *rest, **kwargs):
    return _mm(a, b)


def _bmm(a, b, *rest, **kwargs):
    return 2 * a[0] * a[1] * a[2] * b[2]


def _baddbmm(bias, a, b, *rest, **kwargs):
    return _bmm(a, b)


def _conv_count(x, w, out, transposed):
    # Each element of the output (of the input, where transposed) meets a filter once.
    places = (x if transposed else out)[2:]
    return 2 * x[0] * prod(places) * prod(w)


def _convolution(
    x,
    w,
    bias=None,
    stride=(),
    padding=(),
    dilation=(),
    transposed=False,
    *rest,
    out_val=None,
    **kwargs,
):
    return _conv_count(x, w, out_val, transposed)


def _convolution_backward(
    grad,
    x,
    w,
    bias=None,
    stride=(),
    padding=(),
    dilation=(),
    transposed=False,
    output_padding=(),
    groups=1,
    output_mask=(True,) * 3,
    *rest,
    **kwargs,
):
    one = _conv_count(x, w, grad, transposed)
    return one * (bool(output_mask[0]) + bool(output_mask[1]))


def _attention(q, k, v, *rest, **kwargs):
    batch = prod(q[:-2])
    return 2 * batch * q[-2] * k[-2] * (q[-1] + v[-1])


# Name of an operator -> the count from the shapes of its tensors.
_FORMULAS = {
    "mm": _mm,
    "addmm": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "scaled_dot_product_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_attention_math": _attention,
}


def _shape_of(value):
    if isinstance(value, _C.Tensor):
        return tuple(value.shape)
    if isinstance(value, (list, tuple)):
        return type(value)(_shape_of(x) for x in value) if type(value) in (list, tuple) else value
    return value


def _packet_name(func):
    return func.name().split("::")[-1].split(".")[0]


def count_flops(func, args, kwargs, result):
    """The count of one call; 0 for operators without a formula.

    Args:
        func (OpOverload): the operator.
        args, kwargs, result: of the call.
    """
    formula = _FORMULAS.get(_packet_name(func))
    if formula is None:
        return 0
    named = {name: _shape_of(value) for name, value in (kwargs or {}).items()}
    return formula(*map(_shape_of, args), **named, out_val=_shape_of(result))


def register_flop_formula(targets, get_raw=False):
    """A decorator: a function gives the count of an operator, or of several in a list.

    Args:
        targets: operators of `facula.ops`.
        get_raw (bool): the function takes the call's own arguments instead of shapes.

    The function takes what the operator does, with shapes for tensors, and `out_shape`.
    """

    def register(function):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            name = str(target).split("(")[0].split(".")[1 if "." in str(target) else 0]

            def formula(*args, out_val=None, **kwargs):
                return function(*args, out_shape=out_val, **kwargs)

            _FORMULAS[name] = formula
        return function

    if get_raw:
        raise NotImplementedError("register_flop_formula(): get_raw=True is missing")
    return register


def _shortened(number):
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= size:
            return f"{number / size:.3f}{unit}"
    return str(number)


class FlopCounterMode(TorchDispatchMode):
    """Context manager that counts what operators do, for each module and as a whole.

    Args:
        mods: ignored, as modules are found by themselves.
        depth (int): how deep the table goes into modules.
        display (bool): print the table on the way out.
        custom_mapping (dict): further formulas, by operator.

    Example:
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = facula.ones(2, 3) @ facula.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self._parents, self._handles = ["Global"], []
        for target, function in (custom_mapping or {}).items():
            register_flop_formula(target)(function)

    def __enter__(self):
        from facula.nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self.flop_counts.clear()
        self._names = {}
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _enter_module(self, module, inputs):
        if id(module) not in self._names:
            self._names[id(module)] = type(module).__name__
            for name, child in module.named_children():
                self._names[id(child)] = name
        name, outer = self._names[id(module)], self._parents[-1]
        self._parents.append(name if outer == "Global" else f"{outer}.{name}")

    def _leave_module(self, module, inputs, output):
        if len(self._parents) > 1:
            self._parents.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        count = count_flops(func, args, kwargs, result)
        if count:
            packet = f"aten.{_packet_name(func)}"
            for parent in self._parents:
                self.flop_counts[parent][packet] += count
        return result

    def get_total_flops(self):
        """The count of all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """The counts: module -> operator -> count."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """The counts as a table (str): modules, and operators in them."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops() or 1
        rows = [("Module", "FLOP", "% Total")]
        for module, counts in sorted(
            self.flop_counts.items(), key=lambda pair: pair[0] != "Global"
        ):
            level = module.count(".") + (module != "Global")
            if level > depth:
                continue
            own = sum(counts.values())
            rows.append((" " * level + module, _shortened(own), f"{100 * own / total:.2f}%"))
            for name, count in counts.items():
                share = f"{100 * count / total:.2f}%"
                rows.append((" " * level + f" - {name}", _shortened(count), share))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows
        )

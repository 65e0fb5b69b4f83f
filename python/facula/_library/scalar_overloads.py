"""Overloads of `aten` that take a number where facula's operator takes a tensor or a number.

`gt.Tensor` is called with either, but programs as graphs name the overload: `aten.gt.Scalar(x, 0)`.
An operator's overloads of this kind are defined when the operator is first asked for by name.
"""

from __future__ import annotations

import functools

import facula
from facula import _C
from facula.library import Library

# Operator -> (overload, its arguments after the tensor's and number's places are known, results).
# T is a tensor, S a number, W the tensor that is written.
_COMPARISONS = "eq ne lt le gt ge"
_ALONE = {"Scalar": "T self, S other"}
_ALONE_IN_PLACE = {"Scalar": "W self, S other"}
_BITWISE = {"Scalar": "T self, S other", "Scalar_Tensor": "S self, T other"}
_SHIFTS = {"Tensor_Scalar": "T self, S other", "Scalar_Tensor": "S self, T other"}
_SHIFTS_IN_PLACE = {"Tensor_Scalar": "W self, S other"}
_POWERS = {"Tensor_Scalar": "T self, S exponent", "Scalar": "S self, T exponent"}
_POWERS_IN_PLACE = {"Scalar": "W self, S exponent", "Tensor": "W self, T exponent"}
_POLYNOMIALS = {"n_scalar": "T x, S n", "x_scalar": "S x, T n"}
_SPECIAL = {"other_scalar": "T self, S other", "self_scalar": "S self, T other"}

_OVERLOADS = {
    **dict.fromkeys(_COMPARISONS.split(), _ALONE),
    **dict.fromkeys([f"{name}_" for name in _COMPARISONS.split()], _ALONE_IN_PLACE),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _BITWISE),
    **dict.fromkeys(("bitwise_and_", "bitwise_or_", "bitwise_xor_"), _ALONE_IN_PLACE),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _SHIFTS),
    **dict.fromkeys(("bitwise_left_shift_", "bitwise_right_shift_"), _SHIFTS_IN_PLACE),
    **dict.fromkeys(("pow", "float_power"), _POWERS),
    **dict.fromkeys(("pow_", "float_power_"), _POWERS_IN_PLACE),
    **dict.fromkeys(("fmod", "copysign", "floor_divide"), _ALONE),
    **dict.fromkeys(("fmod_", "copysign_", "floor_divide_"), _ALONE_IN_PLACE),
    **dict.fromkeys(("remainder_", "mul_", "div_"), _ALONE_IN_PLACE),
    **dict.fromkeys(("special_xlog1py", "special_zeta"), _SPECIAL),
    "remainder": _BITWISE,
    "rsub": {"Scalar": "T self, S other, S alpha=1"},
    "add_": {"Scalar": "W self, S other, S alpha=1"},
    "sub_": {"Scalar": "W self, S other, S alpha=1"},
    "xlogy": {"Scalar_Other": "T self, S other", "Scalar_Self": "S self, T other"},
    "xlogy_": {"Scalar_Other": "W self, S other"},
    "where": {
        "ScalarOther": "T condition, T self, S other",
        "ScalarSelf": "T condition, S self, T other",
        "Scalar": "T condition, S self, S other",
    },
}
_KINDS = {"T": "Tensor", "S": "Scalar", "W": "Tensor(a!)"}
_known = {}  # the names of operators that were asked for -> whether they have overloads here
_library = None


def _has_overloads(name):
    return name in _OVERLOADS or "_polynomial_" in name


def _schema(name, overload, arguments):
    parts = [argument.split(" ") for argument in arguments.split(", ")]
    text = ", ".join(f"{_KINDS[kind]} {rest}" for kind, rest in parts)
    result = "Tensor(a!)" if parts[0][0] == "W" else "Tensor"
    return f"{name}.{overload}({text}) -> {result}"


def _of_tensors(packet):
    """The overload of a packet that takes tensors in all places."""
    names = [name for name in packet.overloads() if "out" not in name.lower()]
    return getattr(packet, min(names, key=lambda name: "Tensor" not in name and name != "self"))


def define_scalar_overloads(name):
    """Define what `aten.NAME` lacks of the overloads for numbers, once.

    Args:
        name (str): of the operator, "gt".
    """
    global _library
    if name in _known:
        return
    _known[name] = _has_overloads(name)
    if not _known[name]:
        return
    _library = _library or Library("aten", "FRAGMENT")
    packet = _C._packet("aten", name)
    have, base = set(packet.overloads()), _of_tensors(packet)
    for overload, arguments in _OVERLOADS.get(name, _POLYNOMIALS).items():
        if overload not in have:
            defined = _library.define(_schema(name, overload, arguments))
            kernel = _where if name == "where" else functools.partial(_with_number, base)
            _library.impl(defined, kernel, "CompositeImplicitAutograd")


def _with_number(base, self, other, alpha=1):
    return base(self, other) if alpha == 1 else base(self, other, alpha=alpha)


def _where(condition, self, other):
    """`where` with numbers, which become tensors of the dtype that both choices have together."""
    tensors = [v for v in (self, other) if isinstance(v, facula.Tensor)]
    if tensors:
        dtype = facula.result_type(self, other)
        device = tensors[0].device
    else:
        dtype, device = facula.result_type(facula.tensor(self), other), condition.device
    both = [
        v if isinstance(v, facula.Tensor) else _scalar_tensor(v, dtype, device)
        for v in (self, other)
    ]
    return facula.ops.aten.where.self(condition, *(v.to(dtype) for v in both))


def _scalar_tensor(number, dtype, device):
    return facula.ops.aten.scalar_tensor.default(
        number, dtype=dtype, layout=facula.strided, device=device
    )

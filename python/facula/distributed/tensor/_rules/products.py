"""Rules by equations: products, and whatever else sums over dimensions that its arguments share."""

from __future__ import annotations

from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard


def by_equation(call, equation, linear=()):
    """The alternatives that an equation of dimensions gives.

    Each lower-case letter may be cut, in all tensors that have it; a result without it is then a
    sum over ranks. Dimensions under capital letters or `_` are never cut.

    Args:
        call (Call): what is called.
        equation (str): dimensions of the tensor arguments and of the results, "mk,kn->mn".
        linear (sequence of sets): arguments that may be terms, together, if all others are whole.

    Returns:
        list of Alternative
    """
    before, _, after = equation.partition("->")
    before, after = before.split(","), after.split(",")
    found = [everywhere(call)]
    for letter in dict.fromkeys("".join(before)):
        if letter.islower():
            outputs = tuple(_cut(word, letter, Partial()) for word in after)
            found.append(Alternative(outputs, tuple(_cut(w, letter, Replicate()) for w in before)))
    for together in linear:
        for kind in Partial.LINEAR_REDUCE_OPS:
            inputs = tuple(
                Partial(kind) if i in together else Replicate() for i in range(len(before))
            )
            found.append(Alternative((Partial(kind),) * len(after), inputs))
    return found


def _cut(word, letter, otherwise):
    return Shard(word.index(letter)) if letter in word else otherwise


def equation_of_broadcast(shape, letters, sizes):
    """The letters of a tensor that broadcasts against dimensions: `_` where it has size 1."""
    own = letters[len(letters) - len(shape) :]
    whole = sizes[len(sizes) - len(shape) :]
    return "".join(
        letter if size == n else "_" for letter, size, n in zip(own, shape, whole, strict=True)
    )


def _product(equation):
    def rule(call, mesh_dim):
        return by_equation(call, equation, [{0}, {1}])

    return rule


def _product_and_sum(equation):
    def rule(call, mesh_dim):
        result = equation.partition("->")[2]
        added = equation_of_broadcast(call.first.shape, result, call.outputs[0].shape)
        found = by_equation(call, f"{added},{equation}")
        terms = [
            Alternative(
                (Partial(kind),),
                tuple(Partial(kind) if i in (0, p) else Replicate() for i in range(3)),
            )
            for p in (1, 2)
            for kind in Partial.LINEAR_REDUCE_OPS
        ]
        # What is added to a sum over ranks is a term of it itself.
        found = [
            Alternative(a.outputs, (Partial(), *a.inputs[1:])) if a.outputs[0].is_partial() else a
            for a in found
        ]
        return found + terms

    return rule


rules = {
    "mm": _product("mk,kn->mn"),
    "bmm": _product("bmk,bkn->bmn"),
    "mv": _product("mk,k->m"),
    "dot": _product("k,k->"),
    "vdot": _product("k,k->"),
    "ger": _product("m,n->mn"),
    "addmm": _product_and_sum("mk,kn->mn"),
    "addmv": _product_and_sum("mk,k->m"),
    "baddbmm": _product_and_sum("bmk,bkn->bmn"),
}

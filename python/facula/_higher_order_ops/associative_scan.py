"""associative_scan: what an associative function gives of all slices up to each."""

from __future__ import annotations

import facula
from facula._higher_order_ops._slices import length_of, tensors_of
from facula.utils._pytree import tree_flatten, tree_unflatten


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """What an associative function gives of all slices up to each.

    Pairs of slices are combined at once, so that the function is called log2(n) times on many
    slices (Blelloch, "Prefix sums and their applications"). In graphs stand its operators.

    Args:
        combine_fn (callable): of two nests like `xs`; gives one. With the mode "generic" it is
            called on single slices, mapped over them; with "pointwise" on many slices at once.
        xs (nest of Tensors): the values.
        dim (int): the dimension.
        reverse (bool): begin with the last slice.
        combine_mode (str): "pointwise" or "generic".

    Returns:
        nest of Tensors with the shapes of `xs`.

    Raises:
        RuntimeError, ValueError: an argument of another kind.

    Example:
        >>> from facula._higher_order_ops import associative_scan
        >>> associative_scan(lambda a, b: a + b, facula.arange(4.0), 0)
        tensor([0., 1., 3., 6.])
    """
    if not callable(combine_fn):
        raise ValueError(
            f"associative_scan(): expected combine_fn to be callable; got {combine_fn!r}"
        )
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            "associative_scan(): expected combine_mode 'pointwise' or 'generic'; got "
            f"{combine_mode!r}"
        )
    leaves, spec = tensors_of("associative_scan", "xs", xs)
    length_of("associative_scan", leaves, dim)
    leaves = [t.movedim(dim, 0) for t in leaves]
    leaves = [t.flip(0) for t in leaves] if reverse else leaves

    def combine(a, b):
        result = combine_fn(tree_unflatten(list(a), spec), tree_unflatten(list(b), spec))
        found, found_spec = tree_flatten(result)
        if found_spec != spec:
            raise RuntimeError(
                f"associative_scan(): expected combine_fn to give {spec}; got {found_spec}"
            )
        return found

    def combine_many(a, b):
        if combine_mode == "pointwise":
            return combine(a, b)
        each = facula.vmap(lambda a, b: combine(a, b))
        return each(list(a), list(b))

    scanned = _prefixes(combine_many, leaves)
    scanned = [t.flip(0) for t in scanned] if reverse else scanned
    return tree_unflatten([t.movedim(0, dim) for t in scanned], spec)


def _prefixes(combine, leaves):
    """The prefixes along dimension 0: those of pairs, and between them one step more."""
    count = int(leaves[0].shape[0])  # how many calls there are depends on it
    if count < 2:
        return leaves
    pairs = combine([t[:-1:2] for t in leaves], [t[1::2] for t in leaves])
    odd = _prefixes(combine, pairs)
    before = [t[:-1] for t in odd] if count % 2 == 0 else odd
    even = [t[:1] for t in leaves]
    if count > 2:
        further = combine(before, [t[2::2] for t in leaves])
        even = [facula.cat([first, rest]) for first, rest in zip(even, further, strict=True)]
    return [_interleaved(a, b, count) for a, b in zip(even, odd, strict=True)]


def _interleaved(even, odd, count):
    """Rows of two tensors in turn."""
    last = even[-1:] if count % 2 else None
    paired = facula.stack([even[: len(odd)], odd], 1).flatten(0, 1)
    return paired if last is None else facula.cat([paired, last])

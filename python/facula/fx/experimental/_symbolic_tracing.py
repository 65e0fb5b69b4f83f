"""make_fx with symbolic sizes: a trace with stand-ins, checked against one of the sample.

Sizes of arguments above 1 are symbols, equal ones the same. A symbol whose number the function asks
for becomes that number, and the function is traced again.
"""

from __future__ import annotations

import hashlib

import facula
from facula import _C
from facula._symbolic import SymBool, SymInt
from facula.fx.experimental._proxies import PythonKeyTracer
from facula.fx.experimental._sizes import Fixed, SizeNode, Sizes, Undecided
from facula.fx.experimental._unbacked import DataDependent, SampleNumbers
from facula.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from facula.utils._pytree import tree_flatten, tree_unflatten


class SymbolicTracer(PythonKeyTracer):
    """Writes symbolic sizes as nodes, when they are first used.

    Args:
        sizes (Sizes | None): the symbols; None for a trace without.
    """

    def __init__(self, sizes=None):
        super().__init__()
        self.sizes = self.numbers = sizes
        self.count, self.limit = 0, None

    def unwrap_proxy(self, e):
        """The proxy of a tensor or of a symbolic size; what else is given, as it is."""
        if self.sizes is None:
            return super().unwrap_proxy(e)
        if isinstance(e, SymInt):
            return self.sizes.argument(e.node.expr)
        if isinstance(e, SymBool):
            return self.sizes.answer(e.node.expr)
        return super().unwrap_proxy(self.sizes.replaced(e))

    def create_node(self, *args, **kwargs):
        """Add a node.

        Raises:
            Undecided: there are more than a trace of the sample has use for.
        """
        self.count += 1
        if self.limit is not None and self.count > self.limit:
            raise Undecided("the program of the sample is shorter")
        return super().create_node(*args, **kwargs)


class SymbolPlan:
    """The sizes of a call's arguments, and which symbol each gets.

    Args:
        leaves (list): of the arguments.
    """

    def __init__(self, leaves):
        self.leaves, self.places = leaves, []  # (leaf, dim or None, size, how PyTorch calls it)
        numbered = 0
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, facula.Tensor) and leaf.layout is facula.strided:
                for dim, size in enumerate(leaf.shape):
                    self.places.append((i, dim, size, f"input{numbered}.size()[{dim}]"))
            elif type(leaf) is int:
                self.places.append((i, None, leaf, f"input{numbered}"))
            else:
                continue
            numbered += 1

    def symbols(self, fixed):
        """The symbols of a try.

        Args:
            fixed (set[int]): the sizes that are numbers.

        Returns:
            tuple: Sizes, and the expressions by (leaf, dim).
        """
        sizes, expressions, known = Sizes(), {}, {}
        for leaf, dim, size, source in self.places:
            if size < 2 or size in fixed:
                continue
            if size not in known:
                name = _symbol_name(source, sizes.samples)
                known[size] = sizes.add(name, size)
                sizes.places[name] = leaf, dim
            expressions[leaf, dim] = known[size]
        return sizes, expressions


def _symbol_name(source, taken):
    number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
    while f"s{number}" in taken:
        number += 1
    return f"s{number}"


def stand_ins(leaves, sizes, expressions):
    """The arguments with symbolic sizes: fake tensors, and SymInts for ints.

    Args:
        leaves (list): the arguments.
        sizes (Sizes), expressions (dict): as `SymbolPlan.symbols` gives them.
    """
    known, made = {}, []
    for i, leaf in enumerate(leaves):
        if id(leaf) not in known:
            known[id(leaf)] = _stand_in(i, leaf, sizes, expressions)
        made.append(known[id(leaf)])
    return made


def _stand_in(i, leaf, sizes, expressions):
    if (i, None) in expressions:
        return SymInt(SizeNode(sizes, expressions[i, None]))
    if not isinstance(leaf, facula.Tensor) or _C._is_fake(leaf):
        return leaf
    shape = [
        sizes.stand_in_of(expressions[i, dim]) if (i, dim) in expressions else size
        for dim, size in enumerate(leaf.shape)
    ]
    if shape == list(leaf.shape):
        return _C._make_fake(leaf)
    order = sorted(range(leaf.dim()), key=lambda d: (leaf.stride(d), -d))
    strides, step = [0] * leaf.dim(), 1
    for dim in order:
        if leaf.stride(dim):
            strides[dim], step = step, step * shape[dim]
    with _C._FakeMode(True):
        fake = facula.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)
    return fake.requires_grad_() if leaf.requires_grad else fake


def numbers_of(sizes):
    """What stands for numbers from data in the trace that checks one with these symbols.

    Raises:
        Undecided: nothing fits what the program says of them.
    """
    values = sizes.unbacked.give_samples(sizes.samples)
    if values is None:
        raise Undecided(f"no numbers are found for {list(sizes.unbacked.ranges)} that pass")
    return SampleNumbers(values)


def trace_with_symbols(traced, args):
    """The graph of a function for sizes like those of a call.

    Args:
        traced (callable): `traced(args, sizes, limit, numbers)` runs the function and gives a
            GraphModule; `sizes` is None for the sample's own, and `numbers` is what then stands for
            numbers from data.
        args (tuple): nests of the arguments.

    Returns:
        GraphModule: with numbers for sizes where no symbols would give the sample's operators.
    """
    from facula.export._trace import finish_symbols, verify_modules

    leaves, spec = tree_flatten(tuple(args))
    plan, fixed = SymbolPlan(leaves), set()
    try:
        of_sample = traced(args, None, None)
        limit = 4 * len(of_sample.graph.nodes) + 100
    except DataDependent:
        of_sample = limit = None
    while True:
        sizes, expressions = plan.symbols(fixed)
        if of_sample is not None and not sizes.samples:
            return of_sample
        sizes.writes_checks = False
        given = tree_unflatten(stand_ins(leaves, sizes, expressions), spec)
        try:
            module = traced(given, sizes, limit)
            sample = of_sample or traced(args, None, None, numbers_of(sizes))
            verify_modules(module, sizes, sample)
        except (DataDependent, GuardOnDataDependentSymNode):
            raise
        except Fixed as error:
            fixed |= {sizes.samples[name] for name in error.symbols}
            continue
        except (Undecided, RuntimeError, ValueError, IndexError):
            if of_sample is None and not expressions:
                raise
            if of_sample is not None:
                return of_sample
            fixed |= {size for _, _, size, _ in plan.places}
            continue
        pinned = {s for c in sizes.conditions if c.op == "==" for s in c.symbols()}
        if pinned:
            fixed |= {sizes.samples[name] for name in pinned}
            continue
        finish_symbols(module.graph, sizes)
        module.recompile()
        module.shape_env = sizes
        return module

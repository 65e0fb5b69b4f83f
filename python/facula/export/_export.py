"""export: runs a module once and makes an ExportedProgram of what it calls."""

from __future__ import annotations

import dataclasses
import inspect

import facula
from facula.export import _names, _trace
from facula.export.dynamic_shapes import Plan
from facula.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from facula.fx._pytree import register_pytree_flatten_spec
from facula.fx.experimental._sizes import Fixed, Undecided
from facula.fx.experimental._symbolic_tracing import numbers_of
from facula.fx.experimental._unbacked import DataDependent
from facula.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from facula.utils import _pytree as pytree


def _user_error(message):
    from facula._dynamo.exc import UserError

    return UserError(message)


def export(
    mod,
    args,
    kwargs=None,
    *,
    dynamic_shapes=None,
    strict=False,
    preserve_module_call_signature=(),
    prefer_deferred_runtime_asserts_over_guards=False,
):
    """A module's program for arguments like these.

    `forward` runs once, on tensors without data; every operator that it calls becomes a node.
    In-place changes stay in the graph; parameters, buffers and constants are inputs of it.

    Args:
        mod (Module): the program.
        args (tuple): what it is called with.
        kwargs (dict | None): by name.
        dynamic_shapes (dict | tuple | None): the dimensions whose sizes may differ.
        strict (bool): makes no difference.
        preserve_module_call_signature (tuple[str]): modules that `unflatten` calls with the
            arguments that they had.
        prefer_deferred_runtime_asserts_over_guards (bool): makes no difference.

    Returns:
        ExportedProgram

    Raises:
        ValueError: `mod` is no Module; `forward` gives the module other tensors; a name is no
            module's.
        facula._dynamo.exc.UserError: `args` is no tuple; the sizes are not what was asked for.
        RuntimeError: Python branches on a value that the tensors' data decides.

    Example:
        >>> program = facula.export.export(facula.nn.Linear(2, 1), (facula.ones(3, 2),))
        >>> [str(node.target) for node in program.graph.nodes]
        ['p_weight', 'p_bias', 'input', 'aten.linear.default', 'output']
    """
    if not isinstance(mod, facula.nn.Module):
        raise ValueError(f"export(): expected a Module; got {type(mod).__name__}")
    if isinstance(mod, facula.jit.ScriptModule):
        raise ValueError("export(): expected a Module in Python; got a ScriptModule")
    if not isinstance(args, tuple):
        raise _user_error(f"export(): expected args as a tuple; got {type(args).__name__}")
    kept = tuple(preserve_module_call_signature)
    _check_kept(mod, kept)
    kwargs = dict(kwargs or {})
    arguments = _bound(mod, args, kwargs)
    names = _names.of_arguments(arguments)
    if dynamic_shapes is None:
        try:
            traced = _trace.trace(mod, args, kwargs, names, kept=kept)
            return _program(mod, args, kwargs, arguments, traced)
        except DataDependent:
            dynamic_shapes = {}
    if hasattr(dynamic_shapes, "dynamic_shapes"):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    return _with_dynamic_shapes(mod, args, kwargs, arguments, names, dynamic_shapes, kept)


def _check_kept(mod, kept):
    modules = {name for name, _ in mod.named_modules()}
    unknown = [name for name in kept if name not in modules or not name]
    if unknown:
        raise ValueError(
            "export(): expected names of submodules in preserve_module_call_signature; got "
            f"{unknown}"
        )


def _with_dynamic_shapes(mod, args, kwargs, arguments, names, dynamic_shapes, kept):
    """Trace with symbols, and again with fewer as long as the program fixes some."""
    plan = Plan(arguments, dynamic_shapes, names)
    fixed, merged, failure = set(), False, None
    # It verifies, and bounds loops over what stands for a size.
    try:
        of_sample = _trace.trace(mod, args, kwargs, names)
        limit = 4 * len(of_sample.graph_module.graph.nodes) + 100
    except DataDependent:
        of_sample = limit = None
    while True:
        sizes, expressions = plan.symbols(fixed, merged)
        try:
            traced = _trace.trace(mod, args, kwargs, names, sizes, expressions, limit, kept=kept)
            if of_sample is None:
                numbers = numbers_of(sizes)
                sample = _trace.trace(mod, args, kwargs, names, numbers=numbers)
                _trace.verify(traced, sizes, sample)
            elif sizes.samples:
                _trace.verify(traced, sizes, of_sample)
        except (DataDependent, GuardOnDataDependentSymNode):
            raise
        except Fixed as error:
            fixed |= plan.places_of(error.symbols)
            continue
        except (Undecided, RuntimeError, ValueError, IndexError) as error:
            if not expressions:
                raise failure or error from None
            failure = failure or (None if isinstance(error, Undecided) else error)
            # Sizes that must be equal are told apart by nothing but this failure.
            if merged:
                fixed |= set(range(len(plan.places)))
            merged = True
            continue
        pinned = {s for c in sizes.conditions if c.op == "==" for s in c.symbols()}
        if not pinned:
            break
        fixed |= plan.places_of(pinned)
    plan.check_fixed(fixed)
    program = _program(mod, args, kwargs, arguments, traced)
    if sizes.samples:
        program._range_constraints = plan.ranges(sizes)
        program._sizes, program._expressions = sizes, expressions
    return program


def export_for_training(mod, args, kwargs=None, **options):
    """The same as `export`, by its former name."""
    return export(mod, args, kwargs, **options)


def draft_export(mod, args, kwargs=None, **options):
    """The same as `export`: there are no errors that it could put off.

    Args:
        mod, args, kwargs, options: as of `export`.
    """
    return export(mod, args, kwargs, **options)


def _bound(mod, args, kwargs):
    """The arguments by parameter, in the order of the graph's inputs.

    Raises:
        TypeError: forward() does not take them.
    """
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    parameters = bound.signature.parameters
    by_name = {}
    for name, value in bound.arguments.items():
        kind = parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            by_name.update({f"{name}_{i}": one for i, one in enumerate(value)})
        elif kind is not inspect.Parameter.VAR_KEYWORD and name not in kwargs:
            by_name[name] = value
    return by_name | kwargs


def _program(mod, args, kwargs, arguments, traced):
    signature = ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=pytree.tree_structure((args, kwargs)),
        out_spec=traced.out_spec,
        forward_arg_names=list(arguments),
    )
    entries = [ModuleCallEntry("", signature)]
    for fqn, _ in mod.named_modules():
        if not fqn:
            continue
        entries.append(ModuleCallEntry(fqn, _kept_signature(traced, fqn)))
    further = (name for name in traced.kept if "@" in name)
    entries += [ModuleCallEntry(name, _kept_signature(traced, name)) for name in further]
    module = traced.graph_module
    return ExportedProgram(
        module,
        module.graph,
        traced.signature,
        _state_of(traced.signature, mod),
        {},
        entries,
        (args, kwargs),
        traced.constants,
    )


def _kept_signature(traced, name):
    found = traced.kept.get(name)
    return None if found is None else ModuleCallSignature(*found)


def _state_of(signature, mod):
    """Parameters, then the buffers that files keep."""
    passing = set(signature.non_persistent_buffers)
    state = {name: mod.get_parameter(name) for name in signature.parameters}
    kept = (name for name in signature.buffers if name not in passing)
    return state | {name: mod.get_buffer(name) for name in kept}


def register_dataclass(cls, *, serialized_type_name=None):
    """Let values of a dataclass be arguments and results of exported modules.

    Args:
        cls (type): a dataclass.
        serialized_type_name (str | None): its name in files.

    Raises:
        ValueError: it is no dataclass.
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"register_dataclass(): expected a dataclass; got {cls!r}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
    register_pytree_flatten_spec(
        cls, lambda value, spec: [getattr(value, name) for name in spec.context[0]]
    )

"""Types of values, from the signatures of what gives them."""

from __future__ import annotations

import inspect

import facula
from facula.fx.interpreter import Transformer
from facula.fx.operator_schemas import get_signature_for_torch_op

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Gives steps types: those that signatures of functions and modules say they return.

    Args:
        module (GraphModule): the graph.
        annotate_functionals (bool): whether functions are looked at.
        annotate_modules (bool): whether modules are.
        annotate_get_attrs (bool): whether parameters and other attributes are.

    Example:
        >>> gm = facula.fx.symbolic_trace(facula.nn.Sequential(facula.nn.Linear(2, 2)))
        >>> typed = AnnotateTypesWithSchema(gm).transform()
        >>> [node.type for node in typed.graph.nodes if node.op == "call_module"]
        [<class 'facula.Tensor'>]
    """

    def __init__(
        self, module, annotate_functionals=True, annotate_modules=True, annotate_get_attrs=True
    ):
        super().__init__(module)
        self.annotate_functionals, self.annotate_modules = annotate_functionals, annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target, args, kwargs):
        """The call of a function, with its type."""
        made = super().call_function(target, args, kwargs)
        place = getattr(target, "__module__", None)
        if self.annotate_functionals and place == f"{facula.__name__}.nn.functional":
            # Each gives one tensor, or a pair where it is asked for indices.
            if not kwargs.get("return_indices", False):
                self._give(made, _returned(target) or facula.Tensor)
        elif self.annotate_functionals:
            signatures = get_signature_for_torch_op(target) or ()
            if len(signatures) == 1:
                self._give(made, signatures[0].return_annotation)
        return made

    def call_module(self, target, args, kwargs):
        """The call of a module, with the type that its forward says it returns."""
        made = super().call_module(target, args, kwargs)
        if self.annotate_modules:
            module = self.module.get_submodule(target)
            if getattr(facula.nn, type(module).__name__, None) is type(module):
                self._give(made, _returned(type(module).forward))
        return made

    def get_attr(self, target, args, kwargs):
        """The reading of an attribute, with its class."""
        made = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            value = self.fetch_attr(target)
            kind = facula.Tensor if isinstance(value, facula.Tensor) else type(value)
            self._give(made, kind)
        return made

    @staticmethod
    def _give(proxy, kind):
        if kind is not None and proxy.node.type is None:
            proxy.node.type = kind


def _returned(function):
    from facula.fx._symbolic_trace import _annotation

    return _annotation(inspect.unwrap(function), "return")

"""What modules have for lowering, written onto the steps that call them."""

from __future__ import annotations

from facula import nn
from facula.fx.graph_module import GraphModule

__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
    "module_fetch_book",
]


def default_matching(name, target_version):
    """The name of an attribute: the same in all versions."""
    return name


# By class: the version of its state, the names of attributes that are fetched, and how they map.
module_fetch_book = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1,
        [
            "weight",
            "bias",
            "kernel_size",
            "stride",
            "padding",
            "dilation",
            "groups",
            "padding_mode",
        ],
        default_matching,
    ),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod):
    """The attributes of a module that a back end needs, with its class as "name".

    Args:
        mod (Module): of a class in `module_fetch_book`.

    Raises:
        RuntimeError: of another class, or its state has a newer version.
    """
    if type(mod) not in module_fetch_book:
        known = ", ".join(kind.__name__ for kind in module_fetch_book)
        raise RuntimeError(
            f"extract_attrs_for_lowering(): mod must be one of {known}; got {type(mod).__name__}"
        )
    version, names, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"extract_attrs_for_lowering(): the version of {type(mod).__name__} must be at most "
            f"{version}; got {mod._version}"
        )
    kind = type(mod)
    found = {"name": f"{kind.__module__}.{kind.__qualname__}"}
    found.update((name, getattr(mod, matching(name, mod._version))) for name in names)
    return found


def lift_lowering_attrs_to_nodes(fx_module):
    """Give steps that call modules `attrs_for_lowering`, in modules inside as well.

    Args:
        fx_module (GraphModule): its nodes are changed.
    """
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        if isinstance(modules[node.target], GraphModule):
            lift_lowering_attrs_to_nodes(modules[node.target])
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])

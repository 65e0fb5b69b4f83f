"""What all sparsifiers share: groups of tensors, masks as parametrizations, steps, squashing."""

from __future__ import annotations

import abc
from collections import defaultdict
from copy import deepcopy

import facula
from facula import nn
from facula.nn.utils import parametrize

from .utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)

__all__ = ["BaseSparsifier"]

# A group's entries that point into the model: another process finds them by `tensor_fqn`.
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]
SUPPORTED_MODULES = {nn.Linear}


def named_groups_text(kind, groups):
    """The text of a sparsifier: its class, and the sorted options of each group under a title.

    Args:
        kind (str): the class' name. groups (list of (str, dict)): titles and options.
    """
    parts = []
    for title, group in groups:
        lines = [f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
        parts.append(f"\n\t{title}\n" + "".join(lines))
    return f"{kind} (" + "".join(parts) + ")"


class BaseSparsifier(abc.ABC):
    """A keeper of masks. Subclasses say in `update_mask` which elements become zero.

    `prepare` gives each chosen tensor a mask of ones, `step` calls `update_mask` for every group,
    and `squash_mask` at the end multiplies the masks into the weights.

    Args:
        defaults (dict): options of all groups; a group's own configuration overrides them.

    Example:
        >>> sparsifier = facula.ao.pruning.WeightNormSparsifier(sparsity_level=0.5)
        >>> model = facula.nn.Sequential(facula.nn.Linear(8, 8))
        >>> sparsifier.prepare(model, config=None)
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
        >>> int((model[0].weight == 0).sum())
        32
    """

    def __init__(self, defaults=None):
        self.defaults = defaults or {}
        self.state = defaultdict(dict)
        self.groups = []
        self.enable_mask_update = True

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state):
        # Unpickling and copying call no __init__, and a pickle does not tell of this switch.
        self.__dict__.setdefault("enable_mask_update", True)
        self.__dict__.update(state)

    def __repr__(self):
        groups = [(f"Group {i}", group) for i, group in enumerate(self.groups)]
        return named_groups_text(type(self).__name__, groups)

    def state_dict(self):
        """The masks by the tensors' dotted names, and the options of the groups.

        Returns:
            dict: `state` (the sparsifier's own, not a copy) and `groups`.
        """
        groups = [
            {key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT}
            for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict, strict=True):
        """Take over masks and options; call `prepare` before.

        The mask tensors move out of `state_dict` into the model: they are not copied.

        Args:
            state_dict (dict): what `state_dict` returned.
            strict (bool): whether a tensor that the model lacks is an error.

        Raises:
            RuntimeError: `strict`, and the model has no such module.
            AttributeError: the sparsifier was not prepared.
        """
        groups = deepcopy(state_dict["groups"])
        if not hasattr(self, "model"):
            raise AttributeError("load_state_dict(): expected a prepared sparsifier; call prepare")
        states = state_dict["state"]
        for tensor_fqn, state in states.items():
            self._load_mask(tensor_fqn, state, strict)
        for group in groups:
            group.update(get_arg_info_from_tensor_fqn(self.model, group["tensor_fqn"]))
        self.__setstate__({"state": states, "groups": groups})

    def _load_mask(self, tensor_fqn, state, strict):
        info = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
        module, name = info["module"], info["tensor_name"]
        if module is None:
            if strict:
                raise RuntimeError(f"load_state_dict(): the model has no tensor {tensor_fqn!r}")
            return
        param = _mask_of(module, name)
        if param is None:
            param = FakeSparsity(facula.ones_like(getattr(module, name)))
            parametrize.register_parametrization(module, name, param)
        if state.get("mask", None) is not None:
            param.mask = state.pop("mask")

    def make_config_from_model(self, model, SUPPORTED_MODULES=SUPPORTED_MODULES):
        """Set `config` to the weights of all modules inside `model` of exactly these classes.

        Args:
            model (Module). SUPPORTED_MODULES (set of type): classes of modules with a weight.
        """
        self.config = []
        for child in _modules_below(model):
            if type(child) in SUPPORTED_MODULES:
                self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})

    def prepare(self, model, config):
        """Give every tensor of the configuration a mask of ones.

        Args:
            model (Module): changed in place.
            config (list of dict): for each tensor its dotted name as `tensor_fqn` and options;
                None: the weights of all supported modules.

        Raises:
            AssertionError: an entry is no dict, or lacks `tensor_fqn`, or contradicts it.
        """
        self.model = model
        self.config = config
        if self.config is None:
            self.make_config_from_model(model)
        for entry in self.config:
            self.groups.append(self._group(model, entry))
        self._prepare()

    def _group(self, model, entry):
        if not isinstance(entry, dict):
            raise AssertionError(
                "prepare(): expected a list of dicts such as {'tensor_fqn': 'layer.weight'}; "
                f"got an entry of type {type(entry).__name__}"
            )
        if not isinstance(self.defaults, dict):
            raise AssertionError(f"prepare(): expected defaults in a dict; got {self.defaults!r}")
        group = {**self.defaults, **entry}
        tensor_fqn = group.get("tensor_fqn")
        if tensor_fqn is None:
            raise AssertionError(f"prepare(): expected 'tensor_fqn' in every entry; got {entry}")
        info = get_arg_info_from_tensor_fqn(model, tensor_fqn)
        for key in KEYS_NOT_IN_STATE_DICT:
            known = info[key] if key == "module" else info[key].strip(".")
            if key in group and group[key] is not known and group[key] != known:
                raise AssertionError(
                    f"prepare(): expected {key!r} as 'tensor_fqn' {tensor_fqn!r} says; "
                    f"got {group[key]!r}"
                )
        group.update(info)
        return group

    def _prepare(self, *args, **kwargs):
        for config in self.groups:
            module, name = config["module"], config["tensor_name"]
            make = config.get("parametrization", FakeSparsity)
            mask = config.get("mask", facula.ones_like(getattr(module, name)))
            self.state[config["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, name, make(mask))

    def squash_mask(self, params_to_keep=None, params_to_keep_per_layer=None, *args, **kwargs):
        """Multiply the masks into the weights and take the parametrizations off.

        Args:
            params_to_keep (sequence of str): options that each module keeps in `sparse_params`.
            params_to_keep_per_layer (dict): more such options, by the modules' dotted names.

        Raises:
            KeyError: a group has no such option. ValueError: a tensor has no mask any more.
        """
        for config in self.groups:
            module, name = config["module"], config["tensor_name"]
            parametrize.remove_parametrizations(module, name, leave_parametrized=True)
            kept = list(params_to_keep or ())
            kept += (params_to_keep_per_layer or {}).get(config["module_fqn"], ())
            if kept:
                module.sparse_params = {key: config[key] for key in kept}

    def convert(self, module, mapping=None, inplace=False, parameterization=FakeSparsity):
        """The model with its masked modules swapped for sparse ones.

        Args:
            module (Module). mapping (dict): classes with `from_dense`, by class.
            inplace (bool): change `module` itself.
            parameterization (type): what marks a module that is to be swapped.

        Raises:
            NotImplementedError: no mapping was given.
        """
        if mapping is None:
            raise NotImplementedError("convert(): expected a mapping of classes; got None")
        if not inplace:
            module = deepcopy(module)
        swapped = {}
        for name, child in module.named_children():
            if module_contains_param(child, parameterization):
                swapped[name] = swap_module(child, mapping)
            else:
                swapped[name] = self.convert(child, mapping, True, parameterization)
        module._modules.update(swapped)
        return module

    def step(self, use_path=True):
        """Update the masks of all groups, unless `enable_mask_update` is off.

        Args:
            use_path (bool): accepted for compatibility.
        """
        if not self.enable_mask_update:
            return
        with facula.no_grad():
            for config in self.groups:
                self.update_mask(**config)

    @abc.abstractmethod
    def update_mask(self, module, tensor_name, **kwargs):
        """Change the mask `module.parametrizations.<tensor_name>[0].mask` in place.

        Args:
            module (Module). tensor_name (str). kwargs: the group's options.
        """


def _mask_of(module, name):
    if not parametrize.is_parametrized(module, name):
        return None
    found = (p for p in module.parametrizations[name] if isinstance(p, FakeSparsity))
    return next(found, None)


def _modules_below(model):
    """The modules inside a model, level by level: the order of the groups."""
    level = [model]
    while level:
        level = [child for module in level for child in module.children()]
        yield from level

"""A sparsifier of the inputs of layers, by masks computed from inputs seen before."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy

import facula
from facula.ao.pruning.sparsifier.base_sparsifier import named_groups_text
from facula.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

__all__ = ["ActivationSparsifier"]

_FUNCTIONS = ("aggregate_fn", "reduce_fn", "mask_fn")


class ActivationSparsifier:
    """Masks the inputs of layers.

    Until the masks are squashed, the inputs of a registered layer are aggregated over the batches;
    `step` reduces what was aggregated and computes a mask of it; `squash_mask` makes the layer
    multiply its inputs by the mask from then on.

    Args:
        model (Module).
        aggregate_fn (callable): of what was aggregated and the next input; returns the new
            aggregate.
        reduce_fn (callable): of the aggregate; returns a tensor.
        mask_fn (callable): of the reduced tensor and the options; returns a mask.
        features (list of int): the indices of the inputs that have a mask each; None: one mask.
        feature_dim (int): the dimension that `features` are of.
        **sparse_config: options for `mask_fn`.
        All but the model are defaults that `register_layer` may override.

    Example:
        >>> from facula.ao.pruning._experimental.activation_sparsifier import activation_sparsifier
        >>> model = facula.nn.Sequential(facula.nn.Linear(4, 4))
        >>> sparsifier = activation_sparsifier.ActivationSparsifier(
        ...     model,
        ...     aggregate_fn=facula.add,
        ...     reduce_fn=lambda total: total.mean(0, keepdim=True),
        ...     mask_fn=lambda mean, threshold: mean.abs() > threshold,
        ...     threshold=0.5,
        ... )
        >>> sparsifier.register_layer(model[0])
        >>> _ = model(facula.tensor([[0.1, 2.0, 3.0, 0.0]]))
        >>> sparsifier.step()
        >>> sparsifier.get_mask("0")
        tensor([[False,  True,  True, False]])
    """

    def __init__(
        self,
        model,
        aggregate_fn=None,
        reduce_fn=None,
        mask_fn=None,
        features=None,
        feature_dim=None,
        **sparse_config,
    ):
        self.model = model
        self.defaults = {
            "sparse_config": sparse_config,
            "aggregate_fn": aggregate_fn,
            "reduce_fn": reduce_fn,
            "mask_fn": mask_fn,
            "features": features,
            "feature_dim": feature_dim,
        }
        self.data_groups = defaultdict(dict)
        self.state = defaultdict(dict)

    @staticmethod
    def _safe_rail_checks(args):
        """Raise AssertionError where a layer's options do not fit together."""
        if args["features"] is not None and args["feature_dim"] is None:
            raise AssertionError("register_layer(): expected feature_dim with features; got None")
        for key in _FUNCTIONS:
            if not callable(args[key]):
                raise AssertionError(
                    f"register_layer(): expected a function as {key}; got {args[key]!r}"
                )

    def register_layer(
        self,
        layer,
        aggregate_fn=None,
        reduce_fn=None,
        mask_fn=None,
        features=None,
        feature_dim=None,
        **sparse_config,
    ):
        """Begin to aggregate the inputs of a layer; a layer registered before starts anew.

        Args:
            layer (Module): in the model. The others: see the class.

        Raises:
            AssertionError: the layer is not in the model, or a function is missing.
        """
        name = module_to_fqn(self.model, layer)
        if name is None:
            raise AssertionError("register_layer(): expected a layer of the model")
        if name in self.data_groups:
            self.unregister_layer(name)
        own = {
            "aggregate_fn": aggregate_fn,
            "reduce_fn": reduce_fn,
            "mask_fn": mask_fn,
            "features": features,
            "feature_dim": feature_dim,
        }
        group = deepcopy(self.defaults)
        group.update({key: value for key, value in own.items() if value is not None})
        group["sparse_config"].update(sparse_config)
        self._safe_rail_checks(group)
        group["layer"] = layer
        self.data_groups[name] = group
        self.state[name] = {"mask": None if group["features"] is None else [None] * len(features)}
        self._attach(name, "aggregate")

    def _attach(self, name, state):
        """Let the layer's hook aggregate its inputs, or multiply them by the mask."""
        group = self.data_groups[name]
        make = self._aggregate_hook if state == "aggregate" else self._sparsify_hook
        group["hook"] = group["layer"].register_forward_pre_hook(make(name))
        group["hook_state"] = state

    def get_mask(self, name=None, layer=None):
        """The mask of a layer; a list of masks where it has features.

        Before the first step it is of ones, in the shape of what was aggregated.

        Args:
            name (str): the layer's dotted name. layer (Module): the layer, if there is no name.

        Returns:
            Tensor or list of Tensor

        Raises:
            AssertionError: neither was given, or the layer is not in the model.
            ValueError: no layer of this name is registered, or it had no input yet.
        """
        if name is None:
            if layer is None:
                raise AssertionError("get_mask(): expected a name or a layer; got neither")
            name = module_to_fqn(self.model, layer)
            if name is None:
                raise AssertionError("get_mask(): expected a layer of the model")
        if name not in self.state:
            raise ValueError(f"get_mask(): expected one of {list(self.state)}; got {name!r}")
        mask = self.state[name]["mask"]
        if isinstance(mask, list):
            return [self._known_mask(name, i) for i in range(len(mask))]
        return self._known_mask(name)

    def _known_mask(self, name, feature=None):
        mask = self.state[name]["mask"]
        mask = mask if feature is None else mask[feature]
        if mask is not None:
            return mask
        data = self.data_groups[name].get("data")
        data = data if feature is None or data is None else data[feature]
        if data is None:
            raise ValueError(f"get_mask(): the layer {name!r} had no input yet; call the model")
        return facula.ones_like(data)

    def unregister_layer(self, name):
        """Forget a layer and its mask.

        Args:
            name (str): the layer's dotted name.

        Raises:
            KeyError: no such layer is registered.
        """
        if name not in self.data_groups:
            raise KeyError(f"unregister_layer(): no layer {name!r}; got {list(self.data_groups)}")
        self.data_groups.pop(name)["hook"].remove()
        self.state.pop(name)

    def step(self):
        """Compute new masks of what was aggregated since the last step.

        Raises:
            KeyError: a layer had no input since then.
        """
        with facula.no_grad():
            for name, group in self.data_groups.items():
                if group["hook_state"] == "aggregate":
                    self.update_mask(name, group.pop("data"), group)

    def update_mask(self, name, data, configs):
        """Compute the mask of one layer.

        Args:
            name (str). data (Tensor or list of Tensor): what was aggregated.
            configs (dict): the layer's options.
        """
        reduce, mask_of = configs["reduce_fn"], configs["mask_fn"]
        options = configs["sparse_config"]
        if configs["features"] is None:
            self.state[name]["mask"] = mask_of(reduce(data), **options)
            return
        self.state[name]["mask"] = [mask_of(reduce(part), **options) for part in data]

    def squash_mask(self, attach_sparsify_hook=True, **kwargs):
        """End the aggregation; the layers multiply their inputs by the masks from now on.

        Args:
            attach_sparsify_hook (bool): False: no, they take their inputs as they come.
        """
        for name, group in self.data_groups.items():
            group["hook"].remove()
            if attach_sparsify_hook:
                self._attach(name, "sparsify")
            group["hook_state"] = "sparsify"

    def _parts(self, name, tensor):
        """The inputs of a layer's features, each on its own."""
        group = self.data_groups[name]
        device = tensor.device
        indices = facula.tensor(group["features"], device=device)
        return tensor.index_select(group["feature_dim"], indices).split(1, group["feature_dim"])

    def _aggregate_hook(self, name):
        def hook(module, inputs):
            group, data = self.data_groups[name], inputs[0]
            old, join = group.get("data"), group["aggregate_fn"]
            if group["features"] is None:
                group["data"] = data if old is None else join(old, data)
                return
            parts = self._parts(name, data)
            old = old or [None] * len(parts)
            joined = zip(old, parts, strict=True)
            group["data"] = [new if past is None else join(past, new) for past, new in joined]

        return hook

    def _sparsify_hook(self, name):
        def hook(module, inputs):
            group, data, mask = self.data_groups[name], inputs[0], self.get_mask(name)
            if group["features"] is None:
                return data * mask
            masked = data.clone()
            for feature, part, own in zip(
                group["features"], self._parts(name, data), mask, strict=True
            ):
                masked.narrow(group["feature_dim"], feature, 1).copy_(part * own)
            return masked

        return hook

    def _get_serializable_data_groups(self):
        return {
            name: {key: value for key, value in group.items() if key not in ("hook", "layer")}
            for name, group in self.data_groups.items()
        }

    def _convert_mask(self, states_dict, sparse_coo=True):
        """Copies of the states with their masks in the sparse or the dense layout."""

        def convert(mask):
            if isinstance(mask, list):
                return [convert(one) for one in mask]
            if mask is None:
                return None
            return mask.to_sparse_coo() if sparse_coo else mask.to_dense()

        return {name: {"mask": convert(state["mask"])} for name, state in states_dict.items()}

    def state_dict(self):
        """Masks (sparse), options of the layers and defaults.

        Returns:
            dict: `state`, `data_groups` and `defaults`.
        """
        return {
            "state": self._convert_mask(self.state),
            "data_groups": self._get_serializable_data_groups(),
            "defaults": self.defaults,
        }

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned, and register its layers.

        Args:
            state_dict (dict)
        """
        for group in self.data_groups.values():
            group["hook"].remove()
        self.__set_state__(
            {**state_dict, "state": self._convert_mask(state_dict["state"], sparse_coo=False)}
        )

    def __get_state__(self):
        return {
            "defaults": self.defaults,
            "state": self.state,
            "data_groups": self._get_serializable_data_groups(),
        }

    def __set_state__(self, state):
        self.defaults = state["defaults"]
        self.state = defaultdict(dict, state["state"])
        self.data_groups = defaultdict(dict)
        for name, group in state["data_groups"].items():
            self.data_groups[name] = {**group, "layer": fqn_to_module(self.model, name)}
            self._attach(name, group["hook_state"])

    def __repr__(self):
        groups = []
        for name, group in self.data_groups.items():
            shown = {k: v for k, v in group.items() if k not in (*_FUNCTIONS, "hook", "data")}
            groups.append((f"Data Group\n\t    name: {name}", shown))
        return named_groups_text(type(self).__name__, groups)

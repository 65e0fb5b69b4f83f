"""What sparsifiers of named tensors share: a container of data, masks, steps, squashing."""

from __future__ import annotations

import abc
import warnings
from collections import defaultdict
from copy import deepcopy

import facula
from facula import nn
from facula.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier, named_groups_text
from facula.ao.pruning.sparsifier.utils import FakeSparsity
from facula.nn.utils import parametrize

__all__ = ["BaseDataSparsifier"]

EMBEDDING_TYPES = {nn.Embedding, nn.EmbeddingBag}
SUPPORTED_TYPES = {facula.Tensor, nn.Parameter, *EMBEDDING_TYPES}


class _Container(nn.Module):
    """Where the data live, each under its name."""


class BaseDataSparsifier(BaseSparsifier):
    """A keeper of masks for named data: tensors, parameters and the weights of embeddings.

    Subclasses say in `update_mask` which elements become zero. The data are not copied.

    Args:
        data_list (list of (str, Tensor or Parameter or Embedding or EmbeddingBag)): names and data.
        **defaults: options of all data; those of `add_data` override them.

    Example:
        >>> from facula.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
        >>> sparsifier = DataNormSparsifier([("table", facula.ones(4, 8))], sparsity_level=0.5)
        >>> sparsifier.step()
        >>> int(sparsifier.get_mask("table").sum())
        16
    """

    def __init__(self, data_list=None, **defaults):
        super().__init__(defaults=defaults)
        self._container = _Container()
        self.data_groups = defaultdict(dict)
        for name, data in data_list or ():
            self.add_data(name, data, **self.defaults)

    def prepare(self, model, config):
        raise NotImplementedError("prepare(): data are added by add_data(), not by a model")

    def _extract_weight(self, data):
        """The tensor of a tensor, a parameter or an embedding; None of anything else."""
        if type(data) in EMBEDDING_TYPES:
            return data.weight
        return data if type(data) in (facula.Tensor, nn.Parameter) else None

    def add_data(self, name, data, reuse_mask=True, **config):
        """Add data under a name, or replace them.

        Args:
            name (str): without dots. data (Tensor, Parameter, Embedding or EmbeddingBag).
            reuse_mask (bool): keep the mask of the data that are replaced.
            **config: options that override the defaults.

        Returns:
            Tensor: the data under their mask.

        Raises:
            AssertionError: data of another class, or another shape than the mask that is kept.
        """
        if type(data) not in SUPPORTED_TYPES:
            raise AssertionError(
                "add_data(): expected a Tensor, Parameter, Embedding or EmbeddingBag; "
                f"got {type(data).__name__}"
            )
        group = {**self.defaults, **config}
        weight = self._extract_weight(data)
        mask = group.get("mask", facula.ones_like(weight))
        make = group.get("parametrization", FakeSparsity)
        if name in self.state:
            warnings.warn(
                f"add_data(): data called {name!r} exist and are replaced",
                UserWarning,
                stacklevel=2,
            )
            if reuse_mask:
                mask = self.get_mask(name)
                if self.get_data(name).shape != weight.shape:
                    raise AssertionError(
                        f"add_data(): expected the shape {tuple(mask.shape)} of the mask that is "
                        f"reused; got {tuple(weight.shape)}"
                    )
            self._delete_data(name)
        parametrize._register_parameter_or_buffer(self._container, name, weight)
        parametrize.register_parametrization(self._container, name, make(mask))
        self.state[name]["mask"] = mask
        self.data_groups[name] = group
        return getattr(self._container, name)

    def _delete_data(self, name):
        self.squash_mask(names=[name], leave_parametrized=False)
        delattr(self._container, name)
        self.state.pop(name)
        self.data_groups.pop(name)

    def get_data(self, name, return_original=True):
        """The data called `name`.

        Args:
            name (str). return_original (bool): without the mask.

        Returns:
            Tensor

        Raises:
            ValueError: no such data, or no original since the mask was squashed.
        """
        self._check_name("get_data", name)
        if not return_original:
            return getattr(self._container, name)
        if not parametrize.is_parametrized(self._container, name):
            raise ValueError(f"get_data(): the mask of {name!r} was squashed into the data")
        return self._container.parametrizations[name].original

    def get_mask(self, name):
        """The mask of the data called `name`.

        Returns:
            Tensor

        Raises:
            ValueError: no such data.
        """
        self._check_name("get_mask", name)
        return self.state[name]["mask"]

    def _check_name(self, function, name):
        if name not in self.data_groups:
            raise ValueError(
                f"{function}(): expected one of the names {list(self.data_groups)}; got {name!r}"
            )

    def step(self):
        """Update the masks of all data, unless `enable_mask_update` is off."""
        if not self.enable_mask_update:
            return
        with facula.no_grad():
            for name, group in self.data_groups.items():
                self.update_mask(name, self.get_data(name), **group)

    @abc.abstractmethod
    def update_mask(self, name, data, **kwargs):
        """Change the mask of `name` in place.

        Args:
            name (str). data (Tensor): without the mask. kwargs: the options of the data.
        """

    def squash_mask(self, *args, leave_parametrized=True, names=None, **kwargs):
        """Take the masks off.

        Args:
            leave_parametrized (bool): with the masks multiplied into the data.
            names (str or list of str): of the data; None: all.

        Raises:
            ValueError: data that have no mask any more.
        """
        if names is None:
            names = list(self.data_groups)
        for name in [names] if isinstance(names, str) else names:
            parametrize.remove_parametrizations(self._container, name, leave_parametrized)

    def _convert_mask(self, states, sparse_coo=True):
        """Copies of the states with their masks in the sparse or the dense layout."""
        states = deepcopy(states)
        for state in states.values():
            if "mask" in state:
                mask = state["mask"]
                state["mask"] = mask.to_sparse_coo() if sparse_coo else mask.to_dense()
        return states

    def state_dict(self):
        """Masks (sparse), options and data.

        Returns:
            dict: `state`, `data_groups` and `_container`.
        """
        return {
            "state": self._convert_mask(self.state),
            "data_groups": self.data_groups,
            "_container": self._container.state_dict(),
        }

    def load_state_dict(self, state_dict, strict=True):
        """Take over what `state_dict` returned; data that are not here are added.

        Args:
            state_dict (dict). strict (bool): forget the data that are here alone.
        """
        states = self._convert_mask(state_dict["state"], sparse_coo=False)
        groups = deepcopy(state_dict["data_groups"])
        data = state_dict["_container"]
        if strict:
            self._container = _Container()
        for name in groups:
            self._load_data(name, states[name]["mask"], data)
        if not strict:
            states, groups = {**self.state, **states}, {**self.data_groups, **groups}
        self.state = defaultdict(dict, states)
        self.data_groups = defaultdict(dict, groups)

    def _load_data(self, name, mask, data):
        """Put a tensor of a container's state dict in place; a squashed one has no mask there."""
        masked = data.get(f"parametrizations.{name}.original")
        weight = data[name] if masked is None else masked
        if name in self.data_groups and hasattr(self._container, name):
            self._delete_data(name)
        parametrize._register_parameter_or_buffer(self._container, name, weight)
        if masked is not None:
            parametrize.register_parametrization(self._container, name, FakeSparsity(mask))

    def __getstate__(self):
        return {
            "defaults": self.defaults,
            "state": self._convert_mask(self.state),
            "data_groups": self.data_groups,
            "_container": self._container.state_dict(),
        }

    def __setstate__(self, state):
        super().__init__(defaults=state["defaults"])
        self.data_groups = defaultdict(dict)
        self.load_state_dict(state)

    def __repr__(self):
        groups = [
            (f"Data Group\n\t    name: {name}", group) for name, group in self.data_groups.items()
        ]
        return named_groups_text(type(self).__name__, groups)

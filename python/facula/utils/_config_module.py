"""Modules of settings: attributes that exist may be set, patched for a while, and saved."""

from __future__ import annotations

import pickle
import sys
from contextlib import ContextDecorator
from types import ModuleType


class ConfigModule(ModuleType):
    """A module whose settings are a dict; asking for or setting another name is an error."""

    def _full_name(self):
        return self.__name__.replace("facula", "torch", 1)

    def __getattr__(self, name):
        settings = self.__dict__.get("_config", {})
        name = self.__dict__.get("_aliases", {}).get(name, name)
        if name in settings:
            return settings[name]
        raise AttributeError(f"{self._full_name()}.{name} does not exist")

    def __setattr__(self, name, value):
        # Submodules and what the import system sets are no settings.
        if name.startswith("__") or isinstance(value, ModuleType):
            super().__setattr__(name, value)
            return
        name = self._aliases.get(name, name)
        if name not in self._config:
            raise AttributeError(f"{self._full_name()}.{name} does not exist")
        self._config[name] = value

    def __delattr__(self, name):
        if name not in self._config:
            raise AttributeError(f"{self._full_name()}.{name} does not exist")
        self._config[name] = self._default[name]

    def __dir__(self):
        return sorted(
            {
                *self._config,
                *self._aliases,
                "patch",
                "save_config",
                "load_config",
                "get_config_copy",
            }
        )

    def patch(self, arg1=None, arg2=None, **kwargs):
        """A context manager and decorator that sets settings for a while.

        Args:
            arg1, arg2: a name and a value, or a dict of them; or keyword arguments.

        Example:
            >>> with facula._dynamo.config.patch(verbose=True):
            ...     print(facula._dynamo.config.verbose)
            True
        """
        if arg1 is None:
            changes = kwargs
        else:
            changes = {arg1: arg2} if isinstance(arg1, str) else dict(arg1)
        if not changes:
            raise AssertionError("patch(): expected at least one setting")
        for name in changes:
            getattr(self, name)
        return _Patch(self, changes)

    def get_config_copy(self):
        """All settings, as a dict."""
        return dict(self._config)

    shallow_copy_dict = to_dict = get_config_copy

    def save_config(self):
        """All settings, as bytes for `load_config`."""
        return pickle.dumps(self._config)

    def load_config(self, maybe_pickled_config):
        """Take settings from `save_config`, or from a dict, over."""
        given = maybe_pickled_config
        self._config.update(given if isinstance(given, dict) else pickle.loads(given))


class _Patch(ContextDecorator):
    def __init__(self, module, changes):
        self.module, self.changes = module, changes

    def __enter__(self):
        self.before = {name: getattr(self.module, name) for name in self.changes}
        for name, value in self.changes.items():
            setattr(self.module, name, value)

    def __exit__(self, *exception):
        for name, value in self.before.items():
            setattr(self.module, name, value)
        return False


class ConfigGroup:
    """Settings of a module under a name of their own: `config.triton.cudagraphs`."""

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise AttributeError(f"{name} does not exist")
        self.__dict__[name] = value


def install_config_module(module_name, settings, aliases=None):
    """Make an imported module one of settings.

    Args:
        module_name (str): the name in `sys.modules`.
        settings (dict): names and their first values.
        aliases (dict): further names of settings.
    """
    module = sys.modules[module_name]
    module.__dict__.update(_config=settings, _default=dict(settings), _aliases=aliases or {})
    module.__class__ = ConfigModule

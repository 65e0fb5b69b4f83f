"""Modules that find the shapes of their parameters at the first call."""

from __future__ import annotations

from facula.nn.parameter import is_lazy


class LazyModuleMixin:
    """First base of a lazy module; it becomes `cls_to_become` after its first call."""

    cls_to_become = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        infer, load = self._infer_parameters, self._lazy_load_hook
        self._initialize_hook = self.register_forward_pre_hook(infer, with_kwargs=True)
        self._load_hook = self._register_load_state_dict_pre_hook(load)

    def _lazy_values(self):
        return [*self._parameters.items(), *self._buffers.items()]

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._lazy_values():
            if value is None or name in self._non_persistent_buffers_set:
                continue
            keep = is_lazy(value) or keep_vars
            destination[prefix + name] = value if keep else value.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        import facula

        for name, value in self._lazy_values():
            key = prefix + name
            if key not in state_dict or value is None:
                continue
            source = state_dict[key]
            if is_lazy(value) and not is_lazy(source):
                with facula.no_grad():
                    value.materialize(source.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Override: give the parameters their shapes from the arguments of forward."""
        raise NotImplementedError(f"{type(self).__name__}: initialize_parameters() must be defined")

    def has_uninitialized_params(self):
        """Whether some parameter or buffer has no shape yet; returns a bool."""
        return any(is_lazy(value) for _, value in self._lazy_values())

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        left = [name for name, value in module._lazy_values() if is_lazy(value)]
        if left:
            raise RuntimeError(
                f"{self._get_name()}: initialize_parameters() must give every "
                f"parameter a shape; got none for {', '.join(left)}"
            )
        for hook in ("_initialize_hook", "_load_hook"):
            module.__dict__.pop(hook).remove()
        module.__class__ = module.cls_to_become or type(module)

"""Where the first NaN or infinity of a program comes from: operator, module and line."""

from __future__ import annotations

import sys

import facula
from facula import _C
from facula.autograd.anomaly_mode import _line, _user_frame
from facula.utils._python_dispatch import TorchDispatchMode

__all__ = ["locate_nan", "NotFiniteError"]

_Tensor = _C.Tensor


class NotFiniteError(RuntimeError):
    """An operator made NaN or infinity of finite inputs.

    Attributes:
        operator (str): "aten.log.default".
        phase (str): "forward" or "backward".
        module (str or None): path and class of the module whose forward ran.
        line (str): "file:line" of the call; in backward, of the forward call it belongs to.
        node (str or None): in backward, the node that ran.
        inputs (list of str): one line of statistics for each tensor among the inputs.
    """


class locate_nan(TorchDispatchMode):
    """Context manager: the first operator that makes NaN or infinity of finite inputs raises.

    Args:
        check_inf (bool): infinities count, too.
        model (Module): names the modules by their paths in this one.

    Every result is searched, in forward and in backward, so the program is slow; nothing else of
    it changes.

    Raises:
        NotFiniteError: tells operator, module, line and statistics of the inputs.

    Example:
        >>> with facula.autograd.locate_nan():  # doctest: +SKIP
        ...     facula.tensor([1.0, -1.0]).log()
    """

    def __init__(self, check_inf=True, model=None):
        super().__init__()
        self.check_inf = check_inf
        self.paths = (
            {}
            if model is None
            else {id(module): path or "(root)" for path, module in model.named_modules()}
        )
        self._modules = []
        self._handles = []
        self._anomaly = (False, True)

    def __enter__(self):
        from facula.nn.modules import module

        self._handles = [
            module.register_module_forward_pre_hook(lambda m, _: self._modules.append(m)),
            module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        # Nodes then remember their lines; the search for NaN is ours.
        self._anomaly = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, False)
        return super().__enter__()

    def __exit__(self, *exception):
        result = super().__exit__(*exception)
        _C._set_anomaly_enabled(*self._anomaly)
        for handle in self._handles:
            handle.remove()
        self._modules.clear()
        return result

    def _leave_module(self, module, inputs, output):
        if self._modules:
            self._modules.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # In-place operators overwrite what the report is about.
        inputs = list(_tensors((args, kwargs)))
        before = [_statistics(tensor) for tensor in inputs] if func._schema.is_mutable else None
        finite = all(self._finite(tensor) for tensor in inputs)
        result = func(*args, **kwargs)
        if finite and not all(self._finite(tensor) for tensor in _tensors(result)):
            self._report(func, before or [_statistics(tensor) for tensor in inputs], result)
        return result

    def _finite(self, tensor):
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta:
            return True
        if tensor.numel() == 0:
            return True
        bad = facula.isnan(tensor) if not self.check_inf else ~facula.isfinite(tensor)
        return not bad.any().item()

    def _report(self, func, inputs, result):
        node = _C._current_autograd_node()
        error = NotFiniteError("")
        error.operator = str(func)
        error.phase = "forward" if node is None else "backward"
        error.node = None if node is None else node.name()
        error.module = self._module_path() if node is None else None
        error.line = _line(node.metadata) if node is not None else _here()
        error.inputs = inputs
        place = f" in module {error.module}" if error.module else ""
        if node is not None:
            place = f" while {error.node} ran, whose forward call was made"
        outputs = [_statistics(tensor) for tensor in _tensors(result)]
        error.args = (
            f"locate_nan(): {error.operator} made the first value that is not finite, in "
            f"{error.phase}{place} at {error.line or 'an unknown line'}\n"
            + "".join(f"  input {i}: {text}\n" for i, text in enumerate(inputs))
            + "".join(f"  output {i}: {text}\n" for i, text in enumerate(outputs)),
        )
        raise error

    def _module_path(self):
        if not self._modules:
            return None
        module = self._modules[-1]
        path = self.paths.get(id(module))
        name = type(module).__name__
        return f"{path} ({name})" if path else name


def _here():
    frame = _user_frame(sys._getframe(1))
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _tensors(value):
    if isinstance(value, _Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _statistics(tensor):
    """One line: shape, dtype, and range, mean and count of odd values of a tensor."""
    text = f"shape {tuple(tensor.shape)}, {tensor.dtype}"
    if tensor.numel() == 0 or tensor.is_meta:
        return text
    if tensor.is_complex():
        tensor = tensor.abs()
    values = tensor.detach().double()
    finite = values[facula.isfinite(values)]
    if finite.numel():
        text += (
            f", min {finite.min().item():.6g}, max {finite.max().item():.6g}, "
            f"mean {finite.mean().item():.6g}"
        )
    nan = int(facula.isnan(values).sum().item())
    inf = values.numel() - finite.numel() - nan
    return text + (f", {nan} NaN, {inf} infinite" if nan or inf else "")

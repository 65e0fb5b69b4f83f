"""PyTorch's dispatch keys by name: what libraries ask and exclude, in terms of facula's layers."""

from __future__ import annotations

from enum import IntEnum

from facula import _C

_BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
)
_ABOVE_BACKENDS = "BackendSelect Python Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther"
_ABOVE_AUTOGRAD = (
    "AutocastCPU AutocastMPS AutocastXPU AutocastHPU AutocastIPU AutocastCUDA AutocastPrivateUse1 "
    "FuncTorchBatched FuncTorchBatchedDecomposition FuncTorchVmapMode FuncTorchGradWrapper "
    "FuncTorchDynamicLayerBackMode FuncTorchDynamicLayerFrontMode Functionalize PreDispatch "
    "PythonTLSSnapshot PythonDispatcher"
)
_ALIASES = (
    "Dense Quantized Sparse SparseCsr NestedTensor AutogradFunctionality Autograd "
    "CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd "
    "CompositeExplicitAutogradNonFunctional"
)


def _names():
    """All keys, those that go last first."""
    yield "Undefined"
    for kind in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor"):
        yield from (kind + backend for backend in _BACKENDS.split())
    yield from _ABOVE_BACKENDS.split()
    yield from ("Autograd" + backend for backend in _BACKENDS.split())
    yield from (*_ABOVE_AUTOGRAD.split(), *_ALIASES.split())


DispatchKey = IntEnum("DispatchKey", list(_names()), start=0, module=__name__)
DispatchKey.__str__ = lambda key: f"DispatchKey.{key.name}"
DispatchKey.__doc__ = "A layer or backend of PyTorch's dispatcher; higher values go first."

# The layers of facula that keys of these beginnings stand for.
_LAYERS = {
    "Autocast": ("Autocast",),
    "Autograd": ("Autograd",),
    "Conjugate": ("Conjugate",),
    "Negative": ("Negative",),
    "FuncTorch": ("Transforms",),
    "Python": ("Subclass", "Modes"),
}


class DispatchKeySet:
    """A set of dispatch keys.

    Args:
        key (DispatchKey): its first member.

    Example:
        >>> keys = DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.AutocastCPU)
        >>> keys, keys.has(DispatchKey.CUDA)
        (DispatchKeySet(CPU, AutocastCPU), False)
    """

    def __init__(self, key):
        self._bits = 0 if key == DispatchKey.Undefined else 1 << DispatchKey(key)

    @staticmethod
    def from_raw_repr(bits):
        """The set of these bits, which `raw_repr` gives."""
        made = DispatchKeySet(DispatchKey.Undefined)
        made._bits = bits
        return made

    def raw_repr(self):
        """The bits of the members (int)."""
        return self._bits

    def _keys(self):
        return [key for key in DispatchKey if self._bits >> key & 1]

    def has(self, key):
        """Whether `key` is a member."""
        return bool(self._bits >> key & 1)

    def add(self, key):
        """The set with one more member."""
        return self | DispatchKeySet(key)

    def remove(self, key):
        """The set without this member."""
        return self - DispatchKeySet(key)

    def highestPriorityTypeId(self):
        """The member that goes first; `DispatchKey.Undefined` of the empty set."""
        return DispatchKey(max(self._bits.bit_length() - 1, 0))

    def __or__(self, other):
        return self.from_raw_repr(self._bits | other._bits)

    def __and__(self, other):
        return self.from_raw_repr(self._bits & other._bits)

    def __sub__(self, other):
        return self.from_raw_repr(self._bits & ~other._bits)

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._bits == other._bits

    __hash__ = None

    def __repr__(self):
        return f"DispatchKeySet({', '.join(key.name for key in self._keys())})"


class ExcludeDispatchKeyGuard:
    """Calls within pass the layers of these keys by; keys without a layer here change nothing.

    Args:
        keys (DispatchKeySet): the keys.
    """

    def __init__(self, keys):
        beginnings = [b for key in keys._keys() for b in _LAYERS if key.name.startswith(b)]
        layers = {layer for beginning in beginnings for layer in _LAYERS[beginning]}
        known = reversed(_C._layers())
        self._bits = sum(1 << bit for bit, (name, _) in enumerate(known) if name in layers)

    def __enter__(self):
        self._before = _C._set_excluded_layers(0)
        _C._set_excluded_layers(self._before | self._bits)
        return self

    def __exit__(self, *error):
        _C._set_excluded_layers(self._before)

"""Calls that pass autograd by."""

from facula import _C


class BelowAutograd:
    """What is called within goes on below autograd, whose kernels are passed by.

    Found as `_C._AutoDispatchBelowAutograd` too, where PyTorch has it.
    """

    def __enter__(self):
        self._before = _C._exclude_autograd()
        return self

    def __exit__(self, *error):
        _C._set_excluded_layers(self._before)


_C._AutoDispatchBelowAutograd = BelowAutograd

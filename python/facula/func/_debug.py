"""Looking into tensors of function transforms."""

from __future__ import annotations

from facula import _C


def debug_unwrap(tensor, *, recurse=True):
    """The value under the wrappers that function transforms put around a tensor, to print it.

    Args:
        tensor (Tensor): of any level of transforms, or of none.
        recurse (bool): take off every wrapper, not the outermost alone.

    Returns:
        Tensor: not to be computed with inside the transform.
    """
    while _C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _C._functorch.get_unwrapped(tensor)
        if not recurse:
            break
    return tensor

"""Several modules at once, each on its device."""

from __future__ import annotations

import threading


def get_a_var(obj):
    """A tensor of a nest, or None."""
    from facula import Tensor
    from facula.utils._pytree import tree_leaves

    return next((leaf for leaf in tree_leaves(obj) if isinstance(leaf, Tensor)), None)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The results of modules for their inputs, each in a thread of its own.

    Args:
        modules (list of Module): one for each input.
        inputs (list): a tuple of arguments, or one argument, for each module.
        kwargs_tup (list of dict): keyword arguments for each module.

    Returns:
        list of results; the first error of a module is raised.

    Example:
        >>> parallel_apply([facula.nn.Identity()] * 2, [facula.zeros(1), facula.ones(1)])
        [tensor([0.]), tensor([1.])]
    """
    import facula

    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    named = kwargs_tup or [{}] * len(modules)
    results = [None] * len(modules)
    grad_mode = facula.is_grad_enabled()

    def run(i):
        arguments = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            with facula.set_grad_enabled(grad_mode):
                results[i] = (modules[i](*arguments, **named[i]), None)
        except Exception as error:
            results[i] = (None, error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, error in results:
        if error is not None:
            raise error
    return [result for result, _ in results]

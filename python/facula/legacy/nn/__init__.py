"""Modules in the manner of Torch7: each keeps its output and gradients and goes back itself.

Example:
    >>> from facula.legacy import nn
    >>> model = nn.Sequential().add(nn.Linear(3, 4)).add(nn.Tanh()).add(nn.Linear(4, 1))
    >>> criterion = nn.MSECriterion()
    >>> x, y = facula.ones(2, 3), facula.zeros(2, 1)
    >>> model.zeroGradParameters()
    >>> loss = criterion.forward(model.forward(x), y)
    >>> model.backward(x, criterion.backward(model.output, y)).shape
    facula.Size([2, 3])
    >>> model.updateParameters(0.1)
"""

from facula.legacy.nn import criterions as _criterions
from facula.legacy.nn import layers as _layers
from facula.legacy.nn.containers import (
    Concat,
    ConcatTable,
    Container,
    ParallelTable,
    Sequential,
)
from facula.legacy.nn.module import Module

# Their classes are made from tables, so that no import statement can name them.
globals().update({name: getattr(_layers, name) for name in _layers.__all__})
globals().update({name: getattr(_criterions, name) for name in _criterions.__all__})

"""Modules that are made of modules."""

from __future__ import annotations

import facula
from facula.legacy.nn.module import Module


class Container(Module):
    """A module with modules inside, which `add` appends to."""

    def __init__(self, *modules):
        super().__init__()
        self.modules = list(modules)

    def add(self, module):
        """Appends a module; returns the container."""
        self.modules.append(module)
        return self

    def get(self, index):
        """The module at a place, counted from 0."""
        return self.modules[index]

    def size(self):
        """The number of modules."""
        return len(self.modules)

    def modules_inside(self):
        return self.modules

    def backward(self, input, gradOutput, scale=1):
        self.gradInput = self._back(
            input, gradOutput, lambda module, x, grad: module.backward(x, grad, scale)
        )
        return self.gradInput

    def updateGradInput(self, input, gradOutput):
        self.gradInput = self._back(input, gradOutput, lambda m, x, g: m.updateGradInput(x, g))
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        # The gradients between the modules are those that updateGradInput has left in them.
        def accumulate(module, x, grad):
            module.accGradParameters(x, grad, scale)
            return module.gradInput

        self._back(input, gradOutput, accumulate)

    def _back(self, input, gradOutput, step):
        """Goes back through the modules; `step(module, input, gradOutput)` gives a gradient."""
        raise NotImplementedError(f"{type(self).__name__} has no backward()")

    def __repr__(self):
        lines = [
            f"({i}): {module!r}".replace("\n", "\n  ") for i, module in enumerate(self.modules)
        ]
        inner = "".join(f"\n  {line}" for line in lines)
        return f"nn.{type(self).__name__} {{{inner}\n}}"


class Sequential(Container):
    """Modules one after another."""

    def updateOutput(self, input):
        for module in self.modules:
            input = module.forward(input)
        self.output = input
        return input

    def _back(self, input, gradOutput, step):
        inputs = [input, *(module.output for module in self.modules[:-1])]
        for module, given in zip(reversed(self.modules), reversed(inputs), strict=True):
            gradOutput = step(module, given, gradOutput)
        return gradOutput


def total(grads):
    """The sum of several gradients of one input, a tensor or a table."""
    if isinstance(grads[0], (list, tuple)):
        return [total(parts) for parts in zip(*grads, strict=True)]
    return facula.stack(list(grads)).sum(0)


class ConcatTable(Container):
    """Gives one input to every module; a table of their outputs."""

    def updateOutput(self, input):
        self.output = [module.forward(input) for module in self.modules]
        return self.output

    def _back(self, input, gradOutput, step):
        pairs = zip(self.modules, gradOutput, strict=True)
        return total([step(module, input, grad) for module, grad in pairs])


class Concat(Container):
    """Gives one input to every module and joins their outputs along a dimension."""

    def __init__(self, dimension, *modules):
        super().__init__(*modules)
        self.dimension = dimension

    def updateOutput(self, input):
        outputs = [module.forward(input) for module in self.modules]
        self.output = facula.cat(outputs, self.dimension)
        return self.output

    def _back(self, input, gradOutput, step):
        sizes = [module.output.size(self.dimension) for module in self.modules]
        parts = gradOutput.split(sizes, self.dimension)
        pairs = zip(self.modules, parts, strict=True)
        return total([step(module, input, grad) for module, grad in pairs])


class ParallelTable(Container):
    """Gives each module its own part of a table; a table of their outputs."""

    def updateOutput(self, input):
        self.output = [m.forward(part) for m, part in zip(self.modules, input, strict=True)]
        return self.output

    def _back(self, input, gradOutput, step):
        parts = zip(self.modules, input, gradOutput, strict=True)
        return [step(module, x, grad) for module, x, grad in parts]

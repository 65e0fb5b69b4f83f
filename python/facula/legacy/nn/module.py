"""What Torch7's modules have in common, and how a module of today is made into one."""

from __future__ import annotations

import copy

import facula


def as_tuple(value):
    """The tensors of a table; a tensor alone as a table of one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class Module:
    """A computation that keeps what it gave (`output`) and the gradient of its input (`gradInput`).

    A subclass has `updateOutput` and `updateGradInput`, and `accGradParameters` where it has
    parameters.
    """

    def __init__(self):
        self.output = facula.empty(0)
        self.gradInput = facula.empty(0)
        self.train = True

    def updateOutput(self, input):
        """Computes and keeps the output."""
        raise NotImplementedError(f"{type(self).__name__} has no updateOutput()")

    def updateGradInput(self, input, gradOutput):
        """Computes and keeps the gradient of the input."""
        raise NotImplementedError(f"{type(self).__name__} has no updateGradInput()")

    def accGradParameters(self, input, gradOutput, scale=1):
        """Adds `scale` times the parameters' gradients to what they have."""

    def forward(self, input):
        """The output for an input."""
        return self.updateOutput(input)

    def backward(self, input, gradOutput, scale=1):
        """The gradient of the input, after `forward` with it; the parameters' gradients add up."""
        self.updateGradInput(input, gradOutput)
        self.accGradParameters(input, gradOutput, scale)
        return self.gradInput

    def modules_inside(self):
        """The modules that this one is made of."""
        return []

    def parameters(self):
        """The parameters and their gradients: two lists of tensors."""
        pairs = [module.parameters() for module in self.modules_inside()]
        return [p for own, _ in pairs for p in own], [g for _, grads in pairs for g in grads]

    def zeroGradParameters(self):
        """Sets the parameters' gradients to zero."""
        for grad in self.parameters()[1]:
            grad.zero_()

    def updateParameters(self, learningRate):
        """Moves the parameters against their gradients."""
        for parameter, grad in zip(*self.parameters(), strict=True):
            parameter.sub_(grad, alpha=learningRate)

    def accUpdateGradParameters(self, input, gradOutput, lr):
        """`accGradParameters` and `updateParameters` in one, which leaves the gradients alone."""
        before = [grad.clone() for grad in self.parameters()[1]]
        self.zeroGradParameters()
        self.accGradParameters(input, gradOutput)
        self.updateParameters(lr)
        for grad, old in zip(self.parameters()[1], before, strict=True):
            grad.copy_(old)

    def getParameters(self):
        """All parameters as one flat tensor, and their gradients as another.

        The module's own become views of these, so that a change of one is a change of the other.
        """
        groups = self.parameters()
        flat = [facula.cat([t.reshape(-1) for t in tensors]) for tensors in groups]
        for tensors, whole in zip(groups, flat, strict=True):
            parts = whole.split([t.numel() for t in tensors])
            for tensor, part in zip(tensors, parts, strict=True):
                tensor.set_(part.view_as(tensor))
        self._adopt(iter(groups[0]))
        return tuple(flat)

    def _adopt(self, parameters):
        for module in self.modules_inside():
            module._adopt(parameters)

    def listModules(self):
        """This module and all inside it."""
        return [self, *(m for inner in self.modules_inside() for m in inner.listModules())]

    def findModules(self, kind):
        """The modules of a class, this one among them."""
        return [module for module in self.listModules() if isinstance(module, kind)]

    def apply(self, callback):
        """Calls a function with this module and all inside it; returns the module."""
        for module in self.listModules():
            callback(module)
        return self

    def training(self):
        """Lets dropout and normalization behave as in training."""
        return self.apply(lambda module: module._set_training(True))

    def evaluate(self):
        """Lets dropout and normalization behave as in use."""
        return self.apply(lambda module: module._set_training(False))

    def _set_training(self, train):
        self.train = train

    def clearState(self):
        """Forgets outputs and gradients of inputs; returns the module."""
        return self.apply(lambda module: module._forget())

    def _forget(self):
        self.output, self.gradInput = facula.empty(0), facula.empty(0)

    def clone(self):
        """A copy with parameters of its own, without outputs and gradients of inputs."""
        return copy.deepcopy(self.clearState())

    def __call__(self, input):
        return self.forward(input)

    def __repr__(self):
        return f"nn.{type(self).__name__}"


class Wrapped(Module):
    """A module of `facula.nn`, or a function, as Torch7 would have it: autograd does the backward.

    Args:
        inner: what is called with the input's tensors.
    """

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self._inputs = self._result = None
        owned = inner.named_parameters() if isinstance(inner, facula.nn.Module) else ()
        self._parameters = dict(owned)
        self._grads = {name: facula.zeros_like(p.data) for name, p in self._parameters.items()}

    def updateOutput(self, input):
        self._inputs = tuple(
            t.detach().requires_grad_(t.is_floating_point()) for t in as_tuple(input)
        )
        with facula.enable_grad():
            self._result = self._call(*self._inputs)
        self.output = self._result.detach()
        return self.output

    def _call(self, *inputs):
        return self.inner(*inputs)

    def updateGradInput(self, input, gradOutput):
        grads = self._gradients(input, self._inputs, gradOutput)
        pairs = zip(grads, self._inputs, strict=True)
        grads = [facula.zeros_like(t) if g is None else g for g, t in pairs]
        self.gradInput = grads if isinstance(input, (list, tuple)) else grads[0]
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        if not self._parameters:
            return
        found = self._gradients(input, self._parameters.values(), gradOutput)
        for total, grad in zip(self._grads.values(), found, strict=True):
            if grad is not None:
                total.add_(grad, alpha=scale)

    def _gradients(self, input, wanted, gradOutput):
        if self._result is None:
            raise RuntimeError(f"{type(self).__name__}.backward(): call forward() first")
        wanted = list(wanted)
        known = [t for t in wanted if t.requires_grad]
        if not (known and self._result.requires_grad):
            return [None] * len(wanted)
        grads = iter(
            facula.autograd.grad(
                self._result, known, gradOutput, retain_graph=True, allow_unused=True
            )
        )
        return [next(grads) if t.requires_grad else None for t in wanted]

    def parameters(self):
        return [p.data for p in self._parameters.values()], list(self._grads.values())

    def _adopt(self, parameters):
        for parameter in self._parameters.values():
            parameter.data = next(parameters)

    def _set_training(self, train):
        super()._set_training(train)
        if isinstance(self.inner, facula.nn.Module):
            self.inner.train(train)

    def _forget(self):
        super()._forget()
        self._inputs = self._result = None

    def __getattr__(self, name):
        """`weight`, `bias`, their gradients `gradWeight` and `gradBias`, running statistics."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        if name in self._parameters:
            return self._parameters[name].data
        if name[:4] == "grad" and name[4:].lower() in self._grads:
            return self._grads[name[4:].lower()]
        buffers = {"running_mean", "running_var"}
        if name in buffers and hasattr(self.inner, name):
            return getattr(self.inner, name)
        raise AttributeError(f"nn.{type(self).__name__} has no attribute {name!r}")

"""A training loop that plugins look at, as the first releases of PyTorch had it."""

from __future__ import annotations

import heapq

from facula.utils.trainer import plugins


def _check(holds, name, wanted, given):
    if not holds:
        raise TypeError(f"Trainer(): expected {name} to be {wanted}; got {type(given).__name__}")


class Trainer:
    """Runs a model over a dataset and tells plugins of what happens.

    Args:
        model: what is called with the inputs of a batch.
        criterion: what is called with the model's output and the targets; gives the loss.
        optimizer: an Optimizer, whose `step` gets a closure.
        dataset: an iterable of (input, target), each a tensor or a tuple of tensors: a DataLoader.

    Raises:
        TypeError: model or criterion cannot be called, optimizer has no `step`, or dataset cannot
            be iterated over.

    Attributes:
        iterations (int): the batches seen so far.
        stats (dict): what plugins found out, by their names.

    Example:
        >>> from facula import nn
        >>> from facula.utils.trainer import Trainer, plugins
        >>> model, data = nn.Linear(2, 1), [(facula.ones(4, 2), facula.ones(4, 1))]
        >>> optimizer = facula.optim.SGD(model.parameters(), lr=0.1)
        >>> trainer = Trainer(model, nn.MSELoss(), optimizer, data)
        >>> trainer.register_plugin(plugins.LossMonitor())
        >>> trainer.run(epochs=3)
        >>> trainer.iterations, trainer.stats["loss"]["last"] > 0
        (3, True)
    """

    def __init__(self, model=None, criterion=None, optimizer=None, dataset=None):
        for name, given in (("model", model), ("criterion", criterion)):
            _check(given is None or callable(given), name, "something to call", given)
        has_step = callable(getattr(optimizer, "step", None))
        _check(optimizer is None or has_step, "optimizer", "an Optimizer", optimizer)
        iterates = hasattr(dataset, "__iter__") or hasattr(dataset, "__getitem__")
        _check(dataset is None or iterates, "dataset", "an iterable of batches", dataset)
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.dataset = dataset
        self.iterations = 0
        self.stats = {}
        # By unit: a heap of when a plugin is due next, the order it came in, and the plugin.
        self.plugin_queues = {unit: [] for unit in plugins.UNITS}

    def register_plugin(self, plugin):
        """Lets a plugin see the run, as often as its `trigger_interval` says."""
        plugin.register(self)
        for interval, unit in plugin.trigger_interval:
            queue = self.plugin_queues[unit]
            heapq.heappush(queue, (interval, len(queue), plugin, interval))

    def call_plugins(self, queue_name, time, *args):
        """Calls the plugins that are due: each one's method of the queue's name."""
        queue = self.plugin_queues[queue_name]
        while queue and queue[0][0] <= time:
            _, order, plugin, interval = queue[0]
            getattr(plugin, queue_name)(time, *args)
            heapq.heapreplace(queue, (time + interval, order, plugin, interval))

    def run(self, epochs=1):
        """Trains for a number of epochs."""
        for epoch in range(1, epochs + 1):
            self.train()
            self.call_plugins("epoch", epoch)

    def train(self):
        """Trains for one epoch."""
        for batch in self.dataset:
            self.iterations += 1
            self._train_batch(*batch)

    def _train_batch(self, input, target):
        self.call_plugins("batch", self.iterations, input, target)
        seen = []

        def closure():
            output = self.model(*_as_tuple(input))
            loss = self.criterion(output, *_as_tuple(target))
            loss.backward()
            seen[:] = seen or [output.detach(), loss.detach()]
            return loss

        self.optimizer.zero_grad()
        self.optimizer.step(closure)
        self.call_plugins("iteration", self.iterations, input, target, *seen)
        self.call_plugins("update", self.iterations, self.model)


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)

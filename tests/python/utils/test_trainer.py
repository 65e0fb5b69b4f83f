"""The Trainer of the first releases: plugins see batches, epochs and updates."""

import facula
import pytest
from facula import nn
from facula.utils.data import DataLoader, TensorDataset
from facula.utils.trainer import Trainer, plugins


def make_trainer(samples=10, batch_size=4, lr=0.5, **options):
    facula.manual_seed(0)
    points = facula.randn(samples, 2)
    data = TensorDataset(points, (points[:, 0] > 0).long())
    model = nn.Linear(2, 2)
    optimizer = facula.optim.SGD(model.parameters(), lr=lr)
    return Trainer(model, nn.CrossEntropyLoss(), optimizer, DataLoader(data, batch_size, **options))


class Recorder(plugins.Plugin):
    def __init__(self, *interval):
        super().__init__(list(interval))
        self.calls = []

    def batch(self, time, input, target):
        self.calls.append(("batch", time, tuple(input.shape), tuple(target.shape)))

    def iteration(self, time, input, target, output, loss):
        self.calls.append(("iteration", time, tuple(output.shape), output.requires_grad))

    def update(self, time, model):
        self.calls.append(("update", time, model))

    def epoch(self, time):
        self.calls.append(("epoch", time))


def test_a_plugin_is_called_for_each_unit_in_order():
    trainer, recorder = make_trainer(), Recorder(*((1, unit) for unit in plugins.plugin.UNITS))
    trainer.register_plugin(recorder)
    trainer.run(epochs=1)
    assert recorder.calls == [
        ("batch", 1, (4, 2), (4,)),
        ("iteration", 1, (4, 2), False),
        ("update", 1, trainer.model),
        ("batch", 2, (4, 2), (4,)),
        ("iteration", 2, (4, 2), False),
        ("update", 2, trainer.model),
        ("batch", 3, (2, 2), (2,)),
        ("iteration", 3, (2, 2), False),
        ("update", 3, trainer.model),
        ("epoch", 1),
    ]


def test_intervals_count_across_epochs():
    trainer, recorder = make_trainer(), Recorder((2, "iteration"), (3, "epoch"))
    trainer.register_plugin(recorder)
    trainer.run(epochs=3)
    assert [call[:2] for call in recorder.calls] == [
        *(("iteration", n) for n in (2, 4, 6, 8)),
        ("epoch", 3),
    ]


def test_training_is_that_of_a_plain_loop():
    trainer = make_trainer()
    trainer.run(epochs=2)
    plain = make_trainer()
    for _ in range(2):
        for points, labels in plain.dataset:
            plain.optimizer.zero_grad()
            plain.criterion(plain.model(points), labels).backward()
            plain.optimizer.step()
    assert facula.equal(trainer.model.weight, plain.model.weight)


def test_monitors_measure_loss_accuracy_time_and_progress():
    trainer = make_trainer(samples=64, batch_size=16)
    losses = []

    class Losses(plugins.LossMonitor):
        def _get_value(self, *batch):
            losses.append(super()._get_value(*batch))
            return losses[-1]

    for plugin in (Losses(), plugins.AccuracyMonitor(), plugins.TimeMonitor()):
        trainer.register_plugin(plugin)
    trainer.register_plugin(plugins.ProgressMonitor())
    trainer.run(epochs=10)
    loss = trainer.stats["loss"]
    assert loss["last"] == losses[-1] and len(losses) == 40
    assert loss["epoch_mean"] == pytest.approx(sum(losses[-4:]) / 4)
    expected = losses[0]
    for value in losses[1:]:
        expected = 0.3 * expected + 0.7 * value
    assert loss["running_avg"] == pytest.approx(expected)
    assert trainer.stats["accuracy"]["epoch_mean"] > 90
    assert trainer.stats["time"]["last"] > 0
    assert trainer.stats["progress"]["epoch_size"] == 64


def test_progress_counts_samples_of_the_epoch():
    trainer = make_trainer()
    seen = []
    trainer.register_plugin(plugins.ProgressMonitor())
    logger = plugins.Logger(["progress"], write=seen.append)
    trainer.register_plugin(logger)
    trainer.run(epochs=2)
    texts = [line.split("\t", 1)[1] for line in seen]
    epoch = [f"progress.samples_used {n}\tprogress.percent {10 * n}" for n in (4, 8, 10)]
    assert texts == epoch * 2


def test_a_logger_prints_fields_and_single_figures():
    trainer, lines = make_trainer(lr=1e-9), []
    trainer.register_plugin(plugins.LossMonitor(precision=1, unit=" nats"))
    trainer.register_plugin(plugins.Logger(["loss"], [(1, "epoch")], lines.append))
    trainer.register_plugin(plugins.Logger(["loss.last"], [(3, "iteration")], lines.append))
    trainer.run(epochs=1)
    last, mean = (trainer.stats["loss"][key] for key in ("last", "epoch_mean"))
    assert lines == [
        f"iteration 3\tloss.last {last:.1f} nats",
        f"epoch 1\tloss.epoch_mean {mean:.1f} nats",
    ]


def test_an_optimizer_may_call_the_closure_several_times():
    trainer = make_trainer()
    trainer.optimizer = facula.optim.LBFGS(trainer.model.parameters(), max_iter=3)
    trainer.register_plugin(plugins.LossMonitor())
    trainer.run(epochs=1)
    assert trainer.iterations == 3 and trainer.stats["loss"]["last"] > 0


@pytest.mark.parametrize("interval", [(0, "epoch"), (1, "week")])
def test_wrong_intervals_are_refused(interval):
    with pytest.raises(ValueError, match=r"Plugin\(\): expected intervals"):
        plugins.Plugin([interval])


def test_a_figure_that_nobody_measures_is_named():
    trainer = make_trainer()
    trainer.register_plugin(plugins.LossMonitor())
    trainer.register_plugin(plugins.Logger(["speed"]))
    with pytest.raises(KeyError, match="expected a figure of .*loss.*; got 'speed'"):
        trainer.run()


@pytest.mark.parametrize("name", ["model", "criterion", "optimizer", "dataset"])
def test_arguments_that_cannot_be_used_raise(name):
    with pytest.raises(TypeError, match=f"expected {name}"):
        Trainer(**{name: 3})

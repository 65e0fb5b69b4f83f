"""pipeline(): where models are cut, and what passes between their stages."""

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.pipelining import (
    ScheduleGPipe,
    SplitPoint,
    pipe_split,
    pipeline,
)


class Layers(nn.Module):
    def __init__(self, marks=()):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.register_buffer("scale", facula.full((4,), 2.0))
        self.marks = marks

    def forward(self, x, shift=None):
        first = x
        for i, layer in enumerate(self.layers):
            x = layer(x).relu() * self.scale
            if i in self.marks:
                pipe_split()
        # The input itself is used by the last stage.
        x = x + first.chunk(2)[0].sum()
        return x if shift is None else x + shift


X = facula.arange(12.0).view(3, 4) / 10
BEGINNING, END = SplitPoint.BEGINNING, SplitPoint.END
CASES = {
    "calls": ((0, 1), None, [["0"], ["1"], ["2", "3"]]),
    "before a module": ((), {"layers.2": BEGINNING}, [["0", "1"], ["2", "3"]]),
    "after a module": ((), {"layers.0": END, "layers.2": END}, [["0"], ["1", "2"], ["3"]]),
    "nowhere": ((), None, [["0", "1", "2", "3"]]),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stages_have_the_layers_between_marks(case):
    marks, spec, wanted = CASES[case]
    model = Layers(marks)
    pipe = pipeline(model, (X,), split_spec=spec)
    assert pipe.num_stages == len(wanted)
    for i, layers in enumerate(wanted):
        names = {n for n, _ in pipe.get_stage_module(i).named_parameters()}
        assert names == {f"layers.{n}.{p}" for n in layers for p in ("weight", "bias")}
    (found,) = pipe(X)
    facula.testing.assert_close(found, model(X))
    assert dict(pipe.get_stage_module(0).named_parameters())["layers.0.bias"] is (
        model.layers[0].bias
    )


def test_a_policy_says_where_stages_end():
    def before_each_second_product(traced):
        products = [n for n in traced.graph.nodes if "linear" in str(n.target)]
        for node in products[2::2]:
            with traced.graph.inserting_before(node):
                traced.graph.call_function(pipe_split)
        traced.recompile()
        return traced

    model = Layers()
    pipe = pipeline(model, (X,), {"shift": X}, split_policy=before_each_second_product)
    names = [[n for n, _ in pipe.get_stage_module(i).named_parameters()] for i in range(2)]
    assert pipe.num_stages == 2
    assert [{n.split(".")[1] for n in of_stage} for of_stage in names] == [{"0", "1"}, {"2", "3"}]
    facula.testing.assert_close(pipe(X, X)[0], model(X, shift=X))


class Counts(nn.Module):
    """Changes a buffer in its first part."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", facula.zeros(()))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        self.seen.copy_(self.seen + x.sum())
        x = x * 2
        pipe_split()
        return self.linear(x)


def test_a_buffer_is_changed_by_the_stage_that_computes_it():
    model = Counts()
    pipe = pipeline(model, (X,))
    for _ in range(2):
        pipe.get_stage_module(0)(X)
    assert model.seen == 2 * X.sum()
    assert "seen" not in dict(pipe.get_stage_module(1).named_buffers())


def test_arguments_by_name_reach_the_last_stage():
    model = Layers((1,))
    pipe = pipeline(model, (X,), {"shift": X + 1})
    (found,) = pipe(X, X + 1)
    facula.testing.assert_close(found, model(X, shift=X + 1))


def test_stages_train_as_the_whole_model_does():
    facula.manual_seed(3)
    models = [Layers((1,)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    whole = models[0](X) + models[0](X + 1)
    batch, target = facula.cat([X, X + 1]), facula.zeros(6, 4)
    loss = nn.functional.mse_loss
    facula.stack([loss(models[0](b), target[:3]) for b in (X, X + 1)]).mean().backward()
    assert whole.requires_grad
    pipe = pipeline(models[1], (X,))

    def work(rank):
        schedule = ScheduleGPipe(pipe.build_stage(rank, facula.device("cpu")), 2, loss_fn=loss)
        return schedule.step(batch) if rank == 0 else schedule.step(target=target)

    output = threads.run(work, 2)[1]
    facula.testing.assert_close(output, facula.cat([models[0](X), models[0](X + 1)]))
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        facula.testing.assert_close(b.grad, a.grad)


def test_buffers_are_changed_as_by_the_model():
    parts = [nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4)) for _ in range(2)]
    parts[0](X)
    pipe = pipeline(parts[1], (X,), split_spec={"1": BEGINNING})
    pipe(X)
    assert parts[1][0].running_mean.sum() != 0
    assert parts[1][0].num_batches_tracked == 1
    facula.testing.assert_close(parts[1][0].running_mean, parts[0][0].running_mean)


def test_the_model_is_left_as_it_was():
    model = Layers()
    pipeline(model, (X,), split_spec={"layers.1": END})
    assert "forward" not in vars(model.layers[1])


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (AttributeError, "9", lambda: pipeline(Layers(), (X,), split_spec={"layers.9": END})),
        (TypeError, "SplitPoint", lambda: pipeline(Layers(), (X,), split_spec={"layers.1": 1})),
        (ValueError, "below 1; got 5", lambda: pipeline(Layers(), (X,)).get_stage_module(5)),
        (TypeError, "GraphModule", lambda: pipeline(Layers(), (X,), split_policy=lambda t: 3)),
        (ValueError, "both", lambda: pipeline(Layers(), (X,), None, {}, lambda t: t)),
        (NotImplementedError, "plain tensors", lambda: pipeline(Layers(), ([X],))),
    ],
)
def test_errors_say_what_is_wrong(error, text, call):
    with pytest.raises(error, match=text):
        call()

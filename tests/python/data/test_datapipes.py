"""Datapipes under the loader's workers, and what decorators check."""

import facula
import pytest
from facula.utils import data
from facula.utils.data.datapipes.iter import IterableWrapper
from facula.utils.data.graph_settings import apply_sharding

pytestmark = pytest.mark.filterwarnings("ignore")


def _negative(x):
    return -x


@pytest.mark.parametrize("context", ["fork", "spawn", "thread"])
def test_workers_read_each_item_once_in_a_common_order(context):
    pipe = IterableWrapper(range(20)).shuffle().sharding_filter().map(_negative)
    loader = data.DataLoader(
        pipe, num_workers=2, batch_size=None, multiprocessing_context=context, shuffle=True
    )
    passes = [list(loader), list(loader)]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(-19, 1))
    assert passes[0] != passes[1]
    assert passes[0] != list(range(0, -20, -1))


def test_sharding_twice_on_one_way_is_refused():
    pipe = IterableWrapper(range(4)).sharding_filter().map(_negative).sharding_filter()
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(pipe, 2, 0)


def test_named_functions():
    @data.functional_datapipe("twice_for_test")
    class Twice(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for item in self.source:
                yield item * 2

    try:
        assert list(IterableWrapper([1, 2]).twice_for_test()) == [2, 4]
        with pytest.raises(Exception, match="already taken"):
            data.functional_datapipe("twice_for_test")(Twice)
    finally:
        del data.IterDataPipe.functions["twice_for_test"]
    with pytest.raises(TypeError, match="expected a class of datapipes"):
        data.functional_datapipe("x")(int)


def test_types_of_items_and_arguments():
    class Ints(data.IterDataPipe[int]):
        @data.runtime_validation
        def __iter__(self):
            yield from [1, "two"]

    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(Ints())
    with data.runtime_validation_disabled():
        assert list(Ints()) == [1, "two"]

    @data.argument_validation
    def length(pipe: data.IterDataPipe):
        return len(list(pipe))

    assert length(IterableWrapper([1])) == 1
    with pytest.raises(TypeError, match="Expected argument 'pipe'"):
        length([1])


def test_a_pass_of_split_datapipes_begins_anew():
    first, second = IterableWrapper(range(3)).fork(2)
    iterator = iter(second)
    assert next(iterator) == 0
    assert list(first) == [0, 1, 2] and list(first) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="invalidated"):
        next(iterator)


def test_determinism():
    @data.non_deterministic
    class Any(data.IterDataPipe):
        pass

    Any()
    with data.guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="deterministic"):
        Any()


def test_mid_epoch_resume_of_a_shuffled_datapipe():
    loader = data.DataLoader(IterableWrapper(range(12)).shuffle(), batch_size=2)
    iterator = iter(loader)
    begun = [next(iterator).tolist() for _ in range(2)]
    state = loader.state_dict()
    rest = [b.tolist() for b in iterator]
    loader.load_state_dict(state)
    facula.manual_seed(7)
    assert [b.tolist() for b in loader] == rest
    assert sorted(sum(begun + rest, [])) == list(range(12))

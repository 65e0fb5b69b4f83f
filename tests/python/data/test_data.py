"""facula.utils.data: batches, splits and samplers."""

import facula
import pytest
from facula.utils import data


def _source(n=10):
    return data.TensorDataset(facula.arange(n), facula.arange(n) * 2)


def test_batches_in_order():
    batches = list(data.DataLoader(_source(), batch_size=4))
    assert [b[0].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(data.DataLoader(_source(), batch_size=4, drop_last=True)) == 2


def test_shuffle_is_a_permutation_that_the_seed_fixes():
    def order():
        facula.manual_seed(5)
        loader = data.DataLoader(_source(), batch_size=3, shuffle=True)
        return [i for batch in loader for i in batch[0].tolist()]

    assert order() == order()
    assert sorted(order()) == list(range(10))


def test_random_split_covers_all():
    parts = data.random_split(_source(), [0.7, 0.3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    with pytest.raises(ValueError, match="add up to"):
        data.random_split(_source(), [3, 3])


def test_iterable_dataset():
    class Count(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in data.DataLoader(Count(), batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_concat_and_subset():
    both = _source(3) + _source(2)
    assert len(both) == 5 and both[3][0].item() == 0
    assert data.Subset(both, [4])[0][1].item() == 2


def test_option_errors():
    with pytest.raises(ValueError, match="exclude"):
        data.DataLoader(_source(), shuffle=True, sampler=data.SequentialSampler(_source()))


def test_arrays_of_texts_and_objects_are_known_by_their_dtype():
    numpy = pytest.importorskip("numpy")
    pattern = data._utils.collate.np_str_obj_array_pattern
    for values, other in (
        (["a"], True),
        ([b"a"], True),
        ([None], True),
        ([1], False),
        ([1.0], False),
    ):
        array = numpy.array(values)
        assert (pattern.search(array.dtype.str) is not None) == other
        assert (data.default_convert(array) is array) == other

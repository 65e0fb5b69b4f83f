"""What shares a scale: granularities, block sizes, the observers' base, configurations as dicts."""

import dataclasses
import pickle

import facula
import facula.ao.nn.quantized as nnq
import pytest
from facula import nn
from facula.ao import quantization as ao

SIZES = [
    ((2, 3, 4), ao.PerTensor(), (2, 3, 4)),
    ((2, 3, 4), ao.PerAxis(1), (2, 1, 4)),
    ((2, 3, 4), ao.PerAxis(-1), (2, 3, 1)),
    ((2, 3, 4), ao.PerRow(), (1, 1, 4)),
    ((2, 3, 4), ao.PerToken(), (1, 1, 4)),
    ((2, 64), ao.PerGroup(32), (1, 32)),
]


@pytest.mark.parametrize("shape, granularity, sizes", SIZES)
def test_block_sizes(shape, granularity, sizes):
    assert ao.get_block_size(shape, granularity) == sizes
    assert pickle.loads(pickle.dumps(granularity)) == granularity


@pytest.mark.parametrize(
    "shape, granularity, error",
    [
        ((4, 8), 3, AssertionError),
        ((4, 8), ao.PerTensor, AssertionError),
        ((2, 3, 64), ao.PerGroup(32), AssertionError),
        ((4, 8), ao.PerBlock((1, 4)), ValueError),
        ((4, 8), ao.PerAxis(5), IndexError),
    ],
)
def test_what_has_no_block_sizes(shape, granularity, error):
    with pytest.raises(error):
        ao.get_block_size(shape, granularity)


def test_granularities_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ao.PerAxis(1).axis = 2
    assert repr(ao.PerAxis(1)) == "PerAxis(axis=1)" and ao.PerAxis(1) != ao.PerAxis(0)


class Largest(ao.AffineQuantizedObserverBase):
    def forward(self, input):
        self.block_size = ao.get_block_size(tuple(input.shape), self.granularity)
        self.largest = input.abs().amax(1)
        return input

    def calculate_qparams(self):
        return self.largest / 127, facula.zeros(len(self.largest))


def test_observers_know_what_they_are_told():
    make = Largest.with_args(
        mapping_type=ao.MappingType.SYMMETRIC, target_dtype=facula.int8, granularity=ao.PerRow()
    )
    observer = make(eps=1e-6)
    observer(facula.tensor([[1.0, -2.0], [3.0, 0.5]]))
    assert observer.block_size == (1, 2) and observer.eps == 1e-6
    assert (observer.calculate_qparams()[0] * 127).tolist() == [2.0, 3.0]
    assert observer.zero_point_domain is ao.ZeroPointDomain.INT
    with pytest.raises(AssertionError, match="granularity"):
        Largest(ao.MappingType.SYMMETRIC, facula.int8, None)
    with pytest.raises(NotImplementedError, match="export"):
        observer.convert(None, None)
    with pytest.raises(TypeError, match="abstract"):
        ao.AffineQuantizedObserverBase(ao.MappingType.SYMMETRIC, facula.int8, ao.PerRow())
    assert isinstance(ao.MinMaxObserver(), ao.ObserverOrFakeQuantize)
    assert isinstance(ao.FakeQuantize(), ao.ObserverOrFakeQuantize)


def test_mappings_as_dicts_and_back():
    mapping = ao.QConfigMapping().set_global(1).set_object_type(nn.Linear, 2)
    mapping.set_module_name_regex("a", 3).set_module_name("b", 4)
    mapping.set_module_name_object_type_order("c", nn.Linear, 0, 5)
    found = mapping.to_dict()
    assert found == {
        "": 1,
        "object_type": [(nn.Linear, 2)],
        "module_name_regex": [("a", 3)],
        "module_name": [("b", 4)],
        "module_name_object_type_order": [("c", nn.Linear, 0, 5)],
    }
    assert ao.QConfigMapping.from_dict(found).to_dict() == found
    for name in ("get_default_qconfig_dict", "get_default_qat_qconfig_dict"):
        with pytest.warns(FutureWarning, match="_mapping"):
            assert len(getattr(ao, name)()["object_type"]) == 23


def test_convolutions_come_from_observers():
    conv = nn.Conv2d(1, 2, 1)
    conv.qconfig = ao.default_qconfig
    seen = ao.MinMaxObserver(dtype=facula.quint8)
    seen(facula.tensor([-1.0, 1.0]))
    made = nnq.Conv2d.get_qconv(conv, seen)
    assert made.scale == pytest.approx(2 / 255) and made.weight().dtype is facula.qint8

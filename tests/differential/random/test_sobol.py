"""Sobol's sequence: points, states and texts as PyTorch's, plain and scrambled."""

import facula
import facula.quasirandom
import pytest
import torch


def engines(*args, **kwargs):
    """The same engine of both libraries."""
    return [library.quasirandom.SobolEngine(*args, **kwargs) for library in (facula, torch)]


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension, seed", [(1, 0), (3, 7), (40, 123), (300, 5)])
def test_points_and_states_are_the_same(dimension, seed, scramble):
    ours, theirs = engines(dimension, scramble, seed)
    assert repr(ours) == repr(theirs)
    for n in (1, 3, 8, 5, 100):
        assert ours.draw(n).tolist() == theirs.draw(n).tolist()
    for engine in (ours, theirs):
        engine.fast_forward(1000)
    points = ours.draw(7, dtype=facula.float64), theirs.draw(7, dtype=torch.float64)
    assert points[0].tolist() == points[1].tolist()
    for name in ("sobolstate", "shift", "quasi", "_first_point"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
    assert ours.num_generated == theirs.num_generated


def test_direction_numbers_of_all_dimensions_are_the_same():
    ours, theirs = engines(facula.quasirandom.SobolEngine.MAXDIM)
    assert torch.equal(torch.from_numpy(ours.sobolstate.numpy()), theirs.sobolstate)


def test_scrambling_without_a_seed_draws_the_same_from_the_default_generator():
    for library in (facula, torch):
        library.manual_seed(3)
    ours, theirs = engines(5, scramble=True)
    assert ours.draw(4).tolist() == theirs.draw(4).tolist()
    assert facula.rand(1).item() == torch.rand(1).item()


@pytest.mark.parametrize(
    "use",
    [
        lambda library: library.quasirandom.SobolEngine(0),
        lambda library: library.quasirandom.SobolEngine(21202),
        lambda library: library.quasirandom.SobolEngine(2).draw(-1),
        lambda library: library.quasirandom.SobolEngine(2).draw(1.5),
        lambda library: library.quasirandom.SobolEngine(2).draw(2**31),
        lambda library: library.quasirandom.SobolEngine(2).fast_forward(-1),
        lambda library: library.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(3),
        lambda library: library.quasirandom.SobolEngine(2).draw(2, dtype=library.float16),
    ],
)
def test_errors_are_of_the_same_class(use):
    raised = []
    for library in (facula, torch):
        with pytest.raises((ValueError, TypeError, NotImplementedError)) as error:
            use(library)
        raised.append(error.type)
    assert raised[0] is raised[1]

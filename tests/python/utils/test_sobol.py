"""Sobol's sequence: its first points, balance, drawing in parts, and where it stops."""

import facula
import pytest
from facula.quasirandom import SobolEngine


def test_first_points():
    expected = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert SobolEngine(3).draw(4).tolist() == expected


@pytest.mark.parametrize("scramble", [False, True])
def test_each_interval_of_each_dimension_has_one_point(scramble):
    points = SobolEngine(50, scramble=scramble, seed=2).draw_base2(6)
    cells = (points * 64).long().sort(0)[0]
    assert (cells == facula.arange(64).reshape(-1, 1)).all()


def test_points_do_not_depend_on_how_they_are_drawn():
    whole = SobolEngine(4, scramble=True, seed=1).draw(40)
    engine = SobolEngine(4, scramble=True, seed=1)
    parts = facula.cat([engine.draw(n) for n in (1, 6, 17, 0, 16)])
    assert facula.equal(whole, parts)
    assert facula.equal(engine.reset().fast_forward(13).draw(5), whole[13:18])


def test_points_go_into_a_given_tensor():
    out = facula.empty(0, dtype=facula.float64)
    assert SobolEngine(2).draw(3, out=out) is out
    assert out.shape == (3, 2)


def test_no_more_points_than_there_are():
    engine = SobolEngine(1).fast_forward(2**30 - 1)
    assert engine.draw().item() == 2.0**-30
    with pytest.raises(ValueError, match="at most 1073741824 points"):
        engine.draw()


@pytest.mark.parametrize(
    "call",
    [
        lambda: SobolEngine("a"),
        lambda: SobolEngine(2.5),
        lambda: SobolEngine(2).draw("a"),
        lambda: SobolEngine(2).draw_base2("a"),
        lambda: SobolEngine(2).fast_forward(1.5),
    ],
)
def test_numbers_that_are_none_are_named(call):
    with pytest.raises(TypeError, match="expected an integer as (dimension|n|m); got"):
        call()


def test_a_dtype_that_is_none_is_named():
    with pytest.raises(TypeError, match="expected a dtype; got str"):
        SobolEngine(2).draw(3, dtype="a")

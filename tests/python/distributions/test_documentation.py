"""Every public class and function of the package says what it is, in examples that run."""

import doctest
import importlib
import pkgutil

import facula
import facula.distributions
import pytest

MODULES = [
    module.name
    for module in pkgutil.walk_packages(facula.distributions.__path__, "facula.distributions.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, monkeypatch):
    from facula.distributions import kl

    monkeypatch.setattr(kl, "_KL_REGISTRY", dict(kl._KL_REGISTRY))  # an example registers a pair
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"facula": facula})
    assert result.failed == 0


@pytest.mark.parametrize("name", facula.distributions.__all__)
def test_public_names_have_an_example(name):
    value = getattr(facula.distributions, name)
    if name not in ("biject_to", "transform_to", "identity_transform"):
        assert ">>> " in value.__doc__


def test_all_names_are_in_the_package_s_dictionary():
    names = vars(facula.distributions)
    assert set(facula.distributions.__all__) <= set(names)
    assert all(name in names for name in ("constraints", "kl", "transforms", "utils"))

"""Both sides check their arguments: PyTorch's compiler, used by other tests, turns that off."""

import facula
import pytest
import torch


@pytest.fixture(autouse=True)
def checked_arguments():
    for module in (torch, facula):
        module.distributions.Distribution.set_default_validate_args(True)

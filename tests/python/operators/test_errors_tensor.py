"""Wrong shapes, dtypes, devices, indices and arguments: the exception class and a clear text."""

import re

import facula
import pytest
from error_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_error(name):
    """The call raises the class of the table with its text."""
    call, error, text = CASES[name]
    with pytest.raises(error) as caught:
        call(facula)
    assert re.search(text, str(caught.value), re.S), str(caught.value)

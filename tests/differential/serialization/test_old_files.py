"""Files of PyTorch's first years, as PyTorch reads them."""

import io

import facula
import pytest
from old_files import example_tar, with_views
from serialized_objects import plain

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("make", [example_tar, with_views])
def test_read_as_pytorch_does(tmp_path, make):
    path = tmp_path / "old"
    path.write_bytes(make())
    expected = plain(torch.load(path, weights_only=False))
    for weights_only in (True, False):
        assert plain(facula.load(path, weights_only=weights_only)) == expected
    assert plain(facula.load(io.BytesIO(make()))) == expected

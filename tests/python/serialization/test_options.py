"""Settings of save and load, by functions and by `utils.serialization.config`."""

import io
import mmap
import zipfile

import facula
import pytest
from facula import serialization
from facula.utils.serialization import config


def saved(obj):
    stream = io.BytesIO()
    facula.save(obj, stream)
    return stream.getvalue()


def test_config_is_what_the_functions_set():
    assert (config.save.compute_crc32, config.save.storage_alignment) == (True, 64)
    assert (config.load.mmap, config.load.endianness) == (False, None)
    assert config.load.mmap_flags == mmap.MAP_PRIVATE
    serialization.set_crc32_options(False)
    assert config.save.compute_crc32 is False
    config.save.compute_crc32 = True
    assert serialization.get_crc32_options() is True
    with pytest.raises(AttributeError, match="no setting"):
        config.load.other = 1
    with pytest.raises(AttributeError, match="no setting"):
        _ = config.save.other


def test_patch_holds_for_its_block(tmp_path):
    path = tmp_path / "a.pt"
    with config.patch({"save.storage_alignment": 4096}):
        facula.save([facula.ones(3), facula.ones(2)], path)
    assert config.save.storage_alignment == 64
    data = path.read_bytes()
    assert data.index(b"\0\0\x80?" * 3) % 4096 == 0
    assert zipfile.ZipFile(path).testzip() is None
    with config.patch("load.mmap", True):
        assert facula.load(path)[0].tolist() == [1, 1, 1]
        with pytest.raises(ValueError, match="needs a path"):
            facula.load(io.BytesIO(data))
        assert facula.load(io.BytesIO(data), mmap=False)[1].tolist() == [1, 1]
    with pytest.raises(AttributeError), config.patch("load", True):
        pass


def test_writing_to_a_shared_mapping_keeps_the_file_readable(tmp_path):
    path = tmp_path / "a.pt"
    facula.save({"a": facula.zeros(50), "b": facula.arange(3)}, path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        facula.load(path, mmap=True)["a"].fill_(7)
    back = facula.load(path)
    assert back["a"].tolist() == [7] * 50 and back["b"].tolist() == [0, 1, 2]
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE


def test_checksums_are_compared_unless_told_otherwise():
    data = saved(facula.ones(3)).replace(b"\0\0\x80?" * 3, b"\0\0\x80?" * 2 + b"\0\0\0@")
    with pytest.raises(RuntimeError, match="checksum"):
        facula.load(io.BytesIO(data))
    with config.patch("save.compute_crc32", False):
        assert facula.load(io.BytesIO(data)).tolist() == [1, 1, 2]


def test_skip_data_in_the_old_format_is_refused():
    with serialization.skip_data(materialize_fake_tensors=True) as nothing:
        assert nothing is None
        with pytest.raises(RuntimeError, match="skip_data"):
            facula.save(facula.ones(1), io.BytesIO(), _use_new_zipfile_serialization=False)


def test_loaded_storages_can_be_resized():
    x = facula.load(io.BytesIO(saved(facula.ones(100))))
    assert x.untyped_storage().resizable()
    assert x.resize_(1000).shape == (1000,)

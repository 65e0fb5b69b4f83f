"""hub from a folder and a file's address, monitor, fork_rng, flags of backends."""

import hashlib
import sys
from datetime import timedelta

import facula
import pytest
from facula import hub, monitor

HUBCONF = '''
dependencies = ["json"]
import helper_of_this_folder

def tiny(width=1):
    """A tiny model."""
    import facula
    return facula.nn.Linear(width, helper_of_this_folder.OUT)

def _hidden():
    pass
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "helper_of_this_folder.py").write_text("OUT = 3")
    return str(tmp_path)


def test_models_of_a_folder(folder):
    assert hub.list(folder, source="local") == ["tiny"]
    assert hub.help(folder, "tiny", source="local") == "A tiny model."
    assert hub.load(folder, "tiny", 2, source="local").weight.shape == (3, 2)
    with pytest.raises(RuntimeError, match="Cannot find callable nope"):
        hub.load(folder, "nope", source="local")
    with pytest.raises(NotImplementedError, match="GitHub"):
        hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "tiny", source="nowhere")


def test_missing_packages_are_named(folder, tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\ndef m(): pass\n")
    with pytest.raises(RuntimeError, match="no_such_package"):
        hub.load(folder, "m", source="local")


def test_weights_are_fetched_checked_and_kept(tmp_path, capsys):
    weights = {"w": facula.arange(3.0)}
    facula.save(weights, tmp_path / "plain.pt")
    digest = hashlib.sha256((tmp_path / "plain.pt").read_bytes()).hexdigest()
    source = tmp_path / f"model-{digest[:8]}.pt"
    (tmp_path / "plain.pt").rename(source)
    kept = tmp_path / "kept"
    got = hub.load_state_dict_from_url(source.as_uri(), str(kept), check_hash=True)
    assert facula.equal(got["w"], weights["w"]) and "100.0%" in capsys.readouterr().err
    source.unlink()
    again = hub.load_state_dict_from_url(source.as_uri(), str(kept), weights_only=True)
    assert facula.equal(again["w"], weights["w"])


def test_another_hash_leaves_nothing_behind(tmp_path):
    source = tmp_path / "model-00000000.pt"
    source.write_bytes(b"not it")
    kept = tmp_path / "kept"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(source.as_uri(), str(kept), progress=False, check_hash=True)
    assert list(kept.iterdir()) == []


def test_the_folder_of_hub_follows_the_environment(monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert hub.get_dir() == "/somewhere/hub"


def test_stats_are_logged_at_the_end_of_a_window():
    seen = []
    handle = monitor.register_event_handler(lambda event: seen.append((event.name, event.data)))
    kinds = list(monitor.Aggregation)
    stat = monitor.Stat("loss", kinds, timedelta(seconds=0))
    stat._window = 3600.0
    stat.add(1.0)
    stat.add(3.0)
    stat._window = 0.0
    stat.add(9.0)
    monitor.unregister_event_handler(handle)
    monitor.log_event(monitor.Event("unheard", None, {}))
    figures = {"value": 3, "mean": 2, "count": 2, "sum": 4, "max": 3, "min": 1}
    assert seen == [("torch.monitor.Stat", {f"loss.{k}": float(v) for k, v in figures.items()})]
    with pytest.raises(TypeError):
        monitor.Event("x", None, {"a": [1]})


def test_fork_rng_puts_the_stream_back():
    facula.manual_seed(1)
    with facula.random.fork_rng(devices=[]):
        first = facula.rand(3)
    assert facula.equal(facula.rand(3), first)
    with facula.random.fork_rng(enabled=False):
        second = facula.rand(3)
    assert not facula.equal(facula.rand(3), second)
    with pytest.raises(RuntimeError, match="devices"), facula.random.fork_rng(devices=[99]):
        pass


@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "nnpack"])
def test_flags_are_put_back(name):
    backend = getattr(facula.backends, name)
    before = backend.set_flags(True)
    with backend.flags(enabled=False):
        assert backend.enabled is False
    assert backend.enabled is True
    backend.set_flags(*before)
    with pytest.raises(RuntimeError, match="expects a bool"):
        backend.enabled = 3
    with pytest.raises(TypeError):
        backend.set_flags(_nope=1)


@pytest.mark.filterwarnings("ignore:.*sdp_kernel")
def test_ways_of_attention_are_put_back():
    cuda = facula.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()


def test_a_wrong_precision_is_told_of():
    with pytest.warns(UserWarning, match="no effect"):
        facula.set_float32_matmul_precision("low")


def test_progress_is_told_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.delitem(vars(hub), "tqdm", raising=False)
    assert list(hub.tqdm([1, 2], total=2)) == [1, 2]
    assert "50.0%\r100.0%" in capsys.readouterr().err
    monkeypatch.delitem(vars(hub), "tqdm")


def test_denormal_numbers_stay():
    assert not facula.set_flush_denormal(True)
    assert (facula.tensor([1e-323], dtype=facula.float64) / 2).item() == 5e-324
    assert facula.set_flush_denormal(False)
    with pytest.raises(RuntimeError, match="expected a bool"):
        facula.set_flush_denormal(1)


def test_the_default_generator_serves_outside_of_workers():
    assert facula.thread_safe_generator() is None
    assert facula.rand(2, generator=facula.thread_safe_generator()).shape == (2,)

"""Packages by themselves: errors, questions, files, folders and importers of importers."""

import io
import os
import subprocess
import sys
import zipfile

import facula
import package_cases
import pytest
from facula.package import (
    EmptyMatchError,
    GlobGroup,
    ObjMismatchError,
    ObjNotFoundError,
    OrderedImporter,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)
from facula.package.analyze import find_first_use_of_broken_modules
from facula.package.package_exporter import PackagingErrorReason


@pytest.fixture
def modules(tmp_path, monkeypatch):
    package_cases.write_modules(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("shapes", "tagged", "plotting", "network")
    for name in [n for n in sys.modules if n.partition(".")[0] in names]:
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path
    for name in [n for n in sys.modules if n.partition(".")[0] in names]:
        del sys.modules[name]


def packed(*saves, **options):
    """An importer of what the functions saved."""
    stream = io.BytesIO()
    with PackageExporter(stream, **options) as exporter:
        for save in saves:
            save(exporter)
    return PackageImporter(stream)


def test_a_network_runs_in_another_process_without_its_modules(modules):
    path = str(modules / "net.pt")
    code = package_cases.EXPORT.format(lib="torch", folder=str(modules), path=path)
    run = [sys.executable, "-m", "facula", "run", "-c"]
    written = subprocess.check_output([*run, code], text=True)
    code = package_cases.IMPORT.format(lib="torch", path=path)
    read = subprocess.check_output([*run, code], text=True)
    assert read.splitlines()[0] == written.strip()
    assert "refused" in read


REASONS = {
    "NO_ACTION": (lambda e: None, "import plotting"),
    "DENIED": (lambda e: e.deny("plotting"), "import plotting"),
    "NO_DUNDER_FILE": (lambda e: e.intern("sys"), "import sys"),
    "IS_EXTENSION_MODULE": (lambda e: e.intern("extension"), "import extension"),
    "DEPENDENCY_RESOLUTION_FAILED": (lambda e: None, "imp ort"),
    "SOURCE_FILE_NOT_FOUND": (lambda e: e.intern("gone"), "import gone"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_cannot_be_packaged_says_why(modules, reason, monkeypatch):
    for name, file in (("gone", "/nowhere/gone.py"), ("extension", "/nowhere/x.so")):
        module = type(sys)(name)
        module.__file__ = file
        monkeypatch.setitem(sys.modules, name, module)
    set_up, source = REASONS[reason]
    with pytest.raises(PackagingError) as caught:
        packed(set_up, lambda e: e.save_source_string("a", source), debug=True)
    found = {a.get("error") for a in caught.value.dependency_graph.nodes.values()} - {None}
    assert found == {PackagingErrorReason[reason]}
    ways = find_first_use_of_broken_modules(caught.value)
    assert all(way[0] == "a" for way in ways.values())


def test_a_mocked_class_that_is_saved_is_an_error(modules):
    import tagged

    with pytest.raises(PackagingError, match=r"o\.pkl.*rebuild"):
        packed(lambda e: e.mock("tagged"), lambda e: e.save_pickle("p", "o.pkl", tagged.Tagged(1)))


def test_a_pattern_that_must_match_and_does_not(modules):
    with pytest.raises(EmptyMatchError, match="nothing"):
        packed(lambda e: e.intern("nothing", allow_empty=False))


def test_a_failed_package_leaves_the_old_file(modules):
    path = modules / "old.pt"
    path.write_bytes(b"old")
    with pytest.raises(PackagingError), PackageExporter(path) as exporter:
        exporter.save_source_string("a", "import plotting")
    with pytest.raises(ZeroDivisionError), PackageExporter(path) as exporter:
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert [p.name for p in modules.iterdir() if p.name.startswith("old")] == ["old.pt"]


def test_questions_to_an_exporter(modules):
    noted = []
    with PackageExporter(io.BytesIO()) as exporter:
        exporter.intern("shapes.**")
        exporter.mock("plotting")
        exporter.register_intern_hook(lambda e, name: noted.append(name))
        removed = exporter.register_mock_hook(lambda e, name: noted.append("mocked"))
        removed.remove()
        exporter.save_source_string("a", "import shapes.area, plotting, json")
        assert exporter.interned_modules() == ["a", "shapes.area", "shapes.constants"]
        assert exporter.externed_modules() == ["json"]
        assert exporter.mocked_modules() == ["plotting"]
        assert exporter.get_rdeps("shapes.constants") == ["shapes.area"]
        assert '"a" -> "shapes.area";' in exporter.all_paths("a", "shapes.constants")
        assert '"a" -> "json";' in exporter.dependency_graph_string()
        assert [exporter.get_unique_id() for _ in range(2)] == ["0", "1"]
    assert noted == ["a", "shapes.area", "shapes.constants"]


def test_what_an_importer_lacks(modules):
    importer = packed(lambda e: e.save_text("p", "t.txt", "text"))
    with pytest.raises(RuntimeError, match=r"p/none.*not found"):
        importer.load_text("p", "none")
    with pytest.raises(ModuleNotFoundError, match=r'"shapes" in self-contained archive "<binary>"'):
        importer.import_module("shapes")
    with pytest.raises(ImportError, match="disallowed"):
        stream = io.BytesIO()
        with PackageExporter(stream) as exporter:
            exporter.save_source_string("a", "import json")
        PackageImporter(stream, lambda name: name != "json")


def test_what_damaged_archives_raise(modules):
    for data in (b"", b"PK\3\4", b"x" * 100):
        with pytest.raises(RuntimeError, match="zip archive"):
            PackageImporter(io.BytesIO(data))
    with pytest.raises(RuntimeError, match="open file failed"):
        PackageImporter(modules / "none.pt")


def test_a_folder_and_its_resources(modules):
    path = modules / "shapes.pt"
    with PackageExporter(path) as exporter:
        exporter.save_source_file("figures", str(modules / "shapes"))
        exporter.save_text("figures", "words.txt", "one two")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(modules / "unpacked")
    for place in (path, modules / "unpacked" / "shapes"):
        importer = PackageImporter(place)
        assert importer.import_module("figures").square(3) == 18
        reader = importer.get_resource_reader("figures")
        assert reader.open_resource("words.txt").read() == b"one two"
        assert sorted(reader.contents()) == ["__init__.py", "area.py", "constants.py", "words.txt"]
        assert importer.file_structure().has_file("figures/area.py")


def test_objects_of_packages_are_packed_again(modules):
    import tagged

    def save(exporter, value):
        exporter.intern("**")
        exporter.save_pickle("p", "o.pkl", value)

    first = packed(lambda e: save(e, tagged.Tagged(1)))
    value = first.load_pickle("p", "o.pkl")
    assert is_from_package(value)
    with pytest.raises(ObjMismatchError, match="list the importer for <torch_package"):
        sys_importer.get_name(type(value))
    second = packed(lambda e: save(e, value), importer=(first, sys_importer))
    again = second.load_pickle("p", "o.pkl")
    assert again.tag == ((1, "0", "PackageImporter"), "0", "PackageImporter")
    assert type(again) is not type(value)


def test_importers(modules):
    both = OrderedImporter(packed(lambda e: e.save_source_string("a.b", "x = 1")), sys_importer)
    assert both.import_module("a.b").x == 1
    assert both.import_module("json").__name__ == "json"
    assert both.get_name(GlobGroup) == (GlobGroup.__module__, "GlobGroup")
    with pytest.raises(ObjNotFoundError):
        both.get_name(lambda: 1)
    with pytest.raises(TypeError, match="expected Importer objects"):
        OrderedImporter(sys)


def test_an_import_that_fails_can_be_tried_again(modules):
    importer = packed(lambda e: e.save_source_string("a", "import os\nx = os.environ['FACULA_A']"))
    with pytest.raises(KeyError):
        importer.import_module("a")
    os.environ["FACULA_A"] = "1"
    try:
        assert importer.import_module("a").x == "1"
    finally:
        del os.environ["FACULA_A"]


def test_storages_go_where_they_are_sent():
    importer = packed(lambda e: e.save_pickle("p", "t.pkl", facula.ones(3)))
    assert importer.load_pickle("p", "t.pkl", map_location="meta").is_meta
    assert importer.load_pickle("p", "t.pkl").tolist() == [1, 1, 1]

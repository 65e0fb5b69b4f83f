"""Kernels read nothing of records, which a later build may lay out otherwise.

tools/test_abi.py links kernels that were compiled with one layout with a library of another, as a
compiler cache may: of a call they read arguments, results and dtype.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
OF_RECORDS = re.compile(
    r"\b(OpRecord|Operator|Slot|ExtensionKind)\b"
    r"|->\s*record\b|\b(c|call)\.(op|layers|step)\b|\bOpCall\s+\w+\s*[;{=]"
)


def _uses(text):
    code = re.sub(r"//[^\n]*", "", text)
    return [m.group(0) for m in OF_RECORDS.finditer(code)]


def test_kernels_read_nothing_of_records():
    files = [p for p in (ROOT / "src" / "kernels").rglob("*") if p.suffix in {".h", ".cpp"}]
    assert len(files) > 50
    found = {str(p.relative_to(ROOT)): _uses(p.read_text()) for p in files}
    assert {name: uses for name, uses in found.items() if uses} == {}


def test_the_check_finds_what_it_looks_for():
    for bad in (
        "c.op->record->flags",
        "const OpRecord& r",
        "OpCall c;",
        "call.op->variant",
        "Slot s",
    ):
        assert _uses(bad), bad
    assert not _uses("void add(void*, OpCall& c) { c.args[0]; c.compute; }  // of a Slot")

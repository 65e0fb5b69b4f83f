"""The completeness table: what each operator record has, and that its holes have a reason.

`make completeness` prints the table and fails where a hole has none. A reason is a record's `hole`:
parts divided by semicolons, each of the form "vjp, jvp: why". "derivatives" stands for vjp and jvp,
"vmap" for batch; a part without names of columns is about all of them but the sample.
"""

import re
from collections import Counter

import facula
import pytest
from all_dtypes import DTYPES, runs
from reached_operators import is_smooth, reached_names
from samples import load_ops

TABLE = facula._C._operator_table()
COLUMNS = ("cpu", "meta", "vjp", "jvp", "batch", "sample", "doc")
# What a reason may say for the names of columns.
WORDS = {"derivatives": ("vjp", "jvp"), "vmap": ("batch",)}


def _by_name():
    """The rows of the table of samples by every name that a record may have for them."""
    # "linalg.cross" is the operator linalg_cross, "nn.functional.pad" is pad.
    found = {}
    for op in load_ops():
        for name in {op.short_name, op.name.replace(".", "_")}:
            found.setdefault(name, []).append(op)
            found.setdefault(name.rstrip("_"), []).append(op)
    return found


ROWS = _by_name()


def _names_of(row):
    return {row["name"], row["name"].strip("_"), *row["aliases"].split(",")} - {""}


def _has_no_gradient(row):
    """Operators whose results no derivative can reach: their record, types or samples say so.

    Composites that choose among operators are differentiated through those.
    """
    if row["composite"] in ("implicit", "selecting") or row["not_differentiable"]:
        return True
    if not row["tensor_inputs"] or "factory" in row["flags"]:
        return True
    if "Tensor" not in row["schema"].rpartition("->")[2]:  # numbers, or nothing
        return True
    if "geometry_only" in row["flags"] and not row["vjp"]:  # sizes and strides, no values
        return True
    sampled = [op for name in _names_of(row) for op in ROWS.get(name, ())]
    return not row["vjp"] and bool(sampled) and not any(map(is_smooth, sampled))


def columns_of(row, reached):
    """Column -> True (there), False (a hole) or None (needs none)."""
    composite = bool(row["composite"])
    runs = row["cpu"] or row["any"]
    derivative = None if _has_no_gradient(row) else row["vjp"]
    return {
        "cpu": runs,
        # Composites and views run on meta tensors by what they call.
        "meta": None if "shape_from_data" in row["flags"] else row["meta"] or row["any"],
        "vjp": derivative,
        "jvp": None if derivative is None else row["jvp"],
        "batch": None if composite or not row["tensor_inputs"] else row["batch"],
        "sample": bool(_names_of(row) & (ROWS.keys() | reached)),
        "doc": bool(row["doc"].strip()),
    }


def reasons_of(row):
    """Column -> why it may be empty, from the record's text."""
    found = {}
    for part in filter(None, row["hole"].split(";")):
        label, colon, text = part.strip().partition(": ")
        words = [c for word in label.split(", ") for c in WORDS.get(word, (word,))]
        if colon and set(words) <= set(COLUMNS):
            found |= dict.fromkeys(words, text)
        else:
            found |= {c: part.strip() for c in COLUMNS if c != "sample"}
    return found


REACHED = reached_names()
FOUND = [(row, columns_of(row, REACHED)) for row in TABLE]


def _full_name(row):
    return row["name"] + ("." + row["overload"] if row["overload"] else "")


def _printed():
    marks = {True: "x", False: ".", None: "-"}
    lines = [f"{'operator':<44}" + "".join(f"{c:>8}" for c in COLUMNS) + "  reason"]
    for row, found in FOUND:
        cells = "".join(f"{marks[found[c]]:>8}" for c in COLUMNS)
        lines.append(f"{_full_name(row):<44}{cells}  {row['hole']}")
    for label, value in (("there", True), ("holes", False)):
        counts = Counter(c for _, found in FOUND for c in COLUMNS if found[c] is value)
        lines.append(f"{label:<44}" + "".join(f"{counts[c]:>8}" for c in COLUMNS))
    return "\n".join(lines)


def test_print_table(capsys):
    """Prints the table (`pytest -s` or a failing run shows it); CI keeps it with the log."""
    with capsys.disabled():
        print("\n" + _printed())
    assert len(TABLE) >= 80


@pytest.mark.parametrize("column", COLUMNS)
def test_every_hole_has_a_reason(column):
    """What a record lacks, its `hole` gives a reason for."""
    holes = [
        _full_name(row)
        for row, found in FOUND
        if found[column] is False and column not in reasons_of(row)
    ]
    assert not holes, f"without {column}, and without a reason: {holes}"


def test_reasons_are_of_holes():
    """A reason that names columns names empty ones: what was filled needs no reason any more."""
    idle = [
        f"{_full_name(row)}: {column}"
        for row, found in FOUND
        for column in reasons_of(row)
        if _is_named(row["hole"], column) and found[column] is True
    ]
    assert not idle


def _is_named(hole, column):
    words = [column, *(word for word, columns in WORDS.items() if column in columns)]
    return any(re.search(rf"\b{word}\b[^;:]*: ", hole) for word in words)


@pytest.mark.parametrize(
    ("hole", "columns"),
    [
        ("", set()),
        ("vmap: one by one", {"batch"}),
        ("derivatives: none; sample: none", {"vjp", "jvp", "sample"}),
        ("a number in Python", {"cpu", "meta", "vjp", "jvp", "batch", "doc"}),
    ],
)
def test_reasons_are_read(hole, columns):
    assert reasons_of({"hole": hole}).keys() == columns


def test_count_dtypes(capsys):
    """Prints how many of all dtypes the first sample of each operator runs with; a dtype that a
    kernel lacks raises (test_unset_memory.py), and an operator without any is a hole."""
    counts = {op.name: sum(runs(op, d) for d in DTYPES) for op in load_ops() if op.samples}
    with capsys.disabled():
        print(f"\n{'operator':<44}{'dtypes':>8} of {len(DTYPES)}")
        print("\n".join(f"{name:<44}{count:>8}" for name, count in sorted(counts.items())))
    assert not [name for name, count in counts.items() if count == 0]


def test_docs_are_sentences():
    """A doc is a sentence: a capital or a formula first, two words or more, a full stop."""
    wrong = [f"{_full_name(row)}: {row['doc']!r}" for row in TABLE if not _is_sentence(row["doc"])]
    assert not wrong


def _is_sentence(doc):
    # A formula starts with a sign, a single letter, or a name before a sign.
    starts = re.match(r"[A-Z]|[^a-z]|[a-z]\b|\w+\(|\w+ ([-+*/=<>^|&@!%]|log\()", doc)
    words = len(re.findall(r"\w+", doc))
    tidy = doc == doc.strip() and "  " not in doc and ".." not in doc.replace("...", "")
    return bool(starts) and words >= 2 and tidy and doc.endswith(".") and doc.count("`") % 2 == 0


def test_schemas_are_unique():
    names = Counter(map(_full_name, TABLE))
    assert [name for name, count in names.items() if count > 1] == []


def test_public_names_are_found():
    """Every name that a record says is public is found where the record says it is."""
    missing = []
    homes = {"": facula, "nn": facula._C._nn}
    for row in TABLE:
        names = [row["name"], *filter(None, row["aliases"].split(","))]
        home = homes.get(row["python_module"])
        for name in names:
            if name.startswith(("special_", "linalg_", "fft_")):
                continue  # found in the module that the prefix names
            if "function" in row["forms"] and home is not None and not hasattr(home, name):
                missing.append(f"{row['python_module']}.{name}")
            if "method" in row["forms"] and not hasattr(facula.Tensor, name):
                missing.append(f"Tensor.{name}")
    assert not missing


def test_samples_name_operators():
    """Rows of the table of samples name something that exists."""
    from samples.common import find

    missing = []
    for op in load_ops():
        try:
            find(facula, op.name)
        except AttributeError:
            missing.append(f"{op.family}: {op.name}")
    assert not missing

#!/usr/bin/env python3
"""Reads the operator records in src/ops and writes what the build derives from them.

    python tools/generate.py --source . --output build/generated

Written (each only when its text changes, so that a changed operator rebuilds its file alone):

    ops/FAMILY/FILE.h        typed C++ functions of the records in src/ops/FAMILY/FILE.cpp
    ops/all.h                all of them
    table.cpp                the operators: one entry for each variant of each record, by name
    kernels/FAMILY/FILE.cpp  instantiations of the loops that FILE.cpp names (cpu::unary<...>, ...)

With --stubs FOLDER also type stubs of all operators for Python's checkers (stubs.py).
"""

import argparse
import itertools
import pathlib
import re
import sys

from stubs import stub_files

# OP(name){ .schema = ... }, or OP(name) helper<...>(arguments, { .schema = ... }): the helper fills
# in what records of a kind have in common; what is read here stands in the record's own text.
RECORD = re.compile(r"^OP\((\w+)\)\s*(?:[^;\n{]*\((?:[^;{]|\{[^;{}]*;\s*\})*)?\{(?=\s*\.)", re.M)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
LOOPS = re.compile(r"\bcpu::(unary|binary|ternary)<(scalar::[\w:<>, ]+?)>(?=[,;)\s}])")
# cpu::reduction<scalar::sum> and its like, whose functors have no parameters of their own.
REDUCTIONS = re.compile(r"\bcpu::(\w*)reduction<([^<>;]*)>")
FORM_SETS = {
    "all_forms": {"function", "method", "inplace", "out"},
    "function_method": {"function", "method"},
}
CPP_WORDS = set(
    "and or xor not int float double long short char bool default this new delete operator "
    "template typename class struct union register signed unsigned auto const".split()
)


class BadRecord(Exception):
    """A record that cannot be read; the message says where and why."""


def block_end(text, start):
    """Position after the brace that closes the one at `start`, skipping strings and comments."""
    depth, i = 0, start
    while i < len(text):
        c = text[i]
        if c == '"':
            i = STRING.match(text, i).end()
            continue
        if text.startswith("//", i):
            i = text.index("\n", i)
            continue
        depth += (c == "{") - (c == "}")
        i += 1
        if depth == 0:
            return i
    raise BadRecord("a record's braces do not close")


def strings_after(body, field):
    """The adjacent string literals that a field is set to, joined; None where it is absent."""
    m = re.search(rf"\.{field}\s*=\s*", body)
    if not m:
        return None
    text, i = [], m.end()
    while True:
        lit = re.compile(r'\s*"((?:[^"\\]|\\.)*)"').match(body, i)
        if not lit:
            break
        text.append(lit.group(1))
        i = lit.end()
    return "".join(text)


def forms_of(body):
    m = re.search(r"\.forms\s*=\s*([\w\s|]+)", body)
    words = set(re.findall(r"\w+", m.group(1))) if m else {"function"}
    for name, parts in FORM_SETS.items():
        if name in words:
            words = words - {name} | parts
    return words


class Argument:
    PATTERN = re.compile(r"^([\w]+)(\([^)]*\))?((?:\[\d*\]|\?)*)\s+(\w+)(?:=(.*))?$")

    def __init__(self, text):
        m = self.PATTERN.match(text.strip())
        if not m:
            raise BadRecord(f"cannot read the argument '{text}'")
        self.kind, self.alias, self.suffix, self.name, self.default = m.groups()
        self.written = bool(self.alias) and "!" in self.alias
        self.keyword_only = False

    @property
    def cpp_name(self):
        return self.name + "_" if self.name in CPP_WORDS else self.name


def split_top(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [p.strip() for p in parts + [current] if p.strip()]


def read_arguments(texts):
    """The arguments of a schema; those after `*` are given by keyword alone."""
    args = [Argument(text) for text in texts if text != "*"]
    first = texts.index("*") if "*" in texts else len(texts)
    for a in args[first:]:
        a.keyword_only = True
    return args


class Record:
    def __init__(self, ident, body, file):
        self.ident, self.file = ident, file
        self.schema = strings_after(body, "schema")
        if not self.schema:
            raise BadRecord(f"{file}: OP({ident}) has no schema")
        m = re.match(r"^(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)$", self.schema)
        if not m:
            raise BadRecord(f"{file}: OP({ident}): cannot read the schema '{self.schema}'")
        self.name, self.overload, args, results = (
            m.group(1),
            m.group(2) or "",
            m.group(3),
            m.group(4),
        )
        self.args = read_arguments(split_top(args))
        results = results.strip()
        self.results = split_top(results[1:-1] if results.startswith("(") else results)
        self.forms = forms_of(body)
        self.out_name = strings_after(body, "out_name")
        self.python_module = strings_after(body, "python_module") or ""
        self.aliases = [
            a.strip() for a in (strings_after(body, "aliases") or "").split(",") if a.strip()
        ]
        m = re.search(r"\.numbers\s*=\s*names\(([^)]*)\)", body)
        self.numbers = set(re.findall(r'"(\w+)"', m.group(1))) if m else set()
        self.primary_inplace = bool(self.args) and self.args[0].written

    def variants(self):
        """(C++ identifier, enumerator, operator name, overload) of every variant."""
        yield self.ident, "Base", self.name, self.overload
        if "inplace" in self.forms and not self.primary_inplace:
            yield self.ident + "_inplace", "Inplace", self.name + "_", self.overload
        if "out" in self.forms:
            default = "out" if self.overload in ("", "Tensor") else self.overload + "_out"
            name = self.name.rstrip("_") if self.primary_inplace else self.name
            yield self.ident + "_out", "Out", name, self.out_name or default
        if "functional" in self.forms:
            yield self.ident + "_functional", "Functional", self.name.rstrip("_"), self.overload


# --- typed C++ functions

BASE_TYPES = {
    "Tensor": "Tensor",
    "int": "int64_t",
    "SymInt": "int64_t",
    "float": "double",
    "bool": "bool",
    "Scalar": "Scalar",
    "str": "std::string_view",
    "ScalarType": "DType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator*",
    "Storage": "Storage*",
}
LIST_TYPES = {
    "Tensor": "std::span<const Tensor>",
    "int": "IntList",
    "SymInt": "IntList",
    "float": "std::span<const double>",
    "bool": "std::span<const bool>",
    "Scalar": "std::span<const Value>",
}


def parameter(arg, numbers):
    """C++ parameter type, and the expression that packs it."""
    is_list, optional = "[" in arg.suffix, arg.suffix.endswith("?")
    name = arg.cpp_name
    if is_list:
        kind = LIST_TYPES[arg.kind]
        if arg.kind == "Tensor":
            return kind, f"pack({name})"
        return (f"std::optional<{kind}>", f"pack({name})") if optional else (kind, f"pack({name})")
    if arg.kind == "Tensor":
        return ("const Operand&" if arg.name in numbers else "const Tensor&"), f"pack({name})"
    if arg.kind == "Scalar":
        return (
            "const std::optional<Scalar>&" if optional else "const Scalar&"
        ), f"{name}_value.value"
    kind = BASE_TYPES[arg.kind]
    if optional and not kind.endswith("*"):
        return f"std::optional<{kind}>", f"pack({name})"
    return kind, f"pack({name})"


def cpp_default(arg):
    d = arg.default
    if d is None:
        return None
    if d in ("None", "[]"):
        return "nullptr" if arg.kind in ("Generator", "Storage") else "{}"
    if d in ("True", "False"):
        return d.lower()
    if d.startswith("["):
        return "IntList{" + d[1:-1] + "}" if arg.kind in ("int", "SymInt") else None
    if d[0] in "'\"":
        return '"' + d[1:-1] + '"'
    if re.match(r"^-?\d", d):
        if "[" in arg.suffix:
            size = re.search(r"\[(\d+)\]", arg.suffix)
            return "IntList{" + ", ".join([d] * int(size.group(1) if size else 1)) + "}"
        return d
    if d == "inf":
        return "__builtin_inf()"
    return {
        "Mean": "1",
        "Sum": "2",
        "contiguous_format": "MemoryFormat::Contiguous",
        "preserve_format": "MemoryFormat::Preserve",
        "long": "DType::Int64",
        "strided": "Layout::Strided",
    }.get(d)


def result_code(results, op):
    kinds = [r.split()[0] for r in results]
    kinds = [re.sub(r"\([^)]*\)", "", k) for k in kinds]
    if not kinds:
        return "void", f"call_nothing({op}, args);"
    if len(kinds) > 1:
        if all(k == "Tensor" for k in kinds):
            return (
                f"std::tuple<{', '.join(['Tensor'] * len(kinds))}>",
                f"return call_tuple<{len(kinds)}>({op}, args);",
            )
        return None, None
    if kinds[0] == "Tensor":
        return "Tensor", f"return call_tensor({op}, args);"
    if kinds[0] == "Tensor[]":
        return "std::vector<Tensor>", f"return call_tensors({op}, args);"
    if kinds[0] in ("Scalar", "bool", "int", "SymInt", "float"):
        kind = BASE_TYPES[kinds[0]]
        return (
            kind,
            f"Results<1> r; call({op}, args, r.slots); return r.slots[0].as_scalar().to<{kind}>();"
            if kind != "Scalar"
            else f"Results<1> r; call({op}, args, r.slots); return r.slots[0].as_scalar();",
        )
    return None, None


def typed_function(record, ident, variant, seen):
    name, args = record.name, list(record.args)
    results = record.results
    if variant == "Inplace":
        name += "_"
        results = [] if "[" in args[0].suffix else results[:1]
    if variant == "Functional":
        name = name.rstrip("_")
        results = results or ["Tensor[]" if "[" in record.args[0].suffix else "Tensor"]
    if variant == "Out":
        return ""
    kind, code = result_code(results, f"op::{ident}")
    if kind is None:
        return ""
    types, packed, prepare = [], [], []
    for a in args:
        t, expression = parameter(a, record.numbers)
        types.append(t)
        packed.append(expression)
        if a.kind == "Scalar" and "[" not in a.suffix:
            cls = "OptionalScalarArg" if a.suffix.endswith("?") else "ScalarArg"
            prepare.append(f"const {cls} {a.cpp_name}_value({a.cpp_name});")
    key = (name, tuple(types))
    if key in seen:
        name = f"{name}_{record.overload}"
    seen.add(key)
    defaults = [cpp_default(a) for a in args]
    for i in range(len(args) - 1, -1, -1):
        if defaults[i] is None:
            defaults[: i + 1] = [None] * (i + 1)
            break
    params = ", ".join(
        f"{t} {a.cpp_name}" + (f" = {d}" if d is not None else "")
        for t, a, d in zip(types, args, defaults, strict=True)
    )
    body = " ".join(prepare)
    if packed:
        body += f" Value args[] = {{{', '.join(packed)}}};"
    else:
        body += " Value* args = nullptr;"
    return f"inline {kind} {name}({params}) {{{body and ' '}{body.strip()} {code} }}\n"


def file_header(records):
    seen, functions, declared = set(), [], []
    for r in records:
        for ident, variant, _, _ in r.variants():
            declared.append(f"extern Operator {ident};")
            functions.append(typed_function(r, ident, variant, seen))
    return (
        "// Generated by tools/generate.py. Do not edit.\n#pragma once\n"
        '#include "dispatch/typed_call.h"\n\n'
        "namespace facula::op {\n" + "\n".join(declared) + "\n}  // namespace facula::op\n\n"
        "namespace facula::ops {\n" + "".join(functions) + "}  // namespace facula::ops\n"
    )


def table_source(records):
    rows, variants, declared = [], [], []
    for r in records:
        declared.append(f"extern const OpRecord {r.ident}_record;")
        for ident, variant, name, overload in r.variants():
            variants.append(
                f"constinit Operator {ident}{{&records::{r.ident}_record, Variant::{variant}}};"
            )
            rows.append((name, overload, ident))
    rows.sort()
    for a, b in itertools.pairwise(rows):
        if a[:2] == b[:2]:
            raise BadRecord(f"two operators are called {a[0]}.{a[1]}: {a[2]} and {b[2]}")
    entries = "\n".join(f'    {{"{n}", "{o}", &op::{i}}},' for n, o, i in rows)
    return (
        '// Generated by tools/generate.py. Do not edit.\n#include "dispatch/operator.h"\n\n'
        "namespace facula {\nnamespace records {\n"
        + "\n".join(declared)
        + "\n}\nnamespace op {\n"
        + "\n".join(variants)
        + "\n}\nnamespace {\nconstexpr OperatorEntry entries[] = {\n"
        + entries
        + "\n};\n}\n\nstd::span<const OperatorEntry> builtin_operators() { return entries; }\n\n"
        "}  // namespace facula\n"
    )


# Which header has the loops of a kind.
LOOP_HEADERS = {
    "Unary": "elementwise/pointwise_loops.h",
    "Binary": "elementwise/pointwise_loops.h",
    "Ternary": "elementwise/pointwise_loops.h",
    "Reduction": "reduce/reduction_loops.h",
    "ArgReduction": "reduce/arg_reduction_loops.h",
}


def loops_of(text):
    """Pairs of a kind of loops and the functor that they run, as the records name them."""
    loops = {(kind.title(), functor) for kind, functor in LOOPS.findall(text)}
    for prefix, arguments in REDUCTIONS.findall(text):
        kind = "ArgReduction" if prefix == "arg_" else "Reduction"
        loops |= {(kind, functor) for functor in re.findall(r"scalar::\w+", arguments)}
    return sorted(loops)


def kernel_source(file, loops):
    lines = "\n".join(f"template struct {kind}Loops<{functor}>;" for kind, functor in loops)
    headers = "\n".join(
        f'#include "kernels/cpu/{h}"' for h in sorted({LOOP_HEADERS[kind] for kind, _ in loops})
    )
    return (
        "// Generated by tools/generate.py. Do not edit.\n#define FACULA_KERNEL_PASS\n"
        f'#include "ops/{file}.cpp"\n{headers}\n\n'
        f"namespace facula::cpu::FACULA_ISA {{\n{lines}\n}}\n"
    )


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def read_records(path, file):
    text = path.read_text()
    # Commented-out records do not count; positions stay, so blank them out.
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    records = []
    for m in RECORD.finditer(text):
        body = text[m.end() - 1 : block_end(text, m.end() - 1)]
        records.append(Record(m.group(1), body, file))
    loops = loops_of(text)
    return records, loops


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--source", type=pathlib.Path, default=pathlib.Path("."))
    ap.add_argument("--output", type=pathlib.Path, required=True)
    ap.add_argument("--stubs", type=pathlib.Path, help="where type stubs go")
    ap.add_argument(
        "--list-kernels",
        action="store_true",
        help="print the files of records that have loops to instantiate",
    )
    a = ap.parse_args()
    everything, files = [], []
    folder = a.source / "src/ops"
    try:
        for path in sorted(folder.rglob("*.cpp")):
            file = path.relative_to(folder).with_suffix("").as_posix()
            records, loops = read_records(path, file)
            if loops and a.list_kernels:
                print(file)
            if a.list_kernels:
                continue
            if loops:
                write(a.output / "kernels" / f"{file}.cpp", kernel_source(file, loops))
            if records:
                files.append(file)
                write(a.output / "ops" / f"{file}.h", file_header(records))
                everything += records
        if a.list_kernels:
            return 0
        write(
            a.output / "ops/all.h",
            "#pragma once\n" + "".join(f'#include "ops/{f}.h"\n' for f in files),
        )
        write(a.output / "table.cpp", table_source(everything))
        for name, text in stub_files(everything).items() if a.stubs else ():
            write(a.stubs / name, text)
    except BadRecord as e:
        print(f"generate.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

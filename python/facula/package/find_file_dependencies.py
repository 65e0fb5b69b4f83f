"""Which modules a source text imports."""

from __future__ import annotations

import ast


class _Imports(ast.NodeVisitor):
    def __init__(self, package):
        self._package = package
        self.found = {}

    def visit_Import(self, node):
        for alias in node.names:
            self.found[alias.name, None] = True

    def visit_ImportFrom(self, node):
        module = self._absolute(node.module or "", node.level)
        for alias in node.names:
            self.found[module, None if alias.name == "*" else alias.name] = True

    def _absolute(self, module, level):
        if not level:
            return module
        above = self._package.rsplit(".", level - 1)
        if len(above) < level or not self._package:
            raise ImportError(f"{'.' * level}{module} is beyond the package {self._package!r}")
        return f"{above[0]}.{module}" if module else above[0]

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "__import__":
            self._note_call(node)
        self.generic_visit(node)

    def _note_call(self, node):
        names = {"name": 0, "level": 4}
        given = dict(zip(names, [None, 0], strict=False))
        for name, at in names.items():
            value = node.args[at] if len(node.args) > at else None
            value = next((k.value for k in node.keywords if k.arg == name), value)
            if value is not None:
                given[name] = value.value if isinstance(value, ast.Constant) else None
        if isinstance(given["name"], str) and isinstance(given["level"], int):
            self.found[self._absolute(given["name"], given["level"]), None] = True


def find_files_source_depends_on(source, package):
    """What a module's source imports, wherever in it that stands.

    Args:
        source (str): the text of the module.
        package (str): the package that relative imports start from.

    Returns:
        list of (module, name): the name is None for `import module`; else it may be a module
        in `module`, or anything else that is defined there.

    Raises:
        SyntaxError: the source cannot be parsed.
        ImportError: a relative import leads out of the package.

    Example:
        >>> from facula.package.find_file_dependencies import find_files_source_depends_on
        >>> find_files_source_depends_on("from . import layers", "net")
        [('net', 'layers')]
    """
    visitor = _Imports(package)
    visitor.visit(ast.parse(source))
    return list(visitor.found)

"""What files a package has, as a tree that prints itself."""

from __future__ import annotations

from .glob_group import GlobGroup

__all__ = ["Directory"]


class Directory:
    """A folder or a file of a package.

    Args:
        name (str): without the folders above.
        is_dir (bool): False for a file.
    """

    def __init__(self, name: str, is_dir: bool):
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, file_path: str):
        *folders, name = file_path.split("/")
        at = self
        for folder in folders:
            at = at.children.setdefault(folder, Directory(folder, True))
        if name:
            at.children[name] = Directory(name, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file of this path, such as "model/weights.pkl"."""
        at = self
        for part in filename.split("/"):
            if part not in at.children:
                return False
            at = at.children[part]
        return True

    def __str__(self):
        lines: list[str] = []
        self._stringify_tree(lines)
        return "".join(lines)

    def _stringify_tree(self, str_list, preamble="", dir_ptr="─── "):
        str_list.append(f"{preamble}{dir_ptr}{self.name}\n")
        below = preamble + {"─── ": "    ", "├── ": "│   ", "└── ": "    "}[dir_ptr]
        children = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in children:
            last = child is children[-1]
            child._stringify_tree(str_list, below, "└── " if last else "├── ")


def _create_directory_from_file_list(filename, file_list, include="**", exclude=()):
    group = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(filename, True)
    for file in file_list:
        if group.matches(file):
            top._add_file(file)
    return top

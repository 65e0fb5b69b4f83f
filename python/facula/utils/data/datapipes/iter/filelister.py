"""Paths of files."""

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """Paths of the files in folders.

    Args:
        root (str, list of str or IterDataPipe): the folders.
        masks (str or list of str): patterns of names; "" for all.
        recursive (bool): of the folders in them as well.
        abspath (bool): absolute paths.
        non_deterministic (bool): in the order of the system; else sorted.
        length (int): what len() is to say.
    """

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive=False,
        abspath=False,
        non_deterministic=False,
        length=-1,
    ):
        super().__init__()
        root = [root] if isinstance(root, str) else root
        is_pipe = isinstance(root, IterDataPipe)
        self.datapipe = root if is_pipe else IterableWrapperIterDataPipe(root)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self):
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self):
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length

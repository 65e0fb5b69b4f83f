"""Models of others: from a folder with a hubconf.py, and weights from an address.

Folders are read from the disk (`source="local"`). Fetching repositories from GitHub is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import facula
from facula import _missing

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
READ_DATA_CHUNK = 128 * 1024
# The end of a file's name may be the start of its hash: resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_state = {"dir": None}


def _get_torch_home():
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir():
    """The folder for models and weights: that of `set_dir`, else `hub` in TORCH_HOME."""
    return _state["dir"] or os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Set the folder for models and weights."""
    _state["dir"] = os.path.expanduser(d)


# --- folders with a hubconf.py


def _check_source(source):
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')


def _folder_of(repo, source):
    _check_source(source)
    if source == "local":
        return os.path.expanduser(repo)
    raise NotImplementedError(
        f"hub: fetching {repo!r} from GitHub is missing; clone it and give the folder with "
        'source="local"'
    )


@contextmanager
def _on_the_path(folder):
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder):
    """The module of a folder's hubconf.py."""
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.exists(path):
        raise FileNotFoundError(f"hub: expected {MODULE_HUBCONF} in {folder!r}")
    with _on_the_path(folder):
        spec = spec_from_file_location(MODULE_HUBCONF, path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def _check_dependencies(module):
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or () if not _is_there(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _is_there(name):
    return name in sys.modules or find_spec(name) is not None


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def list(
    github,
    force_reload=False,
    skip_validation=False,
    trust_repo="check",
    verbose=True,
    *,
    source="github",
):
    """The names of the models that a folder offers.

    Args:
        github (str): the folder, where `source` is "local".

    Returns:
        list of str

    Raises:
        NotImplementedError: a repository of GitHub.
    """
    module = _hubconf(_folder_of(github, source))
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and not isinstance(value, type)
    ]


def help(
    github,
    model,
    force_reload=False,
    skip_validation=False,
    trust_repo="check",
    *,
    source="github",
):
    """The docstring of a model that a folder offers."""
    return _entry(_hubconf(_folder_of(github, source)), model).__doc__


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo="check",
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """A model that a folder offers.

    Args:
        repo_or_dir (str): the folder.
        model (str): the name of a function in its hubconf.py; further arguments are for it.
        source (str): "local".

    Returns:
        what the function gives.

    Raises:
        RuntimeError: there is no such function, or packages that it needs are missing.
        NotImplementedError: a repository of GitHub.
    """
    folder = _folder_of(repo_or_dir, source.lower())
    with _on_the_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def _load_local(hubconf_dir, model, *args, **kwargs):
    return load(hubconf_dir, model, *args, source="local", **kwargs)


# --- weights from an address


class _Progress:
    """A line on stderr that tells how much has come; a small part of tqdm's class."""

    def __init__(self, iterable=None, desc=None, total=None, disable=False, **options):
        self.iterable, self.desc, self.total, self.disable = iterable, desc, total, disable
        self.n = 0

    def update(self, n=1):
        self.n += n
        if not self.disable:
            part = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n}"
            sys.stderr.write(f"\r{self.desc + ': ' if self.desc else ''}{part}")
            sys.stderr.flush()

    def close(self):
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __iter__(self):
        with self:
            for item in self.iterable:
                yield item
                self.update()


def __getattr__(name):
    if name != "tqdm":
        raise _missing.attribute(__name__, name)
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = _Progress
    globals()["tqdm"] = tqdm
    return tqdm


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Fetch a file; it is whole under its name, or not there.

    Args:
        url (str): the address: http, https, ftp or file.
        dst (str): the file's name here.
        hash_prefix (str): how its SHA-256 must begin.
        progress (bool): whether stderr tells how much has come.

    Raises:
        RuntimeError: the hash is another.
    """
    dst = os.path.expanduser(dst)
    digest = None if hash_prefix is None else hashlib.sha256()
    handle, part = tempfile.mkstemp(dir=os.path.dirname(dst) or ".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            _fetch(url, file, digest, progress)
        if digest is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
            )
        os.chmod(part, 0o644)
        os.replace(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def _fetch(url, file, digest, progress):
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as reply:
        length = reply.headers.get("Content-Length")
        shown = _Progress(total=int(length) if length else None, disable=not progress)
        while chunk := reply.read(READ_DATA_CHUNK):
            file.write(chunk)
            if digest is not None:
                digest.update(chunk)
            shown.update(len(chunk))
        shown.close()


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=False,
):
    """Weights from an address, kept in a folder for the next time.

    Args:
        url (str): the address of a file that `facula.load` reads.
        model_dir (str): where it is kept; `checkpoints` in `get_dir()` unless given.
        map_location, weights_only: as for `facula.load`.
        progress (bool): whether stderr tells how much has come.
        check_hash (bool): the file's name ends in the start of its SHA-256, which is compared.
        file_name (str): the name to keep it under.

    Raises:
        RuntimeError: the hash is another.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    if _is_legacy_zip_format(path):
        path = _only_member(path, folder)
    return facula.load(path, map_location=map_location, weights_only=weights_only)


def _is_legacy_zip_format(filename):
    """Whether a file is an archive around one file, rather than a checkpoint itself."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as archive:
        return len(archive.infolist()) == 1


def _only_member(filename, folder):
    with zipfile.ZipFile(filename) as archive:
        return archive.extract(archive.infolist()[0], folder)

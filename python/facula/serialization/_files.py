"""Opening files for `save` and `load`: paths, file objects, and replacing a file in one step."""

import contextlib
import os
import stat


def is_path(f):
    """Whether `f` names a file."""
    return isinstance(f, (str, os.PathLike))


@contextlib.contextmanager
def opened_to_read(f):
    """A seekable file object of bytes for a path or a file object.

    Raises:
        AttributeError: `f` is neither.
    """
    if is_path(f):
        with open(f, "rb") as file:
            yield file
        return
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {name!r}: load() needs a file that "
                "can be read at any place, such as io.BytesIO"
            )
    yield f


@contextlib.contextmanager
def opened_to_write(f):
    """A `write` function for a path or a file object; a path changes only when all went well.

    Raises:
        AttributeError: `f` is neither.
        RuntimeError: the folder of a path does not exist, or the path is a folder.
    """
    if is_path(f):
        with _replaced_file(os.fspath(f)) as file:
            yield file.write
        return
    if not hasattr(f, "write"):
        raise AttributeError(f"save(): f must be a path or have write(); got {type(f).__name__}")
    yield f.write
    if hasattr(f, "flush"):
        f.flush()


def _file_mode(path):
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _replaced_file(path):
    # A link is kept: what it points to is replaced.
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    mode = _file_mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise RuntimeError(f"save(): cannot write to {path}: Is a directory")
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb", buffering=_PIECE) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def archive_name(f):
    """The folder in an archive: the file's name without its last extension, else "archive"."""
    if not is_path(f):
        return "archive"
    return os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"


_PIECE = 1 << 20  # fits the processor's cache, where whoever looks at it finds it


def read_into(file, data, note=None):
    """Fills a buffer from a file object; returns how many bytes there were.

    Args:
        file: a file object of bytes.
        data: a writable buffer.
        note (callable): is shown each piece that was read, soon after.
    """
    readinto = getattr(file, "readinto", None)
    done = 0
    with memoryview(data) as whole:
        while done < len(whole):
            end = len(whole) if note is None else min(done + _PIECE, len(whole))
            with whole[done:end] as part:
                count = _read_part(file, readinto, part)
                if count and note is not None:
                    note(part[:count])
            if not count:
                break
            done += count
    return done


def _read_part(file, readinto, part):
    if readinto is not None:
        return readinto(part)
    piece = file.read(len(part))
    part[: len(piece)] = piece
    return len(piece)

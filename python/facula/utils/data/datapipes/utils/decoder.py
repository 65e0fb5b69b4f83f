"""Handlers that make objects of files' bytes, by the extension of the name."""

from __future__ import annotations

import io
import json
import os.path
import pickle

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

_KINDS = {
    "text": "txt text transcript",
    "number": "cls cls2 class count index inx id",
    "json": "json jsn",
    "tensor": "pt pth",
    "pickle": "pyd pickle",
}
_KIND_OF = {extension: kind for kind, words in _KINDS.items() for extension in words.split()}


def basichandlers(extension, data):
    """The text, number, JSON object, tensors or pickled object of a file; None for others.

    Pickles run code: use none that you do not trust.

    Args:
        extension (str): of its name.
        data: its bytes, or a file object.
    """
    import facula

    kind = _KIND_OF.get(extension)
    if kind is None:
        return None
    data = data if isinstance(data, (str, bytes)) else data.read()
    if kind == "tensor":
        return facula.load(io.BytesIO(data))
    if kind == "pickle":
        return pickle.loads(data)
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    if kind == "json":
        return json.loads(text)
    if kind == "number":
        try:
            return int(text)
        except ValueError:
            return None
    return text


def handle_extension(extensions, f):
    """A handler that calls a function for some extensions.

    Args:
        extensions (str): words such as "jpg gz.jpg"; dots within one mean several of a name.
        f (callable): of the bytes.
    """
    targets = [word.split(".") for word in extensions.lower().split()]

    def g(key, data):
        parts = key.lower().split(".")
        for target in targets:
            if parts[len(parts) - len(target) :] == target:
                return f(data)
        return None

    return g


_IMAGES = {
    "l8": ("numpy", "uint8", "l"),
    "rgb8": ("numpy", "uint8", "rgb"),
    "rgba8": ("numpy", "uint8", "rgba"),
    "l": ("numpy", "float", "l"),
    "rgb": ("numpy", "float", "rgb"),
    "rgba": ("numpy", "float", "rgba"),
    "torchl8": ("torch", "uint8", "l"),
    "torchrgb8": ("torch", "uint8", "rgb"),
    "torchrgba8": ("torch", "uint8", "rgba"),
    "torchl": ("torch", "float", "l"),
    "torchrgb": ("torch", "float", "rgb"),
    "torch": ("torch", "float", "rgb"),
    "torchrgba": ("torch", "float", "rgba"),
    "pill": ("pil", None, "l"),
    "pil": ("pil", None, "rgb"),
    "pilrgb": ("pil", None, "rgb"),
    "pilrgba": ("pil", None, "rgba"),
}
_IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")


class ImageHandler:
    """Decodes images: to PIL, NumPy (rows, columns, channels) or tensors (channels first).

    Args:
        imagespec (str): such as "torchrgb" (floats from 0 to 1), "rgb8", "pil".

    Raises:
        AssertionError: the word is not known.
        ModuleNotFoundError: on use, Pillow (or NumPy) is not installed.
    """

    def __init__(self, imagespec):
        if imagespec not in _IMAGES:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension, data):
        if extension.lower() not in _IMAGE_EXTENSIONS:
            return None
        try:
            from PIL import Image
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder: "
                "`pip install Pillow`"
            ) from error
        kind, element, mode = _IMAGES[self.imagespec]
        with io.BytesIO(data if isinstance(data, bytes) else data.read()) as stream:
            image = Image.open(stream)
            image.load()
            image = image.convert(mode.upper())
        if kind == "pil":
            return image
        return self._elements(image, kind, element)

    @staticmethod
    def _elements(image, kind, element):
        import numpy

        array = numpy.asarray(image)
        if kind == "torch":
            import facula

            array = array.transpose(2, 0, 1) if array.ndim == 3 else array
            tensor = facula.from_numpy(array.copy())
            return tensor if element == "uint8" else tensor.float() / 255
        return array if element == "uint8" else array.astype("f") / 255


def imagehandler(imagespec):
    """An ImageHandler."""
    return ImageHandler(imagespec)


def _with_package(name, data, extension, extensions, decode):
    if extension not in extensions:
        return None
    try:
        __import__(name)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Package `{name}` is required to be installed for files of .{extension}: "
            f"`pip install {name}`"
        ) from error
    return decode(data)


def videohandler(extension, data):
    """Frames and sound of a video, by torchvision; None for other files."""

    def decode(data):
        import tempfile

        import torchvision.io

        with tempfile.NamedTemporaryFile(suffix=f".{extension}") as file:
            file.write(data if isinstance(data, bytes) else data.read())
            file.flush()
            return torchvision.io.read_video(file.name)

    words = "mp4 ogv mjpeg avi mov h264 mpg webm wmv".split()
    return _with_package("torchvision", data, extension, words, decode)


def audiohandler(extension, data):
    """Samples of a sound and their rate, by torchaudio; None for other files."""

    def decode(data):
        import torchaudio

        return torchaudio.load(io.BytesIO(data if isinstance(data, bytes) else data.read()))

    return _with_package("torchaudio", data, extension, ("flac", "mp3", "sox", "wav"), decode)


class MatHandler:
    """Decodes Matlab's files by SciPy.

    Args:
        loadmat_kwargs: for `scipy.io.loadmat`.
    """

    def __init__(self, **loadmat_kwargs):
        try:
            import scipy.io
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `scipy` is required to be installed for .mat files: `pip install scipy`"
            ) from error
        self.sio, self.loadmat_kwargs = scipy.io, loadmat_kwargs

    def __call__(self, extension, data):
        if extension != "mat":
            return None
        data = data if isinstance(data, bytes) else data.read()
        return self.sio.loadmat(io.BytesIO(data), **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs):
    """A MatHandler."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname):
    """The last extension of a path, without its dot."""
    return os.path.splitext(pathname)[1][1:]


class Decoder:
    """Decodes pairs of a path and data by the first handler that gives something.

    Args:
        handler (callables): of extension and data.
        key_fn (callable): makes the extension of a path.
    """

    def __init__(self, *handler, key_fn=extension_extract_fn):
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler):
        """Ask further handlers, after the others."""
        self.handlers.extend(handler)

    @staticmethod
    def _is_stream_handle(data):
        from .common import StreamWrapper

        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, (io.BufferedReader, io.RawIOBase))

    def decode1(self, key, data):
        """What handlers make of data with an extension; the data if none makes anything."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, data.read()
            stream.close()
        for handler in self.handlers:
            if (result := handler(key, data)) is not None:
                return result
        return data

    def decode(self, data):
        """A dict from paths to objects, of a dict or of pairs of path and data."""
        found = {}
        for key, value in data.items() if isinstance(data, dict) else [data]:
            extension = self.key_fn(key)
            found[key] = value if not extension else self.decode1(extension, value)
        return found

    def __call__(self, data):
        return self.decode(data)

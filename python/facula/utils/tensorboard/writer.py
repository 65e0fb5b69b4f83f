"""SummaryWriter: scalars, texts, images, histograms and parameters of runs as files of events."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
import time
import zlib

import facula
from facula.utils.tensorboard import _encoding as enc

_numbers = itertools.count()


class RecordWriter:
    """Writes TensorFlow's records to a file that is open for writing bytes.

    Args:
        writer (file): has `write`, `flush` and `close`.
    """

    def __init__(self, writer):
        self._writer = writer

    @property
    def closed(self):
        """Whether the file is closed."""
        return self._writer.closed

    def write(self, data):
        """Write one record (bytes), with its length and checks."""
        self._writer.write(enc.record(data))

    def flush(self):
        """Write what the file holds back."""
        self._writer.flush()

    def close(self):
        """Close the file."""
        self._writer.close()


class FileWriter:
    """Writes a file of events.

    Args:
        log_dir (str): the folder.
        max_queue (int): how many events are held back before they are written.
        flush_secs (int): how many seconds they are held back at most.
        filename_suffix (str): the end of the file's name.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._log_dir = str(log_dir)
        os.makedirs(self._log_dir, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        name += f".{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self.path = os.path.join(self._log_dir, name)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._lock, self._queue, self._last = threading.Lock(), [], time.monotonic()
        self._file = open(self.path, "wb")
        self.add_bytes(enc.event(time.time(), file_version="brain.Event:2"))
        self.flush()

    def get_logdir(self):
        """The folder."""
        return self._log_dir

    def add_bytes(self, message):
        """Write an Event message (bytes)."""
        with self._lock:
            self._queue.append(enc.record(message))
            late = time.monotonic() - self._last >= self._flush_secs
        if late or len(self._queue) >= self._max_queue:
            self.flush()

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write a Summary message (bytes)."""
        when = time.time() if walltime is None else walltime
        self.add_bytes(enc.event(when, global_step, summary=summary))

    def add_event(self, event, step=None, walltime=None):
        """Write an Event message, at another time and step than it has.

        Args:
            event (bytes or message): encoded, or with a method `SerializeToString`.
            step (int, optional): the step.
            walltime (float, optional): seconds since 1970; now unless given.
        """
        message = _encoded(event) + enc.double(1, time.time() if walltime is None else walltime)
        self.add_bytes(message if step is None else message + enc.integer(2, int(step)))

    def add_graph(self, graph_profile, walltime=None):
        """Write a graph and how it ran.

        Args:
            graph_profile (tuple): a GraphDef and a StepStats message, as for `add_event`.
            walltime (float, optional): seconds since 1970; now unless given.
        """
        graph, steps = graph_profile
        self.add_event(enc.block(4, _encoded(graph)), walltime=walltime)
        run = enc.block(1, "step1") + enc.block(2, enc.block(1, _encoded(steps)))
        self.add_event(enc.block(8, run), walltime=walltime)

    def add_onnx_graph(self, graph, walltime=None):
        """Write a graph (a GraphDef message) that was read from a file of ONNX."""
        self.add_event(enc.block(4, _encoded(graph)), walltime=walltime)

    def flush(self):
        """Write what is held back."""
        with self._lock:
            if self._file.closed:
                return
            self._file.write(b"".join(self._queue))
            self._file.flush()
            self._queue, self._last = [], time.monotonic()

    def close(self):
        """Write what is held back, and close the file."""
        self.flush()
        self._file.close()

    def reopen(self):
        """Go on writing after `close`."""
        self._file = open(self.path, "ab")


def _encoded(message):
    return message if isinstance(message, bytes) else message.SerializeToString()


def _tensor(values):
    return values if isinstance(values, facula.Tensor) else facula.as_tensor(values)


def _number(value):
    return float(value.item() if hasattr(value, "item") else value)


class SummaryWriter:
    """Writes what TensorBoard shows: `tensorboard --logdir runs`.

    Args:
        log_dir (str): the folder; `runs/TIME_HOST` unless given.
        comment (str): the end of that folder's name.
        purge_step (int): events from this step on in older files are not shown.
        max_queue, flush_secs (int): how many events are held back, and for how long.
        filename_suffix (str): the end of the file's name.

    Example:
        >>> import tempfile
        >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
        ...     for step in range(3):
        ...         writer.add_scalar("loss", 1.0 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ):
        if not log_dir:
            name = time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment
            log_dir = os.path.join("runs", name)
        self.log_dir = log_dir
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer = self.all_writers = None
        self._projected = []
        writer = self._get_file_writer()
        if purge_step is not None:
            start = enc.block(7, enc.integer(1, 1))  # a SessionLog that says START
            writer.add_bytes(enc.event(time.time(), purge_step) + start)

    def _get_file_writer(self):
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
        return self.file_writer

    def _add(self, tag, content, step, walltime, *plugin):
        self._get_file_writer().add_summary(enc.value(tag, content, *plugin), step, walltime)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style=False,
        double_precision=False,
    ):
        """Write a number under a name."""
        self._add(tag, enc.single(2, _number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Write numbers that are drawn together, each as a run of its own."""
        self._get_file_writer()
        for tag, number in tag_scalar_dict.items():
            folder = os.path.join(str(self.log_dir), f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, *self._options)
            summary = enc.value(main_tag, enc.single(2, _number(number)))
            self.all_writers[folder].add_summary(summary, global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Write a text (Markdown) under a name."""
        content = enc.block(8, enc.text_tensor([text_string]))
        self._add(f"{tag}/text_summary", content, global_step, walltime, "text")

    def add_histogram(
        self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ):
        """Write how values are spread.

        Args:
            values (Tensor or array): of any shape.
            bins (str or sequence of numbers): "tensorflow" for limits that grow by a tenth, or
                the limits.

        Raises:
            ValueError: there are no values.
            NotImplementedError: NumPy's other names for `bins`.
        """
        flat = _tensor(values).detach().flatten().to(facula.float64)
        if flat.numel() == 0:
            raise ValueError("The input has no element.")
        content = enc.block(5, _histogram(flat, _limits(bins)))
        self._add(tag, content, global_step, walltime)

    def add_histogram_raw(
        self,
        tag,
        min,
        max,
        num,
        sum,
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        """Write how values are spread, from counts in buckets."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        figures = (min, max, num, sum, sum_squares, list(bucket_limits), list(bucket_counts))
        self._add(tag, enc.block(5, enc.histogram(*figures)), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """Write a picture.

        Args:
            img_tensor (Tensor or array): uint8, or floats from 0 to 1.
            dataformats (str): its dimensions: "CHW", "HWC", "HW".
        """
        image = _as_hwc(_tensor(img_tensor).detach(), dataformats)
        height, width, channels = image.shape
        parts = (enc.integer(1, height), enc.integer(2, width), enc.integer(3, channels))
        content = enc.block(4, b"".join(parts) + enc.block(4, _png(image)))
        self._add(tag, content, global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Write pictures as one, side by side."""
        batch = _tensor(img_tensor).detach()
        rows = [
            _as_hwc(batch.select(dataformats.index("N"), i), dataformats.replace("N", ""))
            for i in range(batch.shape[dataformats.index("N")])
        ]
        self.add_image(tag, facula.cat(rows, 1), global_step, walltime, "HWC")

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """Write a figure of Matplotlib as a picture."""
        import matplotlib.pyplot as plt
        import numpy as np

        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())
        self.add_image(tag, pixels.copy(), global_step, walltime, "HWC")
        if close:
            plt.close(figure)

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ):
        """Write parameters and results of a run, as a run of its own.

        Args:
            hparam_dict (dict): numbers, bools, texts or tensors of one element, by name.
            metric_dict (dict): results by name.
            hparam_domain_discrete (dict): lists of the values that a parameter may have.
            run_name (str): the run's folder in this writer's; the time unless given.
            global_step (int): the step of the results.

        Raises:
            TypeError: no dictionaries; a list whose items are not of its parameter's type.
            ValueError: a parameter of another type.
        """
        from facula.utils.tensorboard.summary import hparams

        summaries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = str(time.time()) if run_name is None else run_name
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), folder)) as writer:
            for summary in summaries:
                writer._get_file_writer().add_summary(summary)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def _missing(self, what):
        raise NotImplementedError(f"SummaryWriter.{what}() is missing")

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Write a model's graph: the calls of one run, under the names of its modules.

        The model runs in evaluation mode, without gradients.

        Args:
            model (Module).
            input_to_model (Tensor or sequence): its inputs.
            verbose (bool): print the nodes.
            use_strict_trace (bool): accepted for compatibility.

        Raises:
            AttributeError: `model` is no Module.
            RuntimeError: there are no inputs, or the model raised an error.

        Example:
            >>> import tempfile
            >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
            ...     writer.add_graph(facula.nn.Linear(2, 1), facula.ones(3, 2))
        """
        from facula.utils.tensorboard._pytorch_graph import graph

        made = graph(model, input_to_model, verbose, use_strict_trace)
        self._get_file_writer().add_graph(made)

    def add_embedding(
        self,
        mat,
        metadata=None,
        label_img=None,
        global_step=None,
        tag="default",
        metadata_header=None,
    ):
        """Write points for the projector.

        Args:
            mat (Tensor or array): the points, of shape (N, D).
            metadata (sequence, optional): a label for each, or a sequence of them.
            label_img (Tensor or array, optional): a picture for each, of shape (N, 3, H, W).
            global_step (int): the step. tag (str): their name.
            metadata_header (sequence of str, optional): names of a label's parts.

        Raises:
            AssertionError: sizes that do not fit.

        Example:
            >>> import tempfile
            >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
            ...     writer.add_embedding(facula.rand(3, 5), metadata=["a", "b", "c"])
        """
        from facula.utils.tensorboard import _embedding

        points = _tensor(mat).detach()
        if points.ndim != 2:
            raise AssertionError(
                f"add_embedding(): expected points of shape (N, D); got {tuple(points.shape)}"
            )
        pictures = None if label_img is None else _tensor(label_img).detach()
        for what, given in (("labels", metadata), ("pictures", pictures)):
            if given is not None and len(given) != len(points):
                raise AssertionError(
                    f"add_embedding(): expected {len(points)} {what}, as there are points; "
                    f"got {len(given)}"
                )
        step = f"{0 if global_step is None else global_step:05d}"
        escaped = tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
        folder, base = f"{step}/{escaped}", self._get_file_writer().get_logdir()
        path = os.path.join(base, step, escaped)
        if os.path.exists(path):
            print(f"add_embedding(): {path} exists and is written anew; is global_step missing?")
        os.makedirs(path, exist_ok=True)
        if metadata is not None:
            _embedding.write_metadata(metadata, path, metadata_header)
        if pictures is not None:
            whole = _as_hwc(_embedding.sprite(pictures), "CHW")
            with open(os.path.join(path, "sprite.png"), "wb") as file:
                file.write(_png(whole))
        _embedding.write_tensors(points, path)
        has_metadata = metadata is not None
        self._projected.append(_embedding.config_entry(folder, tag, step, has_metadata, pictures))
        with open(os.path.join(base, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write("".join(self._projected))

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Write a sound: numbers from -1 to 1."""
        samples = _tensor(snd_tensor).detach().flatten().clamp(-1, 1)
        wave = _wav((samples * 32767).to(facula.int16), sample_rate)
        parts = [enc.single(1, sample_rate), enc.integer(2, 1), enc.integer(3, samples.numel())]
        content = enc.block(6, b"".join([*parts, enc.block(4, wave), enc.block(5, "audio/wav")]))
        self._add(tag, content, global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Write moving pictures, as a GIF (needs Pillow).

        Args:
            vid_tensor (Tensor or array): of shape (N, T, C, H, W), videos side by side: uint8, or
                floats from 0 to 1.
            fps (float): pictures a second.

        Raises:
            ValueError: another number of dimensions, or neither 1 nor 3 channels.
        """
        from facula.utils.tensorboard.summary import video

        made = video(tag, _tensor(vid_tensor).detach(), fps)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_pr_curve(
        self,
        tag,
        labels,
        predictions,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """Write precision and recall at thresholds from 0 to 1.

        Args:
            labels (Tensor or array): which are positive.
            predictions (Tensor or array): from 0 to 1.
            num_thresholds (int): how many.
            weights (Tensor, array or float, optional): of each.
        """
        from facula.utils.tensorboard.summary import pr_curve

        given = _tensor(labels), _tensor(predictions)
        weights = None if weights is None else _tensor(weights)
        made = pr_curve(tag, *given, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """Write precision and recall at thresholds, from what was counted at each."""
        from facula.utils.tensorboard.summary import pr_curve_raw

        counts = true_positive_counts, false_positive_counts
        counts += true_negative_counts, false_negative_counts
        made = pr_curve_raw(tag, *counts, precision, recall, num_thresholds)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Say which scalars are drawn in one chart.

        Args:
            layout (dict): by category, a dict of charts by title; each is ["Multiline", tags] or
                ["Margin", [value, lower, upper]].

        Example:
            >>> import tempfile
            >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
            ...     writer.add_custom_scalars({"all": {"loss": ["Multiline", ["train", "test"]]}})
        """
        from facula.utils.tensorboard.summary import custom_scalars

        self._get_file_writer().add_summary(custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """Draw several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """Draw a scalar with a band around it: tags of the value, the lower and upper bound."""
        if len(tags) != 3:
            raise AssertionError(
                f"add_custom_scalars_marginchart(): expected 3 tags; got {len(tags)}"
            )
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """Write a tensor as it is; floats of 16 bits as ones of 32.

        Raises:
            NotImplementedError: a dtype that is complex or has fewer than 8 bits.
        """
        numbers = _tensor(tensor).detach()
        if numbers.dtype in (facula.float16, facula.bfloat16):
            numbers = numbers.to(facula.float32)
        dtype = str(numbers.dtype).rpartition(".")[2]
        if dtype not in enc._TENSOR_KINDS:
            raise NotImplementedError(f"add_tensor(): tensors of {numbers.dtype} are not written")
        content = enc.tensor(tuple(numbers.shape), numbers.flatten().tolist(), dtype)
        self._add(tag, enc.block(8, content), global_step, walltime, "tensor")

    def add_image_with_boxes(
        self,
        tag,
        img_tensor,
        box_tensor,
        global_step=None,
        walltime=None,
        rescale=1,
        dataformats="CHW",
        labels=None,
    ):
        """Write a picture with frames drawn on it (needs Pillow).

        Args:
            img_tensor (Tensor or array): uint8, or floats from 0 to 1.
            box_tensor (Tensor or array): of shape (N, 4): left, top, right, bottom.
            rescale (float): by how much the picture is made larger.
            labels (str or list of str, optional): a text for each frame.
        """
        from PIL import Image, ImageDraw

        image = _as_hwc(_tensor(img_tensor).detach(), dataformats)
        if image.shape[-1] == 1:
            image = image.expand(-1, -1, 3)
        height, width, _ = image.shape
        pixels = bytes(image[..., :3].contiguous().flatten().tolist())
        picture = Image.frombytes("RGB", (width, height), pixels)
        boxes = _tensor(box_tensor).tolist()
        texts = [labels] if isinstance(labels, str) else labels or [None] * len(boxes)
        if len(texts) != len(boxes):
            raise ValueError(
                "add_image_with_boxes(): expected a label for each box; got "
                f"{len(texts)} labels and {len(boxes)} boxes"
            )
        pen = ImageDraw.Draw(picture)
        for (left, top, right, bottom), text in zip(boxes, texts, strict=True):
            corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
            pen.line(corners, width=2, fill="Red")
            if text is not None:
                pen.text((left + 2, top + 2), text, fill="Red")
        size = int(width * rescale), int(height * rescale)
        drawn = picture.resize(size, Image.Resampling.LANCZOS)
        made = facula.frombuffer(bytearray(drawn.tobytes()), dtype=facula.uint8)
        made = made.reshape(size[1], size[0], 3)
        self.add_image(tag, made, global_step, walltime, "HWC")

    def add_onnx_graph(self, prototxt):
        """Write the graph of a file of ONNX: NotImplementedError, as facula does not read ONNX."""
        self._missing("add_onnx_graph")

    def add_mesh(
        self,
        tag,
        vertices,
        colors=None,
        faces=None,
        config_dict=None,
        global_step=None,
        walltime=None,
    ):
        """Write points in space, or a mesh.

        Args:
            vertices (Tensor or array): of shape (B, N, 3).
            colors (Tensor or array, optional): of each vertex, from 0 to 255.
            faces (Tensor or array, optional): triangles of vertices, of shape (B, M, 3).
            config_dict (dict, optional): what three.js is to be told, such as a camera.

        Raises:
            ValueError: another number of dimensions.
        """
        from facula.utils.tensorboard.summary import mesh

        given = [None if t is None else _tensor(t).detach() for t in (vertices, colors, faces)]
        made = mesh(tag, *given, config_dict)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def flush(self):
        """Write what is held back."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Write what is held back, and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _limits(bins):
    """Upper limits of buckets, ascending."""
    if not isinstance(bins, str):
        return [float(limit) for limit in bins]
    if bins != "tensorflow":
        raise NotImplementedError(f"add_histogram(): bins={bins!r} is missing")
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(positive)] + [0.0] + positive


def _histogram(values, limits):
    edges = facula.tensor(limits, dtype=facula.float64)
    places = facula.bucketize(values, edges, right=True).clamp(1, len(limits) - 1) - 1
    counts = facula.bincount(places, minlength=len(limits) - 1).tolist()
    used = [i for i, count in enumerate(counts) if count]
    first, last = used[0], used[-1] + 1
    # An empty bucket in front tells where the first one begins.
    return enc.histogram(
        values.min().item(),
        values.max().item(),
        values.numel(),
        values.sum().item(),
        (values * values).sum().item(),
        limits[first : last + 1],
        [0.0, *map(float, counts[first:last])],
    )


def _as_hwc(image, dataformats):
    """A picture as uint8 of height, width and channels."""
    order = dataformats.upper()
    if sorted(order) == ["H", "W"]:
        image, order = image.unsqueeze(-1), order + "C"
    if sorted(order) != ["C", "H", "W"] or image.dim() != 3:
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: "
            f"{tuple(image.shape)}, input_format: {dataformats}"
        )
    image = image.permute(*(order.index(name) for name in "HWC"))
    if image.dtype != facula.uint8:
        image = (image.to(facula.float32) * 255).clamp(0, 255).to(facula.uint8)
    return image


def _png(image):
    """A picture (uint8, height, width, 1 to 4 channels) as a PNG file."""
    height, width, channels = image.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name, data):
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    pixels = bytes(image.contiguous().flatten().tolist())
    stride = width * channels
    rows = b"".join(b"\0" + pixels[i * stride : (i + 1) * stride] for i in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _wav(samples, rate):
    """A sound (int16) as a WAV file."""
    data = struct.pack(f"<{samples.numel()}h", *samples.tolist())
    head = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(data))
    return b"RIFF" + struct.pack("<I", len(body) + len(data)) + body + data

"""Recorded work of CUDA devices: classes to test for, which need a device to be made."""

from __future__ import annotations

import facula


class CUDAGraph:
    """Work of a stream that is recorded once and run often; AssertionError without a device."""

    def __new__(cls, keep_graph=False):
        facula.cuda.init()
        return facula.accelerator.Graph()


class graph:
    """Context manager: the work within is recorded.

    Args:
        cuda_graph (CUDAGraph): where it goes.
        pool, stream, capture_error_mode: memory, stream and strictness of the recording.
    """

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global", **kwargs):
        facula.cuda.init()
        self._graph = cuda_graph

    def __enter__(self):
        return self._graph.__enter__()

    def __exit__(self, *exception):
        return self._graph.__exit__(*exception)


def export_dot(path, *, verbose=True):
    """A hook that writes a recorded graph for Graphviz to a path, when it is called with one."""

    def write(recorded, *args):
        recorded.debug_dump(path)

    return write


def export_graph_data(path):
    """What a recording holds, as data; AssertionError without a CUDA device."""
    facula.cuda.init()
    raise NotImplementedError("cuda.export_graph_data(): not offered yet")


def is_current_stream_capturing():
    """Whether the current stream records: False without a CUDA device."""
    return False


def graph_pool_handle():
    """A name for memory that recordings share; AssertionError without a CUDA device."""
    facula.cuda.init()
    return facula.accelerator.Graph().pool()


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, **kwargs):
    """Functions that run recorded work; AssertionError without a CUDA device."""
    facula.cuda.init()
    raise NotImplementedError("cuda.make_graphed_callables(): not offered yet")

"""What compiled functions tell on standard error, as `FACULA_LOGS` or `TORCH_LOGS` asks.

The variables are lists of names with commas between them: breaks, graphs, fusion, kernels,
recompiles, memory, skip, or PyTorch's names for them; `all` stands for these seven.
"""

from __future__ import annotations

import os
import sys

__all__ = ["is_on", "say", "set_logs"]

_TOPICS = ("breaks", "graphs", "fusion", "kernels", "recompiles", "memory", "skip")
# PyTorch's names: those of what facula tells as well, and those of which it has nothing to say.
_SAME = {
    "graph_breaks": "breaks",
    "graph": "graphs",
    "graph_code": "graphs",
    "graph_code_verbose": "graphs",
    "aot_graphs": "graphs",
    "schedule": "fusion",
    "output_code": "kernels",
    "kernel_code": "kernels",
    "recompiles_verbose": "recompiles",
}
_SILENT = frozenset(
    "dynamo aot autograd dynamic inductor distributed c10d ddp fsdp dtensor onnx export torch "
    "bytecode aot_joint_graph ddp_graphs side_effects graph_sizes guards trace_source trace_call "
    "trace_bytecode perf_hints pre_grad_graphs post_grad_graphs ir_pre_fusion ir_post_fusion "
    "onnx_diagnostics overlap cudagraphs sym_node compiled_autograd compiled_autograd_verbose "
    "cudagraph_static_inputs benchmarking autotuning autotuning_inputs incremental "
    "graph_region_expansion inductor_metrics hierarchical_compile compute_dependencies caching "
    "partitioned_scatter modules cache".split()
)
_LEVELS = (10, 20, 30, 40, 50, 0)

# The topics that are on. Others read this set, which stays the same object.
topics = set()


def _topics_of(name):
    """The topics that a name stands for.

    Raises:
        ValueError: an unknown name.
    """
    if name == "all":
        return _TOPICS
    name = _SAME.get(name, name)
    if name in _TOPICS:
        return (name,)
    if name in _SILENT:
        return ()
    raise ValueError(
        f"FACULA_LOGS: expected names among all, {', '.join(_TOPICS)} or PyTorch's names of logs; "
        f"got {name!r}"
    )


def _topics_in(text):
    """The topics of a list like that in the variables; a + or - before a name is passed over."""
    names = (part.strip().lstrip("+-") for part in text.split(","))
    return {topic for name in names if name for topic in _topics_of(name)}


def _read_environment():
    topics.update(_topics_in(os.environ.get("FACULA_LOGS", "")))
    topics.update(_topics_in(os.environ.get("TORCH_LOGS", "")))


def set_logs(*, all=None, modules=None, **names):
    """Set what is told, in place of what was set before.

    Args:
        all (int): a level of `logging`: every topic, unless it is above logging.INFO.
        **names (bool): topics by facula's or PyTorch's names; for PyTorch's components a level.
        modules (dict): accepted; nothing is told by module.

    Raises:
        TypeError: an unknown name; ValueError: a value that is neither a bool nor a level.

    Example:
        >>> facula._logging.set_logs(breaks=True)
        >>> facula._logging.is_on("breaks")
        True
        >>> facula._logging.set_logs()
    """
    wanted = set()
    if all is not None and _checked("all", all) <= 20:
        wanted.update(_TOPICS)
    for name, value in names.items():
        try:
            found = _topics_of(name)
        except ValueError as error:
            raise TypeError(f"set_logs(): {error}") from None
        if _checked(name, value):
            wanted.update(found)
    topics.clear()
    topics.update(wanted)


def _checked(name, value):
    if isinstance(value, bool) or value in _LEVELS:
        return value
    raise ValueError(f"set_logs(): expected a bool or a level in {_LEVELS} for {name}; got {value}")


def is_on(topic):
    """Whether a topic is told of."""
    return topic in topics


def say(topic, text):
    """Print a text to standard error, each line under its topic, if that is on."""
    if topic not in topics:
        return
    lines = filter(str.strip, str(text).splitlines())
    sys.stderr.write("".join(f"[facula {topic}] {line}\n" for line in lines))


_read_environment()

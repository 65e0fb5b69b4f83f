"""A file of programs in facula and in PyTorch, and what is compared of the graphs."""

import contextlib
import importlib
import importlib.util
import io
import re
import sys
import warnings
from pathlib import Path

import facula
import facula.fx
import torch
import torch.fx

FOLDER = Path(__file__).resolve().parents[2] / "python" / "fx"
FRAMEWORKS = {"facula": facula, "torch": torch}


def load(name):
    """The module `name` of tests/python/fx twice, by framework: written for facula, and for it."""
    made = {}
    for framework in FRAMEWORKS:
        text = (FOLDER / f"{name}.py").read_text()
        text = re.sub(r"^(import|from) facula\b", rf"\1 {framework}", text, flags=re.MULTILINE)
        full = f"{name}_of_{framework}"
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(full, None))
        module.__file__ = str(FOLDER / f"{name}.py")
        sys.modules[full] = module
        exec(compile(text, module.__file__, "exec"), vars(module))
        made[framework] = module
    return made["facula"], made["torch"]


def normal(text):
    """A text without what may differ: the framework's name, addresses, messages of our own."""
    text = str(text).replace("facula", "torch")
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"eval_with_key>\.\d+", "eval_with_key>", text)
    # What a graph says where an argument has another value than at tracing.
    return re.sub(
        r"\w+ (was traced|has been specialized)[^'\n]*?(value|another)(?='|\)|,)", "text", text
    )


def printed(function):
    """What a function prints."""
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        function()
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def texts(module):
    """Everything that a GraphModule shows of itself, by name."""
    graph = module.graph
    found = {
        "code": module.code,
        "graph": graph,
        "module": module,
        "readable": module.print_readable(print_output=False),
        "verbose": graph.python_code("self", verbose=True).src,
        "class": type(module).__name__,
        "names in the code": sorted(
            n for n in graph.python_code("self").globals if n not in FRAMEWORKS
        ),
    }
    for n in graph.nodes:
        found[f"node {n.name}"] = (
            n.op,
            n.target if isinstance(n.target, str) else getattr(n.target, "__name__", n.target),
            n.args,
            n.kwargs,
            n.type,
            list(n.users),
            n.all_input_nodes,
            n.meta,
            n.is_impure(),
            n.format_node(),
        )
    if importlib.util.find_spec("tabulate"):
        found["table"] = re.sub(r"<(<locals>|[^<>])*>|-{3,}|  +", "", printed(graph.print_tabular))
    return {key: normal(value) for key, value in found.items()}


def plain(value):
    """A result as values that compare: tensors as dtype, sizes and lists."""
    if isinstance(value, (facula.Tensor, torch.Tensor)):
        return normal(value.dtype), tuple(value.shape), str(value.tolist())
    if isinstance(value, dict):
        return {normal(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return normal(value)


def outcome(function, *args):
    """What a function returns, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return "error", [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"][
                0
            ]

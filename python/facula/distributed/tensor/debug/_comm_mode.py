"""CommDebugMode: counts the collectives that run inside of it, by module."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict

import facula
from facula.distributed import _functional_by_ranks  # noqa: F401  (defines what is counted)
from facula.distributed.tensor._api import DTensor
from facula.nn.modules import module as modules
from facula.utils._python_dispatch import TorchDispatchMode

_FUNCTIONAL = "_c10d_functional"


def _name_of_collective(func):
    """The operator by which a collective is counted, as PyTorch counts it; None for others."""
    if func.namespace != _FUNCTIONAL:
        return None
    return getattr(facula.ops.c10d_functional, func.overloadpacket.__name__.rstrip("_"), None)


class CommDebugMode(TorchDispatchMode):
    """Count collectives, and note which operators ran in which module.

    Example:
        >>> from facula.distributed.tensor import Shard, distribute_tensor
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.ones(4), mesh, [Shard(0)])
        ...     with facula.distributed.tensor.debug.CommDebugMode() as mode:
        ...         x.sum().full_tensor()
        ...     return mode.get_total_counts()
        >>> facula.distributed.threads.run(work, 2)
        [1, 1]
    """

    def __init__(self):
        super().__init__()
        self._clear()

    def _clear(self):
        self.comm_counts = defaultdict(int)
        self._by_module = {}  # path -> what happened in it, a dict
        self._stack = []  # the modules that are being called: (path, module)
        self._hooks = []

    # --- what there is to know

    def get_comm_counts(self):
        """How often each collective ran: operator -> number."""
        return self.comm_counts

    def get_total_counts(self):
        """How many collectives ran."""
        return sum(self.comm_counts.values())

    def get_parameter_info(self):
        """The parameters of each module that was called, by its path and their names."""
        return {
            path: dict(m["parameters"]) for path, m in self._by_module.items() if m["parameters"]
        }

    def get_sharding_info(self):
        """The placements of each parameter that is a DTensor, by its path."""
        return {
            f"{path}.{name}": parameter.placements
            for path, parameters in self.get_parameter_info().items()
            for name, parameter in parameters.items()
            if isinstance(parameter, DTensor)
        }

    def generate_comm_debug_tracing_table(self, noise_level=3):
        """A text of what ran in each module.

        Args:
            noise_level (int): 0 for collectives by module, 1 with operators on DTensors, 2 without
                views and the like, 3 with all.

        Returns:
            str
        """
        lines = []
        for path, facts in [("Global", self._global), *self._by_module.items()]:
            indent = "  " * (path.count(".") + (path != "Global"))
            lines.append(f"{indent}{path}")
            if path != "Global":
                lines.append(f"{indent}  *module type: {facts['type']}")
            for name, parameter in facts["parameters"].items():
                lines.append(f"{indent}  *{name}: {getattr(parameter, 'placements', 'no DTensor')}")
            for phase in ("forward", "backward"):
                lines += self._phase_lines(facts, phase, indent + "  ", noise_level)
        return "\n".join(lines) + "\n"

    def _phase_lines(self, facts, phase, indent, noise_level):
        counts = facts["collectives"][phase]
        operators = [o for o in facts["operators"][phase] if noise_level > 2 or not o["trivial"]]
        if noise_level < 1:
            operators = []
        if not counts and not operators:
            return []
        lines = [f"{indent}{phase.upper()} PASS"]
        lines += [f"{indent}  *{name}: {count}" for name, count in counts.items()]
        for o in operators:
            if o["sharding"] or noise_level > 1:
                lines.append(f"{indent}  **{o['name']}")
            if o["sharding"]:
                lines.append(f"{indent}    shape: {o['shape']}, sharding: {o['sharding']}")
        return lines

    def log_comm_debug_tracing_table_to_file(self, file_name="comm_mode_log.txt", noise_level=3):
        """Write the text of `generate_comm_debug_tracing_table` to a file.

        Args:
            file_name (str): where.
            noise_level (int): see there.
        """
        with open(file_name, "w") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level))

    def generate_json_dump(self, file_name="comm_mode_log.json", noise_level=3):
        """Write what ran in each module to a file.

        Args:
            file_name (str): where.
            noise_level (int): as for `generate_comm_debug_tracing_table`.
        """
        found = {}
        for path, facts in [("Global", self._global), *self._by_module.items()]:
            found[path] = {
                "module_type": facts["type"],
                "parameters": {
                    n: str(getattr(p, "placements", None)) for n, p in facts["parameters"].items()
                },
                "collectives": {k: dict(v) for k, v in facts["collectives"].items()},
                "operators": {
                    k: [o for o in v if noise_level > 2 or (noise_level and not o["trivial"])]
                    for k, v in facts["operators"].items()
                },
            }
        with open(file_name, "w") as file:
            json.dump(found, file, indent=2, default=str)

    # --- noting it

    def __enter__(self):
        self._clear()
        self._global = self._new_facts("", {})
        self._thread = threading.get_ident()  # ranks may be threads, and hooks are everybody's
        self._hooks = [
            modules.register_module_forward_pre_hook(self._enter_module),
            modules.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return super().__enter__()

    def __exit__(self, *args):
        for hook in self._hooks:
            hook.remove()
        super().__exit__(*args)

    def _new_facts(self, kind, parameters):
        phases = ("forward", "backward")
        return {
            "type": kind,
            "parameters": parameters,
            "collectives": {p: Counter() for p in phases},
            "operators": {p: [] for p in phases},
        }

    def _enter_module(self, module, inputs):
        if threading.get_ident() != self._thread:
            return
        path = self._path_of(module)
        self._stack.append(path)
        if path not in self._by_module:
            own = dict(module.named_parameters(recurse=False))
            self._by_module[path] = self._new_facts(str(type(module)).strip("<>"), own)

    def _path_of(self, module):
        if not self._stack:
            self._names = {id(m): n for n, m in module.named_modules()}
            self._root = type(module).__name__
        name = self._names.get(id(module))
        if name is None:  # a module that is not in the outermost one
            return f"{self._stack[-1]}.{type(module).__name__}"
        return f"{self._root}.{name}" if name else self._root

    def _leave_module(self, module, inputs, outputs):
        if threading.get_ident() == self._thread and self._stack:
            self._stack.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._note_operator(func, args)
        if any(issubclass(t, DTensor) for t in types):
            # What a DTensor does with its parts comes here again.
            super().__enter__()
            try:
                return DTensor.__torch_dispatch__(func, types, args, kwargs)
            finally:
                super().__exit__(None, None, None)
        collective = _name_of_collective(func)
        if collective is not None:
            self._note_collective(collective)
        return func(*args, **(kwargs or {}))

    def _places(self):
        """The facts of all modules that are being called, and of the whole."""
        return [self._global, *(self._by_module[p] for p in self._stack)]

    def _phase(self):
        return "backward" if facula._C._current_graph_task_id() != -1 else "forward"

    def _note_collective(self, packet):
        self.comm_counts[packet] += 1
        for facts in self._places():
            facts["collectives"][self._phase()][str(packet)] += 1

    def _note_operator(self, func, args):
        tensors = [a for a in args if isinstance(a, DTensor)]
        self._places()[-1]["operators"][self._phase()].append(
            {
                "name": str(func),
                "trivial": func.is_view,
                "shape": [list(t.shape) for t in tensors],
                "sharding": [str(t.placements) for t in tensors],
            }
        )


__all__ = ["CommDebugMode"]

"""A clock that operators and collectives move on, and what runs programs by it."""

from __future__ import annotations

import contextlib
import weakref

import facula
from facula.distributed import _world as world
from facula.distributed._process_group import AllreduceOptions, ProcessGroup, Work, _Call
from facula.utils._python_dispatch import TorchDispatchMode
from facula.utils.flop_counter import count_flops

_NAMES = {
    _Call.BARRIER: "barrier",
    _Call.BROADCAST: "broadcast",
    _Call.ALL_REDUCE: "all_reduce",
    _Call.REDUCE: "reduce_scatter",
    _Call.ALL_GATHER: "all_gather",
    _Call.GATHER: "all_gather",
    _Call.SCATTER: "broadcast",
    _Call.REDUCE_SCATTER: "reduce_scatter",
    _Call.ALL_TO_ALL: "all_to_all",
}


def _nbytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Clock:
    """The times of one rank: of its processor, and of its connection to the others.

    Args:
        machine (Machine): what operators and collectives cost.
    """

    def __init__(self, machine):
        self.machine = machine
        self.reset()

    def reset(self):
        """Begin anew, at 0."""
        self.now = self._connection_free = 0.0
        self.computed = self.moved = self.waited = 0.0  # seconds
        self.operations = self.sent = 0  # of products; bytes of collectives

    def compute(self, operations, nbytes):
        """The processor runs an operator."""
        seconds = self.machine.seconds(operations, nbytes)
        self.now += seconds
        self.computed += seconds
        self.operations += operations

    def call(self, name, nbytes, ranks):
        """A collective begins, once those before it have ended; returns when it will end."""
        seconds = self.machine.network.seconds(name, nbytes, ranks)
        self._connection_free = max(self.now, self._connection_free) + seconds
        self.moved += seconds
        self.sent += nbytes
        return self._connection_free

    def wait(self, end):
        """The processor waits until some time."""
        if end > self.now:
            self.waited += end - self.now
            self.now = end


class _SimulatedWork(Work):
    def __init__(self, clock, end, result, copies):
        super().__init__(None, result, copies)
        self._clock, self._end = clock, end

    def wait(self, timeout=None):
        """Move the clock on to the end of the call."""
        self._clock.wait(self._end)
        return super().wait(timeout)

    def is_completed(self):
        """Whether the call would have ended."""
        return self._clock.now >= self._end


class SimulatedProcessGroup(ProcessGroup):
    """A group of which one rank is there, and whose calls take simulated time.

    Tensors keep their values: what is gathered or reduced is not what many ranks would get.

    Args:
        rank, size (int): of this process, and the number of ranks.
        clock (Clock): what calls move on.
    """

    simulates = True

    def __init__(self, rank, size, clock, name="", desc="undefined"):
        super().__init__(rank, size, None, name, "simulated", desc)
        self._clock = clock

    def _has_data(self, tensors):
        return True

    def _run(
        self, call, inputs, outputs, opts, root=-1, copies=(), result=None, parts=None, shown=None
    ):
        for i, output in enumerate(outputs):  # of programs that exchange facts on the CPU
            source = inputs[i % len(inputs)] if inputs else output
            if output.device.type == "cpu" and source.numel() == output.numel():
                output.detach().copy_(source)
        nbytes = max(_nbytes(inputs), _nbytes(outputs))
        end = self._clock.call(_NAMES[call], nbytes, self.size())
        work = _SimulatedWork(self._clock, end, outputs if result is None else result, copies)
        if not opts.asyncOp:
            work.wait()
        return work

    def _allgather_base(self, output, input, opts=None):
        return self._run(_Call.ALL_GATHER, [input], [output], opts or AllreduceOptions())

    def _reduce_scatter_base(self, output, input, opts=None):
        return self._run(_Call.REDUCE_SCATTER, [input], [output], opts or AllreduceOptions())

    def send(self, tensors, dstRank, tag=0, _async=True):
        """A message that takes simulated time."""
        end = self._clock.call("send", _nbytes(tensors), self.size())
        return _SimulatedWork(self._clock, end, tensors, ())

    def recv(self, tensors, srcRank, tag=0, _async=True):
        """A message that has been sent when it is asked for."""
        return self.send(tensors, srcRank)

    def shutdown(self):
        """There is nothing to end."""


class _Watch(TorchDispatchMode):
    """Moves the clock on for each operator, and follows the memory of tensors on meta."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.peak = clock, 0
        self._storages = {}  # by address: weak references, as long as the storages live

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        results = [t for t in _tensors([result]) if t.device.type == "meta"]
        inputs = [t for t in _tensors([args, kwargs or {}]) if t.device.type == "meta"]
        is_new = self._note(results)
        if results or inputs:
            changes = func._schema.is_mutable
            if changes or is_new:
                moved = _nbytes(inputs) + (0 if changes else _nbytes(results))
                self.clock.compute(count_flops(func, args, kwargs, result), moved)
            self.measure()
        return result

    def note(self, tensors):
        """Follow tensors that were made before."""
        self._note([t for t in tensors if t.device.type == "meta"])

    def _note(self, tensors):
        is_new = False
        for tensor in tensors:
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in self._storages:
                is_new = True
                self._storages[key] = weakref.ref(
                    storage, lambda _, key=key, known=self._storages: known.pop(key, None)
                )
        return is_new

    def live(self):
        """Bytes of all tensors that live."""
        storages = [r() for r in list(self._storages.values())]
        return sum(s.nbytes() for s in storages if s is not None)

    def measure(self):
        """Note the peak."""
        self.peak = max(self.peak, self.live())


def _tensors(value):
    if isinstance(value, facula.Tensor):
        yield getattr(value, "_local_tensor", value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


@contextlib.contextmanager
def simulate(machine, ranks, rank=0):
    """A world of ranks of which this process is one; operators on meta tensors take simulated time.

    Args:
        machine (Machine): what operators and collectives cost.
        ranks (int): of the world.
        rank (int): of this process.

    Yields:
        what watches: `clock` (Clock), `peak` (bytes), `note(tensors)`, `live()`

    Raises:
        RuntimeError: this process has a group already.

    Example:
        >>> from facula.distributed.simulate import MACHINES
        >>> with simulate(MACHINES["a100"], 64) as watch:
        ...     x = facula.ones(1 << 20, device="meta")
        ...     facula.distributed.all_reduce(x)
        >>> round(watch.clock.now * 1e6)
        172
    """
    if world.is_initialized():
        raise RuntimeError("simulate(): expected no process group; got one of this process")
    clock = Clock(machine)
    if "simulated" not in world.Backend._plugins:
        world.Backend.register_backend("simulated", _no_clock, extended_api=True)

    def make(facts, options):
        return SimulatedProcessGroup(facts.group_rank, facts.group_size, clock, facts.group_id)

    world.Backend._plugins["simulated"] = (make, True)
    world.init_process_group("simulated", store=_Nowhere(), rank=rank, world_size=ranks)
    try:
        with _Watch(clock) as watch:
            yield watch
    finally:
        world.destroy_process_group()
        world.Backend._plugins["simulated"] = (_no_clock, True)


def _no_clock(facts, options):
    raise RuntimeError('init_process_group(): the backend "simulated" is for simulate() alone')


class _Nowhere:
    """A store that nobody shares."""

    def __init__(self):
        self._values = {}

    def set(self, key, value):
        """Keep a value."""
        self._values[key] = value

    def get(self, key):
        """The value that was kept."""
        return self._values.get(key, b"")

    def wait(self, keys, timeout=None):
        """Everything is there."""

    def check(self, keys):
        """Everything is there."""
        return True

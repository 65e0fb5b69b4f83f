"""Reducer: adds the gradients of all ranks up while the backward pass still runs.

Gradients are collected in buckets. As soon as the gradients of a bucket are ready its all-reduce is
started, so that communication overlaps with the rest of the pass (Li et al. 2020, "PyTorch
Distributed: Experiences on Accelerating Data Parallel Training"). Buckets start in the order of
their numbers, which is the same at all ranks.
"""

from __future__ import annotations

import facula
from facula.distributed._reduce_op import AllreduceOptions, BroadcastOptions

__all__ = ["GradBucket", "Logger", "Reducer"]

FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """The gradients of some parameters in one flat tensor; what a communication hook gets."""

    def __init__(self, bucket, is_last):
        self._bucket, self._is_last, self._buffer = bucket, is_last, bucket.buffer

    def index(self):
        """The number of the bucket; the first is ready first."""
        return self._bucket.index

    def buffer(self):
        """All gradients, as one tensor of one dimension."""
        return self._buffer

    def set_buffer(self, buffer):
        """Put another tensor in place of the gradients."""
        self._buffer = buffer

    def gradients(self):
        """The gradients, as a list of tensors that are parts of the buffer."""
        if self._bucket.sparse:
            return [self._buffer]
        return [view(self._buffer, p, o) for p, o in self._bucket.places()]

    def parameters(self):
        """The parameters, in the order of their gradients."""
        return list(self._bucket.params)

    def is_last(self):
        """Whether this is the last bucket of a backward pass."""
        return self._is_last


class Logger:
    """Notes of what a Reducer did: none are kept."""


def view(buffer, param, offset):
    """The part of a flat tensor that has the gradient of a parameter, with its strides."""
    if param.is_contiguous() or not _is_dense(param):
        return buffer[offset : offset + param.numel()].view(param.shape)
    return buffer.as_strided(param.shape, param.stride(), offset)


def _is_dense(tensor):
    """Whether its elements fill a block of memory, each once, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


class _Bucket:
    def __init__(self, index, params, numbers, sparse, dtype):
        self.index, self.params, self.numbers, self.sparse = index, params, numbers, sparse
        self.offsets, size = [], 0
        for p in params:
            self.offsets.append(size)
            size += p.numel()
        self.buffer = None
        if not sparse:
            dtype = dtype if params[0].is_floating_point() and dtype else params[0].dtype
            self.buffer = facula.zeros(size, dtype=dtype, device=params[0].device)
        self.reset()

    def reset(self):
        self.pending = len(self.params)
        self.result = None  # of the communication: a function that waits and returns a tensor

    def places(self):
        return zip(self.params, self.offsets, strict=True)


def bucket_assignment(params, numbers, limits, sparse):
    """Cut parameters into buckets of one dtype and device each.

    Args:
        params (list): all parameters.
        numbers (list of int): which of them, in the order in which gradients become ready.
        limits (list of int): bytes at which the first, second, ... bucket is full; the last holds
            for all others.
        sparse (list of bool): whether a parameter has sparse gradients: it gets its own bucket.

    Returns:
        list of list of int
    """
    made, open_buckets = [], {}
    for n in numbers:
        if sparse[n]:
            made.append([n])
            continue
        kind = (params[n].dtype, params[n].device)
        bucket = open_buckets.setdefault(kind, {"numbers": [], "bytes": 0, "count": 0})
        bucket["numbers"].append(n)
        bucket["bytes"] += params[n].numel() * params[n].element_size()
        if bucket["bytes"] >= limits[min(bucket["count"], len(limits) - 1)]:
            made.append(bucket["numbers"])
            bucket.update(numbers=[], bytes=0, count=bucket["count"] + 1)
    return made + [b["numbers"] for b in open_buckets.values() if b["numbers"]]


class Reducer:
    """Adds gradients up over ranks, in buckets, during backward passes.

    Args:
        params (list of Parameter): the parameters, in the same order at all ranks.
        names (list of str): theirs, for errors.
        process_group (ProcessGroup): the ranks.
        bucket_bytes_cap (int): when a bucket is full.
        first_bucket_bytes_cap (int): the same for the first.
        find_unused_parameters (bool): look for parameters that a pass does not reach.
        gradient_as_bucket_view (bool): have gradients be parts of the buckets.
        static_graph (bool): all passes use the same parameters.
        sparse (list of bool): whether a parameter has sparse gradients.
        communication_dtype (dtype): of buckets; None for that of the parameters.
    """

    def __init__(
        self,
        params,
        names,
        process_group,
        bucket_bytes_cap,
        first_bucket_bytes_cap=FIRST_BUCKET_BYTES,
        find_unused_parameters=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        sparse=None,
        communication_dtype=None,
    ):
        self.params, self.names, self.process_group = params, names, process_group
        self._limits = [first_bucket_bytes_cap, bucket_bytes_cap]
        self._find_unused, self._as_views = find_unused_parameters, gradient_as_bucket_view
        self.static_graph = static_graph
        self._sparse = sparse or [False] * len(params)
        self.div_factor = process_group.size()
        self._hook, self._communication_dtype = None, communication_dtype
        self.manual_finalization = False
        self._order = []  # parameters as their gradients became ready, in the first pass
        self.rebuilt, self._may_rebuild = False, False
        self._expects, self._began = False, False
        self._unused, self._counts, self._first_static = [], {}, static_graph
        # Nothing is known of the order yet. Gradients of last layers come first.
        last_first = bucket_assignment(
            params, range(len(params) - 1, -1, -1), self._limits, self._sparse
        )
        self._make_buckets([sorted(b) for b in last_first])
        self._handles = [
            p.register_post_accumulate_grad_hook(self._ready_hook(n)) for n, p in enumerate(params)
        ]

    def remove_hooks(self):
        """Leave the gradients of the parameters alone from now on."""
        for handle in self._handles:
            handle.remove()

    def register_comm_hook(self, state, hook):
        """Have a function communicate in place of the all-reduce."""
        self._hook = (state, hook)

    def _make_buckets(self, assignment):
        self.buckets = [
            _Bucket(
                i,
                [self.params[n] for n in numbers],
                numbers,
                self._sparse[numbers[0]],
                self._communication_dtype,
            )
            for i, numbers in enumerate(assignment)
        ]
        self._place = {
            n: (bucket, offset)
            for bucket in self.buckets
            for n, offset in zip(bucket.numbers, bucket.offsets, strict=True)
        }

    # --- before a pass

    def rebuild_buckets(self):
        """After the first pass: buckets in the order in which gradients became ready at rank 0."""
        if not self._may_rebuild or not self.will_rebuild():
            return
        self.rebuilt = True
        order = list(self._order) + [
            n for n in range(len(self.params)) if n not in set(self._order)
        ]
        numbers = facula.tensor(order)
        options = BroadcastOptions(rootRank=0)
        self.process_group.broadcast([numbers], options).wait()
        limits = [min(self._limits), self._limits[1]]
        self._make_buckets(bucket_assignment(self.params, numbers.tolist(), limits, self._sparse))

    def will_rebuild(self):
        """Whether buckets are still those of the beginning, to be changed after a pass."""
        return not self.rebuilt and (self.static_graph or not self._find_unused)

    def check_finished(self):
        """RuntimeError if the pass before has not reached all parameters, or has not ended."""
        if not (self._expects and self._began):
            return
        if self._waits_for_finalize():
            raise RuntimeError(
                "DistributedDataParallel: expected finalize_backward() before the next forward "
                "pass, as require_manual_backward_finalization is set"
            )
        missing = [self.names[n] for n in range(len(self.params)) if n not in self._seen]
        self._expects = self._began = False
        raise RuntimeError(
            f"DistributedDataParallel: expected gradients for all parameters in the pass before; "
            f"rank {self.process_group.rank()} got none for {', '.join(missing)}. Pass "
            "find_unused_parameters=True if the loss does not always depend on all parameters"
        )

    def prepare_for_backward(self, outputs):
        """Expect a backward pass.

        Args:
            outputs (list of Tensor): what it begins at.
        """
        self._expects, self._began = True, False
        self._seen, self._next = set(), 0
        self._used = facula.zeros(len(self.params), dtype=facula.int32)
        self._used_work = None
        for bucket in self.buckets:
            bucket.reset()
        self._hits = {}
        if self.static_graph:
            self._unused = [] if self._first_static else self._unused
        elif self._find_unused:
            reached = _reached_parameters(outputs)
            self._unused = [n for n, p in enumerate(self.params) if id(p) not in reached]

    # --- during a pass

    def _ready_hook(self, number):
        def hook(param):
            if self._expects:
                self._on_gradient(number)

        return hook

    def _begin(self):
        self._began = True
        facula.autograd.Variable._execution_engine.queue_callback(self._end_of_pass)
        for n in self._unused:
            self._ready(n, used=False)

    def _on_gradient(self, number):
        if not self._began:
            self._begin()
        self._hits[number] = self._hits.get(number, 0) + 1
        if self._first_static:
            if self._hits[number] == 1 and not self.rebuilt:
                self._order.append(number)
            return
        if self._hits[number] < self._counts.get(number, 1):
            return
        self._ready(number, used=True)

    def _ready(self, number, used):
        if number in self._seen:
            if not used:
                return
            raise RuntimeError(
                f"DistributedDataParallel: expected one gradient for each parameter in a pass; got "
                f"a second one for {self.names[number]}. A parameter that several reentrant passes "
                "reach needs static_graph=True"
            )
        self._seen.add(number)
        self._used[number] = int(used)
        if not self.rebuilt and used and not self.static_graph:
            self._order.append(number)
        bucket, offset = self._place[number]
        self._fill(bucket, offset, self.params[number], used)
        bucket.pending -= 1
        while self._next < len(self.buckets) and self.buckets[self._next].pending == 0:
            self._start(self.buckets[self._next])
            self._next += 1
        if self._next == len(self.buckets) and self._used_work is None:
            self._share_used()

    def _share_used(self):
        """Have all ranks know which parameters somebody has used."""
        if self._find_unused or self._first_static:
            options = AllreduceOptions()
            options.asyncOp = True
            self._used_work = self.process_group.allreduce([self._used], options)

    @facula.no_grad()
    def _fill(self, bucket, offset, param, used):
        scale = 1.0 if self._hook else 1.0 / self.div_factor
        if bucket.sparse:
            if param.grad is None:
                raise RuntimeError(
                    "DistributedDataParallel: expected a gradient for each sparse one"
                )
            bucket.buffer = param.grad * scale if scale != 1.0 else param.grad.clone()
            return
        place = view(bucket.buffer, param, offset)
        if param.grad is None:
            place.zero_()
        elif param.grad.data_ptr() == place.data_ptr():
            if scale != 1.0:
                place.mul_(scale)
        elif scale == 1.0:
            place.copy_(param.grad)
        elif param.grad.requires_grad or param.grad.dtype != place.dtype:
            place.copy_(param.grad.detach()).mul_(scale)
        else:
            facula.mul(param.grad, scale, out=place)

    def _start(self, bucket):
        if self._hook is None:
            options = AllreduceOptions()
            options.asyncOp = True
            work = self.process_group.allreduce([bucket.buffer], options)

            def result():
                work.wait()
                return bucket.buffer

            bucket.result = result
            return
        state, hook = self._hook
        future = hook(state, GradBucket(bucket, bucket.index == len(self.buckets) - 1))
        if not hasattr(future, "wait"):
            raise TypeError(
                f"DistributedDataParallel: expected a communication hook that returns a Future; "
                f"got {type(future).__name__}"
            )
        bucket.result = future.wait

    # --- at its end

    def _end_of_pass(self):
        if not self._expects:
            return
        if self._first_static:
            self._unused = [n for n in range(len(self.params)) if n not in self._hits]
            self._counts = dict(self._hits)
            order = sorted(range(len(self.params)), key=lambda n: n in self._unused)
            for n in order:
                self._ready(n, used=n in self._hits)
        if self._next < len(self.buckets) or self.manual_finalization:
            return  # check_finished() says so before the next pass
        self.finish()

    def require_manual_finalization(self, value):
        """Have passes end when `finalize` is called, or by themselves."""
        if self._expects:
            raise RuntimeError(
                "require_manual_backward_finalization: expected to be set between passes; got it "
                "after a forward pass whose backward pass has not ended"
            )
        self.manual_finalization = bool(value)

    def _waits_for_finalize(self):
        return self.manual_finalization and self._began and self._next == len(self.buckets)

    def finalize(self):
        """End a pass by hand."""
        if not self.manual_finalization:
            raise RuntimeError(
                "finalize_backward(): expected require_manual_backward_finalization to be set first"
            )
        if not self._waits_for_finalize() or not self._expects:
            raise RuntimeError(
                "finalize_backward(): expected a backward pass that has reached all parameters and "
                "has not been ended; got none"
            )
        self.finish()

    def finish(self):
        """Wait for all buckets, and give the parameters their gradients."""
        for bucket in self.buckets:
            result = bucket.result()
            if isinstance(result, (list, tuple)):
                (result,) = result
            self._give_back(bucket, result)
        self._expects = self._began = False
        self._may_rebuild, self._first_static = True, False

    def _used_anywhere(self):
        if self._used_work is not None:
            self._used_work.wait()
            self._used_work = None
            self._used_everywhere = self._used.tolist()
        if not (self._find_unused or self.static_graph):
            return None
        return self._used_everywhere

    @facula.no_grad()
    def _give_back(self, bucket, result):
        used = self._used_anywhere()
        if bucket.sparse:
            bucket.params[0].grad = result
            return
        if result is not bucket.buffer:
            bucket.buffer.copy_(result.view(-1))
        for n, (param, offset) in zip(bucket.numbers, bucket.places(), strict=True):
            if used is not None and not used[n]:
                continue  # nobody has used it: its gradient stays what it was
            place = view(bucket.buffer, param, offset)
            if place.dtype != param.dtype:
                param.grad = place.to(param.dtype)
            elif self._as_views:
                if param.grad is None or param.grad.data_ptr() != place.data_ptr():
                    param.grad = place
            elif param.grad is None:
                param.grad = place.clone()
            else:
                param.grad.copy_(place)

    def start_accumulated(self):
        """Begin to average gradients that passes without communication have left; then `finish`."""
        self.check_finished()
        self.rebuild_buckets()
        self.prepare_for_backward([])
        self._began = True
        for bucket in self.buckets:
            for n in bucket.numbers:
                self._ready(n, used=self.params[n].grad is not None)

    def match_all_reduces(self):
        """Take part in the all-reduces of a pass of other ranks, with zeros."""
        for bucket in self.buckets:
            bucket.reset()
            if bucket.sparse:
                param = bucket.params[0]
                bucket.buffer = facula.zeros_like(param).to_sparse(1)
            else:
                bucket.buffer.zero_()
            self._start(bucket)
        self._used = facula.zeros(len(self.params), dtype=facula.int32)
        self._share_used()
        for bucket in self.buckets:
            bucket.result()
        self._used_anywhere()
        self._may_rebuild, self._first_static = True, False


def _reached_parameters(outputs):
    """The ids of the leaves that the graphs of tensors lead to."""
    found, seen = set(), set()
    stack = []
    for t in outputs:
        if t.grad_fn is not None:
            stack.append(t.grad_fn)
        elif t.requires_grad:
            found.add(id(t))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        stack += [n for n, _ in node.next_functions if n is not None]
    return found

"""A stage: a part of the model, with what it has of each microbatch that is under way."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import dataclass

import facula
import facula.distributed as dist
from facula.distributed.pipelining import _utils
from facula.distributed.pipelining._backward import (
    stage_backward,
    stage_backward_input,
    stage_backward_weight,
)
from facula.distributed.pipelining._data_parallel import DataParallelParts
from facula.utils import _pytree as pytree
from facula.utils.hooks import RemovableHandle

__all__ = ["PipelineStage", "PipelineStageInfo", "build_stage"]


def _tensors(tree):
    return [v for v in pytree.tree_leaves(tree) if isinstance(v, facula.Tensor)]


@dataclass(frozen=True, kw_only=True)
class PipelineStageInfo:
    """Which forward of a stage it is; what `register_forward_context` is told.

    Args:
        stage_index (int): the stage.
        microbatch_index (int): the microbatch.
        is_metadata_inference (bool): whether it only finds shapes.
    """

    stage_index: int
    microbatch_index: int
    is_metadata_inference: bool = False


class _PipelineStageBase:
    """What schedules need of a stage."""

    def __init__(self, submodule, stage_index, num_stages, device, group=None, dw_builder=None):
        if stage_index >= num_stages or stage_index < 0:
            raise ValueError(
                f"PipelineStage(): expected a stage_index below {num_stages}; got {stage_index}"
            )
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.data_parallel = DataParallelParts(submodule)
        self.device, self.group, self.dw_builder = device, group, dw_builder
        self.group_rank, self.group_size = dist.get_rank(group), dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"PipelineStage(): expected at least as many stages as ranks, {self.group_size}; "
                f"got {num_stages}"
            )
        self.has_backward = False
        self._forward_contexts = OrderedDict()
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self.inputs_meta = self.outputs_meta = None
        self.clear_runtime_states()

    @property
    def is_first(self):
        """Whether it takes the batch."""
        return self.stage_index == 0

    @property
    def is_last(self):
        """Whether it gives the result."""
        return self.stage_index == self.num_stages - 1

    def register_forward_context(self, context_factory):
        """Have a context manager around each forward of this stage.

        Args:
            context_factory (callable): takes a PipelineStageInfo, returns a context manager.

        Returns:
            RemovableHandle

        Raises:
            RuntimeError: there is one already.
        """
        if self._forward_contexts:
            raise RuntimeError(
                "register_forward_context(): expected a stage without a context; it has one"
            )
        handle = RemovableHandle(self._forward_contexts)
        self._forward_contexts[handle.id] = context_factory
        return handle

    def _forward_context(self, microbatch, is_metadata_inference=False):
        info = PipelineStageInfo(
            stage_index=self.stage_index,
            microbatch_index=microbatch,
            is_metadata_inference=is_metadata_inference,
        )
        for factory in self._forward_contexts.values():
            return factory(info)
        return contextlib.nullcontext()

    def __str__(self):
        return f"stage {self.stage_index} (rank {self.group_rank})"

    def clear_runtime_states(self):
        """Forget all microbatches."""
        self.output_chunks = []  # of the last stage, in the order they were computed
        self.fwd_cache = {}  # by microbatch: outputs, inputs
        self.bwd_cache = {}  # by microbatch: gradients of inputs
        self._weights_later = {}  # by microbatch: what computes gradients of weights
        self._inputs, self._output_grads = {}, {}  # by microbatch: tensors that have come
        self._receives, self._sends = {}, {}  # by (direction, microbatch): works


class PipelineStage(_PipelineStageBase):
    """A part of a model that this rank runs.

    Args:
        submodule (Module): its forward takes the outputs of the stage before, all tensors.
        stage_index (int): which stage it is.
        num_stages (int): stages of the pipeline.
        device (device): of its parameters.
        input_args (Tensor or tuple): examples of a microbatch's inputs; default: the stage before
            tells of them at the first step.
        output_args (Tensor or tuple): likewise; default: found with tensors that have no memory.
        output_grads, input_grads: accepted for compatibility; gradients are like their tensors.
        group (ProcessGroup): the ranks of the pipeline; default all.
        dw_builder (callable): called after each backward of inputs; returns a function that is
            called to compute gradients of weights.
        get_mesh (callable): of DTensors, which cannot be sent yet.

    Raises:
        NotImplementedError: `get_mesh` is given.
        RuntimeError: there are more ranks than stages.
        ValueError: there is no such stage.

    Source: GPipe (Huang et al., 2019).

    Example:
        >>> from facula.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> def work(rank):
        ...     part = facula.nn.Linear(4, 4)
        ...     stage = PipelineStage(part, rank, 2, facula.device("cpu"))
        ...     schedule = ScheduleGPipe(stage, 2, loss_fn=facula.nn.functional.mse_loss)
        ...     if rank == 0:
        ...         return schedule.step(facula.ones(6, 4))
        ...     return schedule.step(target=facula.zeros(6, 4)).shape
        >>> facula.distributed.threads.run(work, 2)
        [None, facula.Size([6, 4])]
    """

    def __init__(
        self,
        submodule,
        stage_index,
        num_stages,
        device,
        input_args=None,
        output_args=None,
        output_grads=None,
        input_grads=None,
        group=None,
        dw_builder=None,
        get_mesh=None,
    ):
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if get_mesh is not None:
            raise NotImplementedError("PipelineStage(): DTensors between stages are not there yet")
        self._given_inputs = None if input_args is None else _utils.as_tuple(input_args)
        self._given_outputs = None if output_args is None else _utils.as_tuple(output_args)

    # Shapes ------------------------------------------------------------------------------------

    def prepare(self, args, kwargs, previous, has_backward):
        """Learn the shapes of inputs and outputs.

        Args:
            args (tuple): of a microbatch, for the first stage.
            kwargs (dict): of a microbatch.
            previous (PipelineStage): the stage before, if this rank has it.
            has_backward (bool): whether gradients are needed.
        """
        where = f"PipelineStage {self.stage_index}"
        if self.is_first:
            self.inputs_meta = _utils.metas_of(where, args) if args else ()
        elif previous is not None:
            self.inputs_meta = previous.outputs_meta
        else:
            found = [None]
            dist.recv_object_list(found, group=self.group, group_src=self._rank_of(-1))
            self.inputs_meta = found[0]
        if self._given_inputs is not None:
            _utils.validate(f"{where} (inputs)", self.inputs_meta, self._given_inputs)
        if self._given_outputs is not None:
            self.outputs_meta = _utils.metas_of(where, self._given_outputs)
        else:
            with self._forward_context(0, is_metadata_inference=True):
                self.outputs_meta = _utils.infer_outputs(
                    where, self.data_parallel, self.inputs_meta, kwargs, has_backward
                )
        if not self.is_last and self._rank_of(1) != self.group_rank:
            dist.send_object_list([self.outputs_meta], group=self.group, group_dst=self._rank_of(1))

    def _rank_of(self, offset):
        return self.stage_index_to_group_rank[self.stage_index + offset]

    # Messages ----------------------------------------------------------------------------------

    def _tag(self, stage, forward, microbatch):
        # Messages of a stage, direction and microbatch meet no others, whatever their order.
        return (microbatch * self.num_stages + stage) * 2 + int(forward)

    def begin_receive(self, forward, microbatch):
        """Begin to receive activations, or gradients of the outputs."""
        metas = self.inputs_meta if forward else self._grads_meta(self.outputs_meta)
        source = self._rank_of(-1 if forward else 1)
        stage = self.stage_index - 1 if forward else self.stage_index + 1
        tag = self._tag(stage, forward, microbatch)
        tensors, works = [], []
        for meta in metas:
            tensor = facula.empty_strided(
                meta.shape, meta.stride, dtype=meta.dtype, device=self.device
            )
            tensors.append(tensor)
            works.append(dist.irecv(tensor, group=self.group, group_src=source, tag=tag))
        self._receives[forward, microbatch] = tensors, works

    def _received(self, forward, microbatch):
        tensors, works = self._receives.pop((forward, microbatch))
        for work in works:
            work.wait()
        return tensors

    def begin_send(self, forward, microbatch):
        """Begin to send the outputs, or the gradients of the inputs."""
        values = self.fwd_cache[microbatch][0] if forward else self.bwd_cache.pop(microbatch)
        target = self._rank_of(1 if forward else -1)
        tag = self._tag(self.stage_index, forward, microbatch)
        # What is sent is kept until it has arrived.
        sent = [v.detach().contiguous() for v in values]
        works = [dist.isend(v, group=self.group, group_dst=target, tag=tag) for v in sent]
        self._sends[forward, microbatch] = sent, works

    def wait_for_send(self, forward, microbatch):
        """Wait until something that was sent has arrived."""
        _, works = self._sends.pop((forward, microbatch))
        for work in works:
            work.wait()

    @staticmethod
    def _grads_meta(metas):
        return [m for m in metas if m.requires_grad]

    def set_local_fwd_input(self, prev_stage_outputs, mb_index):
        """Take the outputs of a stage of the same rank."""
        self._inputs[mb_index] = [v.detach() for v in _utils.as_tuple(prev_stage_outputs)]

    def set_local_bwd_input(self, next_stage_bwd_outputs, mb_index):
        """Take the gradients that the next stage has computed on the same rank."""
        self._output_grads[mb_index] = list(next_stage_bwd_outputs)

    def get_local_bwd_output(self, mb_index):
        """The gradients for the stage before."""
        return self.bwd_cache.pop(mb_index)

    # Computations ------------------------------------------------------------------------------

    def forward_one_chunk(self, fwd_chunk_id, args, kwargs=None, save_forward_output=True):
        """Run a microbatch.

        Args:
            fwd_chunk_id (int): which one.
            args (tuple): its inputs, for the first stage.
            kwargs (dict): arguments by name.
            save_forward_output (bool): whether the last stage keeps the result.

        Returns:
            what the module returns
        """
        kwargs = kwargs or {}
        if self.is_first:
            inputs = list(args)
        else:
            inputs = self._inputs.pop(fwd_chunk_id, None)
            if inputs is None:
                inputs = self._received(True, fwd_chunk_id)
            if self.has_backward:
                for value, meta in zip(inputs, self.inputs_meta, strict=True):
                    value.requires_grad_(meta.requires_grad)
        _utils.validate(f"PipelineStage {self.stage_index} (inputs)", self.inputs_meta, inputs)
        try:
            with self._forward_context(fwd_chunk_id):
                output = self.submod(*inputs, **kwargs)
        except Exception as error:
            raise RuntimeError(
                f"PipelineStage {self.stage_index}: the forward of microbatch {fwd_chunk_id} "
                f"failed: {type(error).__name__}: {error}"
            ) from error
        outputs = _utils.as_tuple(output)
        _utils.validate(f"PipelineStage {self.stage_index} (outputs)", self.outputs_meta, outputs)
        if self.is_last and save_forward_output:
            self.output_chunks.append((fwd_chunk_id, output))
        self.fwd_cache[fwd_chunk_id] = outputs, [*inputs, *_tensors(kwargs)]
        return output

    def _roots(self, microbatch, loss):
        """What a backward begins with: outputs, their gradients, and the inputs."""
        outputs, inputs = self.fwd_cache.pop(microbatch)
        if self.is_last:
            return ((loss,) if loss is not None else outputs), None, inputs
        grads = self._output_grads.pop(microbatch, None)
        if grads is None:
            grads = self._received(False, microbatch)
        grads = iter(grads)
        return (
            outputs,
            [next(grads) if m.requires_grad else None for m in self.outputs_meta],
            inputs,
        )

    def _keep_input_grads(self, microbatch, grads, inputs):
        if self.is_first:
            return
        pairs = zip(inputs, grads, self.inputs_meta, strict=False)
        self.bwd_cache[microbatch] = tuple(
            facula.zeros_like(value) if grad is None else grad
            for value, grad, meta in pairs
            if meta.requires_grad
        )

    def backward_one_chunk(self, bwd_chunk_id, loss=None, full_backward=True, last_backward=False):
        """Gradients of a microbatch.

        Args:
            bwd_chunk_id (int): which one.
            loss (Tensor): of the last stage.
            full_backward (bool): whether to compute those of weights as well.
            last_backward (bool): has no effect: `perform_reduce_grad` comes after it.
        """
        outputs, grads, inputs = self._roots(bwd_chunk_id, loss)
        if full_backward:
            found = stage_backward(outputs, grads, [] if self.is_first else inputs)
        else:
            self.data_parallel.unshard()  # the graph ends at whole parameters
            weights = list(self.submod.parameters())
            given = [] if self.is_first else inputs
            found, left = stage_backward_input(outputs, grads, given, weights)
            self._weights_later[bwd_chunk_id] = (
                self.dw_builder()
                if self.dw_builder is not None
                else lambda: stage_backward_weight(weights, left)
            )
        self._keep_input_grads(bwd_chunk_id, found, inputs)

    def backward_weight_one_chunk(self, bwd_chunk_id, last_backward=False):
        """Gradients of weights, after a backward of inputs alone."""
        if bwd_chunk_id not in self._weights_later:
            raise AssertionError(
                f"PipelineStage {self.stage_index}: expected a backward of the inputs of "
                f"microbatch {bwd_chunk_id} before that of its weights"
            )
        self._weights_later.pop(bwd_chunk_id)()

    def scale_grads(self, grad_scale_factor):
        """Divide the gradients of parameters by a number."""
        if grad_scale_factor == 1:
            return
        for parameter in self.submod.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(grad_scale_factor)

    def perform_reduce_grad(self, grad_scale_factor):
        """End the gradients of a batch: average them over data parallel ranks, and divide."""
        self.start_gradient_reduction()
        self.wait_for_gradient_reduction(grad_scale_factor)

    def start_gradient_reduction(self):
        """Begin to average the gradients of a batch over data parallel ranks."""
        self.data_parallel.start_reduction()

    def wait_for_gradient_reduction(self, grad_scale_factor):
        """Wait for the averaged gradients, and divide them by a number."""
        self.data_parallel.finish_reduction()
        self.scale_grads(grad_scale_factor)


def build_stage(stage_module, stage_index, pipe_info, device, group=None):
    """A stage of a model that `pipeline` has split.

    Args:
        stage_module (Module): the part.
        stage_index (int): which one.
        pipe_info (PipeInfo): of the whole.
        device (device): for the part.
        group (ProcessGroup): the ranks of the pipeline; default all.
    """
    return PipelineStage(
        stage_module.to(device), stage_index, pipe_info.num_stages, device, group=group
    )

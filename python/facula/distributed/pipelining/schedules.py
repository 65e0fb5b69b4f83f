"""Schedules: who computes which microbatch when, and who sends what to whom."""

from __future__ import annotations

import csv
from collections import Counter

import facula
from facula.distributed.pipelining import _actions as actions_
from facula.distributed.pipelining import _lowering, _orders, microbatch
from facula.distributed.pipelining._actions import (
    B,
    F,
    I,
    W,
    _Action,
    _ComputationType,
    _format_pipeline_order,  # noqa: F401
)
from facula.distributed.pipelining._liveness import (
    PipelineActivationLiveness,
    analyze_pipeline_activation_liveness,
)
from facula.distributed.pipelining._lowering import (  # noqa: F401
    _add_reduce_grad,
    _add_send_recv,
    _add_unshard_reshard,
    _merge_bw,
    _validate_schedule,
)
from facula.distributed.pipelining._utils import generate_stage_to_rank_mapping
from facula.distributed.pipelining.stage import _PipelineStageBase

__all__ = [
    "PipelineActivationLiveness",
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "analyze_pipeline_activation_liveness",
    "get_schedule_class",
]

_SENDS = {actions_.SEND_F: True, actions_.SEND_B: False}
_RECEIVES = {actions_.RECV_F: True, actions_.RECV_B: False}
_WAITS = {actions_.WAIT_SEND_F: True, actions_.WAIT_SEND_B: False}
_OF_BACKWARD = frozenset(
    {B, I, W, actions_.SEND_B, actions_.RECV_B, actions_.WAIT_SEND_B, actions_.REDUCE_GRAD}
)


class _PipelineSchedule:
    """Runs the actions of one rank for one batch after the other."""

    def __init__(
        self,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
    ):
        if n_microbatches < 1:
            raise ValueError(
                f"{type(self).__name__}(): expected at least one microbatch; got {n_microbatches}"
            )
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._prepared = None
        self.pipeline_order, self.pipeline_order_with_comms = {}, {}

    def _set_stages(self, stages):
        if not stages:
            raise ValueError(f"{type(self).__name__}(): expected at least one stage; got none")
        for stage in stages:
            if not isinstance(stage, _PipelineStageBase):
                raise TypeError(
                    f"{type(self).__name__}(): expected stages as PipelineStage; got "
                    f"{type(stage).__name__}"
                )
        self._stages = list(stages)
        self._by_index = {s.stage_index: s for s in stages}
        self._num_stages, self.pp_group_size = stages[0].num_stages, stages[0].group_size
        self.rank = stages[0].group_rank
        self.n_local_stages = len(stages)

    def _set_ranks(self, stage_to_rank):
        self.stage_index_to_group_rank = stage_to_rank
        for stage in self._stages:
            stage.stage_index_to_group_rank = stage_to_rank
            if stage_to_rank[stage.stage_index] != self.rank:
                raise ValueError(
                    f"{type(self).__name__}(): expected the stages "
                    f"{[s for s, r in stage_to_rank.items() if r == self.rank]} at rank "
                    f"{self.rank}; got {[s.stage_index for s in self._stages]}"
                )

    def _lower(self, orders, max_active_stages=3):
        return _lowering.lower(
            orders,
            self.stage_index_to_group_rank.__getitem__,
            self._num_stages,
            self._n_microbatches,
            max_active_stages,
            self._defer_reduce_grad_wait,
        )

    _defer_reduce_grad_wait = False

    def step(
        self,
        *args,
        target=None,
        losses=None,
        return_outputs=True,
        loss_kwargs=None,
        arg_mbs=None,
        kwarg_mbs=None,
        target_mbs=None,
        finalize_gradients=True,
        **kwargs,
    ):
        """Run one batch, forward and backward; gradients are added to those of parameters.

        Args:
            args: of the model, at the rank of the first stage; cut along dimension 0 by default.
            target (Tensor): what `loss_fn` compares with, at the rank of the last stage.
            losses (list): filled with the loss of each microbatch, at the rank of the last stage.
            return_outputs (bool): whether to join and return the outputs.
            loss_kwargs (dict): further arguments of `loss_fn`.
            arg_mbs, kwarg_mbs, target_mbs (list): microbatches, in place of whole arguments.
            finalize_gradients (bool): whether to divide gradients by the number of microbatches.
            kwargs: arguments by name of all stages of this rank.

        Returns:
            what the model returns, at the rank of the last stage; None elsewhere

        Raises:
            RuntimeError: gradients are disabled though there is a `loss_fn`, or a stage failed.
            ValueError: a batch does not give the number of microbatches.
        """
        if self._has_backward and not facula.is_grad_enabled():
            raise RuntimeError(
                f"{type(self).__name__}.step(): expected gradients to be enabled; got no_grad "
                "(eval() runs a batch without them)"
            )
        given = (arg_mbs, kwarg_mbs, target_mbs)
        batch = self._microbatches(args, kwargs, target, given)
        return self._run(
            *batch,
            losses,
            return_outputs,
            loss_kwargs or {},
            self._has_backward,
            finalize_gradients,
        )

    def eval(
        self,
        *args,
        target=None,
        losses=None,
        arg_mbs=None,
        kwarg_mbs=None,
        target_mbs=None,
        **kwargs,
    ):
        """Run one batch forward only; see `step`."""
        batch = self._microbatches(args, kwargs, target, (arg_mbs, kwarg_mbs, target_mbs))
        return self._run(*batch, losses, True, {}, False, False)

    def _microbatches(self, args, kwargs, target, given):
        n = self._n_microbatches
        arg_mbs, kwarg_mbs, target_mbs = given
        if arg_mbs is None and kwarg_mbs is None:
            arg_mbs, kwarg_mbs = self._split_inputs(args, kwargs)
        arg_mbs = [()] * n if arg_mbs is None else arg_mbs
        kwarg_mbs = [{}] * n if kwarg_mbs is None else kwarg_mbs
        if target_mbs is None and target is not None:
            target_mbs = list(facula.chunk(target, n))
        for name, parts in (("args", arg_mbs), ("kwargs", kwarg_mbs), ("target", target_mbs)):
            if parts is not None and len(parts) != n:
                raise ValueError(
                    f"{type(self).__name__}: expected {n} microbatches of {name}; got {len(parts)}"
                )
        return [m if isinstance(m, tuple) else (m,) for m in arg_mbs], kwarg_mbs, target_mbs

    def _split_inputs(self, args, kwargs=None):
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        return microbatch.split_args_kwargs_into_chunks(
            args, kwargs, self._n_microbatches, self._args_chunk_spec, self._kwargs_chunk_spec
        )

    def _prepare(self, args, kwargs, has_backward):
        # What stages tell each other holds for all batches of one shape.
        shapes = tuple(tuple(a.shape) for a in args if isinstance(a, facula.Tensor))
        if self._prepared is not None and self._prepared[0] == has_backward:
            if self._prepared[1] == shapes:
                return
            raise ValueError(
                f"{type(self).__name__}: expected microbatches of {self._prepared[1]}, as in the "
                f"step before; got {shapes}"
            )
        for stage in sorted(self._stages, key=lambda s: s.stage_index):
            previous = self._by_index.get(stage.stage_index - 1)
            stage.prepare(args if stage.is_first else (), kwargs, previous, has_backward)
        self._prepared = has_backward, shapes

    def _run(
        self,
        arg_mbs,
        kwarg_mbs,
        target_mbs,
        losses,
        return_outputs,
        loss_kwargs,
        has_backward,
        finalize,
    ):
        if not self.pipeline_order_with_comms:
            raise RuntimeError(
                f"{type(self).__name__}.step(): expected a schedule; load one with _load_csv()"
            )
        for stage in self._stages:
            stage.has_backward = has_backward
            stage.clear_runtime_states()
        self._prepare(arg_mbs[0], kwarg_mbs[0], has_backward)
        self._batch = arg_mbs, kwarg_mbs, target_mbs, loss_kwargs
        self._losses, self._finalize, self._backwards = {}, finalize, Counter()
        self._reducing = []  # stages whose gradients are being averaged
        self._keep_outputs = return_outputs
        try:
            if has_backward:
                for stage in self._stages:
                    stage.data_parallel.hold_gradients()
            for action in self.pipeline_order_with_comms[self.rank]:
                if action is not None and (has_backward or not _is_of_backward(action)):
                    self._do_with_context(action)
            for stage in list(self._reducing):  # of a file without the waits
                self._end_reduction(stage)
        finally:
            if has_backward:
                for stage in self._stages:
                    stage.data_parallel.release_gradients()
        if losses is not None and self._losses:
            losses[:] = [self._losses[m] for m in sorted(self._losses)]
        last = self._by_index.get(self._num_stages - 1)
        if last is None or not return_outputs:
            return None
        outputs = [output for _, output in sorted(last.output_chunks, key=lambda pair: pair[0])]
        return self._merge_outputs(outputs)

    def _merge_outputs(self, output_chunks):
        return microbatch.merge_chunks(output_chunks, self._output_merge_spec)

    def _do_with_context(self, action):
        try:
            for part in actions_.parts_of(action):
                self._do(part)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"(rank {self.rank} of the pipeline, action {action})")
            raise

    def _do(self, action):
        stage, kind, batch = self._by_index[action.stage_index], *action[1:3]
        custom = self._custom_functions.get(kind)
        if custom is not None:
            custom(action, self)
        elif kind is F:
            self._forward(stage, batch)
        elif kind in (B, I):
            self._backward(stage, kind is B, batch)
        elif kind is W:
            stage.backward_weight_one_chunk(batch, last_backward=self._is_last_backward(stage))
        elif kind in _SENDS:
            stage.begin_send(_SENDS[kind], batch)
        elif kind in _RECEIVES:
            stage.begin_receive(_RECEIVES[kind], batch)
        elif kind in _WAITS:
            stage.wait_for_send(_WAITS[kind], batch)
        elif kind is actions_.REDUCE_GRAD:
            if self._finalize:
                stage.start_gradient_reduction()
                self._reducing.append(stage)
        elif kind is actions_.WAIT_REDUCE_GRAD:
            self._end_reduction(stage)
        elif kind is actions_.UNSHARD:
            stage.data_parallel.unshard(async_op=True)
        elif kind is actions_.RESHARD:
            stage.data_parallel.reshard()

    _custom_functions = {}

    def _end_reduction(self, stage):
        if stage in self._reducing:
            self._reducing.remove(stage)
            stage.wait_for_gradient_reduction(self._n_microbatches if self.scale_grads else 1)

    def _forward(self, stage, batch):
        arg_mbs, kwarg_mbs, target_mbs, loss_kwargs = self._batch
        args = arg_mbs[batch] if stage.is_first else ()
        output = stage.forward_one_chunk(batch, args, kwarg_mbs[batch], self._keep_outputs)
        if stage.is_last and self._loss_fn is not None and target_mbs is not None:
            self._losses[batch] = self._loss_fn(output, target_mbs[batch], **loss_kwargs)
        elif stage.is_last and stage.has_backward:
            raise ValueError(
                f"{type(self).__name__}.step(): expected a target at the rank of the last stage, "
                "for loss_fn; got none"
            )
        following = self._by_index.get(stage.stage_index + 1)
        if following is not None:
            following.set_local_fwd_input(output, batch)

    def _is_last_backward(self, stage):
        self._backwards[stage.stage_index] += 1
        return self._backwards[stage.stage_index] == self._n_microbatches

    def _backward(self, stage, full, batch):
        last = full and self._is_last_backward(stage)
        loss = self._losses.get(batch) if stage.is_last else None
        stage.backward_one_chunk(batch, loss, full, last)
        before = self._by_index.get(stage.stage_index - 1)
        if before is not None:
            before.set_local_bwd_input(stage.get_local_bwd_output(batch), batch)


def _is_of_backward(action):
    if action.sub_actions is not None:
        return False
    return action.computation_type in _OF_BACKWARD


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule in which each rank has one stage.

    Args:
        stage (PipelineStage): the stage of this rank.
        n_microbatches (int): into how many parts a batch is cut.
        loss_fn (callable): of an output and a target; without it there is no backward.
        args_chunk_spec (tuple of TensorChunkSpec): how to cut the arguments.
        kwargs_chunk_spec (dict of TensorChunkSpec): how to cut the arguments by name.
        output_merge_spec: how to join the outputs.
        scale_grads (bool): whether to divide gradients by `n_microbatches`: they are then those
            of the mean of the losses.

    Raises:
        ValueError: the number of stages is not that of ranks.
    """

    def __init__(
        self,
        stage,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
    ):
        super().__init__(
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self._set_stages([stage])
        self._stage = stage
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"{type(self).__name__}(): expected one stage for each of {stage.group_size} "
                f"ranks; got {stage.num_stages}"
            )
        self._set_ranks({i: i for i in range(stage.num_stages)})
        self._check()
        self.pipeline_order = {r: self._order_of(r) for r in range(stage.num_stages)}
        self.pipeline_order_with_comms = self._lower(self.pipeline_order)

    def _check(self):
        pass

    def _order_of(self, rank):
        raise NotImplementedError(f"{type(self).__name__} does not define _order_of()")

    def _get_pipeline_order(self):
        n = self._n_microbatches
        return {r: _add_reduce_grad(order, n) for r, order in self.pipeline_order.items()}


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forwards alone."""

    def _order_of(self, rank):
        return [_Action(rank, F, m) for m in range(self._n_microbatches)]

    def _check(self):
        if self._loss_fn is not None:
            raise RuntimeError("_ScheduleForwardOnly(): expected no loss_fn; got one")


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward; arguments are those of PipelineScheduleSingle.

    Source: Huang et al., GPipe, 2019.
    """

    def _order_of(self, rank):
        return _orders.gpipe(rank, self._n_microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """Forwards and backwards alternate, which keeps fewer activations than GPipe.

    Arguments are those of PipelineScheduleSingle. Source: Narayanan et al., PipeDream, 2019.
    """

    def _check(self):
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"Schedule1F1B(): expected at least as many microbatches as stages, "
                f"{self._num_stages}; got {self._n_microbatches}"
            )

    def _order_of(self, rank):
        return _orders.one_forward_one_backward(rank, self.pp_group_size, self._n_microbatches)


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule in which a rank may have several stages.

    Args:
        stages (list of PipelineStage): those of this rank.
        n_microbatches (int): into how many parts a batch is cut.
        loss_fn (callable): of an output and a target; without it there is no backward.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: as in
            PipelineScheduleSingle.
        use_full_backward (bool): has no effect, the actions tell.
        backward_requires_autograd (bool): accepted for compatibility.
    """

    _style = "loop"

    def __init__(
        self,
        stages,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        use_full_backward=None,
        scale_grads=True,
        backward_requires_autograd=True,
    ):
        super().__init__(
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self._set_stages(stages)
        self._set_ranks(
            generate_stage_to_rank_mapping(self.pp_group_size, self._num_stages, self._style)
        )
        self._custom_functions = {}

    def _prepare_schedule_with_comms(self, actions, format="compute_only"):
        if format not in ("compute_only", "compute_comms"):
            raise ValueError(
                f"_load_csv(): expected the format compute_only or compute_comms; got {format!r}"
            )
        if format == "compute_comms":
            self.pipeline_order_with_comms = actions
            return
        ranks = _validate_schedule(
            actions, self.pp_group_size, self._num_stages, self._n_microbatches
        )
        self._set_ranks(ranks)
        self.pipeline_order = actions
        self.pipeline_order_with_comms = self._lower(actions, self._max_active_stages)

    _max_active_stages = 3

    def _load_csv(self, filename, format="compute_only"):
        """Take the schedule of a file: a line for each rank, of actions such as 2F0."""
        with open(filename, newline="") as file:
            rows = list(csv.reader(file))
        orders = {r: [_Action.from_str(cell) for cell in row] for r, row in enumerate(rows)}
        self._prepare_schedule_with_comms(orders, format)

    def _dump_csv(self, filename, format="compute_comms"):
        """Write the schedule to a file that `_load_csv` reads."""
        orders = {
            "compute_comms": self.pipeline_order_with_comms,
            "compute_only": self.pipeline_order,
        }
        if format not in orders:
            raise ValueError(
                f"_dump_csv(): expected the format compute_only or compute_comms; got {format!r}"
            )
        with open(filename, "w", newline="") as file:
            writer = csv.writer(file)
            for rank in sorted(orders[format]):
                writer.writerow("" if a is None else str(a) for a in orders[format][rank])


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """Runs any list of actions, from a file or from a subclass."""

    def register_custom_function(self, computation_type, custom_function):
        """Run a function of (action, schedule) in place of one kind of action."""
        if not isinstance(computation_type, _ComputationType):
            raise ValueError(
                "register_custom_function(): expected a _ComputationType; got "
                f"{type(computation_type).__name__}"
            )
        self._custom_functions[computation_type] = custom_function


class _Ordered(_PipelineScheduleRuntime):
    """A schedule with an order of its own: options that all of them have."""

    def __init__(
        self,
        stages,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
        backward_requires_autograd=True,
        defer_pp_recv=False,
        max_active_stages=3,
        unshard_lookahead="full",
        *,
        defer_reduce_grad_wait=False,
        max_outstanding_sends=None,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )
        unknown = {
            "defer_pp_recv": defer_pp_recv,
            "unshard_lookahead": unshard_lookahead != "full",
            "max_outstanding_sends": max_outstanding_sends is not None,
        }
        for name, given in unknown.items():
            if given:
                raise NotImplementedError(
                    f"{type(self).__name__}(): the option {name} is not there yet"
                )
        self._max_active_stages = max_active_stages
        self._defer_reduce_grad_wait = defer_reduce_grad_wait
        self._check()
        self.pipeline_order = self._orders()
        self.pipeline_order_with_comms = self._lower(self.pipeline_order, max_active_stages)

    def _check(self):
        pass

    def _orders(self):
        ranks = range(self.pp_group_size)
        return {rank: self._calculate_single_rank_operations(rank) for rank in ranks}

    def _check_two_stages(self):
        if self.n_local_stages != 2:
            raise ValueError(
                f"{type(self).__name__}(): expected exactly 2 stages for each rank; got "
                f"{self.n_local_stages}"
            )

    def _check_rounds(self):
        self.number_of_rounds = max(1, self._n_microbatches // self.pp_group_size)
        self.microbatches_per_round = self._n_microbatches // self.number_of_rounds
        if self._n_microbatches % self.number_of_rounds:
            raise ValueError(
                f"{type(self).__name__}(): expected a number of microbatches that "
                f"{self.number_of_rounds} rounds divide; got {self._n_microbatches}"
            )


class ScheduleLoopedBFS(_Ordered):
    """Each stage runs all microbatches before the next one of its rank does.

    Arguments are those of PipelineScheduleMulti. Source: Lamy-Poirier, Breadth-First Pipeline
    Parallelism, 2022.
    """

    def __init__(
        self,
        stages,
        n_microbatches,
        loss_fn=None,
        output_merge_spec=None,
        scale_grads=True,
        backward_requires_autograd=True,
        defer_pp_recv=False,
        max_active_stages=3,
        unshard_lookahead="full",
        *,
        defer_reduce_grad_wait=False,
        max_outstanding_sends=None,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            None,
            None,
            output_merge_spec,
            scale_grads,
            backward_requires_autograd,
            defer_pp_recv,
            max_active_stages,
            unshard_lookahead,
            defer_reduce_grad_wait=defer_reduce_grad_wait,
            max_outstanding_sends=max_outstanding_sends,
        )

    def _calculate_single_rank_operations(self, rank):
        return _orders.looped_breadth_first(
            rank, self.pp_group_size, self.n_local_stages, self._n_microbatches
        )


class ScheduleInterleaved1F1B(_Ordered):
    """1F1B over several stages of a rank; arguments are those of PipelineScheduleMulti.

    Source: Narayanan et al., Efficient Large-Scale Language Model Training, 2021.
    """

    _check = _Ordered._check_rounds

    def _calculate_single_rank_operations(self, rank):
        return _orders.interleaved(
            rank,
            self.pp_group_size,
            self.n_local_stages,
            self._n_microbatches,
            self.microbatches_per_round,
        )


class ScheduleInterleavedZeroBubble(_Ordered):
    """Interleaved 1F1B whose gaps are filled by gradients of weights.

    Arguments are those of PipelineScheduleMulti. Source: Qi et al., Zero Bubble Pipeline
    Parallelism, 2023.
    """

    _check = _Ordered._check_rounds

    def _calculate_single_rank_operations(self, rank):
        return _orders.interleaved(
            rank,
            self.pp_group_size,
            self.n_local_stages,
            self._n_microbatches,
            self.microbatches_per_round,
            zero_bubble=True,
        )

    def _orders(self):
        return _orders.with_bubbles(super()._orders(), self._num_stages)


class ScheduleZBVZeroBubble(_Ordered):
    """Two stages a rank, to the last rank and back; arguments are those of PipelineScheduleMulti.

    Source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024.
    """

    _style = "v"
    _check = _Ordered._check_two_stages

    def _calculate_single_rank_operations(self, rank):
        return _orders.zero_bubble_vee(rank, self.pp_group_size, self._n_microbatches)


class ScheduleDualPipeV(_Ordered):
    """ZBV in which forwards overlap with backwards; arguments are those of PipelineScheduleMulti.

    Source: DeepSeek-AI, DualPipe, 2025.
    """

    _style = "v"

    def _check(self):
        self._check_two_stages()
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                "ScheduleDualPipeV(): expected at least as many microbatches as stages, "
                f"{self._num_stages}; got {self._n_microbatches}"
            )

    def _calculate_single_rank_operations(self, rank):
        return _orders.dual_pipe_vee(rank, self.pp_group_size, self._n_microbatches)


_CLASSES = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name):
    """The class of a schedule.

    Args:
        schedule_name (str): such as "1F1B", in letters of any case.

    Raises:
        ValueError: there is none of this name.
    """
    by_name = {name.lower(): schedule for name, schedule in _CLASSES.items()}
    if schedule_name.lower() not in by_name:
        raise ValueError(
            f"get_schedule_class(): expected one of {list(_CLASSES)}; got {schedule_name!r}"
        )
    return by_name[schedule_name.lower()]

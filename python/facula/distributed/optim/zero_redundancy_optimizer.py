"""An optimizer whose state is spread over the ranks of a group (ZeRO, stage 1)."""

from __future__ import annotations

import facula
import facula.distributed as dist
from facula.distributed.algorithms.join import Joinable, JoinHook
from facula.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class _StepForOthers(JoinHook):
    """A rank without inputs updates its part of the parameters with the others' gradients."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def main_hook(self):
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Updates a part of the parameters on each rank, and passes the results on.

    Each rank has an optimizer for its part alone, so the state (Adam's averages, say) takes the
    memory of one part. Parameters go to ranks the largest first, each to the rank that has the
    fewest elements (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
    Parameter Models", 2020). Gradients must be equal on all ranks, as DistributedDataParallel
    makes them.

    Args:
        params (iterable): Tensors, or dicts that describe groups of them.
        optimizer_class (type): the optimizer of each part.
        process_group (ProcessGroup): the default group if None.
        parameters_as_bucket_view (bool): whether the parameters of a rank move into one tensor, so
            one message passes them on; their `data` must not be replaced then.
        overlap_with_ddp (bool): leave steps to a hook of DistributedDataParallel
            (`ddp_comm_hooks.ddp_zero_hook`), within the backward pass: `step` then does nothing.
        defaults: settings of `optimizer_class`.

    Raises:
        TypeError: params is one Tensor, or holds neither Tensors nor dicts alone.
        ValueError: params is empty.

    Example:
        >>> from facula.distributed import threads
        >>> from facula.distributed.optim import ZeroRedundancyOptimizer
        >>> def work(rank):
        ...     p = facula.nn.Parameter(facula.ones(3))
        ...     optimizer = ZeroRedundancyOptimizer([p], facula.optim.SGD, lr=0.5)
        ...     p.grad = facula.ones(3)
        ...     optimizer.step()
        ...     return p.tolist()
        >>> threads.run(work, 2)
        [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view=False,
        overlap_with_ddp=False,
        **defaults,
    ):
        self._overlap_with_ddp = bool(overlap_with_ddp)
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim = None
        if not callable(optimizer_class):
            raise TypeError(
                "ZeroRedundancyOptimizer(): expected a class of optimizers; got "
                f"{type(optimizer_class).__name__}"
            )
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._all_state_dicts = []
        self._owners, self._sizes, self._buckets = {}, [0] * self.world_size, []
        Joinable.__init__(self)
        super().__init__(_checked(params), defaults)
        self.optim = optimizer_class([self._own_part(g) for g in self.param_groups], **defaults)
        self._share_settings(self.optim, self)

    # ---- whose parameter is whose

    def add_param_group(self, param_group):
        """Add a group, whose parameters go to ranks as those before did.

        Args:
            param_group (dict): with "params" and settings.

        Raises:
            TypeError, ValueError: as Optimizer.add_param_group().
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in sorted(group["params"], key=facula.Tensor.numel, reverse=True):
            owner = self._sizes.index(min(self._sizes))
            self._owners[param] = owner
            self._sizes[owner] += param.numel()
        self._buckets += self._make_buckets(group["params"])
        if self.optim is not None:
            self.optim.add_param_group(self._own_part(group))
            self._share_settings(self.optim, self)

    def _own_part(self, group, rank=None):
        rank = self.rank if rank is None else rank
        part = [p for p in group["params"] if self._owners[p] == rank]
        return {**group, "params": part}

    def _make_buckets(self, params):
        """What is passed on: (owner, Tensor) for each parameter, or for all of an owner's."""
        if not self.parameters_as_bucket_view:
            return [(self._owners[p], p.data) for p in params]
        of_owner = {}
        for p in params:
            of_owner.setdefault((self._owners[p], p.dtype), []).append(p)
        buckets = []
        for (owner, _), mine in of_owner.items():
            bucket = facula.cat([p.data.reshape(-1) for p in mine])
            views = bucket.split([p.numel() for p in mine])
            for p, view in zip(mine, views, strict=True):
                p.data = view.view(p.shape)
            buckets.append((owner, bucket))
        return buckets

    # ---- steps

    @staticmethod
    def _share_settings(source, to):
        """Copies settings (a learning rate that a scheduler has changed) between two optimizers."""
        for group, other in zip(source.param_groups, to.param_groups, strict=True):
            other.update({k: v for k, v in group.items() if k != "params"})

    def step(self, closure=None, **kwargs):
        """Update this rank's part and receive the others.

        Args:
            closure (callable): computes the loss again.
            kwargs: passed to the step of the optimizer of the part.

        Returns:
            the result of `closure`, or None; None with `overlap_with_ddp`, where the hook steps
        """
        if self._overlap_with_ddp:
            return None
        dist.algorithms.join.Join.notify_join_context(self)
        self._share_settings(self, self.optim)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._pass_on()
        self._share_settings(self.optim, self)
        return loss

    @facula.no_grad()
    def _step_of(self, params, gradients):
        """Update those of some parameters that are of this rank's part.

        Returns:
            list of Work: that pass all of them on.
        """
        found = dict(zip(params, gradients, strict=True))
        mine = [p for group in self.optim.param_groups for p in group["params"]]
        kept = [p.grad for p in mine]
        for p in mine:
            p.grad = found.get(p)
        self._share_settings(self, self.optim)
        self.optim.step()
        self._share_settings(self.optim, self)
        for p, grad in zip(mine, kept, strict=True):
            p.grad = grad
        return [self._broadcast(self._owners[p], p.data) for p in params]

    def _broadcast(self, owner, tensor):
        source = dist.get_global_rank(self.process_group, owner)
        return dist.broadcast(tensor, source, group=self.process_group, async_op=True)

    def _pass_on(self):
        if self.world_size == 1:
            return
        buckets = self._buckets
        if not self.parameters_as_bucket_view:  # whose data may have been replaced
            buckets = [(owner, p.data) for p, owner in self._owners.items()]
        with facula.no_grad():
            for work in [self._broadcast(owner, tensor) for owner, tensor in buckets]:
                work.wait()

    def join_hook(self, **kwargs):
        """What a rank without inputs does: it goes on updating its part (JoinHook)."""
        return _StepForOthers(self)

    @property
    def join_device(self):
        """The device of the parameters."""
        return next(iter(self._owners)).device

    @property
    def join_process_group(self):
        """The ranks."""
        return self.process_group

    # ---- state

    def consolidate_state_dict(self, to=0):
        """Collect the state of all parts on one rank, whose state_dict() then has all of it.

        Args:
            to (int): that rank. All ranks of the group must call this.
        """
        self._share_settings(self, self.optim)
        own = self.optim.state_dict()
        self._all_state_dicts = [None] * self.world_size if self.rank == to else []
        dist.gather_object(
            own,
            self._all_state_dicts if self.rank == to else None,
            dist.get_global_rank(self.process_group, to),
            group=self.process_group,
        )

    def state_dict(self):
        """The state of all parts, as the optimizer of one process would have it.

        Returns:
            dict: as Optimizer.state_dict()

        Raises:
            RuntimeError: consolidate_state_dict() has not collected it on this rank.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "state_dict(): expected consolidate_state_dict(to) to have been called on all "
                f"ranks with to={self.rank}, this rank; the state of other parts is not here"
            )
        result = super().state_dict()
        numbers = self._numbers()
        for rank, part in enumerate(self._all_state_dicts):
            for group, saved in zip(self.param_groups, part["param_groups"], strict=True):
                params = self._own_part(group, rank)["params"]
                for param, key in zip(params, saved["params"], strict=True):
                    if key in part["state"]:
                        result["state"][numbers[param]] = part["state"][key]
        result["state"] = dict(sorted(result["state"].items()))
        return result

    def _numbers(self):
        params = [p for group in self.param_groups for p in group["params"]]
        return {p: i for i, p in enumerate(params)}

    def load_state_dict(self, state_dict):
        """Take settings, and the state of this rank's part, from the state of all.

        Args:
            state_dict (dict): as state_dict() gives it.

        Raises:
            ValueError: other groups, or groups of other sizes.
        """
        super().load_state_dict({**state_dict, "state": {}})
        saved = [number for g in state_dict["param_groups"] for number in g["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        values = {p: state_dict["state"].get(n) for p, n in zip(params, saved, strict=True)}
        own = self.optim.state_dict()
        own["state"] = {}
        for group, target in zip(self.optim.param_groups, own["param_groups"], strict=True):
            for param, number in zip(group["params"], target["params"], strict=True):
                if values[param] is not None:
                    own["state"][number] = values[param]
        self.optim.load_state_dict(own)
        self._share_settings(self, self.optim)


def _checked(params):
    if isinstance(params, facula.Tensor):
        raise TypeError("ZeroRedundancyOptimizer(): expected several parameters; got one Tensor")
    params = list(params)
    if not params:
        raise ValueError("ZeroRedundancyOptimizer(): expected parameters; got none")
    tensors = sum(isinstance(p, facula.Tensor) for p in params)
    if tensors != len(params) and (tensors or not all(isinstance(p, dict) for p in params)):
        kinds = sorted({type(p).__name__ for p in params})
        raise TypeError(
            f"ZeroRedundancyOptimizer(): expected Tensors or dicts, not both; got {kinds}"
        )
    return params

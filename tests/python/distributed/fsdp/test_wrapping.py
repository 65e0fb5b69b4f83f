"""Policies that say what is wrapped, and wrappers for activations."""

import facula
import pytest
from facula import nn
from facula.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from facula.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    _or_policy,
    _recursive_wrap,
    always_wrap_policy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from sharded_models import Block, made


class Wrapper(nn.Module):
    def __init__(self, inner, tag=None):
        super().__init__()
        self.inner, self.tag = inner, tag

    def forward(self, *args):
        return self.inner(*args)

    def __iter__(self):
        return iter(self.inner)


def kinds(net):
    return [name for name, m in net.named_modules() if isinstance(m, Wrapper)]


def test_wrap_needs_enable_wrap():
    with enable_wrap(wrapper_cls=Wrapper, tag=1):
        inside = wrap(nn.Linear(1, 1)), wrap(nn.Linear(1, 1), tag=2)
        with pytest.raises(RuntimeError), enable_wrap(wrapper_cls=Wrapper):
            pass
    outside = wrap(nn.Linear(1, 1))
    assert [w.tag for w in inside] == [1, 2] and type(outside) is nn.Linear


@pytest.mark.parametrize(
    "policy, expected",
    [
        (lambda **a: transformer_auto_wrap_policy(transformer_layer_cls={Block}, **a), 2),
        (lambda **a: lambda_auto_wrap_policy(lambda_fn=lambda m: type(m) is Block, **a), 2),
        (ModuleWrapPolicy([nn.Linear]), 6),
        (lambda **a: _or_policy(policies=[ModuleWrapPolicy([nn.LayerNorm]), _blocks], **a), 3),
        (always_wrap_policy, 10),
        (lambda **a: size_based_auto_wrap_policy(min_num_params=90, **a), 2),
    ],
)
def test_policies(policy, expected):
    net = made()
    net, _ = _recursive_wrap(net, policy, Wrapper, set(), set(), only_wrap_children=True)
    assert len(kinds(net)) == expected
    assert net(facula.ones(1, 3)).shape == (1, 2)


def _blocks(module, recurse, nonwrapped_numel):
    return recurse or isinstance(module, Block)


def test_custom_policies_give_arguments():
    found = CustomPolicy(lambda m: {"tag": 3} if isinstance(m, Block) else False)._run_policy(
        made(), set(), {"tag": 1}
    )
    assert [type(m) for m in found] == [Block, Block] and list(found.values()) == [{"tag": 3}] * 2
    with pytest.raises(ValueError, match="dict"):
        CustomPolicy(lambda m: 3)._run_policy(made(), set(), {})
    assert repr(ModuleWrapPolicy([Block])).endswith(f"({{{Block!r}}})")


@pytest.mark.parametrize(
    "options",
    [
        {"checkpoint_impl": CheckpointImpl.REENTRANT},
        {"checkpoint_impl": CheckpointImpl.NO_REENTRANT},
        {"checkpoint_fn": lambda f, *args, **kwargs: f(*args, **kwargs)},
        None,
    ],
)
def test_wrapped_activations_change_no_values_and_no_names(options):
    plain, net = made(), made()

    def wrapper(module):
        return offload_wrapper(module) if options is None else checkpoint_wrapper(module, **options)

    apply_activation_checkpointing(net, wrapper, check_fn=lambda m: isinstance(m, Block))
    x = facula.randn(4, 3)
    for each in (plain, net):
        each(x).sum().backward()
    for (name, p), (other, q) in zip(plain.named_parameters(), net.named_parameters(), strict=True):
        assert facula.equal(p.grad, q.grad)
        assert name == other.replace("_checkpoint_wrapped_module.", "")
    assert [n for n, _ in net.blocks[0].named_parameters()][0] == "up.weight"
    assert list(net.state_dict()) == list(plain.state_dict())
    net.load_state_dict(made(seed=1).state_dict())
    assert facula.equal(net.first.weight, made(seed=1).first.weight)
    assert net.blocks[0].up is net.blocks[0]._checkpoint_wrapped_module.up


def test_forward_runs_again_with_keywords():
    calls = []

    class Scaled(nn.Module):
        def forward(self, x, *, by):
            calls.append(1)
            return x * by

    x = facula.ones(2, requires_grad=True)
    for kind in CheckpointImpl:
        checkpoint_wrapper(Scaled(), kind)(x, by=x * 2).sum().backward()
    assert len(calls) == 4 and x.grad.tolist() == [8.0, 8.0]


def test_shared_submodules_are_wrapped_once():
    net = nn.Sequential(nn.Linear(2, 2))
    net.append(net[0])
    apply_activation_checkpointing(net)
    assert net[0] is net[1] and isinstance(net[0], CheckpointWrapper)
    assert isinstance(net[0]._checkpoint_wrapped_module, nn.Linear)
    apply_activation_checkpointing(
        outer := nn.Sequential(made()), auto_wrap_policy=ModuleWrapPolicy([Block])
    )
    assert isinstance(outer[0].blocks[0], CheckpointWrapper)

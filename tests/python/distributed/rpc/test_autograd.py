"""Backward passes through calls: gradients are those of one process."""

import facula
import facula.distributed.autograd as dist_autograd
import pytest
import workers

FUNCTIONS = """
def work(x, y):
    return (x * y).sin()

def through(name, x, y):
    # A call of a call: the middle worker computes on both sides of it.
    return rpc.rpc_sync(name, work, args=(x * 2, y)) * y

class Model(facula.nn.Module):
    def __init__(self):
        super().__init__()
        facula.manual_seed(0)
        self.layer = facula.nn.Linear(3, 3)
    def forward(self, x):
        return self.layer(x)

def grads_of(rref, context):
    found = dist_autograd.get_gradients(context)
    return [found[p] for p in rref.local_value().parameters()]

def contexts():
    return len(dist_autograd._contexts)
"""


def test_gradients_come_through_calls(tmp_path):
    main = """
    x, y = (facula.randn(4, requires_grad=True) for _ in range(2))
    cases = {
        "one call": lambda call: call("w1", work, args=(x, y)).sum(),
        "a call of itself": lambda call: call("w0", work, args=(x, y)).sum(),
        "used twice": lambda call: (call("w1", work, args=(x, x * y)) * x).sum(),
        "one after the other": lambda call: call(
            "w1", work, args=(call("w1", work, args=(x, y)), y)).sum(),
        "two ways": lambda call: (call("w1", work, args=(x.exp(), y)) +
                                  call("w2", work, args=(x.exp(), x))).sum(),
    }
    local = lambda to, function, args: function(*args)
    for name, case in cases.items():
        wanted = facula.autograd.grad(case(local), [x, y], allow_unused=True)
        with dist_autograd.context() as context:
            dist_autograd.backward(context, [case(rpc.rpc_sync)])
            found = dist_autograd.get_gradients(context)
            for tensor, grad in zip((x, y), wanted):
                facula.testing.assert_close(found.get(tensor), grad)
            assert x.grad is None
    with dist_autograd.context() as context:
        loss = rpc.rpc_sync("w1", through, args=("w2", x, y)).sum()
        dist_autograd.backward(context, [loss])
        found = dist_autograd.get_gradients(context)
        wanted = facula.autograd.grad((work(x * 2, y) * y).sum(), [x, y])
        facula.testing.assert_close([found[x], found[y]], list(wanted))
    assert rpc.rpc_sync("w1", facula.add, args=(x, 1)).is_leaf
    end = time.monotonic() + 5
    while any(rpc.rpc_sync(w, contexts) for w in ("w0", "w1", "w2")) and time.monotonic() < end:
        time.sleep(0.01)
    assert [rpc.rpc_sync(w, contexts) for w in ("w0", "w1", "w2")] == [0, 0, 0]
    print("done")
    """
    assert workers.run(FUNCTIONS, main, tmp_path, size=3) == "done\n"


def test_parameters_of_another_worker_get_gradients_there(tmp_path):
    main = """
    model, here = rpc.remote("w1", Model), Model()
    data = facula.randn(5, 3)
    here(data).square().mean().backward()
    wanted = [p.grad for p in here.parameters()]
    for _ in range(2):
        with dist_autograd.context() as context:
            loss = model.rpc_sync().forward(data).square().mean()
            dist_autograd.backward(context, [loss])
            found = rpc.rpc_sync("w1", grads_of, args=(model, context))
            facula.testing.assert_close(found, wanted)
    print("done")
    """
    assert workers.run(FUNCTIONS, main, tmp_path) == "done\n"


OPTIMIZER = """
from facula.distributed.optim import DistributedOptimizer
from facula.distributed.nn import RemoteModule

def parameters_of(rref):
    return [rpc.RRef(p) for p in rref.local_value().parameters()]

def state_of(rref):
    return [p.detach() for p in rref.local_value().parameters()]
"""


def test_an_optimizer_steps_where_parameters_are(tmp_path):
    main = """
    facula.manual_seed(1)
    remote_part = RemoteModule("w1/cpu", facula.nn.Linear, args=(3, 4))
    facula.manual_seed(2)
    local_part = facula.nn.Linear(4, 2)
    copies = [facula.nn.Linear(3, 4), facula.nn.Linear(4, 2)]
    for copy, source in zip(copies, [remote_part.get_module_rref().to_here(), local_part]):
        copy.load_state_dict(source.state_dict())
    whole = facula.nn.Sequential(*copies)
    parameters = remote_part.remote_parameters() + [rpc.RRef(p) for p in local_part.parameters()]
    optimizer = DistributedOptimizer(facula.optim.SGD, parameters, lr=0.1, momentum=0.9)
    usual = facula.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        data = facula.randn(5, 3)
        with dist_autograd.context() as context:
            loss = local_part(remote_part(data)).square().mean()
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        usual.zero_grad()
        whole(data).square().mean().backward()
        usual.step()
    rref = remote_part.get_module_rref()
    facula.testing.assert_close(
        rpc.rpc_sync("w1", state_of, args=(rref,)), [p.detach() for p in copies[0].parameters()])
    facula.testing.assert_close(list(local_part.parameters()), list(copies[1].parameters()))
    assert remote_part.forward_async(data).wait().shape == (5, 4)
    assert type(error_of(DistributedOptimizer, 3, parameters)) is TypeError
    assert type(error_of(remote_part.parameters)) is ValueError
    print("done")
    """
    assert workers.run(OPTIMIZER, main, tmp_path) == "done\n"


def test_contexts_are_checked():
    for call in (dist_autograd.get_gradients, lambda i: dist_autograd.backward(i, [])):
        with pytest.raises(RuntimeError, match="of id 3"):
            call(3)
    assert facula.distributed.autograd.is_available()

"""What the processes of these tests run; they import it by name."""

import os
import signal
import time

import facula
from facula import nn


def fill(queue):
    """The worker of PyTorch's first README: fills tensors and puts them back."""
    while (tensor := queue.get()) is not None:
        tensor.fill_(10)
        queue.put(tensor)


def fill_pool(tensor):
    tensor.fill_(10)


def add_one(tensors, done):
    for tensor in tensors:
        tensor.add_(1)
    done.put([t.data_ptr() == tensors[0].data_ptr() for t in tensors])


def answer(function, tasks, answers):
    while (task := tasks.get()) is not None:
        answers.put(function(task))


def described(value):
    """What arrived, in plain values."""
    if isinstance(value, facula.Tensor):
        kind = type(value).__name__
        return kind, str(value.dtype), value.tolist(), value.requires_grad, value.stride()
    if isinstance(value, nn.Module):
        return [(name, described(p)) for name, p in value.named_parameters()]
    return type(value).__name__, bytes(value.untyped()) if hasattr(value, "untyped") else value


def train(model, steps):
    """Hogwild: each process steps on the parameters that all share."""
    facula.set_num_threads(1)
    facula.manual_seed(os.getpid())
    optimizer = facula.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(steps):
        x = facula.randn(16, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def hold(strategy, ready):
    """Shares memory and waits to be killed."""
    import facula.multiprocessing as mp

    mp.set_sharing_strategy(strategy)
    held = [facula.ones(1000).share_memory_() for _ in range(50)]
    ready.put((held[0], held[1]))
    time.sleep(60)


def end(i, how):
    if i == 1 and how == "raise":
        raise ValueError("what is wrong")
    if i == 1 and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if i == 1 and how == "leave":
        os._exit(5)
    if i != 1 and how:
        time.sleep(60)


def write_index(i, tensor):
    tensor[i] = i + 1

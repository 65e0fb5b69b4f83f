"""Calls of functions in other workers, and references to their values."""

from __future__ import annotations

import functools
import threading
import time
import traceback
import weakref

from facula.distributed.rpc import _wire, constants
from facula.distributed.rpc._agent import Kind
from facula.distributed.rpc._rref import References, _Owned
from facula.futures import Future

__all__ = [
    "RRef",
    "get_worker_info",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]


class _State:
    """What init_rpc has made; None before and after."""

    agent = references = None
    users_references = None  # a WeakSet of RRefs to values of others
    rendezvous = None
    barrier = None


def _agent():
    if _State.agent is None:
        raise RuntimeError("rpc: expected a call after init_rpc(); rpc has not been initialized")
    return _State.agent


def _is_current_rpc_agent_set():
    return _State.agent is not None


def _get_current_rpc_agent():
    return _agent()


def get_rpc_timeout():
    """Seconds that a call may take by default."""
    return _agent().timeout


def _set_rpc_timeout(seconds):
    _agent().timeout = seconds


# Values as bytes -------------------------------------------------------------------------------


def _autograd():
    from facula.distributed import autograd

    return autograd


def _pack(value, to, context=None):
    """A value for a worker, with the autograd context of its tensors if there is one."""
    body, buffers, tensors = _wire.pack(value, lambda v: _fork_of(v, to))
    note = _autograd()._note_sent(context, to, tensors)
    return (note + body, buffers)


def _unpack(worker, message):
    """The value of a message, and its autograd context or None."""
    autograd = _autograd()
    context, number = autograd._read_note(message.body)
    body = message.body[autograd._NOTE.size :]

    def received(tensors):
        if context is not None:
            autograd._note_received(context, number, worker, tensors)

    return _wire.unpack(body, message.buffers, _rref_of_fork, received), context


def _fork_of(value, to):
    """The key of a new reference, for a message to a worker."""
    if not isinstance(value, RRef):
        return None
    fork = _State.references.new_id()
    owner = value._owner
    if owner.id == _agent().info.id:
        _State.references.keep(value._owned)
        _State.references.add_fork(value._id, fork)
    else:
        _tell(owner.id, ("add_fork", value._id, fork))
    return ("rref", owner, value._id, fork)


def _rref_of_fork(key):
    _, owner, id, fork = key
    if owner.id != _agent().info.id:
        return RRef._of_user(owner, id, fork)
    rref = RRef._of_owner(_State.references.get(id))
    _State.references.delete_fork(id, fork)
    return rref


# Calls -----------------------------------------------------------------------------------------


def _check_call(name, func, args, kwargs):
    if not callable(func):
        raise TypeError(f"{name}(): expected a callable; got {type(func).__name__}")
    args = () if args is None else args
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(args, (tuple, list)) or not isinstance(kwargs, dict):
        raise TypeError(
            f"{name}(): expected a tuple of args and a dict of kwargs; got "
            f"{type(args).__name__} and {type(kwargs).__name__}"
        )
    return tuple(args), kwargs


def _check_timeout(timeout):
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"rpc: expected a number for timeout; got {type(timeout).__name__}")
    return None if timeout == constants.UNSET_RPC_TIMEOUT else timeout


def _send_call(to, kind, value, timeout):
    agent = _agent()
    worker = agent.find(to).id
    context = _autograd()._context_of_thread()

    def read(message):
        value, _ = _unpack(worker, message)
        if message.kind == Kind.ERROR:
            raise _error_of(*value)
        return value

    return agent.call(worker, kind, _pack(value, worker, context), read, timeout)


def _error_of(kind, text):
    """An exception of the callee's class, if it can be made of a text."""
    try:
        error = kind(text)
    except Exception:
        error = None
    return error if isinstance(error, BaseException) else RuntimeError(text)


def rpc_async(to, func, args=None, kwargs=None, timeout=constants.UNSET_RPC_TIMEOUT):
    """Call a function in another worker, and go on.

    Args:
        to (str, int or WorkerInfo): the worker.
        func (callable): found by its name there; lambdas are not.
        args (tuple): its arguments; tensors are sent without graph, except in a context of
            `distributed.autograd`.
        kwargs (dict): likewise, by name.
        timeout (float): seconds, 0 for any time; default that of `init_rpc`.

    Returns:
        Future: of what it returns. Its `wait` raises what the function raises, with the traceback
        there in its text; RuntimeError if the worker is lost or the time has passed.

    Raises:
        RuntimeError: rpc is not initialized, or there is no such worker.
        TypeError: `func` cannot be called.
    """
    args, kwargs = _check_call("rpc_async", func, args, kwargs)
    return _send_call(to, Kind.CALL, (func, args, kwargs), _check_timeout(timeout))


def rpc_sync(to, func, args=None, kwargs=None, timeout=constants.UNSET_RPC_TIMEOUT):
    """Call a function in another worker, and wait for what it returns; see `rpc_async`.

    Example:
        >>> import os
        >>> os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
        >>> import facula.distributed.rpc as rpc
        >>> rpc.init_rpc("alone", rank=0, world_size=1)  # doctest: +SKIP
        >>> rpc.rpc_sync("alone", max, args=(1, 2))  # doctest: +SKIP
        2
    """
    args, kwargs = _check_call("rpc_sync", func, args, kwargs)
    return _send_call(to, Kind.CALL, (func, args, kwargs), _check_timeout(timeout)).wait()


def remote(to, func, args=None, kwargs=None, timeout=constants.UNSET_RPC_TIMEOUT):
    """Call a function in another worker, which keeps the value.

    Args:
        as for `rpc_async`.

    Returns:
        RRef: of the value, at once; what the function raises is raised where the value is used.
    """
    args, kwargs = _check_call("remote", func, args, kwargs)
    agent, references = _agent(), _State.references
    timeout = _check_timeout(timeout)
    owner = agent.find(to)
    id = references.new_id()
    if owner == agent.info:
        entry = _Owned(id)
        references.keep(entry)
        rref = RRef._of_owner(entry)
        fork = references.new_id()
        references.add_fork(id, fork)
    else:
        fork = references.new_id()
        rref = RRef._of_user(owner, id, fork)
        _tell(owner.id, ("add_fork", id, fork))
    sent = _send_call(owner, Kind.CALL, (_RunForRRef(func, id), args, kwargs), timeout)
    if owner == agent.info:
        sent.add_done_callback(lambda _: references.delete_fork(id, fork))
    rref._creation = sent
    return rref


class _RunForRRef:
    """Runs a function, and keeps what it returns for an RRef."""

    def __init__(self, function, id):
        self.function, self.id = function, id


class _Later:
    """A Future in place of a result: the answer waits for it."""

    def __init__(self, future):
        self.future = future


def _run(function, args, kwargs):
    """Call a function of a user; the result may be `_Later`."""
    result = function(*args, **kwargs)
    if not hasattr(function, "_wrapped_async_rpc_function"):
        return result
    if not isinstance(result, Future):
        raise RuntimeError(
            f"async_execution(): expected {getattr(function, '__name__', function)} to return a "
            f"Future; got {type(result).__name__}"
        )
    return _Later(result)


def _text_of_error(error):
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return f"On {_agent().info!r}:\n{error!r}\n{lines}"


def _on_call(worker, message, answer):
    """Run what another worker asks for."""
    autograd = _autograd()
    context = None

    def end(result=None, error=None):
        if error is None:
            try:
                return answer(Kind.RESULT, _pack(result, worker, context))
            except BaseException as failure:
                error = failure
        kind = type(error)
        try:
            packed = _pack((kind, _text_of_error(error)), worker)
        except Exception:
            # A class that the other side could not find.
            packed = _pack((RuntimeError, _text_of_error(error)), worker)
        return answer(Kind.ERROR, packed)

    try:
        (function, args, kwargs), context = _unpack(worker, message)
        with autograd._in_thread(context):
            if isinstance(function, _RunForRRef):
                return _fill(function, args, kwargs, end)
            result = _run(function, args, kwargs)
        if isinstance(result, _Later):
            return result.future.add_done_callback(lambda done: _end_with(done, end))
    except BaseException as error:
        return end(error=error)
    return end(result)


def _end_with(done, end):
    try:
        value = done.value()
    except BaseException as error:
        return end(error=error)
    return end(value)


def _fill(call, args, kwargs, end):
    """Run a call whose value stays here."""
    future = _State.references.get(call.id).future

    def keep(value=None, error=None):
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(_error_of(type(error), _text_of_error(error)))
        end(None)

    try:
        result = _run(call.function, args, kwargs)
    except BaseException as error:
        return keep(error=error)
    if isinstance(result, _Later):
        return result.future.add_done_callback(lambda done: _end_with(done, keep))
    return keep(result)


# Messages of rpc's own -------------------------------------------------------------------------


def _tell(worker, value):
    _agent().tell(worker, _pack(value, worker))


def _ask(worker, value, timeout=None):
    return _send_call(worker, Kind.ASK, value, timeout)


def _on_tell(worker, message):
    value, _ = _unpack(worker, message)
    if value[0] == "add_fork":
        _State.references.add_fork(*value[1:])
    elif value[0] == "delete_fork":
        _State.references.delete_fork(*value[1:])
    elif value[0] == "release_context":
        _autograd()._release(value[1])


def _on_ask(worker, message, answer):
    """Answer a question of rpc's own; whoever waits for a value holds no thread."""
    (what, *args), context = _unpack(worker, message)

    def end(done):
        try:
            answer(Kind.RESULT, _pack(done.value(), worker, context))
        except BaseException as error:
            # The text of an error of a value says already where it happened.
            answer(Kind.ERROR, _pack((type(error), str(error)), worker))

    if what == "fetch":
        _State.references.get(args[0]).future.add_done_callback(end)
    elif what == "barrier":
        _State.barrier.come(args[0]).add_done_callback(end)
    elif what == "backward":
        done = Future()
        try:
            done.set_result(_autograd()._continue_backward(*args))
        except BaseException as error:
            done.set_exception(RuntimeError(_text_of_error(error)))
        end(done)


class _Barrier:
    """At the leader: futures that are done when all workers have come."""

    def __init__(self, count):
        self.count, self.lock, self.waiting = count, threading.Lock(), {}

    def come(self, name):
        """Another worker has come."""
        future = Future()
        with self.lock:
            futures = self.waiting.setdefault(name, [])
            futures.append(future)
            if len(futures) < self.count:
                return future
            del self.waiting[name]
        for waiting in futures:
            waiting.set_result(None)
        return future


# References ------------------------------------------------------------------------------------


def _type_of(rref):
    return type(rref.local_value())


def _call_method(rref, name, args, kwargs):
    result = _run(getattr(rref.local_value(), name), args, kwargs)
    return result


class RRef:
    """A reference to a value that some worker owns.

    Args:
        value: the value, which this worker owns.
        type_hint (type): accepted for compatibility.

    References can be arguments and results of calls; the owner keeps the value while there is one.
    """

    def __init__(self, value, type_hint=None):
        agent = _agent()
        entry = _Owned(_State.references.new_id())
        entry.future.set_result(value)
        self._owner, self._id, self._owned, self._fork = agent.info, entry.id, entry, None
        self._creation = None

    @classmethod
    def _of_owner(cls, owned):
        self = cls.__new__(cls)
        self._owner, self._id, self._owned, self._fork = _agent().info, owned.id, owned, None
        self._creation = None
        return self

    @classmethod
    def _of_user(cls, owner, id, fork):
        self = cls.__new__(cls)
        self._owner, self._id, self._owned, self._fork = owner, id, None, fork
        self._creation = None
        _State.users_references.add(self)
        return self

    def __del__(self):
        self._forget()

    def _forget(self):
        fork, self._fork = getattr(self, "_fork", None), None
        if fork is None or _State.agent is None or _State.agent.closing:
            return
        try:
            _tell(self._owner.id, ("delete_fork", self._id, fork))
        except Exception:
            pass  # the interpreter may be ending

    def __reduce__(self):
        raise RuntimeError(
            "RRef: expected to be an argument or result of a call; it cannot be pickled by itself"
        )

    def __repr__(self):
        if self._owned is not None:
            return f"OwnerRRef({self._id})"
        return f"UserRRef(RRefId = {self._id}, ForkId = {self._fork})"

    def owner(self):
        """The WorkerInfo of the worker that has the value."""
        return self._owner

    def owner_name(self):
        """The name of the worker that has the value."""
        return self._owner.name

    def is_owner(self):
        """Whether this worker has the value."""
        return self._owned is not None

    def confirmed_by_owner(self):
        """Whether the owner knows of this reference: it is told before one is made."""
        return True

    def local_value(self):
        """The value, at its owner.

        Raises:
            RuntimeError: another worker owns it.
        """
        if self._owned is None:
            raise RuntimeError(
                f"RRef.local_value(): expected to be called at {self._owner}, its owner; got a "
                f"call at {_agent().info} (to_here() fetches the value)"
            )
        return self._owned.future.wait()

    def to_here(self, timeout=constants.UNSET_RPC_TIMEOUT):
        """The value: a copy, if another worker owns it.

        Args:
            timeout (float): seconds, 0 for any time; default that of `init_rpc`.

        Raises:
            RuntimeError: the function that makes the value failed, or the owner is lost.
        """
        if self._owned is not None:
            return self._owned.future.wait()
        if self._creation is not None and self._creation.done():
            self._creation.value()  # the call was not sent, or not in time
        return _ask(self._owner, ("fetch", self._id), _check_timeout(timeout)).wait()

    def _get_future(self):
        """A future of the moment when the value is there."""
        return self._creation

    def _get_type(self, timeout=constants.UNSET_RPC_TIMEOUT, blocking=True):
        if self.is_owner():
            return type(self.local_value())
        future = rpc_async(self._owner, _type_of, args=(self,), timeout=timeout)
        return future.wait() if blocking else future

    def rpc_sync(self, timeout=constants.UNSET_RPC_TIMEOUT):
        """A proxy: its methods are those of the value, called at the owner by `rpc_sync`."""
        return _Proxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout=constants.UNSET_RPC_TIMEOUT):
        """A proxy: its methods are those of the value, called at the owner by `rpc_async`."""
        return _Proxy(self, rpc_async, timeout)

    def remote(self, timeout=constants.UNSET_RPC_TIMEOUT):
        """A proxy: its methods are those of the value, called at the owner by `remote`."""
        return _Proxy(self, remote, timeout)

    def backward(self, dist_autograd_ctx_id=-1, retain_graph=False):
        """Begin a backward pass at the value, a scalar tensor.

        Args:
            dist_autograd_ctx_id (int): a context of `distributed.autograd`; -1 for none.
            retain_graph (bool): whether the graph can be used again.
        """
        if not self.is_owner():
            args = (self, dist_autograd_ctx_id, retain_graph)
            return rpc_sync(self._owner, _backward_of, args=args)
        value = self.local_value()
        if dist_autograd_ctx_id == -1:
            return value.backward(retain_graph=retain_graph)
        return _autograd().backward(dist_autograd_ctx_id, [value], retain_graph)


def _backward_of(rref, context, retain_graph):
    rref.backward(context, retain_graph)


class _Proxy:
    """Methods of a value, called at its owner."""

    def __init__(self, rref, call, timeout):
        self._rref, self._call, self._timeout = rref, call, timeout

    def __getattr__(self, name):
        return functools.partial(self._invoke, name)

    def _invoke(self, name, *args, **kwargs):
        return self._call(
            self._rref.owner(),
            _call_method,
            args=(self._rref, name, args, kwargs),
            timeout=self._timeout,
        )


# Begin and end ---------------------------------------------------------------------------------


def get_worker_info(worker_name=None):
    """A worker.

    Args:
        worker_name (str): its name; default this one.

    Returns:
        WorkerInfo

    Raises:
        RuntimeError: there is none of that name.
    """
    agent = _agent()
    return agent.info if worker_name is None else agent.find(worker_name)


def _get_worker_infos():
    return list(_agent().workers.values())


def _begin(agent):
    agent.on_call, agent.on_ask, agent.on_tell = _on_call, _on_ask, _on_tell
    _State.references = References(agent.info.id)
    _State.users_references = weakref.WeakSet()
    _State.barrier = _Barrier(agent.world_size)
    # From here on others may call this worker.
    _State.agent = agent
    try:
        agent.connect()
    except BaseException:
        _State.agent = None
        raise


def _wait_all_workers(timeout=constants.DEFAULT_SHUTDOWN_TIMEOUT, name="wait"):
    """Wait until all workers have come here and none waits for a call.

    Raises:
        RuntimeError: a worker is lost, or the time has passed.
    """
    agent = _agent()
    if not agent.wait_until_quiet(timeout):
        raise RuntimeError(f"rpc: expected all calls to end within {timeout:g} s; some have not")
    for peer in agent.peers.values():
        if peer.lost is not None:
            raise RuntimeError(peer.lost)
    _ask(0, ("barrier", name), timeout).wait()


def shutdown(graceful=True, timeout=constants.DEFAULT_SHUTDOWN_TIMEOUT):
    """End rpc.

    Args:
        graceful (bool): whether to go on answering until all workers have come here and no call
            is under way.
        timeout (float): seconds to wait for that; 0 for any time.

    Raises:
        RuntimeError: rpc is not initialized, a worker is lost, or the time has passed.
    """
    agent = _agent()
    try:
        if graceful:
            _wait_all_workers(timeout, "all calls have ended")
            for rref in list(_State.users_references):
                rref._forget()
            _wait_all_workers(timeout, "all references are gone")
            if agent.info.id == 0:
                # The answers of the barrier leave from threads.
                end = time.monotonic() + 2
                while agent.own_threads.busy > 0 and time.monotonic() < end:
                    time.sleep(0.001)
    finally:
        agent.close()
        _State.agent = _State.references = _State.users_references = None
        _State.rendezvous = None
        _autograd()._forget_all()

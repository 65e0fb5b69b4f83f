"""Streams of the toy device, which do their work late: order, events, memory, copies, autograd.

`toy_hold` keeps a stream from going on, so that what a missing wait would do is seen each time.
"""

import pickle
import threading

import facula
import pytest
from facula import accelerator


def handle(stream):
    return stream.native_handle or None


def held(toy, stream):
    """Keep a stream back until `toy_let_go`."""
    toy.toy_hold(stream.device_index, handle(stream))


def filled(number, device="toy:0", count=1000):
    return facula.full((count,), float(number), device=device)


def all_are(t, number):
    return t.cpu().eq(number).all().item()


# --- streams and events


def test_order_within_a_stream(toy):
    x = filled(0)
    for _ in range(40):
        x = x * 1 + 1
    assert all_are(x, 40)


def test_work_is_late(toy):
    stream = facula.Stream("toy:0")
    with stream:
        x = filled(1)
        stream.synchronize()
        held(toy, stream)
        y = x + 1
    assert not stream.query()
    toy.toy_let_go()
    stream.synchronize()
    assert stream.query()
    assert all_are(y, 2)


@pytest.mark.parametrize("wait", ["nothing", "event", "stream", "event of record_event"])
def test_one_stream_waits_for_another(toy, wait):
    first, second = facula.Stream("toy:0"), facula.Stream("toy:0")
    x = filled(1)
    accelerator.synchronize()
    held(toy, first)
    with first:
        y = x * 5
    if wait == "event":
        event = facula.Event("toy:0")
        event.record(first)
        event.wait(second)
    elif wait == "event of record_event":
        second.wait_event(first.record_event())
    elif wait == "stream":
        second.wait_stream(first)
    with second:
        z = y + 1
    if wait == "nothing":
        second.synchronize()  # it has read what was not there yet
        toy.toy_let_go()
        accelerator.synchronize()
        assert not all_are(z, 6)
        return
    assert not second.query()
    toy.toy_let_go()
    second.synchronize()
    assert all_are(z, 6)


def test_events(toy):
    start, end = (facula.Event("toy:0", enable_timing=True) for _ in range(2))
    assert start.query() and start.event_id == 0
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    stream = facula.Stream("toy:0")
    start.record(stream)
    held(toy, stream)
    end.record(stream)
    assert not end.query()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    toy.toy_let_go()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    assert end.device == facula.device("toy:0")
    with pytest.raises(RuntimeError, match="one of toy:1"):
        end.record(facula.Stream("toy:1"))
    plain = stream.record_event()
    plain.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(plain)


def test_events_are_given_back(toy):
    accelerator.synchronize()
    before = toy.toy_events_alive()
    for _ in range(5):
        facula.Stream("toy:0").record_event().synchronize()
    assert toy.toy_events_alive() == before


def test_streams_as_values(toy):
    one, other = facula.Stream("toy:1"), facula.Stream(device="toy:1", priority=-9)
    assert one != other and one == one and len({one, other, one}) == 2
    assert other.priority == -2 and one.priority == 0  # moved into the device's range
    assert (one.device, one.device_index) == (facula.device("toy:1"), 1)
    same = facula.Stream(
        stream_id=one.stream_id, device_index=one.device_index, device_type=one.device_type
    )
    assert same == one
    with pytest.raises(RuntimeError, match="no stream with the number"):
        facula.Stream(stream_id=60000, device_index=0, device_type=one.device_type)
    assert len({facula.Stream("toy:0") for _ in range(70)}) == 32  # a pool, in turns
    outside = facula._C._external_stream(one.native_handle, "toy:1")
    assert outside.native_handle == one.native_handle
    assert repr(one).startswith("facula.Stream device_type=toy, device_index=1, stream_id=")


def test_scopes_of_streams(toy):
    default = accelerator.current_stream("toy:0")
    a, b = facula.Stream("toy:0"), facula.Stream("toy:1")
    with a:
        assert accelerator.current_stream() == a
        with b:
            assert accelerator.current_device_index() == 1
            assert accelerator.current_stream() == b
            with a:
                assert accelerator.current_device_index() == 0
            assert accelerator.current_device_index() == 1
        assert accelerator.current_stream() == a
    assert accelerator.current_stream() == default
    accelerator.set_stream(b)
    assert (accelerator.current_device_index(), accelerator.current_stream()) == (1, b)
    found = []
    thread = threading.Thread(target=lambda: found.append(accelerator.current_stream("toy:1")))
    thread.start()
    thread.join()
    assert found[0] != b  # each thread has its own
    accelerator.set_stream(facula._C._default_stream("toy:1"))


# --- memory across streams


@pytest.mark.parametrize("recorded", [False, True])
def test_memory_used_on_another_stream(toy, recorded):
    """Without record_stream the block is used again too early, which shows; with it, it waits."""
    other = facula.Stream("toy:0")
    x = filled(2, count=5000)
    place = x.data_ptr()
    other.wait_stream(accelerator.current_stream())
    held(toy, other)
    with other:
        y = x * 3
    if recorded:
        x.record_stream(other)
    del x
    z = filled(7, count=5000)
    assert (z.data_ptr() == place) == (not recorded)
    accelerator.current_stream().synchronize()
    toy.toy_let_go()
    other.synchronize()
    assert all_are(y, 6 if recorded else 21)
    del z
    if recorded:  # the other stream has passed: the block is free again
        assert filled(1, count=5000).data_ptr() in (place, filled(1, count=5000).data_ptr(), place)
        found = [filled(1, count=5000) for _ in range(4)]
        assert place in [t.data_ptr() for t in found]


def test_memory_is_of_the_stream_that_it_was_made_for(toy):
    x = filled(1, count=5000)
    place = x.data_ptr()
    del x
    with facula.Stream("toy:0"):
        assert filled(1, count=5000).data_ptr() != place
    assert filled(1, count=5000).data_ptr() == place


def test_record_stream_is_of_one_device(toy):
    with pytest.raises(RuntimeError, match="a stream of toy:0"):
        filled(1).record_stream(facula.Stream("toy:1"))
    with pytest.raises(RuntimeError, match="an accelerator"):
        facula.ones(2).record_stream(facula.Stream("toy:1"))
    with pytest.raises(TypeError):
        filled(1).record_stream(None)


# --- copies


def test_pinned_memory(toy):
    x = facula.arange(6.0).reshape(2, 3)
    assert not x.is_pinned()
    y = x.pin_memory()
    assert y.is_pinned() and y[1:].is_pinned() and y.pin_memory() is y
    assert y.tolist() == x.tolist()
    assert not filled(1).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        filled(1).pin_memory()
    for made in (
        facula.empty(3, pin_memory=True),
        facula.zeros(3, pin_memory=True),
        facula.ones_like(x, pin_memory=True),
        x.new_full((2,), 3.0, pin_memory=True),
        facula.tensor([1.0, 2.0], pin_memory=True),
    ):
        assert made.is_pinned() and made.device.type == "cpu"


def test_copies_from_pinned_memory_are_not_waited_for(toy):
    source = facula.ones(1000).pin_memory()
    held(toy, accelerator.current_stream())
    there = source.to("toy", non_blocking=True)
    source.fill_(5.0)
    toy.toy_let_go()
    assert all_are(there, 5)


def test_copies_to_pinned_memory_are_not_waited_for(toy):
    there, target = filled(4), facula.zeros(1000, pin_memory=True)
    accelerator.synchronize()
    held(toy, accelerator.current_stream())
    target.copy_(there, non_blocking=True)
    assert target.eq(0).all()
    toy.toy_let_go()
    accelerator.synchronize()
    assert target.eq(4).all()


@pytest.mark.parametrize("non_blocking", [False, True])
def test_other_copies_are_waited_for(toy, non_blocking):
    for pinned in (False, not non_blocking):
        source = facula.ones(1000, pin_memory=pinned)
        there = source.to("toy", non_blocking=non_blocking)
        source.fill_(5.0)
        assert all_are(there, 1)
        target = facula.empty(1000).copy_(there, non_blocking=non_blocking)
        assert target.eq(1).all()


def test_pinned_memory_waits_for_its_copies(toy):
    source = facula.ones(1000).pin_memory()
    place = source.data_ptr()
    held(toy, accelerator.current_stream())
    there = source.to("toy", non_blocking=True)
    del source
    assert facula.empty(1000, pin_memory=True).data_ptr() != place
    toy.toy_let_go()
    assert all_are(there, 1)
    found = [facula.empty(1000, pin_memory=True) for _ in range(3)]
    assert place in [t.data_ptr() for t in found]


def test_copies_between_devices(toy):
    x = filled(1, "toy:0")
    accelerator.synchronize()
    held(toy, accelerator.current_stream("toy:0"))
    y = (x + 1).to("toy:1")  # the target's stream waits for the source's
    z = y * 3
    assert z.device == facula.device("toy:1")
    toy.toy_let_go()
    assert all_are(z, 6)
    back = facula.zeros(10, 100, device="toy:0").t()
    back.copy_(z.reshape(100, 10))
    assert all_are(back, 6)
    assert all_are(z.to("toy:0", facula.float64), 6)


def test_a_copy_to_a_peer_waits_for_its_target(toy):
    x, y = filled(1, "toy:0"), filled(2, "toy:1")
    accelerator.synchronize("toy:1")
    held(toy, accelerator.current_stream("toy:1"))
    seen = y * 10  # held back; the copy must not overtake it
    y.copy_(x)
    accelerator.current_stream("toy:0")
    toy.toy_let_go()
    assert all_are(seen, 20) and all_are(y, 1)


STRIDED = {
    "transposed": lambda t: t.t(),
    "every second": lambda t: t[::2, 1::2],
    "broadcast": lambda t: t[:1].expand(4, 6),
    "double": lambda t: t.double(),
    "integers": lambda t: t.long(),
    "halves": lambda t: t.half(),
    "complex": lambda t: facula.complex(t, t + 1),
    "conjugate": lambda t: facula.complex(t, t + 1).conj(),
    "transposed doubles to float": lambda t: t.double().t().float(),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_copies(toy, name):
    x = facula.arange(24.0).reshape(4, 6)
    expected, found = STRIDED[name](x), STRIDED[name](x.to("toy"))
    assert found.device.type == "toy"
    assert found.contiguous().cpu().tolist() == expected.tolist()
    assert found.cpu().tolist() == expected.tolist()
    target = facula.zeros(expected.shape[::-1], dtype=expected.dtype, device="toy").t()
    target.copy_(found)
    assert target.cpu().tolist() == expected.tolist()


# --- autograd


@pytest.mark.parametrize("round_", range(5))
def test_autograd_across_two_streams(toy, round_):
    first, second = facula.Stream("toy:0"), facula.Stream("toy:0")
    x = filled(3).requires_grad_()
    accelerator.synchronize()
    with first:
        y = x * x
    second.wait_stream(first)
    with second:
        y.record_stream(second)
        z = y * x + y
    z.backward(filled(1))
    assert all_are(x.grad, 3 * 9 + 2 * 3)


def test_a_node_runs_on_the_stream_of_its_forward(toy):
    first, second = facula.Stream("toy:0"), facula.Stream("toy:0")
    x = filled(3).requires_grad_()
    accelerator.synchronize()
    seen = {}
    with first:
        y = x * 2
    second.wait_stream(first)
    with second:
        z = y * 5
    y.register_hook(lambda g: seen.update(y=accelerator.current_stream("toy:0")))
    z.register_hook(lambda g: seen.update(z=accelerator.current_stream("toy:0")))
    z.backward(filled(1))
    assert seen == {"y": first, "z": second}
    assert all_are(x.grad, 10)


def test_gradients_wait_for_their_producers(toy):
    """The stream of a node that comes later in backward waits for the held one before it."""
    first, second = facula.Stream("toy:0"), facula.Stream("toy:0")
    x, one = filled(3).requires_grad_(), filled(1)
    accelerator.synchronize()
    with first:
        y = x * 2
    second.wait_stream(first)
    with second:
        z = y * 5
    accelerator.synchronize()
    held(toy, second)
    z.backward(one)
    assert not first.query()
    toy.toy_let_go()
    assert all_are(x.grad, 10)


def test_the_caller_waits_for_the_streams_of_the_leaves(toy):
    side = facula.Stream("toy:0")
    x, one = filled(3).requires_grad_(), filled(1)
    accelerator.synchronize()
    with side:
        y = x * 2
    accelerator.synchronize()
    held(toy, side)
    y.backward(one)
    found = x.grad * 1  # on the current stream, which was given nothing to wait for by hand
    toy.toy_let_go()
    accelerator.synchronize()
    assert all_are(found, 2)
    (gradient,) = facula.autograd.grad(y, x, one) if y.grad_fn is None else (x.grad,)
    assert all_are(gradient, 2)


def test_grad_waits_too(toy):
    side = facula.Stream("toy:0")
    x, one = filled(3).requires_grad_(), filled(1)
    accelerator.synchronize()
    with side:
        y = x * 2
    accelerator.synchronize()
    held(toy, side)
    (gradient,) = facula.autograd.grad(y, x, one)
    found = gradient * 1
    toy.toy_let_go()
    accelerator.synchronize()
    assert all_are(found, 2)


# --- errors that come late


def test_errors_of_late_work_surface_when_it_is_waited_for(toy):
    x = filled(1)
    toy.toy_fail_late(0)
    y = x + 1  # nothing is known yet
    with pytest.raises(facula.AcceleratorError, match=r"toy:0: a toy read memory.*code 7"):
        accelerator.synchronize()
    accelerator.synchronize()
    assert issubclass(facula.AcceleratorError, RuntimeError)
    assert all_are(y, 2)


# --- random numbers


def test_generators_of_devices(toy):
    g = facula.Generator("toy:1")
    assert g.device == facula.device("toy:1")
    assert g.manual_seed(7) is g and g.initial_seed() == 7
    state = g.get_state()
    assert state.shape == (16,) and state.dtype == facula.uint8 and g.get_offset() == 0
    first = facula.rand(100, generator=g, device="toy:1")
    assert g.get_offset() > 0
    second = facula.rand(100, generator=g, device="toy:1")
    assert not first.cpu().equal(second.cpu())
    g.set_state(state)
    assert facula.rand(100, generator=g, device="toy:1").cpu().equal(first.cpu())
    copy = pickle.loads(pickle.dumps(g))
    assert copy.device == g.device
    assert facula.rand(100, generator=copy, device="toy:1").cpu().equal(second.cpu())
    g.set_offset(0)
    assert facula.rand(100, generator=g.clone_state(), device="toy:1").cpu().equal(first.cpu())
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)
    with pytest.raises(RuntimeError, match="16 bytes; got 15"):
        g.set_state(state[:15])
    with pytest.raises(NotImplementedError, match="no offset"):
        facula.Generator().get_offset()


DRAWS = {
    "rand": lambda **k: facula.rand(20, **k),
    "randn": lambda **k: facula.randn(20, **k),
    "randint": lambda **k: facula.randint(100, (20,), **k),
    "randperm": lambda **k: facula.randperm(20, **k),
    "strided": lambda **k: facula.empty(4, 5, device=k.pop("device")).t().uniform_(**k),
    "bernoulli": lambda **k: facula.empty(20, device=k.pop("device")).bernoulli_(0.5, **k),
    "multinomial": lambda **k: facula.multinomial(facula.ones(20, device=k.pop("device")), 10, **k),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_follow_from_the_seed(toy, name):
    draw, g = DRAWS[name], facula.Generator("toy:0")
    drawn = [draw(generator=g.manual_seed(seed), device="toy:0") for seed in (3, 3, 4)]
    a, b, c = (t.cpu() for t in drawn)
    assert drawn[0].device == facula.device("toy:0")
    assert a.equal(b) and not a.equal(c)
    facula.manual_seed(11)
    a = draw(device="toy:0").cpu()
    facula.manual_seed(11)
    assert draw(device="toy:0").cpu().equal(a)


def test_generators_are_of_one_device(toy):
    for generator, device in (
        (facula.Generator(), "toy:0"),
        (facula.Generator("toy:0"), "cpu"),
        (facula.Generator("toy:1"), "toy:0"),
    ):
        with pytest.raises(RuntimeError, match="[Ee]xpected a .*generator"):
            facula.rand(3, generator=generator, device=device)
    with pytest.raises(RuntimeError, match="meta is not supported"):
        facula.Generator("meta")


# --- capture


def test_capture(toy):
    x, y = filled(1), filled(0)
    accelerator.synchronize()
    graph = accelerator.Graph()
    with graph:
        assert accelerator.current_stream().is_capturing()
        y.copy_((x + 1) * 10)
    assert not accelerator.current_stream().is_capturing()
    accelerator.synchronize()
    assert all_are(y, 0)
    for number in (1, 5):
        x.fill_(float(number))
        graph.replay()
        assert all_are(y, (number + 1) * 10)
    with pytest.raises(RuntimeError, match="captured already"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="has been captured"):
        accelerator.Graph().replay()
    with pytest.raises(NotImplementedError, match="pools"):
        accelerator.Graph(pool=(0, 1))

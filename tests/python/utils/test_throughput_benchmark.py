"""utils.ThroughputBenchmark, and names of devices that are not there."""

import facula
import pytest


@pytest.mark.parametrize("threads", [1, 3])
def test_every_call_is_made_and_counted(threads):
    calls = []
    bench = facula.utils.ThroughputBenchmark(lambda x, y=0: calls.append((x, y)))
    bench.add_input(1, y=2)
    bench.run_once(3)
    stats = bench.benchmark(num_calling_threads=threads, num_warmup_iters=2, num_iters=20)
    assert len(calls) == 1 + 2 * threads + 20 and calls[0] == (3, 0)
    assert set(calls[1:]) == {(1, 2)}
    assert stats.num_iters == 20 and stats.latency_avg_ms > 0
    assert stats.iters_per_second == pytest.approx(20 / stats.total_time_seconds)
    assert str(stats).startswith("Average latency per example: ")


def test_errors_of_calls_arrive():
    bench = facula.utils.ThroughputBenchmark(lambda x: 1 / x)
    with pytest.raises(RuntimeError, match="add_input"):
        bench.benchmark()
    bench.add_input(0)
    with pytest.raises(ZeroDivisionError):
        bench.benchmark(num_calling_threads=3)


def test_streams_and_events_of_the_cpu():
    stream = facula.cpu.Stream()
    before = facula.cpu.current_stream()
    with facula.cpu.stream(stream):
        assert facula.cpu.current_stream() is stream
    with facula.cpu.StreamContext(None):
        assert facula.cpu.current_stream() is before
    event = facula.cpu.Event()
    event.record(stream)
    event.synchronize()
    assert event.query()


@pytest.mark.skipif(facula.cuda.is_available(), reason="there is a device")
def test_what_needs_a_device_says_so():
    needs = {
        AssertionError: [
            facula.cuda.GreenContext.create,
            facula.cuda.current_solver_handle,
            facula.cuda.Stream.priority_range,
            lambda: facula.nn.parallel.comm.reduce_add([facula.ones(2)]),
            lambda: facula.nn.DataParallel(facula.nn.Linear(1, 1)).scatter((1,), {}, ["cpu"]),
        ],
        RuntimeError: [
            facula.mps.Stream,
            facula.mps.Event,
            facula.mps.current_stream,
            lambda: facula.cuda.comm.gather([facula.ones(2)]),
            lambda: facula.nn.parallel.comm.broadcast(facula.ones(2), [0]),
        ],
    }
    for kind, calls in needs.items():
        for call in calls:
            with pytest.raises(kind):
                call()
    facula.cuda.reset_peak_host_memory_stats()
    assert facula.profiler.DeviceType.PrivateUse1.value == 20

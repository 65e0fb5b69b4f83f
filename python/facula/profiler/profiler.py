"""`profile` with steps, schedules and handlers."""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from facula.autograd._profiler_enums import ProfilerAction, ProfilerActivity
from facula.autograd._profiler_recorder import Recorder
from facula.autograd.profiler_util import EventList


def supported_activities():
    """What can be recorded, as a set: the CPU's work."""
    return {ProfilerActivity.CPU}


def kineto_available():
    """Whether Kineto is there: False; the recorder is facula's own."""
    return False


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Which steps are recorded, as a function for `profile(schedule=...)`.

    Args:
        wait, warmup, active (int): a cycle: steps that are left out, that are recorded and thrown
            away, and that are kept.
        repeat (int): how many cycles; 0 for no end.
        skip_first (int): steps before the first cycle.
        skip_first_wait (int): 1 leaves the first cycle's `wait` out.

    Example:
        >>> step = schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [step(i).name for i in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    good = wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0
    if not good:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    cycle = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A handler for `profile(on_trace_ready=...)`: each trace becomes a file in a folder.

    Args:
        dir_name (str): the folder.
        worker_name (str): this program's name in the files' names.
        use_gzip (bool): compress the files.
    """
    name = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handler(prof):
        os.makedirs(dir_name, exist_ok=True)
        file = f"{name}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, file))

    return handler


def _every_step(step):
    return ProfilerAction.RECORD


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Context manager: operators that this thread runs within are recorded.

    Args:
        activities (iterable of ProfilerActivity): what is recorded.
        schedule: from a step's number to a ProfilerAction; every step is recorded unless given.
        on_trace_ready: called with this object when a cycle's steps are recorded.
        record_shapes, profile_memory, with_stack, with_flops (bool): what is noted beside.
        acc_events (bool): keep the events of all cycles.

    Raises:
        AssertionError: no activity that can be recorded.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        **options,
    ):
        self.activities = supported_activities() if activities is None else set(activities)
        self._options = (record_shapes, profile_memory, with_stack, with_flops)
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.schedule = schedule or _every_step
        self.record_steps = schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.step_num, self.current_action = 0, ProfilerAction.NONE
        self._recorder = self._step_event = self._events = None
        self._metadata = {}
        self._make_trace_id, self._trace_id = custom_trace_id_callback, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()
        return False

    def start(self):
        """Begin to record, as the schedule says of step 0."""
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self._go_to(self.schedule(self.step_num))

    def prepare_trace(self):
        """Get ready to record; what follows `start_trace` is what the trace has."""
        self.start_trace()
        self._pause(keep=False)

    def start_trace(self):
        """Record from here on, whatever the schedule says."""
        self._trace_id = None
        self._go_to(ProfilerAction.RECORD)

    def stop_trace(self):
        """Stop recording; the events are there, and the handler is not called."""
        self._pause(keep=True)
        self.current_action = ProfilerAction.NONE

    def set_custom_trace_id_callback(self, callback):
        """Set what names a trace: a callable without arguments that gives a text."""
        self._make_trace_id = callback

    def get_trace_id(self):
        """The name of the trace that is recorded, as text; None before there is any."""
        if self._trace_id is None and (self._recorder is not None or self._events is not None):
            from uuid import uuid4

            self._trace_id = self._make_trace_id() if self._make_trace_id else uuid4().hex.upper()
        return self._trace_id

    def step(self):
        """Say that the next step begins."""
        self.step_num += 1
        before = self.current_action
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._pause(keep=True)
            self._save()
        self._go_to(self.schedule(self.step_num))

    def stop(self):
        """End recording; what is recorded goes to the handler."""
        recording = self.current_action in _RECORDING
        self._pause(keep=recording)
        self.current_action = ProfilerAction.NONE
        if recording:
            self._save()

    def _go_to(self, action):
        if action in _RECORDING and self.current_action is ProfilerAction.WARMUP:
            self._pause(keep=False)
        self._end_step()
        self.current_action = action
        if action is ProfilerAction.NONE:
            self._pause(keep=False)
            return
        if self._recorder is None:
            self._recorder = Recorder(*self._options)
            self._recorder.__enter__()
        if self.record_steps:
            name = f"ProfilerStep#{self.step_num}"
            self._step_event = self._recorder.begin(name, {"is_user_annotation": True})

    def _end_step(self):
        if self._step_event is not None:
            self._recorder.end(self._step_event)
            self._step_event = None

    def _pause(self, keep):
        if self._recorder is None:
            return
        self._end_step()
        self._recorder.__exit__(None, None, None)
        if keep:
            found = self._recorder.event_list()
            if self.acc_events and self._events is not None:
                found = EventList(
                    [*self._events, *found],
                    profile_memory=self.profile_memory,
                    with_flops=self.with_flops,
                )
            self._events = found
        self._recorder = None

    def _save(self):
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # --- results

    def events(self):
        """The events that were recorded last, as an EventList."""
        if self._recorder is not None and self._events is None:
            return self._recorder.event_list()
        if self._events is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        return self._events

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ):
        """Sums of events by name, as an EventList; see `EventList.key_averages`."""
        if self._events is None and self._recorder is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def add_metadata(self, key, value):
        """Note a text under a name in the traces."""
        self._metadata[key] = value

    def add_metadata_json(self, key, value):
        """Note a value, given as JSON, under a name in the traces."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable, activities):
        """Switch activities on or off while recording: NotImplementedError."""
        raise NotImplementedError("profile.toggle_collection_dynamic() is missing")

    def export_chrome_trace(self, path):
        """Write a trace that chrome://tracing and Perfetto read; a name in .gz is compressed."""
        import gzip
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            self.events().export_chrome_trace(plain)
            with open(plain) as file:
                trace = json.load(file)
        trace.update(
            record_shapes=int(self.record_shapes),
            profile_memory=int(self.profile_memory),
            with_stack=int(self.with_stack),
            with_flops=int(self.with_flops),
            traceName=path,
            **self._metadata,
        )
        if "facula.distributed._world" in sys.modules:
            from facula.distributed._trace_spans import facts

            trace.update(facts())
        opened = gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w")
        with opened as file:
            json.dump(trace, file)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write stacks with a figure each; see `EventList.export_stacks`."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write memory over time: NotImplementedError."""
        raise NotImplementedError("profile.export_memory_timeline() is missing")

// Stream, Event and _DeviceGraph.
#include <cstddef>

#include "bindings/module/package.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/device_graph.h"
#include "core/device_table.h"

namespace facula::python {
namespace {

struct StreamObject {
  PyObject_HEAD Stream stream;
  std::vector<Stream>* before;  // the current streams when `with` blocks of this one were entered
  PyObject* weakrefs;
};
struct EventObject {
  PyObject_HEAD DeviceEvent* event;
  Device device;
  PyObject* weakrefs;
};
struct GraphObject {
  PyObject_HEAD DeviceGraph* graph;
};

StreamObject* self_of(PyObject* o) { return reinterpret_cast<StreamObject*>(o); }
EventObject* event_of(PyObject* o) { return reinterpret_cast<EventObject*>(o); }
DeviceEvent& event_value(PyObject* o) { return *event_of(o)->event; }

extern PyTypeObject stream_type, event_type, graph_type;

bool is_event(PyObject* o) { return PyObject_TypeCheck(o, &event_type); }

// Runs a function that may wait for a device, without the GIL.
template <class F>
void waiting(F&& f) {
  const DropGil drop(true);
  f();
}

// A type whose objects are laid out as `Layout`, with weak references if that has a `weakrefs`.
template <class Layout>
PyTypeObject subclassable_type(const char* name, newfunc make, destructor end) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(Layout);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_new = make;
  t.tp_dealloc = end;
  if constexpr (requires { &Layout::weakrefs; }) t.tp_weaklistoffset = offsetof(Layout, weakrefs);
  return t;
}

// --- Stream

Object new_object(PyTypeObject* type, Stream s) {
  Object o = Object::take(type->tp_alloc(type, 0));
  self_of(o.get())->stream = s;
  self_of(o.get())->before = new std::vector<Stream>;
  return o;
}

// Stream(device=None, *, priority=0), or an existing one by stream_id, device_index and
// device_type.
PyObject* stream_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* keys[] = {"device",       "priority",    "stream_id",
                                 "device_index", "device_type", nullptr};
    PyObject* device = nullptr;
    int priority = 0, index = -1, kind = -1;
    long long id = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$iLii:Stream", const_cast<char**>(keys),
                                     &device, &priority, &id, &index, &kind))
      return nullptr;
    if (id < 0)
      return new_object(type, new_stream(accelerator_argument(device ? device : Py_None), priority))
          .leak();
    check(kind >= 0 && kind < 128 && index >= 0 && index < 128,
          "Stream(): stream_id needs device_index and device_type");
    const Device d = with_index({static_cast<DeviceType>(kind), static_cast<int8_t>(index)});
    check(d.is_accelerator() && is_registered(d.type),
          "Stream(): expected the device_type of an accelerator; got ", kind);
    check(id <= UINT32_MAX, "Stream: ", str(d), " has no stream with the number ", id);
    return new_object(type, stream_of_id(d, static_cast<uint32_t>(id))).leak();
  });
}

void stream_dealloc(PyObject* o) {
  if (self_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  delete self_of(o)->before;
  Py_TYPE(o)->tp_free(o);
}

PyObject* stream_repr(PyObject* o) {
  return guard([&] {
    const Stream s = stream_value(o);
    return string(concat(in_package("Stream device_type="),
                         std::string(str(Device{s.device.type, -1})),
                         ", device_index=", int{s.device.index}, ", stream_id=", s.id))
        .leak();
  });
}
PyObject* stream_compare(PyObject* a, PyObject* b, int op) {
  if (!is_stream(a) || !is_stream(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((stream_value(a) == stream_value(b)) == (op == Py_EQ));
}
Py_hash_t stream_hash(PyObject* o) {
  const Stream s = stream_value(o);
  return (static_cast<Py_hash_t>(s.id) * 128 + s.device.index) * 128 +
         static_cast<Py_hash_t>(s.device.type);
}

Object stream_query(PyObject* o, PyObject*) { return boolean(stream_is_done(stream_value(o))); }
Object stream_is_capturing(PyObject* o, PyObject*) {
  return boolean(is_capturing(stream_value(o)));
}
Object stream_synchronize(PyObject* o, PyObject*) {
  waiting([&] { synchronize_stream(stream_value(o)); });
  return none();
}
Object stream_wait_event(PyObject* o, PyObject* event) {
  check_type(is_event(event), "wait_event(): expected an Event; got ", type_name(event));
  event_value(event).wait(stream_value(o));
  return none();
}
Object stream_wait_stream(PyObject* o, PyObject* other) {
  check_type(is_stream(other), "wait_stream(): expected a Stream; got ", type_name(other));
  waiting([&] { stream_waits(stream_value(o), stream_value(other)); });
  return none();
}
Object new_event(Device d, uint32_t flags) {
  Object e = Object::take(event_type.tp_alloc(&event_type, 0));
  event_of(e.get())->event = new DeviceEvent(flags);
  event_of(e.get())->device = d;
  return e;
}
Object stream_record_event(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"event", nullptr};
  PyObject* event = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:record_event", const_cast<char**>(keys),
                                   &event))
    throw_python();
  const Stream s = stream_value(o);
  check_type(event == Py_None || is_event(event), "record_event(): expected an Event; got ",
             type_name(event));
  Object e = event == Py_None ? new_event(s.device, 0) : Object::share(event);
  event_value(e.get()).record(s);
  return e;
}

// `with stream:` makes the stream and its device current.
PyObject* stream_enter(PyObject* o, PyObject*) {
  return guard([&] {
    const Stream s = stream_value(o);
    const Device d{s.device.type, static_cast<int8_t>(current_device_index(s.device.type))};
    self_of(o)->before->push_back(current_stream(d));
    self_of(o)->before->push_back(current_stream(s.device));
    set_current_device(s.device);
    set_current_stream(s);
    return Py_NewRef(o);
  });
}
PyObject* stream_exit(PyObject* o, PyObject*) {
  return guard([&] {
    std::vector<Stream>& before = *self_of(o)->before;
    check(before.size() >= 2, "Stream.__exit__(): this stream's scope was not entered");
    set_current_stream(before.back());
    before.pop_back();
    set_current_device(before.back().device);
    before.pop_back();
    return boolean(false).leak();
  });
}

PyObject* stream_device(PyObject* o, void*) {
  return guard([&] { return device_object(stream_value(o).device).leak(); });
}
PyObject* stream_index(PyObject* o, void*) { return PyLong_FromLong(stream_value(o).device.index); }
PyObject* stream_kind(PyObject* o, void*) {
  return PyLong_FromLong(static_cast<long>(stream_value(o).device.type));
}
PyObject* stream_id(PyObject* o, void*) { return PyLong_FromLong(stream_value(o).id); }
PyObject* stream_native(PyObject* o, void*) {
  return PyLong_FromVoidPtr(stream_handle(stream_value(o)));
}
PyObject* stream_priority_of(PyObject* o, void*) {
  return PyLong_FromLong(stream_priority(stream_value(o)));
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int keywords = METH_VARARGS | METH_KEYWORDS;

PyMethodDef stream_methods[] = {
    {"query", guarded<stream_query>, METH_NOARGS, "Whether all that was given to it is done."},
    {"synchronize", guarded<stream_synchronize>, METH_NOARGS, "Waits until that is so."},
    {"wait_event", guarded<stream_wait_event>, METH_O,
     "What comes later runs after the work before an event."},
    {"is_capturing", guarded<stream_is_capturing>, METH_NOARGS,
     "Whether its work is kept, not run."},
    {"wait_stream", guarded<stream_wait_stream>, METH_O,
     "What comes later runs after what another stream has been given so far."},
    {"record_event", with_keywords(guarded_keywords<stream_record_event>), keywords,
     "record_event(event=None) -> Event: marks this place of the stream's work."},
    {"__enter__", stream_enter, METH_NOARGS, nullptr},
    {"__exit__", stream_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef stream_properties[] = {
    {"device", stream_device, nullptr, nullptr, nullptr},
    {"device_index", stream_index, nullptr, nullptr, nullptr},
    {"device_type", stream_kind, nullptr, nullptr, nullptr},
    {"stream_id", stream_id, nullptr, nullptr, nullptr},
    {"native_handle", stream_native, nullptr, "What the device's library calls it (int).", nullptr},
    {"priority", stream_priority_of, nullptr, "A lower number goes first.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_stream_type() {
  PyTypeObject t = subclassable_type<StreamObject>("facula.Stream", stream_new, stream_dealloc);
  t.tp_repr = stream_repr;
  t.tp_richcompare = stream_compare;
  t.tp_hash = stream_hash;
  t.tp_methods = stream_methods;
  t.tp_getset = stream_properties;
  t.tp_doc =
      "Stream(device=None, *, priority=0)\n\nA queue of work of a device, done in order and "
      "independent of other streams.\n\nArgs:\n    device: an accelerator; the current one if "
      "None.\n    priority (int): a lower number goes first.\n\nRaises:\n    RuntimeError: where "
      "there is no accelerator.";
  return t;
}

// --- Event

PyObject* event_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* keys[] = {"device", "enable_timing", "blocking", "interprocess", nullptr};
    PyObject* device = Py_None;
    int timing = 0, blocking = 0, shared = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$ppp:Event", const_cast<char**>(keys),
                                     &device, &timing, &blocking, &shared))
      return nullptr;
    Device d = accelerator_argument(device);
    Object o = Object::take(type->tp_alloc(type, 0));
    event_of(o.get())->event = new DeviceEvent((timing ? FACULA_EVENT_TIMING : 0) |
                                               (blocking ? FACULA_EVENT_BLOCKING : 0) |
                                               (shared ? FACULA_EVENT_INTERPROCESS : 0));
    event_of(o.get())->device = d;
    return o.leak();
  });
}
void event_dealloc(PyObject* o) {
  if (event_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  delete event_of(o)->event;
  Py_TYPE(o)->tp_free(o);
}
Device device_of(PyObject* o) {
  const DeviceEvent& e = event_value(o);
  return e.is_recorded() ? e.device() : event_of(o)->device;
}
PyObject* event_repr(PyObject* o) {
  return guard([&] {
    const Device d = device_of(o);
    const DeviceEvent& e = event_value(o);
    return string(concat(in_package("Event device_type="), std::string(str(Device{d.type, -1})),
                         ", device_index=", int{d.index}, ", event_flag=", e.flags(),
                         ", event_id=", reinterpret_cast<uintptr_t>(e.handle())))
        .leak();
  });
}

// The stream given as an argument; without one, the current stream of the event's device.
Stream stream_argument(PyObject* self, PyObject* args, PyObject* kwargs, const char* format) {
  static const char* keys[] = {"stream", nullptr};
  PyObject* stream = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(keys), &stream))
    throw_python();
  if (stream == Py_None) return current_stream(with_index(device_of(self)));
  check_type(is_stream(stream), "expected a Stream; got ", type_name(stream));
  return stream_value(stream);
}
Object event_record(PyObject* o, PyObject* args, PyObject* kwargs) {
  event_value(o).record(stream_argument(o, args, kwargs, "|O:record"));
  return none();
}
Object event_wait(PyObject* o, PyObject* args, PyObject* kwargs) {
  event_value(o).wait(stream_argument(o, args, kwargs, "|O:wait"));
  return none();
}
Object event_query(PyObject* o, PyObject*) { return boolean(event_value(o).is_done()); }
Object event_synchronize(PyObject* o, PyObject*) {
  waiting([&] { event_value(o).synchronize(); });
  return none();
}
Object event_elapsed(PyObject* o, PyObject* end) {
  check_type(is_event(end), "elapsed_time(): expected an Event; got ", type_name(end));
  return Object::take(PyFloat_FromDouble(event_value(o).elapsed(event_value(end))));
}
// Handles for other processes: the device table (include/facula) has no call for them yet.
[[noreturn]] Object no_handle(const char* method) {
  throw_error(ErrorKind::NotImplemented,
              concat("Event.", method, "(): events are not shared between processes yet"));
}
Object event_handle(PyObject*, PyObject*) { no_handle("ipc_handle"); }
Object event_from_handle(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"device", "ipc_handle", nullptr};
  PyObject *device = nullptr, *handle = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:from_ipc_handle", const_cast<char**>(keys),
                                   &device, &handle))
    throw_python();
  no_handle("from_ipc_handle");
}
PyObject* event_device(PyObject* o, void*) {
  return guard([&] { return device_object(device_of(o)).leak(); });
}
PyObject* event_id(PyObject* o, void*) { return PyLong_FromVoidPtr(event_value(o).handle()); }

PyMethodDef event_methods[] = {
    {"record", with_keywords(guarded_keywords<event_record>), keywords,
     "record(stream=None): marks the place that a stream's work has reached."},
    {"wait", with_keywords(guarded_keywords<event_wait>), keywords,
     "wait(stream=None): a stream goes on when the work before the event is done."},
    {"query", guarded<event_query>, METH_NOARGS, "Whether the work before the event is done."},
    {"synchronize", guarded<event_synchronize>, METH_NOARGS, "Waits until that is so."},
    {"elapsed_time", guarded<event_elapsed>, METH_O,
     "elapsed_time(end_event) -> float: milliseconds from this event to another."},
    {"ipc_handle", guarded<event_handle>, METH_NOARGS, "Bytes that name the event elsewhere."},
    {"from_ipc_handle", with_keywords(guarded_keywords<event_from_handle>), keywords | METH_CLASS,
     "from_ipc_handle(device, ipc_handle): the event that another process has named."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef event_properties[] = {{"device", event_device, nullptr, nullptr, nullptr},
                                  {"event_id", event_id, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_event_type() {
  PyTypeObject t = subclassable_type<EventObject>("facula.Event", event_new, event_dealloc);
  t.tp_repr = event_repr;
  t.tp_methods = event_methods;
  t.tp_getset = event_properties;
  t.tp_doc =
      "Event(device=None, *, enable_timing=False, blocking=False, interprocess=False)\n\nA place "
      "in a stream's work, which other streams and the host can wait for.\n\nArgs:\n    device: "
      "an accelerator; the current one if None.\n    enable_timing (bool): elapsed_time may be "
      "asked for.\n    blocking (bool): synchronize sleeps in place of spinning.\n    interprocess "
      "(bool): may be shared with other processes.\n\nRaises:\n    RuntimeError: where there is "
      "no accelerator.";
  return t;
}

// --- captured work

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guard([&] {
    Object o = Object::take(type->tp_alloc(type, 0));
    reinterpret_cast<GraphObject*>(o.get())->graph = new DeviceGraph;
    return o.leak();
  });
}
void graph_dealloc(PyObject* o) {
  delete reinterpret_cast<GraphObject*>(o)->graph;
  Py_TYPE(o)->tp_free(o);
}
DeviceGraph& graph_value(PyObject* o) { return *reinterpret_cast<GraphObject*>(o)->graph; }
Stream current_accelerator_stream() { return current_stream(accelerator_argument(Py_None)); }
Object graph_begin(PyObject* o, PyObject*) {
  graph_value(o).begin(current_accelerator_stream());
  return none();
}
Object graph_end(PyObject* o, PyObject*) {
  graph_value(o).end();
  return none();
}
Object graph_replay(PyObject* o, PyObject*) {
  graph_value(o).replay(current_accelerator_stream());
  return none();
}
PyMethodDef graph_methods[] = {
    {"capture_begin", guarded<graph_begin>, METH_NOARGS,
     "From now on work for the current stream is kept, not run."},
    {"capture_end", guarded<graph_end>, METH_NOARGS, "Ends that."},
    {"replay", guarded<graph_replay>, METH_NOARGS, "Gives the kept work to the current stream."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_graph_type() {
  PyTypeObject t =
      subclassable_type<GraphObject>("facula._C._DeviceGraph", graph_new, graph_dealloc);
  t.tp_methods = graph_methods;
  t.tp_doc = "Work of a stream, kept to be run again.";
  return t;
}

PyTypeObject stream_type = make_stream_type(), event_type = make_event_type(),
             graph_type = make_graph_type();

}  // namespace

Object stream_object(Stream s) { return new_object(&stream_type, s); }
bool is_stream(PyObject* o) { return PyObject_TypeCheck(o, &stream_type); }
Stream stream_value(PyObject* o) { return self_of(o)->stream; }

void add_streams(PyObject* module) {
  add_type(module, stream_type, "Stream");
  add_type(module, event_type, "Event");
  add_type(module, graph_type, "_DeviceGraph");
}

}  // namespace facula::python

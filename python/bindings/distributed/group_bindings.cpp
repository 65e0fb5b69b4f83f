// Group and Work: a process group on one engine, and calls of it that are under way. Arguments come
// from python/facula/distributed, which has checked them; here only what memory safety needs is.
#include <algorithm>
#include <cstring>

#include "bindings/distributed/distributed_bindings.h"
#include "bindings/module/package.h"
#include "bindings/tensor/tensor_type.h"
#include "distributed/call_text.h"
#include "distributed/engine_plugin.h"
#include "distributed/flight_recorder.h"
#include "distributed/process_group.h"
#include "distributed/reduction.h"

namespace facula::python {
namespace {

using namespace distributed;

struct GroupObject {
  PyObject_HEAD std::shared_ptr<ProcessGroup> group;
  bool connected;
};
struct WorkObject {
  PyObject_HEAD std::shared_ptr<ProcessGroup> group;  // works have a plain reference to it
  std::shared_ptr<Work> work;
};
extern PyTypeObject group_type, work_type;

// Whether ranks compare shapes too.
bool detailed = false;

// Raised for DistributedError; python/facula/distributed sets it.
PyObject* error_class = nullptr;

ProcessGroup& group_of(PyObject* o) { return *reinterpret_cast<GroupObject*>(o)->group; }
ProcessGroup& connected_group(PyObject* o) {
  check(reinterpret_cast<GroupObject*>(o)->connected,
        "Group: expected a group whose connect() has succeeded");
  return group_of(o);
}
Work& work_of(PyObject* o) { return *reinterpret_cast<WorkObject*>(o)->work; }

// Runs f() without the GIL, and raises its error as the class above.
template <class F>
auto waiting(F&& f) {
  try {
    const DropGil drop(true);
    return f();
  } catch (const DistributedError& e) {
    PyErr_SetString(error_class ? error_class : PyExc_RuntimeError, e.what());
  }
  throw_python();
}

// File and line of the nearest caller outside of facula's own distributed package.
void write_place(CallRecord& record) {
  Object frame = Object::share(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    const Object code = Object::maybe(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    const std::string_view file = text_of(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    const bool inside = file.find("/distributed/") != file.npos &&
                        (file.find("/facula/") != file.npos || file.find("/torch/") != file.npos);
    if (!inside) {
      const size_t parent = file.rfind('/', file.rfind('/') - 1);
      const std::string text = concat(parent == file.npos ? file : file.substr(parent + 1), ":",
                                      PyFrame_GetLineNumber(f));
      const size_t n = std::min<size_t>(text.size(), CallRecord::most_place - 1);
      std::memcpy(record.place, text.data(), n);
      return;
    }
    frame = Object::maybe(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
}

const Tensor& dense_tensor(PyObject* o, ProcessGroup& group) {
  check_type(is_tensor(o), "expected a Tensor; got ", type_name(o));
  const Tensor& t = tensor_of(o);
  const bool of_device = group.engine().is_of_device();
  check(of_device ? t.device().is_accelerator() : t.device().is_cpu(),
        "expected a tensor in the memory of ", of_device ? "an accelerator" : "the CPU",
        "; got one on ", str(t.device()));
  check(!has_layout_kind(t) && t.is_contiguous(), "expected a contiguous tensor");
  return t;
}

void describe(CallRecord& record, const Tensor& t) {
  record.dtype = t.dtype();
  record.count = t.numel();
  record.ndim = static_cast<uint8_t>(t.dim());
  const auto shown = std::min<int64_t>(t.dim(), CallRecord::most_sizes);
  std::copy_n(t.sizes().begin(), shown, record.sizes);
}

std::vector<int64_t> counts_of(PyObject* list, int size) {
  std::vector<int64_t> counts;
  read_items(list, [&](size_t, PyObject* item) {
    counts.push_back(PyLong_AsLongLong(item));
    if (PyErr_Occurred()) throw_python();
    return true;
  });
  check_value(counts.size() == static_cast<size_t>(size), "expected ", size, " sizes; got ",
              counts.size());
  return counts;
}

// --- Group

// Group(rank, size, name, engine, timeout_ms, heartbeat_ms, lag_ms, settings={})
PyObject* group_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guard([&]() -> PyObject* {
    int rank = 0, size = 0;
    const char *name = nullptr, *engine = nullptr;
    long long timeout = 0, heartbeat = 0, lag = 0;
    PyObject* settings = nullptr;
    if (!PyArg_ParseTuple(args, "iissLLL|O!:Group", &rank, &size, &name, &engine, &timeout,
                          &heartbeat, &lag, &PyDict_Type, &settings))
      return nullptr;
    check_value(size >= 1 && size <= 1024 && rank >= 0 && rank < size,
                "Group(): expected a rank below the size, and at most 1024 ranks; got rank ", rank,
                " of ", size);
    EngineOptions options;
    options.rank = rank;
    options.size = size;
    options.group = name;
    options.timeout = std::chrono::milliseconds(timeout);
    options.heartbeat = std::chrono::milliseconds(heartbeat);
    options.lag = std::chrono::milliseconds(lag);
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; settings && PyDict_Next(settings, &at, &key, &value);)
      options.settings.emplace(text_of(key), text_of(value));
    auto group = std::make_shared<ProcessGroup>(new_engine(engine, options), options);
    PyObject* o = checked(type->tp_alloc(type, 0));
    new (&reinterpret_cast<GroupObject*>(o)->group) std::shared_ptr(std::move(group));
    return o;
  });
}

// While the interpreter shuts down nobody gets the GIL back: what could wait is left to the system.
template <class T>
void let_go(std::shared_ptr<T>& p) {
  if (!may_take_gil()) {
    new std::shared_ptr<T>(std::move(p));
    return;
  }
  const DropGil drop(true);
  p.reset();
}

void group_dealloc(PyObject* o) {
  let_go(reinterpret_cast<GroupObject*>(o)->group);
  Py_TYPE(o)->tp_free(o);
}

Object group_address(PyObject* o) {
  const std::string text = group_of(o).engine().address();
  return Object::take(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

Object group_connect(PyObject* o, PyObject* list) {
  check_type(PyList_Check(list), "connect(): expected a list of bytes; got ", type_name(list));
  std::vector<std::string> addresses;
  read_items(list, [&](size_t, PyObject* item) {
    char* text = nullptr;
    Py_ssize_t n = 0;
    checked(PyBytes_AsStringAndSize(item, &text, &n));
    addresses.emplace_back(text, static_cast<size_t>(n));
    return true;
  });
  bool& connected = reinterpret_cast<GroupObject*>(o)->connected;
  check(!connected, "connect(): expected a group that is not connected; got one that is");
  connected = waiting([&] { return group_of(o).engine().connect(addresses); });
  return boolean(connected);
}

Object group_start(PyObject* o) {
  connected_group(o).start();
  return none();
}

Object work_object(PyObject* group, std::shared_ptr<Work> work) {
  Object o = Object::take(work_type.tp_alloc(&work_type, 0));
  auto* w = reinterpret_cast<WorkObject*>(o.get());
  new (&w->group) std::shared_ptr(reinterpret_cast<GroupObject*>(group)->group);
  new (&w->work) std::shared_ptr(std::move(work));
  return o;
}

// run(call, inputs, outputs, reduction, factor, root, is_async, sent, received, shown): inputs and
// outputs are lists as engine.h says, `shown` is the tensor that errors describe.
PyObject* group_run(PyObject* o, PyObject* const* args, Py_ssize_t n) noexcept {
  return guard([&]() -> PyObject* {
    check_type(n == 10 && PyList_Check(args[1]) && PyList_Check(args[2]),
               "run(): expected ten arguments, two of them lists");
    ProcessGroup& group = connected_group(o);
    const auto size = static_cast<size_t>(group.options().size);
    Collective call;
    call.record.call = static_cast<Call>(PyLong_AsLong(args[0]));
    call.record.reduction = static_cast<Reduction>(PyLong_AsLong(args[3]));
    call.factor = PyFloat_AsDouble(args[4]);
    call.record.root = static_cast<int32_t>(PyLong_AsLong(args[5]));
    const bool async = args[6] == Py_True;
    if (PyErr_Occurred()) throw_python();
    check_value(call.record.root < static_cast<int>(size), "expected a root below ", size, "; got ",
                call.record.root);
    std::vector<Ref<Storage>> memory;
    const auto add = [&](PyObject* list, auto& pointers) {
      read_items(list, [&](size_t, PyObject* item) {
        const Tensor& t = dense_tensor(item, group);
        pointers.push_back(t.data());
        memory.push_back(t->storage);
        if (call.record.dtype == DType::Undefined) {
          describe(call.record, t);
          call.device = t.device();
        }
        check_value(t.device() == call.device, "expected tensors of one device; got ",
                    str(call.device), " and ", str(t.device()));
        check_value(t.dtype() == call.record.dtype, "expected tensors of one dtype; got ",
                    name(call.record.dtype), " and ", name(t.dtype()));
        check_value(args[7] != Py_None || t.numel() == call.record.count,
                    "expected tensors of one size; got ", call.record.count, " and ", t.numel(),
                    " elements");
        return true;
      });
    };
    add(args[1], call.inputs);
    add(args[2], call.outputs);
    check_value(call.record.call <= Call::AllToAll && call.record.call != Call::None,
                "expected the number of a collective");
    check_value((args[7] != Py_None) == (call.record.call == Call::AllToAll),
                "expected sizes of parts for all_to_all, and for nothing else");
    if (args[7] != Py_None) {
      call.sent = counts_of(args[7], group.options().size);
      call.received = counts_of(args[8], group.options().size);
    }
    if (args[9] != Py_None) {
      const int64_t count = call.record.count;
      describe(call.record, tensor_of(args[9]));
      call.record.count = count;
    }
    const Call c = call.record.call;
    if (c == Call::AllReduce || c == Call::Reduce || c == Call::ReduceScatter)
      check_reduction(name_of(c), call.record.reduction, call.record.dtype);
    for (size_t r = 0; r < call.sent.size() && r < call.inputs.size(); ++r)
      check_value(call.inputs.size() == size && call.outputs.size() == size &&
                      call.sent[r] == tensor_of(PyList_GET_ITEM(args[1], r)).numel() &&
                      call.received[r] == tensor_of(PyList_GET_ITEM(args[2], r)).numel(),
                  "expected the sizes of the tensors as sizes of parts");
    const bool rooted =
        c == Call::Broadcast || c == Call::Reduce || c == Call::Gather || c == Call::Scatter;
    check_value(!rooted || call.record.root >= 0, "expected a root of at least 0; got ",
                call.record.root);
    const auto needs = [&](bool list) { return list ? size : size_t{1}; };
    const bool is_root = call.record.root == group.options().rank;
    const bool lists_in = c == Call::ReduceScatter || c == Call::AllToAll;
    const bool lists_out = c == Call::AllGather || c == Call::AllToAll;
    bool right = call.inputs.size() == needs(lists_in) && call.outputs.size() == needs(lists_out);
    if (c == Call::Barrier) right = true;
    if (c == Call::Broadcast) right = call.outputs.size() == 1;
    if (c == Call::Gather)
      right = call.inputs.size() == 1 && (!is_root || call.outputs.size() == size);
    if (c == Call::Scatter)
      right = call.outputs.size() == 1 && (!is_root || call.inputs.size() == size);
    check_value(right, name_of(c), "(): expected a tensor for each rank; got ", call.inputs.size(),
                " inputs and ", call.outputs.size(), " outputs");
    call.record.detailed = detailed;
    write_place(call.record);
    auto work = waiting([&] { return group.run(std::move(call), std::move(memory), async); });
    return work ? work_object(o, std::move(work)).leak() : none().leak();
  });
}

// message(is_send, tensor, peer, tag, is_async)
PyObject* group_message(PyObject* o, PyObject* const* args, Py_ssize_t n) noexcept {
  return guard([&]() -> PyObject* {
    check_type(n == 5, "message(): expected five arguments; got ", n);
    ProcessGroup& group = connected_group(o);
    const Tensor& t = dense_tensor(args[1], group);
    Collective call;
    call.device = t.device();
    CallRecord& record = call.record;
    record.call = args[0] == Py_True ? Call::Send : Call::Receive;
    record.root = static_cast<int32_t>(PyLong_AsLong(args[2]));
    record.tag = static_cast<int32_t>(PyLong_AsLong(args[3]));
    if (PyErr_Occurred()) throw_python();
    const int first = record.call == Call::Send ? 0 : -1;
    check_value(record.root >= first && record.root < group.options().size, name_of(record.call),
                "(): expected a rank below ", group.options().size, "; got ", record.root);
    describe(record, t);
    write_place(record);
    if (record.call == Call::Send)
      call.inputs.push_back(t.data());
    else
      call.outputs.push_back(t.data());
    Ref<Storage> memory = t->storage;
    const bool async = args[4] == Py_True;
    auto work = waiting([&] { return group.message(std::move(call), std::move(memory), async); });
    return work ? work_object(o, std::move(work)).leak() : none().leak();
  });
}

Object group_begin_together(PyObject* o) {
  connected_group(o).begin_together();
  return none();
}

// end_together(is_async), or with None: forgets the calls
Object group_end_together(PyObject* o, PyObject* async) {
  ProcessGroup& group = connected_group(o);
  if (async == Py_None) {
    group.forget_together();
    return none();
  }
  auto work = waiting([&] { return group.end_together(async == Py_True); });
  return work ? work_object(o, std::move(work)) : none();
}

Object group_abort(PyObject* o, PyObject* reason) {
  const std::string text(text_of(reason));
  waiting([&] { connected_group(o).abort(text); });
  return none();
}

// leave(error, drain)
Object group_leave(PyObject* o, PyObject* args) {
  const char* error = nullptr;
  int drain = 0;
  if (!PyArg_ParseTuple(args, "sp:leave", &error, &drain)) throw_python();
  const std::string text(error);
  waiting([&] { group_of(o).leave(text, drain != 0); });
  return none();
}

Object group_set_timeout(PyObject* o, PyObject* milliseconds) {
  const auto timeout = std::chrono::milliseconds(PyLong_AsLongLong(milliseconds));
  if (PyErr_Occurred()) throw_python();
  group_of(o).engine().set_timeout(timeout);
  return none();
}

Object group_table(PyObject* o) { return string(connected_group(o).engine().table()); }
Object group_sequence(PyObject* o) { return integer(static_cast<int64_t>(group_of(o).sequence())); }

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t) noexcept) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef group_methods[] = {
    {"address", guarded_nullary<group_address>, METH_NOARGS, "What other ranks reach this one by."},
    {"connect", guarded<group_connect>, METH_O, "Reach the ranks of these addresses."},
    {"start", guarded_nullary<group_start>, METH_NOARGS, "Start the thread of the group."},
    {"run", fast(group_run), METH_FASTCALL, "Run a collective."},
    {"message", fast(group_message), METH_FASTCALL, "Send or receive a tensor."},
    {"begin_together", guarded_nullary<group_begin_together>, METH_NOARGS,
     "Keep the calls of this thread on a device."},
    {"end_together", guarded<group_end_together>, METH_O, "Give the kept calls to the device."},
    {"abort", guarded<group_abort>, METH_O, "Make all calls fail, with a reason."},
    {"leave", guarded<group_leave>, METH_VARARGS, "Take no part any more."},
    {"set_timeout", guarded<group_set_timeout>, METH_O, "The milliseconds that later calls wait."},
    {"table", guarded_nullary<group_table>, METH_NOARGS, "What each rank does, as text."},
    {"sequence", guarded_nullary<group_sequence>, METH_NOARGS, "The number of collectives."},
    {nullptr, nullptr, 0, nullptr}};

// --- Work

void work_dealloc(PyObject* o) {
  auto* w = reinterpret_cast<WorkObject*>(o);
  let_go(w->work);
  let_go(w->group);
  Py_TYPE(o)->tp_free(o);
}

Object work_wait(PyObject* o, PyObject* milliseconds) {
  const auto timeout = std::chrono::milliseconds(PyLong_AsLongLong(milliseconds));
  if (PyErr_Occurred()) throw_python();
  waiting([&] { work_of(o).wait(timeout); });
  return none();
}

Object work_is_completed(PyObject* o) {
  return boolean(waiting([&] { return work_of(o).is_completed(); }));
}

// The error's text, or None.
Object work_error(PyObject* o) {
  const std::exception_ptr error = work_of(o).error();
  if (!error) return none();
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return string(e.what());
  }
}

Object work_source(PyObject* o) { return integer(work_of(o).source()); }

// Calls a function without arguments once the call has ended. Its errors are printed.
Object work_then(PyObject* o, PyObject* function) {
  PyObject* f = Py_NewRef(function);
  const auto call = [f] {
    if (!may_release()) return;
    const HoldGil gil;
    const Object result = Object::maybe(PyObject_CallNoArgs(f));
    if (!result) PyErr_WriteUnraisable(f);
    Py_DECREF(f);
  };
  waiting([&] { work_of(o).then(call); });
  return none();
}

PyMethodDef work_methods[] = {
    {"wait", guarded<work_wait>, METH_O, "Wait, for some milliseconds or (0) the group's timeout."},
    {"is_completed", guarded_nullary<work_is_completed>, METH_NOARGS, "Whether it has ended."},
    {"error", guarded_nullary<work_error>, METH_NOARGS, "The text of its error, or None."},
    {"source", guarded_nullary<work_source>, METH_NOARGS, "The rank that a message is from."},
    {"then", guarded<work_then>, METH_O, "Call a function once it has ended."},
    {nullptr, nullptr, 0, nullptr}};

template <class Layout>
PyTypeObject plain_type(const char* name, newfunc make, destructor end, PyMethodDef* methods) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(Layout);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = make;
  t.tp_dealloc = end;
  t.tp_methods = methods;
  return t;
}
PyTypeObject group_type = plain_type<GroupObject>("facula._C._distributed.Group", group_new,
                                                  group_dealloc, group_methods);
PyTypeObject work_type =
    plain_type<WorkObject>("facula._C._distributed.Work", nullptr, work_dealloc, work_methods);

Object set_error_class(PyObject*, PyObject* type) {
  check_type(PyExceptionClass_Check(type), "expected a class of exceptions; got ", type_name(type));
  Py_XSETREF(error_class, Py_NewRef(type));
  return none();
}

Object set_detailed(PyObject*, PyObject* value) {
  detailed = value == Py_True;
  return none();
}

// Why an engine cannot be used here, or an empty text.
Object engine_why_not(PyObject*, PyObject* name) {
  return string(why_not(std::string(text_of(name))));
}

// The file in memory that has this process's last calls, or None.
Object flight_recorder_descriptor(PyObject*) {
  const FlightRecorder* recorder = FlightRecorder::get();
  return recorder ? integer(recorder->descriptor()) : none();
}

// Notes that an optimizer of this process has made a step.
Object count_step(PyObject*) {
  if (FlightRecorder* recorder = FlightRecorder::get()) recorder->count_step();
  return none();
}

// The rank and the number of ranks of an engine that starts its processes itself.
Object engine_world(PyObject*, PyObject* name) {
  const World world = world_of(std::string(text_of(name)));
  return Object::take(Py_BuildValue("ii", world.rank, world.size));
}

// (done, total): how far a loop of this process is.
Object set_progress(PyObject*, PyObject* args) {
  long long done = 0, total = 0;
  if (!PyArg_ParseTuple(args, "LL:set_progress", &done, &total)) throw_python();
  if (FlightRecorder* recorder = FlightRecorder::get()) recorder->set_progress(done, total);
  return none();
}

// The name that the processes of one program have in common.
Object set_job(PyObject*, PyObject* name) {
  if (FlightRecorder* recorder = FlightRecorder::get()) recorder->set_job(text_of(name));
  return none();
}

PyMethodDef functions[] = {
    {"set_detailed", guarded<set_detailed>, METH_O, "Whether ranks compare shapes too."},
    {"why_not", guarded<engine_why_not>, METH_O, "Why an engine cannot be used; empty if it can."},
    {"engine_world", guarded<engine_world>, METH_O, "(rank, size) of processes of mpirun."},
    {"count_step", guarded_nullary<count_step>, METH_NOARGS, "Note a step of an optimizer."},
    {"flight_recorder_descriptor", guarded_nullary<flight_recorder_descriptor>, METH_NOARGS,
     "The file in memory that has the last calls, or None."},
    {"set_job", guarded<set_job>, METH_O, "The name of the program that all ranks belong to."},
    {"set_progress", guarded<set_progress>, METH_VARARGS, "How far a loop is: done, total."},
    {"set_error_class", guarded<set_error_class>, METH_O, "The class of errors between ranks."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_distributed",
                          "Process groups.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

void add_distributed(PyObject* module) {
  const Object made = Object::take(PyModule_Create(&definition));
  ready_type(group_type);
  ready_type(work_type);
  checked(PyModule_AddObjectRef(made.get(), "Group", reinterpret_cast<PyObject*>(&group_type)));
  checked(PyModule_AddObjectRef(made.get(), "Work", reinterpret_cast<PyObject*>(&work_type)));
  add_submodule(module, "_distributed", made.get());
}

}  // namespace facula::python

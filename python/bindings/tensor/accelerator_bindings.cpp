// Functions for facula.accelerator: device counts, current devices, memory, properties.
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/device_allocator.h"
#include "core/device_table.h"
#include "ops/create/copy.h"
#include "ops/create/device_copy.h"

namespace facula::python {

Device accelerator_argument(PyObject* o) {
  const DeviceType type = accelerator_type();
  check(type != DeviceType::CPU, "Cannot access accelerator device when none is available.");
  if (o == Py_None) return with_index({type, -1});
  Device d;
  check_type(device_like(o, d), "expected a device, its text or an index; got ", type_name(o));
  check_value(d.is_accelerator(), "expected an accelerator; got ", str(d));
  return with_index(d);
}

namespace {

DeviceType kind_argument(PyObject* o) {
  Device d;
  check_type(device_like(o, d), "expected a device type (str); got ", type_name(o));
  return d.type;
}

Object accelerator_name(PyObject*, PyObject*) {
  const DeviceType type = accelerator_type();
  return type == DeviceType::CPU ? none() : string(std::string(str(Device{type, -1})));
}
Object count(PyObject*, PyObject* kind) { return integer(device_count(kind_argument(kind))); }
Object started(PyObject*, PyObject* kind) { return boolean(is_started(kind_argument(kind))); }
Object in_bad_fork(PyObject*, PyObject*) { return boolean(devices_lost_by_fork()); }

Object get_index(PyObject*, PyObject* kind) {
  return integer(current_device_index(kind_argument(kind)));
}
Object set_device(PyObject*, PyObject* device) {
  set_current_device(accelerator_argument(device));
  return none();
}
Object get_stream(PyObject*, PyObject* device) {
  return stream_object(current_stream(accelerator_argument(device)));
}
Object default_stream(PyObject*, PyObject* device) {
  return stream_object({accelerator_argument(device), 0});
}
Object set_stream(PyObject*, PyObject* stream) {
  check_type(is_stream(stream), "set_stream(): expected a Stream; got ", type_name(stream));
  const Stream s = stream_value(stream);
  set_current_device(s.device);
  set_current_stream(s);
  return none();
}
// _external_stream(handle, device)
Object external(PyObject*, PyObject* args, PyObject*) {
  PyObject *handle, *device;
  if (!PyArg_ParseTuple(args, "OO:_external_stream", &handle, &device)) throw_python();
  void* p = PyLong_AsVoidPtr(handle);
  if (!p && PyErr_Occurred()) throw_python();
  return stream_object(external_stream(accelerator_argument(device), p));
}
Object synchronize(PyObject*, PyObject* device) {
  const Device d = accelerator_argument(device);
  {
    const DropGil drop(true);
    synchronize_device(d);
  }
  return none();
}

// --- memory

void put(PyObject* dict, const std::string& key, int64_t value) {
  checked(PyDict_SetItemString(dict, key.c_str(), integer(value).get()));
}
void put_counter(PyObject* dict, const std::string& name, const PooledCounter& c) {
  constexpr const char* pools[] = {"all", "large_pool", "small_pool"};
  for (size_t i = 0; i < c.size(); ++i) {
    const std::string key = name + "." + pools[i] + ".";
    put(dict, key + "current", c[i].current);
    put(dict, key + "peak", c[i].peak);
    put(dict, key + "allocated", c[i].gained);
    put(dict, key + "freed", c[i].lost);
  }
}
Object memory_stats(PyObject*, PyObject* device) {
  const DeviceMemoryStats s = device_memory_stats(accelerator_argument(device));
  const Object d = Object::take(PyDict_New());
  put_counter(d.get(), "allocation", s.allocations);
  put_counter(d.get(), "segment", s.segments);
  put_counter(d.get(), "active", s.active);
  put_counter(d.get(), "inactive_split", s.inactive_split);
  put_counter(d.get(), "allocated_bytes", s.allocated_bytes);
  put_counter(d.get(), "reserved_bytes", s.reserved_bytes);
  put_counter(d.get(), "active_bytes", s.active_bytes);
  put_counter(d.get(), "inactive_split_bytes", s.inactive_split_bytes);
  put_counter(d.get(), "requested_bytes", s.requested_bytes);
  put(d.get(), "num_alloc_retries", s.retries);
  put(d.get(), "num_ooms", s.out_of_memory);
  put(d.get(), "num_device_alloc", s.device_allocations);
  put(d.get(), "num_device_free", s.device_releases);
  return d;
}
Object reset_peaks(PyObject*, PyObject* device) {
  reset_device_peaks(accelerator_argument(device));
  return none();
}
Object reset_totals(PyObject*, PyObject* device) {
  reset_device_totals(accelerator_argument(device));
  return none();
}
Object empty_cache(PyObject*, PyObject* kind) {
  const DeviceType type = kind_argument(kind);
  {
    const DropGil drop(true);
    empty_device_cache(type);
  }
  return none();
}
Object empty_pinned(PyObject*, PyObject*) {
  {
    const DropGil drop(true);
    empty_pinned_cache();
  }
  return none();
}
// _set_memory_fraction(fraction, device)
Object set_fraction(PyObject*, PyObject* args, PyObject*) {
  double fraction;
  PyObject* device;
  if (!PyArg_ParseTuple(args, "dO:_set_memory_fraction", &fraction, &device)) throw_python();
  set_device_memory_fraction(accelerator_argument(device), fraction);
  return none();
}
Object get_fraction(PyObject*, PyObject* device) {
  return Object::take(PyFloat_FromDouble(device_memory_fraction(accelerator_argument(device))));
}
Object memory_info(PyObject*, PyObject* device) {
  const MemoryInfo m = device_memory_info(accelerator_argument(device));
  return Object::take(
      Py_BuildValue("(nn)", static_cast<Py_ssize_t>(m.free), static_cast<Py_ssize_t>(m.total)));
}

Object properties(PyObject*, PyObject* device) {
  const Device d = accelerator_argument(device);
  const DeviceTable& t = running_table(d);
  needed_entry(t.get_properties, d, "get_properties");
  DeviceProperties p{};
  p.size = sizeof p;
  check_device_code(t.get_properties(d.index, &p), d, "get_properties");
  p.name[sizeof p.name - 1] = 0;
  return Object::take(
      Py_BuildValue("{s:s,s:K,s:i,s:i,s:i,s:O,s:y#}", "name", p.name, "total_memory",
                    static_cast<unsigned long long>(p.total_memory), "major", p.major, "minor",
                    p.minor, "multi_processor_count", p.multi_processor_count, "is_integrated",
                    p.is_integrated ? Py_True : Py_False, "uuid",
                    reinterpret_cast<const char*>(p.uuid), static_cast<Py_ssize_t>(sizeof p.uuid)));
}

// --- tensors

// _record_stream(tensor, stream)
Object record(PyObject*, PyObject* args, PyObject*) {
  PyObject *tensor, *stream;
  if (!PyArg_ParseTuple(args, "OO:record_stream", &tensor, &stream)) throw_python();
  check_type(is_tensor(tensor), "record_stream(): expected a Tensor; got ", type_name(tensor));
  check_type(is_stream(stream), "record_stream(): argument 's' must be a Stream, not ",
             type_name(stream));
  const Tensor& t = tensor_of(tensor);
  check(t.device().is_accelerator(), "record_stream(): expected a tensor of an accelerator; got ",
        str(t.device()));
  if (t->storage && t->storage->has_memory())
    record_stream(t.device(), t->storage->data(), stream_value(stream));
  return none();
}
Object pinned(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "is_pinned(): expected a Tensor; got ", type_name(o));
  const Tensor& t = tensor_of(o);
  return boolean(t.device().is_cpu() && t->storage && t->storage->has_memory() &&
                 is_pinned(t->storage->data()));
}
Object pin(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "pin_memory(): expected a Tensor; got ", type_name(o));
  const Tensor& t = tensor_of(o);
  check(t.device().is_cpu(), "cannot pin '", str(t.device()),
        "' memory: only dense CPU tensors can be pinned");
  return wrapped(ops::_to_copy(t, {}, {}, {}, true));
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int keywords = METH_VARARGS | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"_accelerator_name", guarded<accelerator_name>, METH_NOARGS, nullptr},
    {"_device_count", guarded<count>, METH_O, nullptr},
    {"_is_device_started", guarded<started>, METH_O, nullptr},
    {"_devices_lost_by_fork", guarded<in_bad_fork>, METH_NOARGS, nullptr},
    {"_current_device_index", guarded<get_index>, METH_O, nullptr},
    {"_set_current_device", guarded<set_device>, METH_O, nullptr},
    {"_current_stream", guarded<get_stream>, METH_O, nullptr},
    {"_default_stream", guarded<default_stream>, METH_O, nullptr},
    {"_set_current_stream", guarded<set_stream>, METH_O, nullptr},
    {"_external_stream", with_keywords(guarded_keywords<external>), keywords, nullptr},
    {"_synchronize_device", guarded<synchronize>, METH_O, nullptr},
    {"_device_memory_stats", guarded<memory_stats>, METH_O, nullptr},
    {"_reset_device_peaks", guarded<reset_peaks>, METH_O, nullptr},
    {"_reset_device_totals", guarded<reset_totals>, METH_O, nullptr},
    {"_empty_device_cache", guarded<empty_cache>, METH_O, nullptr},
    {"_empty_pinned_cache", guarded<empty_pinned>, METH_NOARGS, nullptr},
    {"_set_memory_fraction", with_keywords(guarded_keywords<set_fraction>), keywords, nullptr},
    {"_get_memory_fraction", guarded<get_fraction>, METH_O, nullptr},
    {"_device_memory_info", guarded<memory_info>, METH_O, nullptr},
    {"_device_properties", guarded<properties>, METH_O, nullptr},
    {"_record_stream", with_keywords(guarded_keywords<record>), keywords, nullptr},
    {"_is_pinned", guarded<pinned>, METH_O, nullptr},
    {"_pin_memory", guarded<pin>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_accelerator(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python

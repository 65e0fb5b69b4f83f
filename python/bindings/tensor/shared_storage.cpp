// Storages in shared memory, for facula.multiprocessing.
#include "core/shared_memory.h"

#include "bindings/tensor/types.h"
#include "dispatch/running_calls.h"

namespace facula::python {
namespace {

Storage& storage_argument(PyObject* o, const char* function) {
  check_type(is_storage(o), function, "() expected a storage; got ", type_name(o));
  return *storage_value(o);
}

Object new_shared(PyObject*, PyObject* args) {
  Py_ssize_t bytes;
  const char* prefix;
  if (!PyArg_ParseTuple(args, "ns:_new_shared_storage", &bytes, &prefix)) throw_python();
  check(bytes >= 0, "_new_shared(): expected a size that is not negative; got ", bytes);
  return storage_object(new_shared_storage(static_cast<size_t>(bytes), prefix));
}

Object share(PyObject*, PyObject* args) {
  PyObject* o;
  const char* prefix;
  if (!PyArg_ParseTuple(args, "Os:_share_storage", &o, &prefix)) throw_python();
  Storage& s = storage_argument(o, "_share_storage");
  const TensorChange change(s);
  share_storage(s, prefix);
  return none();
}

Object shared(PyObject*, PyObject* o) {
  return boolean(is_shared(storage_argument(o, "_storage_is_shared")));
}

Object block(PyObject*, PyObject* o) {
  const SharedBlock b = shared_block(storage_argument(o, "_shared_block"));
  return Object::take(Py_BuildValue(
      "Ksinn", static_cast<unsigned long long>(b.segment), b.name.c_str(), b.descriptor,
      static_cast<Py_ssize_t>(b.segment_bytes), static_cast<Py_ssize_t>(b.offset)));
}

Object begin_message(PyObject*, PyObject* o) {
  begin_shared_message(storage_argument(o, "_begin_shared_message"));
  return none();
}

Object map_block(PyObject*, PyObject* args) {
  unsigned long long segment;
  const char *name, *path;
  Py_ssize_t segment_bytes, offset, bytes;
  int descriptor, ends_message;
  if (!PyArg_ParseTuple(args, "Kssinnnp:_map_shared_storage", &segment, &name, &path, &descriptor,
                        &segment_bytes, &offset, &bytes, &ends_message))
    throw_python();
  check(segment_bytes >= 0 && offset >= 0 && bytes >= 0,
        "_map_shared_storage(): expected sizes that are not negative; got ", segment_bytes, ", ",
        offset, ", ", bytes);
  const SharedBlock b{segment, name, descriptor, static_cast<size_t>(segment_bytes),
                      static_cast<size_t>(offset)};
  return storage_object(map_shared_storage(b, path, static_cast<size_t>(bytes), ends_message != 0));
}

Object let_go_of_names(PyObject*, PyObject*) {
  let_go_of_shared_names();
  return none();
}

Object keep_segments(PyObject*, PyObject* keep) {
  keep_shared_segments(PyObject_IsTrue(keep) > 0);
  return none();
}

Object stats(PyObject*, PyObject*) {
  const SharedMemoryStats s = shared_memory_stats();
  return Object::take(Py_BuildValue("{sLsLsLsL}", "segments", static_cast<long long>(s.segments),
                                    "descriptors", static_cast<long long>(s.descriptors), "waiting",
                                    static_cast<long long>(s.waiting), "blocks",
                                    static_cast<long long>(s.blocks)));
}

PyMethodDef functions[] = {
    {"_new_shared_storage", guarded<new_shared>, METH_VARARGS, nullptr},
    {"_share_storage", guarded<share>, METH_VARARGS, nullptr},
    {"_storage_is_shared", guarded<shared>, METH_O, nullptr},
    {"_shared_block", guarded<block>, METH_O, nullptr},
    {"_begin_shared_message", guarded<begin_message>, METH_O, nullptr},
    {"_map_shared_storage", guarded<map_block>, METH_VARARGS, nullptr},
    {"_let_go_of_shared_names", guarded<let_go_of_names>, METH_NOARGS, nullptr},
    {"_keep_shared_segments", guarded<keep_segments>, METH_O, nullptr},
    {"_shared_memory_stats", guarded<stats>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_shared_storage(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python

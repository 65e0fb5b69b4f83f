// Stores: what python/facula/distributed/_store.py puts PyTorch's names on.
#include <memory>
#include <optional>

#include "bindings/distributed/store_bindings.h"
#include "bindings/module/package.h"
#include "distributed/file_store.h"
#include "distributed/hash_store.h"
#include "distributed/tcp_store.h"

namespace facula::python {
namespace {

using namespace distributed;

struct StoreObject {
  PyObject_HEAD std::shared_ptr<Store> store;
};
extern PyTypeObject store_type;

[[noreturn]] void raise_store_error(StoreError::Cause cause, const char* text) {
  constexpr const char* names[] = {"DistStoreError", "DistNetworkError", "QueueEmptyError"};
  const Object type = imported(in_package("distributed").c_str(), names[static_cast<int>(cause)]);
  PyErr_SetString(type.get(), text);
  throw_python();
}

// Runs f() without the GIL; its StoreErrors become Python's.
template <class F>
auto waiting(F&& f) {
  std::optional<StoreError> failed;
  try {
    const DropGil drop(true);
    return f();
  } catch (const StoreError& e) {
    failed = e;
  }
  raise_store_error(failed->cause(), failed->what());
}

Object new_store(std::shared_ptr<Store> store) {
  Object o = Object::take(store_type.tp_alloc(&store_type, 0));
  new (&reinterpret_cast<StoreObject*>(o.get())->store) std::shared_ptr(std::move(store));
  return o;
}

void store_dealloc(PyObject* o) {
  auto& store = reinterpret_cast<StoreObject*>(o)->store;
  if (may_take_gil()) {
    const DropGil drop(true);  // a server's thread is waited for
    store.reset();
  } else {
    new std::shared_ptr<Store>(std::move(store));
  }
  Py_TYPE(o)->tp_free(o);
}

Object bytes_object(const Bytes& b) {
  return Object::take(PyBytes_FromStringAndSize(b.data(), static_cast<Py_ssize_t>(b.size())));
}

std::vector<Bytes> bytes_list(PyObject* list) {
  std::vector<Bytes> items;
  read_items(list, [&](size_t, PyObject* item) {
    char* text = nullptr;
    Py_ssize_t n = 0;
    checked(PyBytes_AsStringAndSize(item, &text, &n));
    items.emplace_back(text, static_cast<size_t>(n));
    return true;
  });
  return items;
}

// run(call, keys, values, number, timeout_ms) -> (status, number, values)
Object store_run(PyObject* o, PyObject* args) {
  int call = 0;
  PyObject *keys = nullptr, *values = nullptr;
  long long number = 0, timeout = 0;
  if (!PyArg_ParseTuple(args, "iO!O!LL:run", &call, &PyList_Type, &keys, &PyList_Type, &values,
                        &number, &timeout))
    throw_python();
  check_value(call >= 1 && call <= static_cast<int>(StoreCall::WaitCount),
              "run(): expected the number of a call; got ", call);
  const StoreRequest request{static_cast<StoreCall>(call), number, timeout, bytes_list(keys),
                             bytes_list(values)};
  const auto store = reinterpret_cast<StoreObject*>(o)->store;
  const StoreReply reply = waiting([&] { return store->run(request); });
  const Object list = Object::take(PyList_New(0));
  for (const auto& value : reply.values)
    checked(PyList_Append(list.get(), bytes_object(value).get()));
  return Object::take(Py_BuildValue("iLO", static_cast<int>(reply.status),
                                    static_cast<long long>(reply.number), list.get()));
}

Object store_port(PyObject* o) {
  const auto* tcp = dynamic_cast<TcpStore*>(reinterpret_cast<StoreObject*>(o)->store.get());
  return integer(tcp ? tcp->port() : 0);
}

PyMethodDef store_methods[] = {
    {"run", guarded<store_run>, METH_VARARGS, "Answer a request: (status, number, values)."},
    {"port", guarded_nullary<store_port>, METH_NOARGS, "The port of its server, or 0."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject plain_store_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._store.Store";
  t.tp_basicsize = sizeof(StoreObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_dealloc = store_dealloc;
  t.tp_methods = store_methods;
  return t;
}
PyTypeObject store_type = plain_store_type();

Object hash_store(PyObject*) { return new_store(std::make_shared<HashStore>()); }

// file_store(path, world_size)
Object file_store(PyObject*, PyObject* args) {
  const char* path = nullptr;
  long long world_size = 0;
  if (!PyArg_ParseTuple(args, "sL:file_store", &path, &world_size)) throw_python();
  const std::string text(path);
  return new_store(waiting([&] { return std::make_shared<FileStore>(text, world_size); }));
}

// tcp_store(host, port, is_server, shares, listening descriptor or -1, timeout_ms)
Object tcp_store(PyObject*, PyObject* args) {
  const char* host = nullptr;
  int port = 0, is_server = 0, shares = 0, listening = -1;
  long long timeout = 0;
  if (!PyArg_ParseTuple(args, "sippiL:tcp_store", &host, &port, &is_server, &shares, &listening,
                        &timeout))
    throw_python();
  check_value(port >= 0 && port <= 65535, "TCPStore(): expected a port from 0 to 65535; got ",
              port);
  const std::string name(host);
  return new_store(waiting([&] {
    auto server = is_server ? tcp_server(port, listening, shares) : nullptr;
    return std::make_shared<TcpStore>(name, port, Milliseconds(timeout), std::move(server));
  }));
}

PyMethodDef functions[] = {
    {"hash_store", guarded_nullary<hash_store>, METH_NOARGS, "A store of this process."},
    {"file_store", guarded<file_store>, METH_VARARGS, "A store that is a file."},
    {"tcp_store", guarded<tcp_store>, METH_VARARGS, "A store on a server."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_store", "Stores.", -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

void add_stores(PyObject* module) {
  const Object made = Object::take(PyModule_Create(&definition));
  ready_type(store_type);
  checked(PyModule_AddObjectRef(made.get(), "Store", reinterpret_cast<PyObject*>(&store_type)));
  add_submodule(module, "_store", made.get());
}

}  // namespace facula::python

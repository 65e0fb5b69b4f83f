// What a stored program has read of Python's objects, and whether all of it still holds.
//
// CPython 3.11 numbers the states of every dict and class, so that one comparison says that nothing
// in it has changed. Where a number differs, the names that were read are looked up again: a global
// counter that changes at each call costs a look-up, and no more.
#pragma once
#include <vector>

#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// What Python and shape rules can ask a tensor without its elements.
class TensorFacts {
 public:
  explicit TensorFacts(const TensorImpl& t);
  bool hold(const TensorImpl& t) const;
  // Whether the tensor is one that such facts describe: strided, with memory, of no extension.
  static bool describe(const TensorImpl& t);

 private:
  LayerSet layers_;
  DType dtype_;
  Device device_;
  uint8_t ndim_;
  uint8_t bits_;
  SmallVector<int64_t, 8> geometry_;
};

// How things stand: as they were; with other numbers or texts, which may come back; or with other
// objects.
enum class Standing : uint8_t { Same, Differs, Gone };

class Watches {
 public:
  Watches() = default;
  Watches(const Watches&) = delete;

  // The class of an object and, where it has one, its dict.
  void add_instance(PyObject* o);
  // Code, defaults and names of defaults of a function.
  void add_function(PyObject* function);
  void add_cell(PyObject* cell);
  // An item of a dict, or that there is none.
  void add_item(PyObject* dict, PyObject* key);
  // All items of a dict and their order.
  void add_dict(PyObject* dict);
  // What a class or its bases have under a name.
  void add_name(PyObject* type, PyObject* name);
  // What a class itself has under a name, and the order of its bases.
  void add_own_name(PyObject* type, PyObject* name);
  void add_list(PyObject* list);
  // A tensor by its object; returns its number.
  size_t add_tensor(PyObject* tensor);
  PyObject* tensor(size_t i) const { return tensors_[i].object; }
  size_t tensors() const { return tensors_.size(); }

  // Whether everything is as it was. Runs no code of Python's.
  Standing look();
  size_t size() const;
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Word {
    PyObject* const* place;
    PyObject* expected;
  };
  struct Item {
    PyObject* key;
    PyObject* expected;  // null: there is none
  };
  struct Dict {
    PyDictObject* dict;
    uint64_t version;
    bool whole;
    std::vector<Item> items;
    Standing look();
  };
  struct Class {
    PyTypeObject* type;
    unsigned version;
    std::vector<Item> names;
    bool holds();
  };
  struct List {
    PyListObject* list;
    std::vector<PyObject*> items;
    bool holds() const;
  };
  struct HeldTensor {
    PyObject* object;
    TensorFacts facts;
  };
  void keep(PyObject* o);
  void add_word(PyObject* const* place);
  Dict& dict_of(PyObject* dict);

  std::vector<Word> words_;
  std::vector<Dict> dicts_;
  std::vector<Class> classes_;
  std::vector<List> lists_;
  std::vector<HeldTensor> tensors_;
  std::vector<Object> kept_;
};

}  // namespace facula::python

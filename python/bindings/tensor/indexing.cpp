// Indexing: translates x[...] to calls of select, slice, unsqueeze and index.
#include <algorithm>

#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/inline_vector.h"

namespace facula::python {
namespace {

NamedOperator select_op("select", "int"), slice_op("slice", "Tensor"), unsqueeze_op("unsqueeze"),
    alias_op("alias"), index_op("index", "Tensor"), index_put_op("index_put_"), copy_op("copy_"),
    fill_op("fill_", "Scalar"), masked_fill_op("masked_fill_", "Scalar"), view_op("view");

Tensor unsqueezed(const Tensor& t, int64_t dim) {
  return unsqueeze_op.tensor({pack(t), pack(dim)});
}

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

bool is_index_number(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  return !PyBool_Check(o) && !is_tensor(o) && !is_array(o) && PyIndex_Check(o);
}

// Converts a list or array in an index to a tensor; undefined for other objects.
Tensor as_index_tensor(PyObject* o) {
  if (PySlice_Check(o) || PyLong_Check(o) || o == Py_None || o == Py_Ellipsis) return {};
  if (is_tensor(o)) return tensor_of(o);
  if (is_array(o)) return index_tensor(o);
  if (!is_index_number(o) && PySequence_Check(o)) return index_tensor(o);
  return {};
}

// Some sequences are treated like a tuple, as NumPy once did: short ones with an element that is a
// sequence, tensor, slice, None or ellipsis. Returns that tuple, or null for other objects.
Object tuple_of_sequence(PyObject* index) {
  constexpr Py_ssize_t most = 32;
  if (PyTuple_Check(index) || is_tensor(index) || is_array(index)) return {};
  if (PyUnicode_Check(index) || !PySequence_Check(index)) return {};
  const Py_ssize_t n = PySequence_Size(index);
  if (n < 0) PyErr_Clear();
  if (n < 0 || n >= most) return {};
  Object items = Object::take(PySequence_Tuple(index));
  PyObject** const all = PySequence_Fast_ITEMS(items.get());
  const bool stands = std::any_of(all, all + PyTuple_GET_SIZE(items.get()), [](PyObject* o) {
    return is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis ||
           o == Py_None;
  });
  if (!stands) return {};
  const char* text =
      "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] "
      "instead of x[seq], or x[tensor(seq)] where the sequence means a tensor";
  warn_user(text);
  return items;
}

// How many dimensions an item of an index consumes; -1 for an ellipsis and items that consume none.
int64_t dims_used(PyObject* o, const Tensor& as_tensor) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (as_tensor.defined()) return is_mask(as_tensor) ? as_tensor.dim() : 1;
  return 1;
}

struct Bounds {
  int64_t start, stop, step;
};

int64_t slice_bound(PyObject* o) {
  int64_t v = 0;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    v = long_value(o, overflow);
    return overflow ? PyNumber_AsSsize_t(o, nullptr) : v;  // clips to the range of Py_ssize_t
  }
  if (is_tensor(o)) {
    check_type(read_int(o, v),
               "a slice bound must be an integer, or a tensor that holds one integer; got ",
               type_name(o));
    return v;
  }
  Py_ssize_t i = PyNumber_AsSsize_t(o, nullptr);
  if (i == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw_type("slice indices must be integers or None or have an __index__ method");
  }
  return i;
}

Bounds bounds_of(PyObject* o) {
  const auto* s = reinterpret_cast<PySliceObject*>(o);
  Bounds b{0, INT64_MAX, 1};
  if (s->step != Py_None) b.step = slice_bound(s->step);
  check_value(b.step != 0, "slice step cannot be zero");
  check_value(b.step > 0, "step must be greater than zero");
  if (s->start != Py_None) b.start = slice_bound(s->start);
  if (s->stop != Py_None) b.stop = slice_bound(s->stop);
  return b;
}

bool takes_all(const Bounds& b, int64_t size) {
  return b.start == 0 && b.step == 1 && b.stop >= size;
}

Tensor sliced(const Tensor& t, int64_t dim, const Bounds& b) {
  if (takes_all(b, t.size(dim))) return t;
  return slice_op.tensor({pack(t), pack(dim), pack(b.start), pack(b.stop), pack(b.step)});
}

Tensor selected(const Tensor& t, int64_t dim, int64_t i, int64_t shown_dim) {
  check_index(t.dim() > 0, "invalid index of a 0-dim tensor: its number is read by item()");
  const int64_t n = t.size(dim);
  check_index(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", shown_dim,
              " with size ", n);
  return select_op.tensor({pack(t), pack(dim), pack(i)});
}

// The index tensor for a bool: True keeps the new dimension, False makes it empty.
Tensor truth_index(bool b) {
  const int64_t n = b ? 1 : 0;
  Tensor t = empty_tensor(IntSpan(&n, 1), DType::Int64);
  if (b) *t.data<int64_t>() = 0;
  return t;
}

// Processes the items of an index: applies those that make views, and collects index tensors.
class Index {
 public:
  Index(const Tensor& t, PyObject* given) : t_(t), tuple_(tuple_of_sequence(given)) {
    PyObject* const index = tuple_ ? tuple_.get() : given;
    if (PyTuple_Check(index)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) add(PyTuple_GET_ITEM(index, i));
    } else {
      add(index);
    }
    for (const Item& item : items_)
      check_index(t.dim() > 0 || !PySlice_Check(item.object), "a 0-dim tensor cannot be sliced");
    check_index(used_ <= t.dim(), "too many indices for tensor of dimension ", t.dim());
    for (const Item& item : items_) apply(item);
    if (gathers_) indices_.resize(places_);
  }

  const Tensor& view() const { return t_; }
  bool gathers() const { return gathers_; }
  // The Tensor?[] argument of index(); undefined for dimensions that are not indexed.
  const std::vector<Tensor>& indices() const { return indices_; }

 private:
  struct Item {
    PyObject* object;
    Tensor tensor;
  };

  void add(PyObject* o) {
    Item item{o, as_index_tensor(o)};
    used_ += dims_used(o, item.tensor);
    items_.push_back(std::move(item));
  }

  void apply(const Item& item) {
    PyObject* o = item.object;
    if (o == Py_None) return insert_dim();
    if (o == Py_Ellipsis) return skip(t_.dim() - dim_ - remaining(item));
    if (PyBool_Check(o)) return truth(o == Py_True);
    if (item.tensor.defined()) return tensor(item.tensor);
    if (PySlice_Check(o)) return slice(o);
    if (is_index_number(o)) return number(o);
    throw Error(
        ErrorKind::Index,
        "an index must be an integer, a slice, an ellipsis, None, or a tensor or sequence of "
        "integers or bools; got ",
        type_name(o));
  }

  // How many dimensions the items after this one consume.
  int64_t remaining(const Item& from) const {
    int64_t n = 0;
    for (const Item* i = &from + 1; i < items_.end(); ++i) n += dims_used(i->object, i->tensor);
    return n;
  }

  void insert_dim() {
    t_ = unsqueezed(t_, dim_);
    skip(1);
  }
  void skip(int64_t n) {
    places_ += static_cast<size_t>(n);
    dim_ += n;
    shown_dim_ += n;
  }
  void slice(PyObject* o) {
    t_ = sliced(t_, dim_, bounds_of(o));
    skip(1);
  }
  void number(PyObject* o) {
    int64_t i = 0;
    check_index(
        read_int(o, i),
        "an index must be an integer, a slice, an ellipsis, None, or a tensor or sequence of "
        "integers or bools; got ",
        type_name(o));
    t_ = selected(t_, dim_, i, shown_dim_++);
  }
  void truth(bool b) {
    t_ = unsqueezed(t_, dim_);
    gather(truth_index(b), 1);
  }
  void tensor(const Tensor& index) {
    const bool integral = is_integral(index.dtype(), true);
    check_index(integral, "an index tensor must have dtype int64, int32, uint8 or bool; got ",
                name(index.dtype()));
    if (index.dim() > 0) return gather(index, is_mask(index) ? index.dim() : 1);
    if (is_mask(index)) return truth(item_of(index).to<bool>());
    if (needs_operator(index)) return gather(index, 1);
    t_ = selected(t_, dim_, item_of(index).to<int64_t>(), shown_dim_++);
  }
  void gather(const Tensor& index, int64_t dims) {
    indices_.resize(places_++);
    indices_.push_back(index);
    gathers_ = true;
    dim_ += dims;
    shown_dim_ += dims;
  }

  Tensor t_;
  const Object tuple_;
  InlineVector<Item, 4> items_;
  std::vector<Tensor> indices_;
  size_t places_ = 0;  // the length of indices_ with undefined ones at the end
  int64_t dim_ = 0, shown_dim_ = 0, used_ = 0;
  bool gathers_ = false;
};

bool is_number_or_slice(PyObject* o) { return PyLong_CheckExact(o) || PySlice_Check(o); }

// Whether the index has only ints and slices, the most common case, which has no overrides.
bool is_plain_index(PyObject* index) {
  if (is_number_or_slice(index)) return true;
  if (!PyTuple_CheckExact(index)) return false;
  PyObject** items = PySequence_Fast_ITEMS(index);
  return std::all_of(items, items + PyTuple_GET_SIZE(index), is_number_or_slice);
}

// Fast path for a tuple of ints and slices.
Object get_plain(const Tensor& t, PyObject* tuple) {
  const int64_t n = PyTuple_GET_SIZE(tuple);
  check_index(n <= t.dim(), "too many indices for tensor of dimension ", t.dim());
  Tensor made;
  int64_t dim = 0;
  for (int64_t k = 0; k < n; ++k) {
    PyObject* o = PyTuple_GET_ITEM(tuple, k);
    const Tensor& from = made.defined() ? made : t;
    if (!PySlice_Check(o)) {
      int64_t i = 0;
      read_int(o, i);
      made = selected(from, dim, i, k);
    } else if (const Bounds b = bounds_of(o); !takes_all(b, from.size(dim++))) {
      made = sliced(from, dim - 1, b);
    }
  }
  return wrapped(made.defined() ? made : alias_op.tensor({pack(t)}));
}

// a[1]
Object get_number(const Tensor& t, PyObject* index) {
  int overflow = 0;
  int64_t i = long_value(index, overflow);
  if (overflow) read_int(index, i);  // raises
  return wrapped(selected(t, 0, i, 0));
}

Object get(PyObject* self, PyObject* index) {
  const Tensor& t = tensor_of(self);
  if (is_index_number(index)) {
    int64_t i = 0;
    if (read_int(index, i)) return wrapped(selected(t, 0, i, 0));
  }
  const Index parsed(t, index);
  if (parsed.gathers())
    return wrapped(
        index_op.tensor({pack(parsed.view()), pack(std::span<const Tensor>(parsed.indices()))}));
  // Returns a new object even if the index selects everything.
  if (parsed.view().is_same(t)) return wrapped(alias_op.tensor({pack(t)}));
  return wrapped(parsed.view());
}

// --- assignment

void copy_into(const Tensor& to, const Tensor& from) {
  Results<1> r;
  // Leading dimensions of size 1 are dropped.
  IntVec sizes(from.sizes());
  while (sizes.size() > static_cast<size_t>(to.dim()) && sizes[0] == 1) sizes.erase(0);
  Tensor fitted = from;
  if (sizes.size() != static_cast<size_t>(from.dim()))
    fitted = view_op.tensor({pack(from), pack(IntSpan(sizes))});
  copy_op.run({pack(to), pack(fitted)}, r.slots);
}

Tensor value_tensor(PyObject* value, const Tensor& like) {
  if (is_tensor(value)) return tensor_of(value);
  NewTensorOptions options;
  options.dtype = like.dtype();
  options.device = like.device();
  options.has_device = true;
  if (is_number(value)) return tensor_from(value, options);
  if (is_array(value)) return tensor_over_array(value, false);
  throw_type(concat("can't assign a ", type_name(value), " to a torch.",
                    info(like.dtype()).legacy_name, "Tensor"));
}

// If the index is a single mask, returns it in a shape that broadcasts with the tensor; else
// undefined.
Tensor sole_mask(const Index& index) {
  const std::vector<Tensor>& all = index.indices();
  const auto at = std::ranges::find_if(all, &Tensor::defined);
  if (at == all.end() || at->dtype() != DType::Bool || at + 1 != all.end()) return {};
  const int64_t first = at - all.begin(), dims = at->dim();
  const IntSpan sizes = index.view().sizes();
  if (first + dims > static_cast<int64_t>(sizes.size())) return {};
  if (!same_sizes(at->sizes(), sizes.subspan(static_cast<size_t>(first), at->sizes().size())))
    return {};
  IntVec shape(at->sizes());
  while (first + static_cast<int64_t>(shape.size()) < index.view().dim()) shape.push_back(1);
  return view_op.tensor({pack(*at), pack(IntSpan(shape))});
}

// Sets the selected elements to a number. False if a tensor is needed for that.
bool put_number(const Index& index, const Value& number) {
  const Tensor& to = index.view();
  Results<1> r;
  if (!index.gathers()) {
    fill_op.run({pack(to), number}, r.slots);
    return true;
  }
  const Tensor mask = sole_mask(index);
  if (mask.defined()) masked_fill_op.run({pack(to), pack(mask), number}, r.slots);
  return mask.defined();
}

void put(const Index& index, PyObject* value) {
  const Tensor& to = index.view();
  Arena arena;
  Value number;
  if (!is_tensor(value) && read_number(value, number, arena) && put_number(index, number)) return;
  if (!index.gathers()) return copy_into(to, value_tensor(value, to));
  Tensor from = value_tensor(value, to);
  IntVec sizes(from.sizes());
  while (!sizes.empty() && sizes[0] == 1) sizes.erase(0);
  if (sizes.size() != static_cast<size_t>(from.dim()))
    from = view_op.tensor({pack(from), pack(IntSpan(sizes))});
  if (from.device() == to.device() && from.dtype() != to.dtype() && !is_tensor(value)) {
    static NamedOperator to_copy("_to_copy");
    from = to_copy.tensor({pack(from), pack(to.dtype())});
  }
  Results<1> r;
  index_put_op.run({pack(to), pack(std::span<const Tensor>(index.indices())), pack(from)}, r.slots);
}

// Collects the objects with overrides among the tensor, the items of its index, and the value,
// which may be null.
std::vector<Object> overrides_of(PyObject* self, PyObject* index, PyObject* value) {
  std::vector<Object> found;
  note_overloaded(self, found);
  note_overloaded(index, found);
  if (PyTuple_CheckExact(index))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i)
      note_overloaded(PyTuple_GET_ITEM(index, i), found);
  if (value) note_overloaded(value, found);
  return found;
}

PyObject* subscript(PyObject* self, PyObject* index) {
  return guard([&] {
    if (is_plain_tensor(self) && is_plain_index(index) && !function_mode_active()) [[likely]] {
      const Tensor& t = tensor_of(self);
      if (PyLong_CheckExact(index)) return get_number(t, index).leak();
      const bool dims = PyTuple_CheckExact(index) && t.dim() > 0;
      return dims ? get_plain(t, index).leak() : get(self, index).leak();
    }
    const std::vector<Object> overloaded = overrides_of(self, index, nullptr);
    if (!overloaded.empty() || function_mode_active()) {
      const Object f = attribute(reinterpret_cast<PyObject*>(tensor_type), "__getitem__");
      const Object args = Object::take(PyTuple_Pack(2, self, index));
      return call_overrides(f.get(), overloaded, args.get(), nullptr).leak();
    }
    return get(self, index).leak();
  });
}

int assign(PyObject* self, PyObject* index, PyObject* value) {
  return guard_status([&] {
    check_type(value != nullptr, "Tensor does not support deleting items");
    const std::vector<Object> overloaded = overrides_of(self, index, value);
    if (!overloaded.empty() || function_mode_active()) {
      const Object f = attribute(reinterpret_cast<PyObject*>(tensor_type), "__setitem__");
      const Object args = Object::take(PyTuple_Pack(3, self, index, value));
      call_overrides(f.get(), overloaded, args.get(), nullptr);
      return;
    }
    put(Index(tensor_of(self), index), value);
  });
}

Py_ssize_t length(PyObject* self) {
  Py_ssize_t n = -1;
  guard_status([&] {
    if (Object r = self_override(self, "__len__")) {
      const Py_ssize_t given = PyNumber_AsSsize_t(r.get(), PyExc_OverflowError);
      if (given == -1 && PyErr_Occurred()) throw_python();
      check_value(given >= 0, "__len__() should return >= 0");
      n = given;
      return;
    }
    const Tensor& t = tensor_of(self);
    check_type(t.dim() > 0, "len() of a 0-d tensor");
    n = static_cast<Py_ssize_t>(t.sizes()[0]);
  });
  return n;
}

int contains(PyObject* self, PyObject* element) {
  int found = -1;
  guard_status([&] {
    const Object args = Object::take(PyTuple_Pack(1, element));
    if (Object r = self_override(self, "__contains__", args.get())) {
      checked(found = PyObject_IsTrue(r.get()));
      return;
    }
    check(is_tensor(element) || is_number(element),
          "Tensor.__contains__ only supports Tensor or scalar, but you "
          "passed in a ",
          text_of(Object::take(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(element)))).get()),
          ".");
    const Object equal = Object::take(PyObject_RichCompare(self, element, Py_EQ));
    const Object any = called(equal.get(), "any");
    checked(found = PyObject_IsTrue(any.get()));
  });
  return found;
}

// Access by position for the sequence protocol.
PyObject* item_at(PyObject* self, Py_ssize_t i) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    return wrap(selected(t, 0, i, 0));
  });
}

}  // namespace

PyMappingMethods tensor_mapping = {length, subscript, assign};
PySequenceMethods tensor_sequence = [] {
  PySequenceMethods s = {};
  s.sq_length = length;
  s.sq_item = item_at;
  s.sq_contains = contains;
  return s;
}();

PyObject* tensor_iter(PyObject* self) {
  return guard([&] {
    if (Object r = self_override(self, "__iter__")) return r.leak();
    static NamedOperator unbind("unbind", "int");
    const Tensor& t = tensor_of(self);
    check_type(t.dim() > 0, "iteration over a 0-d tensor");
    Results<1> r;
    unbind.run({pack(t), pack(int64_t{0})}, r.slots);
    const Object list = value_object(r.slots[0]);
    return checked(PyObject_GetIter(list.get()));
  });
}

}  // namespace facula::python

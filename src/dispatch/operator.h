// Operator: one callable variant of a record, with the kernels and layer rules registered for it.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/record.h"
#include "dispatch/schema.h"
#include "dispatch/value.h"

namespace facula {

// A registered kernel or layer rule. Never freed, since a call on another thread may be using it.
struct Slot {
#ifdef FACULA_RECORD_VARIANT
  uint64_t of_a_later_build = 0;
#endif
  KernelFn function = nullptr;
  void* context = nullptr;
  // Whether the call path makes, casts, resizes and checks its results by the record's shape rule.
  bool structured = false;
};

struct LayoutKernels;  // dispatch/layout.h

enum class Variant : uint8_t { Base, Inplace, Out, Functional };
// Which operator of another record: OpRecord::copy_form or view_form.
enum class Partner : uint8_t { Copy, View };

// What the call path needs to know of a schema, prepared for fast reading.
struct OpInfo {
  Schema schema;          // of this variant
  uint8_t args = 0;       // arguments of this variant
  uint8_t base_args = 0;  // without those of out=
  uint8_t results = 0;
  // Sets of arguments, with one bit for each.
  uint32_t mutated = 0;
  uint32_t tensor_args = 0;                               // single tensors
  uint32_t list_args = 0;                                 // lists of tensors
  int8_t alias_of[8] = {-1, -1, -1, -1, -1, -1, -1, -1};  // the argument that each result aliases
  bool view = false;                 // a result aliases an argument that is not written
  bool multi_view = false;           // the result is a list of views
  bool reads_strides = false;        // its result or gradient depends on strides
  bool implicit = false;             // a composite that runs above autograd
  bool numbers_stand_apart = false;  // nodes have no edge for a number (OpRecord::number_nodes)
  int8_t device_arg = -1, dtype_arg = -1, layout_arg = -1;
  // The record's derivatives, with names resolved to positions.
  bool differentiable = false;
  int8_t derivative_of[32];        // the row of OpRecord::derivatives for each argument, or -1
  uint32_t saved_args[4] = {};     // one set for each row
  uint32_t saved_results[4] = {};  // one set for each row
  uint32_t differentiable_results = 0;
  // Hashes of the result names in the record's own schema, which derivatives refer to.
  uint8_t own_results = 0;
  uint32_t result_names[8] = {};
};

struct Operator {
  constexpr Operator(const OpRecord* r, Variant v) : record(r), variant(v) {}
  Operator(const Operator&) = delete;

  const OpRecord* const record;
  const Variant variant;
  // Layers that every call passes, even if no tensor asks for it, because a kernel was registered.
  std::atomic<uint32_t> own_layers{0};
  std::atomic<const OpInfo*> info_{nullptr};
  std::atomic<const Slot*> slots[layer_count] = {};
  std::atomic<const Slot*> composite_slot{nullptr};
  std::atomic<const LayoutKernels*> layout_kernels{nullptr};  // by kind of tensor; mostly none
  std::atomic<void*> python_callable{nullptr};                // of the binding
  // Caches of variant_of() and partner(); `absent_operator` means that there is none.
  mutable std::atomic<const Operator*> variants_[4] = {};
  mutable std::atomic<const Operator*> partners_[2] = {};
  mutable std::atomic<int> node_number{-1};  // the number in the name of its nodes, once known

  const OpInfo& info() const {
    const OpInfo* i = info_.load(std::memory_order_acquire);
    return i ? *i : make_info();
  }
  const OpInfo& make_info() const;  // parses the schema; the same object for every caller
  std::string name() const;         // "aten::add.Tensor"
  // The other variants of the same record, or null.
  const Operator* variant_of(Variant v) const;
  // The partner that the record names, if it takes the same arguments, or null.
  const Operator* partner(Partner p) const;
};
// The variant that writes nothing and returns what `op` would write into its first argument or into
// out=. Null if there is none, or if `op` writes nothing.
const Operator* pure_form(const Operator& op);

// --- the table of all operators

struct OperatorEntry {
  std::string_view name;      // "add"
  std::string_view overload;  // "Tensor"
  Operator* op;
};
// Built-in operators sorted by name; generated.
std::span<const OperatorEntry> builtin_operators();

// "aten", "add", "Tensor" -> operator or null. Includes those made at run time.
Operator* find_operator(std::string_view ns, std::string_view name, std::string_view overload);
// All overloads of a name, in the order in which the Python argument parser tries them.
std::vector<Operator*> find_overloads(std::string_view ns, std::string_view name);
std::vector<std::string> runtime_operator_names(std::string_view ns);

// Makes an operator at run time from a full schema with namespace. RuntimeError if the schema is
// malformed or its name is taken. `like` gives the rest of the record; only `like->size` bytes of
// it are read, since it may come from another build. Its forms `inplace` and `out` make those
// variants too. Operators are never freed.
Operator& define_operator(std::string_view schema, const OpRecord* like = nullptr);
// Removes the names of such an operator and its variants; running calls are not affected.
void undefine_operator(Operator& op);

// Registers a kernel or rule for one operator at a layer; returns a handle for take_out. The latest
// registration is used; removing it restores the one before.
struct Registration {
  Operator* op = nullptr;
  Layer layer = Layer::CPU;
  bool composite = false;
  bool structured = false;
  const Slot* slot = nullptr;
  std::atomic<const Slot*>* where = nullptr;
};
Registration put_in(Operator& op, Layer layer, KernelFn function, void* context);
// Registers a kernel at a layer above the backends, used only for calls on one backend.
Registration put_in_for(Operator& op, Layer layer, Layer backend, KernelFn function, void* context);
// Registers a kernel on one backend that fills results which the call path has made. One kernel
// serves the operator and its in-place, out= and functional variants: the call path runs the
// record's shape rule, allocates or resizes the results, casts dtypes and checks overlaps.
// RuntimeError for a record without a shape rule.
Registration put_in_structured(Operator& op, Layer backend, KernelFn function, void* context);
Registration put_in_composite(Operator& op, KernelFn function, void* context);
void take_out(const Registration& r);
// The kernel that was registered at a layer for calls on one backend, or null.
const Slot* put_in_at(const Operator& op, Layer layer, Layer backend);

// Sets the fallback of a backend, which runs for operators without a kernel there; null removes it.
void set_backend_fallback(Layer backend, KernelFn function, void* context);

}  // namespace facula

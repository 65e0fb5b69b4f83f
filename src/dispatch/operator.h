// Operator: one callable variant of a record, with the kernels and layer rules in force for it.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/record.h"
#include "dispatch/schema.h"
#include "dispatch/value.h"

namespace facula {

// A kernel or layer rule in force. Never freed once published, since calls may be under way.
struct Slot {
#ifdef FACULA_RECORD_VARIANT
  uint64_t of_a_later_build = 0;
#endif
  KernelFn function = nullptr;
  void* context = nullptr;
  // The call path makes, casts, resizes and checks its results by the record's shape rule.
  bool structured = false;
};

struct LayoutKernels;  // dispatch/layout.h

enum class Variant : uint8_t { Base, Inplace, Out, Functional };
// Operators of another record that a record names.
enum class Partner : uint8_t { Copy, View };

// What the call path needs of a schema, in a form that costs nothing to read.
struct OpInfo {
  Schema schema;          // of this variant
  uint8_t args = 0;       // arguments of this variant
  uint8_t base_args = 0;  // without those of out=
  uint8_t results = 0;
  uint32_t mutated = 0;                                   // bit per argument
  uint32_t tensor_args = 0;                               // single tensors, bit per argument
  uint32_t list_args = 0;                                 // tensor lists
  int8_t alias_of[8] = {-1, -1, -1, -1, -1, -1, -1, -1};  // result -> argument it aliases
  bool view = false;                 // a result aliases an argument without writing
  bool multi_view = false;           // a list of views
  bool reads_strides = false;        // means another thing for other strides, without being a view
  bool implicit = false;             // expanded above autograd
  bool numbers_stand_apart = false;  // nodes have no edge for a number (OpRecord::number_nodes)
  int8_t device_arg = -1, dtype_arg = -1, layout_arg = -1;
  // Derivatives, resolved to positions.
  bool differentiable = false;
  int8_t derivative_of[32];        // argument -> row of the table, or -1
  uint32_t saved_args[4] = {};     // per row
  uint32_t saved_results[4] = {};  // per row
  uint32_t differentiable_results = 0;
  // Results of the record's own schema, as derivatives name them: hashes.
  uint8_t own_results = 0;
  uint32_t result_names[8] = {};
};

struct Operator {
  constexpr Operator(const OpRecord* r, Variant v) : record(r), variant(v) {}
  Operator(const Operator&) = delete;

  const OpRecord* const record;
  const Variant variant;
  // Layers that calls pass whatever their tensors say: where somebody put in a kernel for all.
  std::atomic<uint32_t> own_layers{0};
  std::atomic<const OpInfo*> info_{nullptr};
  std::atomic<const Slot*> slots[layer_count] = {};
  std::atomic<const Slot*> composite_slot{nullptr};
  std::atomic<const LayoutKernels*> layout_kernels{nullptr};  // by kind of tensor; mostly none
  std::atomic<void*> python_callable{nullptr};                // of the binding
  // Those that were asked for; `absent_operator` where there is none.
  mutable std::atomic<const Operator*> variants_[4] = {};
  mutable std::atomic<const Operator*> partners_[2] = {};
  mutable std::atomic<int> node_number{-1};  // of the nodes that it makes, once known

  const OpInfo& info() const {
    const OpInfo* i = info_.load(std::memory_order_acquire);
    return i ? *i : make_info();
  }
  const OpInfo& make_info() const;  // parses the schema; the same object for every caller
  std::string name() const;         // "aten::add.Tensor"
  // The other variants of the same record, or null.
  const Operator* variant_of(Variant v) const;
  // A partner that the record names and that takes the same arguments, or null.
  const Operator* partner(Partner p) const;
};
// The variant that returns what `op` writes into its first argument or into out=, and writes
// nothing itself; null where there is none, or where `op` writes nothing.
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
// All overloads of a name, in order of preference when parsing Python arguments.
std::vector<Operator*> find_overloads(std::string_view ns, std::string_view name);
std::vector<std::string> runtime_operator_names(std::string_view ns);

// Makes an operator at run time; the text is a full schema with namespace. RuntimeError when it is
// malformed or taken. Operators are never freed. Of `like` no more is read than its size says: it
// may be of an older or newer build. Its forms inplace and out make those variants as well.
Operator& define_operator(std::string_view schema, const OpRecord* like = nullptr);
// Takes the names of such an operator and its variants out; calls that are under way go on.
void undefine_operator(Operator& op);

// Puts a kernel or rule at a layer of one operator; returns a handle for take_out. The later
// registration wins; taking it out brings back the one before.
struct Registration {
  Operator* op = nullptr;
  Layer layer = Layer::CPU;
  bool composite = false;
  bool structured = false;
  const Slot* slot = nullptr;
  std::atomic<const Slot*>* where = nullptr;
};
Registration put_in(Operator& op, Layer layer, KernelFn function, void* context);
// A kernel of a layer above the backends for calls on one backend; other calls pass on.
Registration put_in_for(Operator& op, Layer layer, Layer backend, KernelFn function, void* context);
// A kernel that fills results, on one backend: registered once, it serves the operator and its
// in-place, out= and functional variants. The call path makes the results, resizes out=, casts to
// and from other dtypes and checks overlaps, by the record's shape rule. RuntimeError for a record
// without one.
Registration put_in_structured(Operator& op, Layer backend, KernelFn function, void* context);
Registration put_in_composite(Operator& op, KernelFn function, void* context);
void take_out(const Registration& r);
// The kernel that was put in for calls at a layer on one backend, or null.
const Slot* put_in_at(const Operator& op, Layer layer, Layer backend);

// A kernel for every operator on one backend that has none of its own (a fallback), or null.
void set_backend_fallback(Layer backend, KernelFn function, void* context);

}  // namespace facula

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
  KernelFn function = nullptr;
  void* context = nullptr;
};

enum class Variant : uint8_t { Base, Inplace, Out, Functional };

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
  bool view = false;           // a result aliases an argument without writing
  bool multi_view = false;     // a list of views
  bool reads_strides = false;  // means another thing for other strides, without being a view
  bool implicit = false;       // expanded above autograd
  int8_t device_arg = -1, dtype_arg = -1;
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
  std::atomic<const OpInfo*> info_{nullptr};
  std::atomic<const Slot*> slots[layer_count] = {};
  std::atomic<const Slot*> composite_slot{nullptr};
  std::atomic<void*> python_callable{nullptr};             // of the binding
  mutable std::atomic<const Operator*> variants_[4] = {};  // those that were asked for

  const OpInfo& info() const {
    const OpInfo* i = info_.load(std::memory_order_acquire);
    return i ? *i : make_info();
  }
  const OpInfo& make_info() const;  // parses the schema; the same object for every caller
  std::string name() const;         // "aten::add.Tensor"
  // The other variants of the same record, or null.
  const Operator* variant_of(Variant v) const;
};

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
// malformed or taken. Operators are never freed.
Operator& define_operator(std::string_view schema, const OpRecord* like = nullptr);
// Takes the name of such an operator out; calls that are under way go on.
void undefine_operator(Operator& op);

// Puts a kernel or rule at a layer of one operator; returns a handle for take_out. The later
// registration wins; taking it out brings back the one before.
struct Registration {
  Operator* op = nullptr;
  Layer layer = Layer::CPU;
  bool composite = false;
  const Slot* slot = nullptr;
};
Registration put_in(Operator& op, Layer layer, KernelFn function, void* context);
Registration put_in_composite(Operator& op, KernelFn function, void* context);
void take_out(const Registration& r);

// A kernel for every operator on one backend that has none of its own (a fallback), or null.
void set_backend_fallback(Layer backend, KernelFn function, void* context);

}  // namespace facula

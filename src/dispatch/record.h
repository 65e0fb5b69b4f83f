// OpRecord: the definition of one operator as constant data. Its variants, parsed schema and nodes
// are derived from it.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/layers.h"
#include "dispatch/batch_families.h"
#include "dispatch/forward_families.h"

namespace facula {

struct OpCall;
struct Meta;
class Backward;
class Forward;
class Batch;
class Tensor;

// --- kernels

using KernelFn = void (*)(void* context, OpCall& call);

// Instruction sets that kernels are built for, in ascending order.
enum class Isa : uint8_t { Base, Avx2, Avx512 };
inline constexpr int isa_count = 3;
Isa current_isa();
// Forces a set (for tests); RuntimeError when this processor or build lacks it.
void set_isa(Isa isa);

// A kernel for each instruction set; a set without an entry uses the next lower one.
struct KernelRef {
  KernelFn function[isa_count] = {};
  const void* context[isa_count] = {};
  // Whether it computes element by element in a loop that it can describe instead of running it
  // (kernels/cpu/elementwise/pointwise.h).
  bool describes_loop = false;
  constexpr explicit operator bool() const { return function[0] != nullptr; }
};

// --- rules

using MetaRule = void (*)(Meta&);
// Returns the gradient of one input, or the local derivative of an elementwise operator.
using DerivativeRule = Tensor (*)(Backward&);
// Computes the gradients of several inputs at once and stores each with Backward::set.
using FusedDerivativeRule = void (*)(Backward&);
// Computes the tangents of the results from those of the inputs.
using ForwardRule = void (*)(Forward&);
using BatchRule = void (*)(Batch&);

// Names of arguments and results, resolved against the schema at the operator's first call.
struct Names {
  static constexpr int most = 8;
  std::string_view list[most] = {};
  template <class... S>
  static constexpr Names of(S... names) {
    return Names{{std::string_view(names)...}};
  }
  constexpr bool has(std::string_view n) const {
    for (std::string_view x : list)
      if (!x.empty() && x == n) return true;
    return false;
  }
  constexpr bool empty() const { return list[0].empty(); }
};
template <class... S>
constexpr Names saves(S... names) {
  return Names::of(names...);
}
template <class... S>
constexpr Names names(S... n) {
  return Names::of(n...);
}

// One row of the derivative table: the inputs it is for, what must be saved for it, and the rule.
struct Derivative {
  Names inputs;
  Names saved;
  DerivativeRule local = nullptr;  // d result / d input, elementwise; the node multiplies with it
  DerivativeRule vjp = nullptr;
  FusedDerivativeRule fused = nullptr;
};
// For elementwise operators: the rule gives the local derivative, from which vjp and jvp follow.
constexpr Derivative local(std::string_view input, DerivativeRule rule, Names saved = {}) {
  return {Names::of(input), saved, rule, nullptr, nullptr};
}
constexpr Derivative vjp(std::string_view input, DerivativeRule rule, Names saved = {}) {
  return {Names::of(input), saved, nullptr, rule, nullptr};
}
constexpr Derivative vjp(Names inputs, FusedDerivativeRule rule, Names saved = {}) {
  return {inputs, saved, nullptr, nullptr, rule};
}

// --- properties

enum class Composite : uint8_t {
  No,
  Implicit,   // runs above autograd, so that the operators it calls are differentiated
  Explicit,   // has a derivative of its own; its kernel calls other operators
  Selecting,  // as Implicit; chooses among operators by strides, a training flag or masks
};

// The variants that a record has, and whether Python has it as a function or a method.
enum Form : uint32_t {
  function = 1,
  method = 2,
  inplace = 4,
  out = 8,
  hidden = 0,       // only in facula.ops.aten
  functional = 16,  // for a record whose schema is in-place: the variant that changes a copy
  function_method = function | method,
  all_forms = function | method | inplace | out,
};

enum class OutLayout : uint8_t { Any, Contiguous };
// `Same`, for autocast_cpu, stands for the value of `autocast`.
enum class Autocast : uint8_t { None, LowerPrecision, Float32, Promote, Same };
enum class Overlaps : uint8_t { ExactAllowed, None };

enum Flags : uint32_t {
  no_flags = 0,
  random = 1,           // draws random numbers, so calls must not be merged, dropped or repeated
  shape_from_data = 2,  // values decide the result's shape: its kernel sets it (data_sizes.h)
  handles_conj = 4,     // its kernel reads the conjugate and negative bits of its arguments
  nondeterministic = 8,
  linear = 16,
  geometry_only = 32,  // changes sizes and strides in place, not values (squeeze_)
  factory = 64,        // its device comes from an argument or the thread's default
  same_object = 128,   // may return its argument itself (contiguous, to)
  pointwise = 256,     // elementwise with broadcasting
  no_version_bump = 512,
  cross_device = 1024,   // takes tensors of several devices (copy_, to)
  reads_strides = 2048,  // its result or gradient depends on strides, though it is no view
  // Two kinds of geometry_only, by the argument after self:
  storage_size = 4096,   // it is a number of bytes, to which the storage is resized (resize_)
  adopts = 8192,         // it is a tensor, a storage or absent, which self then lies over (set_)
  out_follows = 16384,   // a composite whose out= variant is a copy_ with its gradient
  any_layout = 1 << 16,  // reads neither storage nor strides, so it works on every layout
  // 1 << 17 to 1 << 19: dispatch/out_dtype.h
  // Its kernel is not put off (graph/recorder.h): it refuses some contents, or writes into
  // arguments of which the schema says nothing.
  runs_when_called = 1 << 20,
};

struct OpRecord {
  uint32_t size = sizeof(OpRecord);
  uint32_t version = 1;
#ifdef FACULA_RECORD_VARIANT  // what a later build may do (tools/test_abi.py)
  uint64_t of_a_later_build[3] = {};
#endif
  const char* schema = nullptr;  // PyTorch's schema language, without namespace for aten
  const char* doc = "";
  uint32_t forms = function;
  const char* python_module = "";  // nn, special, linalg or fft if Python also finds it there
  const char* aliases = "";        // further public names, comma-separated
  const char* out_name = "";       // overload name of the out= variant where it is irregular
  Composite composite = Composite::No;
  uint32_t flags = no_flags;
  OutLayout out_layout = OutLayout::Any;
  Overlaps overlaps = Overlaps::ExactAllowed;
  Autocast autocast = Autocast::None;      // on accelerators
  Autocast autocast_cpu = Autocast::Same;  // PyTorch casts fewer operators on the CPU
  Names numbers = {};                      // Tensor arguments that also take a Python number
  MetaRule meta = nullptr;  // shape and type rule; kernels then fill what they are given
  KernelRef cpu = {};
  KernelRef any = {};  // for all devices: views and composites, which touch no data themselves
  Derivative derivatives[4] = {};
  // PyTorch's name of the node, if it is not made of the operator's name and overload number.
  const char* node = "";
  Names not_differentiable = {};  // results and arguments that never have a gradient
  ForwardRule jvp = nullptr;
  BatchRule batch = nullptr;
  const char* hole = "";               // why a column of the completeness table is empty
  const void* library_data = nullptr;  // for the rules of an extension built on facula/c.h
  // For operators of which PyTorch has Scalar overloads, whose nodes have no edge for the number:
  // the node's name when the first argument in `numbers` is a number, when the second is, and so
  // on.
  Names number_nodes = {};
  // Partners, by name and overload ("transpose.int") in the same namespace: copy_form of a view is
  // the operator that copies instead; view_form of an operator that changes geometry in place is
  // the view that self becomes.
  const char* copy_form = "";
  const char* view_form = "";
  // Tensor arguments that always have a batch dimension, even where others may go without.
  Names always_batched = {};
  // Arguments that the batching rules of batch_families.h adjust. `dims` name dimensions of the
  // first tensor; `sizes` are the list of sizes and, if there is a second name, the list of
  // strides.
  Names dims = names("dim");
  Names sizes = names("size");
  // The arguments by position as PyTorch's first releases took them ("self value tensor1 tensor2"),
  // which still works and warns.
  const char* old_order = "";
};

constexpr Autocast cpu_autocast(const OpRecord& r) {
  return r.autocast_cpu == Autocast::Same ? r.autocast : r.autocast_cpu;
}

}  // namespace facula

// Defines the constant record of an operator: OP(add_Tensor) { .schema = "add.Tensor(...)", ... };
#define OP(id)                                 \
  namespace facula::records {                  \
  extern const ::facula::OpRecord id##_record; \
  }                                            \
  constinit const ::facula::OpRecord facula::records::id##_record =

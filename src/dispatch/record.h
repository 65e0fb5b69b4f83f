// OpRecord: what one operator means, as constant data. Everything else about an operator -
// its variants, its parsed schema, its kernels in force - is derived from it.
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

// Instruction sets that kernels are built for, least first.
enum class Isa : uint8_t { Base, Avx2, Avx512 };
inline constexpr int isa_count = 3;
Isa current_isa();
// Forces a set (for tests); RuntimeError when this processor or build lacks it.
void set_isa(Isa isa);

// A kernel by instruction set; a set without an entry uses the one below it.
struct KernelRef {
  KernelFn function[isa_count] = {};
  const void* context[isa_count] = {};
  constexpr explicit operator bool() const { return function[0] != nullptr; }
};

// --- rules

using MetaRule = void (*)(Meta&);
// Gradient of one input, or the local derivative of an elementwise operator.
using DerivativeRule = Tensor (*)(Backward&);
// Gradients of several inputs at once: stores each with Backward::set.
using FusedDerivativeRule = void (*)(Backward&);
// Tangent of the result from tangents of inputs.
using ForwardRule = void (*)(Forward&);
using BatchRule = void (*)(Batch&);

// Names of arguments and results, resolved against the schema once, at first use.
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

// One row of the derivative table: which inputs it serves, what it needs kept, the rule.
struct Derivative {
  Names inputs;
  Names saved;
  DerivativeRule local = nullptr;  // d result / d input, elementwise; the layer multiplies
  DerivativeRule vjp = nullptr;
  FusedDerivativeRule fused = nullptr;
};
// Elementwise: rule gives the local derivative, vjp and jvp follow.
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
  Implicit,   // expanded above autograd unless an earlier layer has a rule
  Explicit,   // own derivative; its kernel calls other operators
  Selecting,  // reads strides, a training flag or masks, and picks; expanded above autograd
};

// Variants derived from one record. Function and Method say where Python finds it.
enum Form : uint32_t {
  function = 1,
  method = 2,
  inplace = 4,
  out = 8,
  hidden = 0,       // reached through ops.aten alone
  functional = 16,  // of a record whose schema is in-place: the variant that copies first
  function_method = function | method,
  all_forms = function | method | inplace | out,
};

enum class OutLayout : uint8_t { Any, Contiguous };
// Same: as on accelerators.
enum class Autocast : uint8_t { None, LowerPrecision, Float32, Promote, Same };
enum class Overlaps : uint8_t { ExactAllowed, None };

enum Flags : uint32_t {
  no_flags = 0,
  random = 1,           // draws numbers: never merged, dropped or recomputed without its state
  shape_from_data = 2,  // the kernel sets the result; meta raises
  handles_conj = 4,     // understands conjugate and negative bits in its arguments
  nondeterministic = 8,
  linear = 16,
  geometry_only = 32,  // in-place on sizes and strides, not on values (squeeze_)
  factory = 64,        // device comes from arguments or the thread's default
  same_object = 128,   // the result may be the very argument (contiguous, to)
  pointwise = 256,     // elementwise with broadcasting
  no_version_bump = 512,
  cross_device = 1024,   // takes tensors of several devices (copy_, to)
  reads_strides = 2048,  // means another thing for other strides, without being a view
  // Of what is geometry_only, which argument stands after self:
  storage_size = 4096,   // bytes: the storage gets that size
  adopts = 8192,         // a tensor or storage, or nothing: self becomes a header over that
  out_follows = 16384,   // a composite whose out= is a copy, with the gradient of one
  any_layout = 1 << 16,  // touches neither storage nor geometry: serves tensors of any kind
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
  const char* python_module = "";  // "", or nn, special, linalg, fft: also found there
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
  KernelRef any = {};  // for every device: views, composites, run without data
  Derivative derivatives[4] = {};
  // PyTorch's name of the node where it is not the operator's own with the number of the overload.
  const char* node = "";
  Names not_differentiable = {};  // results, or arguments that never carry a gradient
  ForwardRule jvp = nullptr;
  BatchRule batch = nullptr;
  const char* hole = "";               // why a column of the completeness table is empty
  const void* library_data = nullptr;  // of the rules of a library behind the C interface
  // Where PyTorch has overloads for numbers, whose nodes have no edge for the number: the names of
  // the nodes with a number in the first of `numbers`, in the second, ...
  Names number_nodes = {};
  // Partners, by name and overload ("transpose.int") within the namespace: of a view, what gives
  // copies of what it shows; of what changes geometry in place, the view that self becomes.
  const char* copy_form = "";
  const char* view_form = "";
  // Tensor arguments whose samples stand in a dimension before the usual ones, even of one sample.
  Names always_batched = {};
  // What batching rules of families adjust: arguments that name dimensions of the first tensor, and
  // the one that lists sizes of the result or of an input, and a second that lists its strides.
  Names dims = names("dim");
  Names sizes = names("size");
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

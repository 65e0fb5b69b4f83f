// Function transforms: a stack of interpreters, each of which handles calls on its own wrappers.
//
// The interpreter on top sees a call first. It takes the values out of its wrappers, takes itself
// off and calls again from the top of the layers; results are wrapped for its level.
#pragma once
#include "core/autograd_meta.h"
#include "dispatch/call.h"

namespace facula {

enum class Randomness : uint8_t { Error, Different, Same };
// "error", "different" or "same"; ValueError-like RuntimeError with PyTorch's text otherwise.
Randomness randomness_by_name(std::string_view name);

struct Interpreter {
  enum class Kind : uint8_t { Vmap, Grad, Jvp };
  Kind kind;
  int64_t level =
      0;  // never used twice, so that a wrapper cannot be taken for one of a later level
  Interpreter* below = nullptr;
  int64_t batch_size = 0;  // of Vmap
  Randomness randomness = Randomness::Error;
  // What the levels below have in force.
  bool grad_enabled = true;
  bool autograd_excluded = false;
  bool computing_tangent = false;
  bool forward_grad_enabled = true;  // before the level was pushed
};

extern const ExtensionKind wrapper_kind;
// A tensor of one level: `value` belongs to the level below, with the batch dimension first.
struct TransformWrapper final : Extension {
  TransformWrapper(Tensor v, int64_t l, bool b)
      : Extension(wrapper_kind), value(std::move(v)), level(l), batched(b) {}
  Extension* clone() const override { return new TransformWrapper(value, level, batched); }
  Tensor value;
  int64_t level;
  bool batched;
};
// The wrapper's part of a tensor, or null.
TransformWrapper* transform_wrapper(const Tensor& t);

int64_t push_vmap(int64_t batch_size, Randomness randomness);
int64_t push_grad();
// A level of forward mode.
int64_t push_jvp();
// Ends the level on top, which must be `level`.
void pop_interpreter(int64_t level);
// The level on top, or -1.
int64_t current_level();
// How many levels were on the stack when this one was pushed, itself included: what users are
// shown.
int64_t depth_of_level(int64_t level);
// Takes the whole stack off (to print values, say), and puts it back.
Interpreter* take_interpreters();
void put_interpreters(Interpreter* top);

// Wraps a value for a level. Storage of a wrapper has a size but no memory.
Tensor wrap_for_level(const Tensor& value, int64_t level, bool batched);
// Batches dimension `dim` of a tensor.
Tensor add_batch_dim(const Tensor& t, int64_t dim, int64_t level);
// The tensor one level below with its batch dimension moved to `dim`; expanded where it has none.
Tensor remove_batch_dim(const Tensor& t, int64_t level, int64_t batch_size, int64_t dim);
Tensor wrap_for_grad(const Tensor& t, int64_t level);
Tensor unwrap_for_grad(const Tensor& t, int64_t level);
// make_dual and unpack_dual for the level in force: a batching level passes them on to its values.
Tensor make_dual_at_level(const Tensor& primal, const Tensor& tangent);
std::pair<Tensor, Tensor> unpack_dual_at_level(const Tensor& t);
// The value under every wrapper, for printing.
Tensor innermost_value(const Tensor& t);

// Takes the interpreter on top off for a scope: what the levels below had in force comes back.
class WithoutTop {
 public:
  WithoutTop();
  ~WithoutTop();
  WithoutTop(const WithoutTop&) = delete;

 private:
  Interpreter* const top_;
  const bool grad_enabled_, computing_tangent_;
  const StateGuard layers_;
};

// Takes a changed wrapper's sizes, strides and offset from its value.
void refresh_wrapper(const Tensor& wrapper);

// Handles a call for the batching level on top (vmap.cpp).
void vmap_layer(OpCall& c);

}  // namespace facula

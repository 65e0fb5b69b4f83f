// Function transforms: a stack of interpreters, each of which handles calls on its own wrappers.
//
// The interpreter on top handles a call first: it unwraps the arguments, removes itself from the
// stack, calls the operator again, and wraps the results for its level.
#pragma once
#include "core/autograd_meta.h"
#include "dispatch/call.h"

namespace facula {

enum class Randomness : uint8_t { Error, Different, Same };
// "error", "different" or "same"; RuntimeError with PyTorch's text otherwise.
Randomness randomness_by_name(std::string_view name);

struct Interpreter {
  enum class Kind : uint8_t { Vmap, Grad, Jvp };
  Kind kind;
  // Never used twice, so that a wrapper of an ended level is not taken for one of a later level.
  int64_t level = 0;
  Interpreter* below = nullptr;
  int64_t batch_size = 0;  // of Vmap
  Randomness randomness = Randomness::Error;
  // The thread's state when the level was pushed, which applies to the levels below.
  bool grad_enabled = true;
  bool autograd_excluded = false;
  bool computing_tangent = false;
  bool forward_grad_enabled = true;
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
// The tensor's TransformWrapper, or null.
TransformWrapper* transform_wrapper(const Tensor& t);

int64_t push_vmap(int64_t batch_size, Randomness randomness);
int64_t push_grad();
// A level of forward mode.
int64_t push_jvp();
// Ends the level on top, which must be `level`.
void pop_interpreter(int64_t level);
// The level on top, or -1.
int64_t current_level();
// The number of the level as users see it: how many levels there were when it was pushed, with
// itself.
int64_t depth_of_level(int64_t level);
// Removes the whole stack, for example to print values, and puts it back.
Interpreter* take_interpreters();
void put_interpreters(Interpreter* top);

// Wraps a value for a level. The storage of a wrapper has a size but no memory.
Tensor wrap_for_level(const Tensor& value, int64_t level, bool batched);
// Wraps a tensor with `dim` as its batch dimension.
Tensor add_batch_dim(const Tensor& t, int64_t dim, int64_t level);
// The value on the level below with the batch dimension moved to `dim`, or expanded if it has none.
Tensor remove_batch_dim(const Tensor& t, int64_t level, int64_t batch_size, int64_t dim);
Tensor wrap_for_grad(const Tensor& t, int64_t level);
Tensor unwrap_for_grad(const Tensor& t, int64_t level);
// make_dual and unpack_dual for the current level; a vmap level applies them to the wrapped values.
Tensor make_dual_at_level(const Tensor& primal, const Tensor& tangent);
std::pair<Tensor, Tensor> unpack_dual_at_level(const Tensor& t);
// The value under every wrapper, for printing.
Tensor innermost_value(const Tensor& t);

// Removes the interpreter on top for a scope and restores the state of the levels below.
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

// Updates the sizes, strides and offset of a wrapper after its value was changed.
void refresh_wrapper(const Tensor& wrapper);

// Handles a call for the batching level on top (vmap.cpp).
void vmap_layer(OpCall& c);

}  // namespace facula

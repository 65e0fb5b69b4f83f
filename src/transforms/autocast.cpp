#include "transforms/autocast.h"

#include <unordered_map>

#include "autograd/variable.h"
#include "ops/copy.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

struct CachedCast {
  Tensor weight, cast;  // the weight is held so that its address stays its own
  uint32_t version;
};
using CastCache = std::unordered_map<TensorImpl*, CachedCast>;

CastCache& cast_cache() {
  static thread_local CastCache cache;
  return cache;
}

// Doubles are left alone, as in PyTorch.
bool castable(const Tensor& t) { return is_floating(t.dtype()) && t.dtype() != DType::Float64; }

bool worth_keeping(const Tensor& t, DType to) {
  return thread_state.autocast.cache_enabled && thread_state.grad_enabled &&
         to == thread_state.autocast.dtype && t.dtype() == DType::Float32 && is_leaf(t) &&
         requires_grad(t) && !is_view(t) && !t->inference;
}

Tensor cast(const Tensor& t, DType to) {
  if (!castable(t) || t.dtype() == to) return t;
  if (!worth_keeping(t, to)) return ops::to(t, to);
  CachedCast& kept = cast_cache()[t.get()];
  const bool good =
      kept.cast.defined() && kept.cast.dtype() == to && kept.version == t->current_version();
  if (!good) kept = {t, ops::to(t, to), t->current_version()};
  return kept.cast;
}

// The widest type among the arguments, at least the lower precision.
DType widest(const OpCall& c) {
  DType found = thread_state.autocast.dtype;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    if (is_floating(t.dtype())) found = promote(found, t.dtype());
  });
  return found;
}

DType target(const OpCall& c) {
  switch (autocast_class(c)) {
    case Autocast::LowerPrecision:
      return thread_state.autocast.dtype;
    case Autocast::Float32:
      return DType::Float32;
    case Autocast::Promote:
      return widest(c);
    case Autocast::None:
    case Autocast::Same:
      break;
  }
  return DType::Undefined;
}

}  // namespace

void clear_autocast_cache() { cast_cache().clear(); }

AutocastState set_autocast(const AutocastState& state) {
  const AutocastState before = thread_state.autocast;
  thread_state.autocast = state;
  if (state.enabled)
    thread_state.include |= Layer::Autocast;
  else
    thread_state.include -= Layer::Autocast;
  if (before.enabled && !state.enabled) clear_autocast_cache();
  return before;
}

void autocast_layer(OpCall& c) {
  const DType to = target(c);
  if (to == DType::Undefined) return redispatch(c, Layer::Autocast);
  const ExcludeLayers inner(Layer::Autocast);
  Value* const given = c.args;
  ReplacedArgs args(
      c, [&](const Tensor& t, int i) { return c.info->mutated >> i & 1 ? t : cast(t, to); });
  c.args = args.values();
  call_again(c);
  c.args = given;
}

}  // namespace facula

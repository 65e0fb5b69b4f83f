#include "transforms/autocast.h"

#include <unordered_map>

#include "autograd/variable.h"
#include "ops/create/copy.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

struct CachedCast {
  Tensor weight, cast;  // holds the weight, so that its address is not reused for another
  uint32_t version;
};
struct WeightCasts final : CastCache {
  std::unordered_map<TensorImpl*, CachedCast> of;
};

WeightCasts& weight_casts() {
  struct AtExit {
    ~AtExit() { clear_autocast_cache(); }
  };
  if (!thread_state.cast_cache) {
    static thread_local const AtExit at_exit;
    static_cast<void>(at_exit);
    thread_state.cast_cache = new WeightCasts;
  }
  return static_cast<WeightCasts&>(*thread_state.cast_cache);
}

// float64 is not cast, as in PyTorch.
bool castable(const Tensor& t) { return is_floating(t.dtype()) && t.dtype() != DType::Float64; }

DType lower_precision(DeviceType type) { return thread_state.autocast.dtype[autocast_slot(type)]; }

bool worth_keeping(const Tensor& t, DType to) {
  return thread_state.autocast.cache_enabled && thread_state.grad_enabled &&
         to == lower_precision(t.device().type) && t.dtype() == DType::Float32 && is_leaf(t) &&
         requires_grad(t) && !is_view(t) && !t->inference;
}

Tensor cast(const Tensor& t, DType to) {
  if (!castable(t) || t.dtype() == to) return t;
  if (!worth_keeping(t, to)) return ops::to(t, to);
  CachedCast& kept = weight_casts().of[t.get()];
  const bool good =
      kept.cast.defined() && kept.cast.dtype() == to && kept.version == t->current_version();
  if (!good) kept = {t, ops::to(t, to), t->current_version()};
  return kept.cast;
}

// The widest dtype among the arguments, but at least the lower precision.
DType widest(const OpCall& c, DeviceType type) {
  DType found = lower_precision(type);
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    if (is_floating(t.dtype())) found = promote(found, t.dtype());
  });
  return found;
}

DType target(const OpCall& c, DeviceType type) {
  switch (autocast_class(c)) {
    case Autocast::LowerPrecision:
      return lower_precision(type);
    case Autocast::Float32:
      return DType::Float32;
    case Autocast::Promote:
      return widest(c, type);
    case Autocast::None:
    case Autocast::Same:
      break;
  }
  return DType::Undefined;
}

}  // namespace

void clear_autocast_cache() { delete std::exchange(thread_state.cast_cache, nullptr); }

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
  const DeviceType type = autocast_type(c);
  const DType to = target(c, type);
  if (to == DType::Undefined) return redispatch(c, Layer::Autocast);
  const ExcludeLayers inner(Layer::Autocast);
  Value* const given = c.args;
  ReplacedArgs args(c, [&](const Tensor& t, int i) {
    const bool stays = c.info->mutated >> i & 1 || t.device().type != type;
    return stays ? t : cast(t, to);
  });
  c.args = args.values();
  call_again(c);
  c.args = given;
}

}  // namespace facula

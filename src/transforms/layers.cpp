#include "transforms/layers.h"

#include "autograd/layer.h"
#include "dispatch/layout.h"

namespace facula {
namespace {

constexpr LayerHandler handler_of(Layer l) {
  switch (l) {
    case Layer::Layout:
      return &run_layout;
    case Layer::Subclass:
      return &subclass_layer;
    case Layer::Modes:
      return &modes_layer;
    case Layer::LevelExit:
      return &level_exit_layer;
    case Layer::Negative:
    case Layer::Conjugate:
      return &conjugate_layer;
    case Layer::Autograd:
      return &autograd_layer;
    case Layer::PreAutogradTrace:
      return &pre_autograd_layer;
    case Layer::Transforms:
      return &transforms_layer;
    case Layer::Autocast:
      return &autocast_layer;
    default:
      return nullptr;
  }
}

}  // namespace

constinit const LayerHandler layer_handlers[layer_count] = {
    handler_of(Layer(0)),  handler_of(Layer(1)),  handler_of(Layer(2)),  handler_of(Layer(3)),
    handler_of(Layer(4)),  handler_of(Layer(5)),  handler_of(Layer(6)),  handler_of(Layer(7)),
    handler_of(Layer(8)),  handler_of(Layer(9)),  handler_of(Layer(10)), handler_of(Layer(11)),
    handler_of(Layer(12)), handler_of(Layer(13)), handler_of(Layer(14)), handler_of(Layer(15)),
    handler_of(Layer(16)),
};
static_assert(std::size(layer_handlers) == layer_count);

constinit std::atomic<LayerHandler> subclass_handler{nullptr};

void subclass_layer(OpCall& c) {
  if (const LayerHandler h = subclass_handler.load(std::memory_order_acquire)) return h(c);
  redispatch(c, Layer::Subclass);
}

}  // namespace facula

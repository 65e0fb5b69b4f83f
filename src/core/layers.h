// The set of layers that a call passes, one bit each; the highest bit runs first.
#pragma once
#include <bit>
#include <cstdint>

#include "core/device.h"

namespace facula {

enum class Layer : uint8_t {
  // Backends, one bit for each kind of device.
  CPU = 0,
  CUDA = 1,
  Meta = 2,
  Plugin = 3,      // the first of four bits, 3 to 6
  Layout = 7,      // a tensor of a registered kind: kernels by kind and device (dispatch/layout.h)
  Subclass = 8,    // a tensor whose Python class has __torch_dispatch__
  Modes = 9,       // the thread's stack of dispatch modes
  LevelExit = 10,  // the end of a grad level: unwraps and goes to the next interpreter
  Negative = 11,
  Conjugate = 12,
  Autograd = 13,
  PreAutogradTrace = 14,
  Transforms = 15,
  Autocast = 16,
};
inline constexpr int layer_count = 17;

class LayerSet {
 public:
  constexpr LayerSet() = default;
  constexpr LayerSet(Layer l) : bits_(1u << static_cast<int>(l)) {}
  constexpr explicit LayerSet(uint32_t bits) : bits_(bits) {}
  static constexpr LayerSet below(Layer l) { return LayerSet((1u << static_cast<int>(l)) - 1); }

  constexpr bool has(Layer l) const { return bits_ & (1u << static_cast<int>(l)); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Layer highest() const { return static_cast<Layer>(std::bit_width(bits_) - 1); }
  constexpr uint32_t bits() const { return bits_; }
  friend constexpr LayerSet operator|(LayerSet a, LayerSet b) {
    return LayerSet(a.bits_ | b.bits_);
  }
  friend constexpr LayerSet operator&(LayerSet a, LayerSet b) {
    return LayerSet(a.bits_ & b.bits_);
  }
  friend constexpr LayerSet operator-(LayerSet a, LayerSet b) {
    return LayerSet(a.bits_ & ~b.bits_);
  }
  friend constexpr bool operator==(LayerSet a, LayerSet b) { return a.bits_ == b.bits_; }
  LayerSet& operator|=(LayerSet o) { return *this = *this | o; }
  LayerSet& operator-=(LayerSet o) { return *this = *this - o; }

 private:
  uint32_t bits_ = 0;
};

inline constexpr LayerSet backend_layers = LayerSet::below(Layer::Layout);

constexpr Layer backend_layer(DeviceType d) {
  if (d == DeviceType::CPU) return Layer::CPU;
  if (d == DeviceType::CUDA) return Layer::CUDA;
  if (d == DeviceType::Meta) return Layer::Meta;
  return static_cast<Layer>(static_cast<int>(Layer::Plugin) + static_cast<int>(d) -
                            static_cast<int>(DeviceType::FirstPlugin));
}

constexpr DeviceType device_type_of(Layer backend) {
  if (backend == Layer::CPU) return DeviceType::CPU;
  if (backend == Layer::CUDA) return DeviceType::CUDA;
  if (backend == Layer::Meta) return DeviceType::Meta;
  return static_cast<DeviceType>(static_cast<int>(backend) - static_cast<int>(Layer::Plugin) +
                                 static_cast<int>(DeviceType::FirstPlugin));
}

}  // namespace facula

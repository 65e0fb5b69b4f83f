// The CPU random number generator: mt19937 whose outputs and saved states are PyTorch's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/interrupts.h"
#include "core/refcount.h"
#include "core/twister_loops.h"

namespace facula {

// The twister's loops for one instruction set.
struct TwisterLoops {
  void (*twist)(uint32_t* state);
  void (*temper)(const uint32_t* state, int64_t n, uint32_t* out);
};
extern const TwisterLoops baseline_twister;

// The 32-bit Mersenne twister. A plain value: copying it copies the stream.
class Mt19937 {
 public:
  static constexpr int words = twister::words;

  explicit Mt19937(uint64_t seed) { reseed(seed); }
  void reseed(uint64_t seed);

  uint32_t next() {
    if (left_ == 0) refill(baseline_twister);
    --left_;
    return twister::temper(state_[next_++]);
  }
  // The next n outputs at once, which is many times faster than n calls of next().
  void fill(uint32_t* out, int64_t n, const TwisterLoops& loops = baseline_twister);

 private:
  friend class Generator;

  void refill(const TwisterLoops& loops);

  uint64_t seed_ = 0;
  uint32_t left_ = 0;  // words of state_ that are still to be given out
  uint32_t next_ = 0;
  std::array<uint32_t, words> state_;
};

// A random generator. Kernels hold mutex() while they draw; the methods that replace or read the
// whole state lock it themselves, so they must not be called with it held. Reference-counted, since
// nodes of a graph and recorded programs keep the generator that their call was given.
class Generator : public RefCounted {
 public:
  static constexpr uint64_t default_seed = 67280421310721;
  static constexpr size_t state_bytes = 5056;
  using State = std::vector<uint8_t>;

  explicit Generator(uint64_t seed = default_seed);
  virtual ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // The device of its numbers; devices other than the CPU have a DeviceGenerator.
  virtual Device device() const { return {}; }
  // Restarts the stream from `seed` and forgets cached normals.
  virtual void manual_seed(uint64_t seed);
  // Seeds the generator with a number from the operating system, and returns that number.
  uint64_t seed();
  virtual uint64_t initial_seed() const;

  // The bytes of `torch.Generator.get_state()`.
  virtual State get_state() const;
  // Throws RuntimeError, leaving the generator as it was, when `bytes` is not such a state.
  virtual void set_state(std::span<const uint8_t> bytes);
  virtual std::unique_ptr<Generator> clone() const;

  // Held while kernels draw; turns interrupts off on the thread that holds it.
  struct Mutex : std::mutex {
    void lock() {
      std::mutex::lock();
      ++interrupts.held;
    }
    void unlock() {
      --interrupts.held;
      std::mutex::unlock();
    }
  };
  Mutex& mutex() const { return mutex_; }

  // What follows expects the caller to hold mutex().
  uint32_t next32() { return engine_.next(); }
  uint64_t next64() {
    const uint64_t high = engine_.next();
    return high << 32 | engine_.next();
  }
  // For draws that make words before they know how many they take.
  Mt19937& engine() { return engine_; }
  void fill32(uint32_t* out, int64_t n, const TwisterLoops& loops = baseline_twister) {
    engine_.fill(out, n, loops);
  }

  // The Python object of this generator, borrowed; read and written under the GIL.
  void* python_object = nullptr;

  // The Box-Muller method makes normals in pairs; the second is kept here for the next draw.
  std::optional<double> next_double_normal;
  std::optional<float> next_float_normal;

 private:
  friend struct LiveGenerators;

  mutable Mutex mutex_;
  Mt19937 engine_;
  Generator *next_ = nullptr, *previous_ = nullptr;  // in the list of all generators, for fork()
};

inline void destroy(Generator* g) { delete g; }

// 64 bits from the operating system; throws RuntimeError when it gives none.
uint64_t random_seed();

// The default CPU generator, seeded by random_seed() at its first use and never destroyed.
Generator& default_generator();
// The host generator for a call on `device`: `given`, or the default one. For a device other than
// the CPU it returns a generator of this thread that is seeded from the device's generator, valid
// until the next call. RuntimeError when `given` belongs to another device.
Generator& generator_for(Generator* given, Device device);

}  // namespace facula

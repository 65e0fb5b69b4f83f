#include "core/random.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/fork.h"
#include "core/thread_generator.h"

namespace facula {

namespace {

// The layout of PyTorch's saved states, which comes from Lua Torch, hence the 64-bit words. Padding
// has named members so that every byte is initialised.
struct SavedState {
  uint64_t seed;
  int32_t left;  // one more than Mt19937's
  int32_t seeded;
  uint64_t next;
  uint64_t words[Mt19937::words];
  double unused_x, double_normal, unused_rho;
  int32_t has_double_normal, padding;
  float float_normal;
  uint8_t has_float_normal, more_padding[3];
};
static_assert(sizeof(SavedState) == Generator::state_bytes);
static_assert(std::endian::native == std::endian::little);

// Stricter than PyTorch: the words that are still to be drawn must lie inside the state.
bool is_valid(const SavedState& s) {
  if (s.seeded != 1 || s.left <= 0 || s.left > Mt19937::words) return false;
  return s.next <= Mt19937::words && s.next + static_cast<uint64_t>(s.left) - 1 <= Mt19937::words;
}

}  // namespace

// The list of all generators. A fork locks each of them, so that the child finds consistent states
// and no locked mutex.
struct LiveGenerators {
  static void add(Generator& g) {
    const std::lock_guard lock(mutex());
    forks().enlist();
    g.next_ = first;
    if (first) first->previous_ = &g;
    first = &g;
  }
  static void remove(Generator& g) {
    const std::lock_guard lock(mutex());
    (g.previous_ ? g.previous_->next_ : first) = g.next_;
    if (g.next_) g.next_->previous_ = g.previous_;
  }

 private:
  static std::mutex& mutex() {
    static constinit std::mutex m;
    return m;
  }
  static ForkHandler& forks() {
    static constinit ForkHandler handler(ForkOrder::Generators, take_all, give_all, give_all);
    return handler;
  }
  static void take_all(ForkHandler&) {
    mutex().lock();
    for (Generator* g = first; g; g = g->next_) g->mutex_.lock();
  }
  static void give_all(ForkHandler&) {
    for (Generator* g = first; g; g = g->next_) g->mutex_.unlock();
    mutex().unlock();
  }
  static constinit Generator* first;
};
constinit Generator* LiveGenerators::first = nullptr;

Generator::Generator(uint64_t seed) : engine_(seed) { LiveGenerators::add(*this); }
Generator::~Generator() { LiveGenerators::remove(*this); }

void Mt19937::reseed(uint64_t seed) {
  seed_ = seed;
  left_ = next_ = 0;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < words; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

const TwisterLoops baseline_twister{
    [](uint32_t* state) { twister::twist_all(state); },
    [](const uint32_t* state, int64_t n, uint32_t* out) { twister::temper_all(state, n, out); },
};

void Mt19937::refill(const TwisterLoops& loops) {
  loops.twist(state_.data());
  left_ = words;
  next_ = 0;
}

void Mt19937::fill(uint32_t* out, int64_t n, const TwisterLoops& loops) {
  while (n > 0) {
    if (left_ == 0) refill(loops);
    const uint32_t take = static_cast<uint32_t>(std::min<int64_t>(n, left_));
    loops.temper(state_.data() + next_, take, out);
    left_ -= take;
    next_ += take;
    out += take;
    n -= take;
  }
}

void Generator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  engine_.reseed(seed);
  next_double_normal.reset();
  next_float_normal.reset();
}

uint64_t Generator::seed() {
  const uint64_t chosen = random_seed();
  manual_seed(chosen);
  return chosen;
}

uint64_t Generator::initial_seed() const {
  const std::lock_guard lock(mutex_);
  return engine_.seed_;
}

Generator::State Generator::get_state() const {
  const std::lock_guard lock(mutex_);
  SavedState saved{};
  saved.seed = engine_.seed_;
  saved.left = static_cast<int32_t>(engine_.left_) + 1;
  saved.seeded = 1;
  saved.next = engine_.next_;
  std::copy(engine_.state_.begin(), engine_.state_.end(), saved.words);
  saved.has_double_normal = next_double_normal.has_value();
  saved.double_normal = next_double_normal.value_or(0.0);
  saved.has_float_normal = next_float_normal.has_value();
  saved.float_normal = next_float_normal.value_or(0.0f);
  const auto bytes = std::bit_cast<std::array<uint8_t, state_bytes>>(saved);
  return State(bytes.begin(), bytes.end());
}

void Generator::set_state(std::span<const uint8_t> bytes) {
  check(bytes.size() == state_bytes, "set_state(): expected an RNG state of ", state_bytes,
        " bytes; got ", bytes.size());
  SavedState saved;
  std::memcpy(&saved, bytes.data(), state_bytes);
  check(is_valid(saved), "set_state(): expected a valid mt19937 state; got left=", saved.left,
        ", seeded=", saved.seeded, ", next=", saved.next);

  const std::lock_guard lock(mutex_);
  engine_.seed_ = saved.seed;
  engine_.left_ = static_cast<uint32_t>(saved.left) - 1;
  engine_.next_ = static_cast<uint32_t>(saved.next);
  std::transform(saved.words, saved.words + Mt19937::words, engine_.state_.begin(),
                 [](uint64_t word) { return static_cast<uint32_t>(word); });
  next_double_normal.reset();
  next_float_normal.reset();
  if (saved.has_double_normal) next_double_normal = saved.double_normal;
  if (saved.has_float_normal) next_float_normal = saved.float_normal;
}

std::unique_ptr<Generator> Generator::clone() const {
  auto copy = std::make_unique<Generator>();  // before locking: it locks the list of generators
  const std::lock_guard lock(mutex_);
  copy->engine_ = engine_;
  copy->next_double_normal = next_double_normal;
  copy->next_float_normal = next_float_normal;
  return copy;
}

uint64_t random_seed() {
  uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  check(got == sizeof seed, "seed(): expected 8 random bytes from the operating system; got ", got);
  return seed;
}

namespace {
thread_local Generator* thread_generator = nullptr;
}

void set_thread_generator(Generator* own) { thread_generator = own; }

Generator& default_generator() {
  if (thread_generator != nullptr) return *thread_generator;
  static Generator* const generator = new Generator(random_seed());
  return *generator;
}

}  // namespace facula

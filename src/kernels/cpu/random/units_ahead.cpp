#include "kernels/cpu/random/units_ahead.h"

namespace facula::dist {

void UnitsAhead::refill() {
  const TwisterLoops loops{FACULA_OF_ISA(twist_words), FACULA_OF_ISA(temper_words)};
  uint32_t words[2 * most];
  before_ = g_.engine();
  count_ = room_;
  room_ = std::min(2 * room_, most);
  g_.fill32(words, 2 * count_, loops);
  FACULA_OF_ISA(unit_row)(words, count_, units_);
  at_ = 0;
  has_normals_ = false;
}

void UnitsAhead::make_normals() {
  FACULA_OF_ISA(normal_pairs)(units_, count_ - 1, cosines_, sines_);
  has_normals_ = true;
}

void UnitsAhead::settle() {
  if (at_ < count_) {
    uint32_t taken[2 * most];
    g_.engine() = before_;
    g_.fill32(taken, 2 * at_);
  }
  at_ = count_ = 0;
  g_.next_double_normal.reset();
  if (!cached_.is_there()) return;
  g_.next_double_normal =
      cached_.is_rough ? normal_pair(cached_.first, cached_.second).second : cached_.value;
}

}  // namespace facula::dist

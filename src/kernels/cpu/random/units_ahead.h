// Uniforms that are made before they are asked for, for samples that take a varying number of them.
#pragma once
#include "kernels/cpu/random/stream.h"

namespace facula::dist {

// Whether normals have PyTorch's last bit, or may be a unit in the last place of a double away:
// where results are rounded to float, nobody sees that, and whole vectors of them are made at once.
enum class Normals { exact, rounded_later };

// Stands before a generator whose mutex the caller holds. The generator itself moves on when this
// ends, or in pause(), by as many words as were taken.
class UnitsAhead {
 public:
  // `draws` says about how many uniforms will be taken.
  UnitsAhead(Generator& g, int64_t draws, Normals kind = Normals::exact)
      : g_(g), kind_(kind), before_(g.engine()) {
    while (room_ < most && room_ < draws) room_ *= 2;
    if (g.next_double_normal) cached_ = Cached{*g.next_double_normal, 0, 0, false};
  }
  ~UnitsAhead() { settle(); }
  UnitsAhead(const UnitsAhead&) = delete;
  UnitsAhead& operator=(const UnitsAhead&) = delete;

  double unit() {
    if (at_ == count_) [[unlikely]]
      refill();
    return units_[at_++];
  }
  // Every second one is the partner of the one before.
  double normal() {
    if (cached_.is_there()) {
      const double value = cached_.value;
      cached_ = Cached();
      return value;
    }
    if (kind_ == Normals::exact || at_ + 2 > count_) {
      const double first = unit();
      return exact_normal(first, unit());
    }
    if (!has_normals_) make_normals();
    const int i = at_;
    at_ += 2;
    cached_ = Cached{sines_[i], units_[i], units_[i + 1], true};
    return cosines_[i];
  }
  // Between the parts of a long draw; see pause_draw().
  void pause() {
    if (interrupts.ask == nullptr || interrupt_clock() < interrupts.next) [[likely]]
      return;
    settle();
    pause_draw(g_);
    before_ = g_.engine();
    cached_ = g_.next_double_normal ? Cached{*g_.next_double_normal, 0, 0, false} : Cached();
  }

 private:
  static constexpr int most = 512;
  // The second normal of a pair, and what it was made of where a generator would have it exactly.
  struct Cached {
    double value = 0, first = -1, second = 0;
    bool is_rough = false;
    bool is_there() const { return first >= 0; }
  };

  double exact_normal(double u1, double u2) {
    const NormalPair pair = normal_pair(u1, u2);
    cached_ = Cached{pair.second, u1, u2, false};
    return pair.first;
  }
  void refill();
  void make_normals();
  void settle();

  Generator& g_;
  Normals kind_;
  Mt19937 before_;  // the engine before the words of this block
  int room_ = 16, at_ = 0, count_ = 0;
  bool has_normals_ = false;
  Cached cached_;
  double units_[most], cosines_[most], sines_[most];
};

// Calls f(i) for i in [0, n); it draws as often as it likes.
template <class F>
void for_each_draw(UnitsAhead& units, int64_t n, F f) {
  constexpr int64_t block = 1024;
  for (int64_t start = 0; start < n; start += block) {
    if (start > 0) units.pause();
    const int64_t end = std::min(n, start + block);
    for (int64_t i = start; i < end; ++i) f(i);
  }
}

}  // namespace facula::dist

// Groups of put-off pointwise calls that run together, tile by tile: each tile passes through all
// of their loops while it is in the cache, and what only the group reads is never stored. A group
// may also reduce rows and read the results (row_tiles.h).
//
// The loops are those that the calls would run one by one, over the same elements, so the bits are
// the same.
#pragma once
#include "graph/pending_call.h"
#include "graph/row_frame.h"
#include "kernels/cpu/elementwise/pointwise.h"

namespace facula {

// Whether tensors of one storage have the same elements in the same order.
bool same_geometry(const Tensor& a, const Tensor& b);

class RowGroup {
 public:
  // Takes a call in; false where it does not join, has another shape, or reads what the group
  // writes in another geometry. The call must stay where it is until run().
  bool add(PendingCall& p);
  // f(call) for each, in order.
  template <class F>
  void for_each_call(F&& f) const {
    for (const Step& s : steps_) f(*s.call);
  }
  // f(tensor, whether it is written) for what the group, run in one pass, reads and writes.
  template <class F>
  void for_each_access(F&& f) {
    find_kept();
    for (const Step& s : steps_) {
      for (int i = 0; i < s.inputs; ++i)
        if (s.in[i].step == nowhere && s.in[i].tensor) f(*s.in[i].tensor, false);
      if (s.kept) f(*s.out, true);
    }
  }
  // Runs the calls, releases what they hold, and is empty again. Returns how many ran in one pass.
  size_t run();

 private:
  friend class RowTiles;
  static constexpr size_t most_steps = 48;
  static constexpr int nowhere = -1;

  // Where an operand is: the result of a step of the group, a tensor from outside, or the number in
  // the step's own cell.
  struct Operand {
    const Tensor* tensor = nullptr;
    int step = nowhere;
    Extent extent = Extent::One;  // beside rows, where the group has any
  };
  struct Step {
    PendingCall* call;
    const Tensor* out;
    int inputs = 0;
    Operand in[cpu::LoopOfCall::most_inputs];
    Extent extent = Extent::Full;  // of the result
    int last_use = nowhere;        // the last step that reads the result
    bool kept = false;             // somebody else has the result

    bool reduces() const { return call->reduction.loop != nullptr; }
    const cpu::LoopOfCall& loop() const { return call->loop; }
  };
  struct Program;

  bool add_pointwise(Step& s);
  bool add_reduction(Step& s);
  bool find_operands(Step& s) const;
  bool is_view_of_rows(const Step& s, const Tensor& t) const;
  bool fits_memory(const Step& s) const;
  static bool fits_rows(const RowFrame& frame, const std::vector<Step>& before, Step& s);
  void find_kept();
  bool saves_reading() const;
  bool run_together();

  std::vector<Step> steps_;
  RowFrame frame_;  // valid once a step reduces
};

}  // namespace facula

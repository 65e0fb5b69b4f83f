#include "graph/rows.h"

#include <algorithm>
#include <bit>

#include "core/threads.h"
#include "graph/loop_request.h"
#include "graph/row_tiles.h"
#include "graph/tile_scratch.h"
#include "kernels/cpu/loop/loop.h"

namespace facula {

using cpu::LoopOfCall;

bool same_geometry(const Tensor& a, const Tensor& b) {
  return a->offset == b->offset && a.dtype() == b.dtype() && same_sizes(a.sizes(), b.sizes()) &&
         same_sizes(a.strides(), b.strides());
}

namespace {

constexpr size_t scratch_bytes = 24 * 1024;  // of the first cache, beside what is read and written
constexpr int64_t most_tile = 512, least_tile = 64;
constexpr int64_t short_row = 16;  // shorter rows cost more than passes over memory save

// Whether all elements are read in the order in which they lie, or there is only one.
bool is_flat(const Tensor& t, const Tensor& out) {
  return t.numel() == 1 || (t.is_contiguous() && same_sizes(t.sizes(), out.sizes()));
}

const Tensor& written_by(const PendingCall& p) {
  if (!p.writes()) return p.results[0];
  return p.saved.args()[std::countr_zero(p.info->mutated)].as_tensor();
}

}  // namespace

// The steps as a tile runs through them.
struct RowGroup::Program {
  static constexpr int of_scratch = -1, of_cell = -2;
  struct Place {
    int memory = of_cell;  // a position in `memory`, or one of the above
    size_t scratch = 0;    // bytes from the beginning of a thread's scratch
    int64_t itemsize = 0;
    const char* cell = nullptr;
  };
  struct Step {
    cpu::LoopFn loop;
    const void* params;
    int operands;  // with the result, which comes first
    Place place[1 + LoopOfCall::most_inputs];
  };
  std::vector<Step> steps;
  std::vector<const Tensor*> memory;
  int64_t tile = most_tile;

  int memory_of(const Tensor& t) {
    for (size_t i = 0; i < memory.size(); ++i)
      if (memory[i]->get()->storage == t->storage && same_geometry(*memory[i], t))
        return static_cast<int>(i);
    memory.push_back(&t);
    return static_cast<int>(memory.size()) - 1;
  }
  // The code that stands for the steps, if there is some, with the parameters that it reads.
  CompiledLoop compiled = nullptr;
  LoopRequest request;
  void find_compiled(const std::vector<RowGroup::Step>& from, const IntVec& inner_strides);

  // Runs n elements; data and strides as LoopPlan's rows have them.
  void run(char* const* data, const int64_t* strides, int64_t n) const;
  // Over memory that all lies in one order; over any that broadcasts, false where its rows are
  // short.
  bool run_flat(const std::vector<RowGroup::Step>& from, int64_t n, int64_t grain);
  bool run_rows(const std::vector<RowGroup::Step>& from, IntSpan sizes, int64_t grain);
};

// Describes the steps to the compiler of loops; inner_strides are those of the operands in memory,
// in bytes.
void RowGroup::Program::find_compiled(const std::vector<RowGroup::Step>& from,
                                      const IntVec& inner_strides) {
  if (!find_compiled_loop.load(std::memory_order_relaxed)) return;
  using enum FusedLoop::Stepping;
  for (size_t m = 0; m < memory.size(); ++m) {
    const auto item = static_cast<int64_t>(memory[m]->itemsize());
    const int64_t stride = inner_strides[m];
    request.add_memory(item, stride == item ? Unit : stride == 0 ? None : Any);
  }
  for (size_t i = 0; i < from.size(); ++i) {
    FusedLoop::Operand in[LoopOfCall::most_inputs];
    for (int k = 0; k < from[i].inputs; ++k) {
      const int made = from[i].in[k].step, at = steps[i].place[1 + k].memory;
      if (made >= 0)
        in[k] = {FusedLoop::Source::Step, static_cast<uint16_t>(made)};
      else if (at >= 0)
        in[k] = {FusedLoop::Source::Memory, static_cast<uint16_t>(at)};
    }
    const int stores = std::max(-1, steps[i].place[0].memory);
    const auto item = static_cast<int64_t>(from[i].out->itemsize());
    if (!request.add_step(from[i].loop(), item, stores, in)) return;
  }
  compiled = request.find();
}

void RowGroup::Program::run(char* const* data, const int64_t* strides, int64_t n) const {
  if (compiled) return compiled(data, strides, n, request.params());
  alignas(64) char scratch[scratch_bytes];
  for (int64_t begin = 0; begin < n; begin += tile) {
    const int64_t count = std::min(tile, n - begin);
    for (const Step& s : steps) {
      char* at[1 + LoopOfCall::most_inputs];
      int64_t by[1 + LoopOfCall::most_inputs];
      for (int k = 0; k < s.operands; ++k) {
        const Place& p = s.place[k];
        if (p.memory >= 0) {
          at[k] = data[p.memory] + begin * strides[p.memory];
          by[k] = strides[p.memory];
        } else if (p.memory == of_scratch) {
          at[k] = scratch + p.scratch;
          by[k] = p.itemsize;
        } else {
          at[k] = const_cast<char*>(p.cell);
          by[k] = 0;
        }
      }
      s.loop(at, by, count, s.params);
    }
  }
}

// Finds for each operand of the call whether a step of the group makes it.
bool RowGroup::find_operands(Step& s) const {
  s.inputs = s.reduces() ? 1 : s.loop().inputs;
  for (int k = 0; k < s.inputs; ++k) {
    const int arg = s.reduces() ? 0 : s.loop().in[k].arg;
    const Tensor* t = arg < 0 ? nullptr : &s.call->saved.args()[arg].as_tensor();
    s.in[k] = {t, nowhere};
    if (!t) continue;
    for (int i = static_cast<int>(steps_.size()) - 1; i >= 0; --i) {
      const Step& before = steps_[static_cast<size_t>(i)];
      const Tensor& made = *before.out;
      if (!(made->storage == (*t)->storage)) continue;
      if (!same_geometry(made, *t) && !is_view_of_rows(before, *t)) return false;
      s.in[k].step = i;
      break;
    }
  }
  return true;
}

// Whether a tensor has the numbers of rows that a step makes, in another shape.
bool RowGroup::is_view_of_rows(const Step& s, const Tensor& t) const {
  return s.extent == Extent::Row && frame_.has_rows(t) && t->offset == (*s.out)->offset &&
         t.dtype() == s.out->dtype();
}

// What the call writes may be read by the group only element for element.
bool RowGroup::fits_memory(const Step& s) const {
  const Tensor& out = *s.out;
  const auto apart = [&](const Tensor* t) {
    return !t || !((*t)->storage == out->storage) || same_geometry(*t, out);
  };
  for (int k = 0; k < s.inputs; ++k)
    if (!apart(s.in[k].tensor)) return false;
  for (const Step& before : steps_) {
    if (!apart(before.out)) return false;
    for (int k = 0; k < before.inputs; ++k)
      if (!apart(before.in[k].tensor)) return false;
  }
  return true;
}

// Finds how a step's operands lie beside the rows of a frame; false where they do not.
bool RowGroup::fits_rows(const RowFrame& frame, const std::vector<Step>& before, Step& s) {
  const bool rows = !s.reduces() && !frame.is_full(*s.out);
  if (rows && (frame.is_whole() || !frame.has_rows(*s.out))) return false;
  s.extent = rows || s.reduces() ? Extent::Row : Extent::Full;
  for (int k = 0; k < s.inputs; ++k) {
    Operand& o = s.in[k];
    if (!o.tensor) continue;
    const Tensor& t = *o.tensor;
    if (!rows)
      o.extent = frame.extent(t);
    else if (t.numel() == 1 && frame.rows() > 1)
      o.extent = Extent::One;
    else
      o.extent =
          t.is_contiguous() && same_sizes(t.sizes(), s.out->sizes()) ? Extent::Row : Extent::Other;
    if (o.extent == Extent::Other) return false;
    if (o.step == nowhere) continue;
    const Extent made = before[static_cast<size_t>(o.step)].extent;
    if (made == Extent::Row && (frame.is_whole() || !(rows || frame.is_row_of(t)))) return false;
    if (made == Extent::Row) o.extent = Extent::Row;
    if (o.extent != made) return false;
  }
  return true;
}

bool RowGroup::add(PendingCall& p) {
  if (!p.joins() || steps_.size() == most_steps) return false;
  if (!p.writes() && p.result_count != 1) return false;
  const Tensor& out = written_by(p);
  Step s{&p, &out};
  if (s.reduces() ? !add_reduction(s) : !add_pointwise(s)) return false;
  steps_.push_back(s);
  return true;
}

bool RowGroup::add_pointwise(Step& s) {
  const Tensor& out = *s.out;
  if (!find_operands(s) || !fits_memory(s)) return false;
  if (frame_.is_valid()) return fits_rows(frame_, steps_, s);
  if (out.numel() < least_deferred.load(std::memory_order_relaxed)) return false;
  return steps_.empty() || same_sizes(out.sizes(), steps_[0].out->sizes());
}

bool RowGroup::add_reduction(Step& s) {
  if (s.call->writes()) return false;
  const Tensor& input = s.call->saved.args()[0].as_tensor();
  if (input.numel() < least_deferred.load(std::memory_order_relaxed)) return false;
  const RowFrame frame(input, s.call->reduction);
  if (!frame.is_valid() || !find_operands(s)) return false;
  if (frame_.is_valid() && !(frame == frame_)) return false;
  if (!frame_.is_valid())
    for (Step& before : steps_)
      if (!frame.is_full(*before.out) || !fits_rows(frame, steps_, before)) return false;
  if (!fits_rows(frame, steps_, s)) return false;
  frame_ = frame;
  return true;
}

// A result is kept if somebody holds it who is not in the group.
void RowGroup::find_kept() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& s = steps_[i];
    s.last_use = nowhere;
    uint32_t inside = 1;
    bool changed = false;  // by a later step, in memory
    for (size_t j = i + 1; j < steps_.size(); ++j) {
      changed |= steps_[j].call->writes() && (*steps_[j].out)->storage == (*s.out)->storage;
      for (int k = 0; k < steps_[j].inputs; ++k) {
        const Operand& o = steps_[j].in[k];
        if (o.step != static_cast<int>(i)) continue;
        s.last_use = static_cast<int>(j);
        inside += o.tensor->get() == s.out->get();
      }
    }
    s.kept = s.call->writes() || changed || reaching_references(*s.out->get()) > inside ||
             reaching_references(*(*s.out)->storage) > 1;
  }
}

// Whether a step reads what another step makes or reads, so that one pass over memory is less than
// passes of their own.
bool RowGroup::saves_reading() const {
  std::vector<const Storage*> read;
  for (const Step& s : steps_)
    for (int k = 0; k < s.inputs; ++k) {
      if (s.in[k].step != nowhere) return true;
      if (!s.in[k].tensor) continue;
      const Storage* from = (*s.in[k].tensor)->storage.get();
      if (std::ranges::find(read, from) != read.end()) return true;
      read.push_back(from);
    }
  return false;
}

bool RowGroup::run_together() {
  Program program;
  std::vector<Program::Place> made(steps_.size());
  double tasks = 0;
  for (program.tile = most_tile; program.tile >= least_tile; program.tile /= 2) {
    program.steps.clear();
    program.memory.clear();
    TileScratch scratch(scratch_bytes, program.tile);
    bool fits = true;
    tasks = 0;
    for (size_t i = 0; fits && i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      Program::Step& to = program.steps.emplace_back();
      to.loop = s.loop().loop;
      to.params = s.loop().params;
      to.operands = 1 + s.loop().inputs;
      tasks += 1.0 / static_cast<double>(s.loop().grain);
      for (int k = 0; k < s.loop().inputs; ++k) {
        const Operand& o = s.in[k];
        if (o.step >= 0)
          to.place[1 + k] = made[static_cast<size_t>(o.step)];
        else if (o.tensor)
          to.place[1 + k].memory = program.memory_of(*o.tensor);
        else
          to.place[1 + k].cell = s.loop().in[k].cell;
      }
      Program::Place& out = to.place[0];
      out.itemsize = static_cast<int64_t>(s.out->itemsize());
      if (s.kept) {
        out.memory = program.memory_of(*s.out);
      } else {
        out.memory = Program::of_scratch;
        fits = scratch.take(out.itemsize, s.last_use, static_cast<int>(i), out.scratch);
      }
      made[i] = out;
    }
    if (fits) break;
  }
  if (program.tile < least_tile) return false;
  const Tensor& shape = *steps_[0].out;
  const auto flat = [&](const Tensor* t) { return is_flat(*t, shape); };
  const bool all_flat = std::ranges::all_of(program.memory, flat);
  if (!all_flat && program.memory.size() > static_cast<size_t>(cpu::most_operands)) return false;
  const auto grain = std::max<int64_t>(
      program.tile, static_cast<int64_t>(1 / tasks) / program.tile * program.tile);

  for (Step& s : steps_)
    if (s.kept && !s.call->writes()) (*s.out)->storage->allocate_pending();
  return all_flat ? program.run_flat(steps_, shape.numel(), grain)
                  : program.run_rows(steps_, shape.sizes(), grain);
}

bool RowGroup::Program::run_flat(const std::vector<RowGroup::Step>& from, int64_t n,
                                 int64_t grain) {
  std::vector<char*> data;
  IntVec strides;
  for (const Tensor* t : memory) {
    data.push_back(static_cast<char*>(t->data()));
    strides.push_back(t->numel() == 1 ? 0 : static_cast<int64_t>(t->itemsize()));
  }
  find_compiled(from, strides);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    std::vector<char*> at(data);
    for (size_t k = 0; k < at.size(); ++k) at[k] += begin * strides[k];
    run(at.data(), strides.data(), end - begin);
  });
  return true;
}

bool RowGroup::Program::run_rows(const std::vector<RowGroup::Step>& from, IntSpan sizes,
                                 int64_t grain) {
  cpu::LoopPlan plan(sizes);
  for (const Tensor* t : memory) plan.add(*t);
  plan.simplify();
  if (plan.sizes().empty() || plan.sizes().back() < short_row) return false;
  IntVec inner;
  for (size_t m = 0; m < memory.size(); ++m)
    inner.push_back(plan.strides(static_cast<int>(m)).back());
  find_compiled(from, inner);
  plan.run([](const void* context, char* const* at, const int64_t* by,
              int64_t n) { static_cast<const Program*>(context)->run(at, by, n); },
           this, grain);
  return true;
}

size_t RowGroup::run() {
  size_t together = 0;
  if (steps_.size() > 1 && saves_reading()) {
    find_kept();
    if (frame_.is_valid() ? RowTiles(*this).run() : run_together()) together = steps_.size();
  }
  for (Step& s : steps_) {
    if (together) {
      for (const Tensor& t : s.call->made()) t->storage->settle();
    } else {
      s.call->run();
      *s.call = {};
    }
  }
  if (together)  // what a later step reads is held by its call
    for (Step& s : steps_) *s.call = {};
  steps_.clear();
  frame_ = {};
  return together;
}

}  // namespace facula

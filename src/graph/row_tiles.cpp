#include "graph/row_tiles.h"

#include <algorithm>
#include <memory>

#include "core/allocator.h"
#include "core/threads.h"
#include "graph/tile_scratch.h"

namespace facula {

using cpu::LoopOfCall;
using cpu::PieceReduction;

namespace {

constexpr int64_t tile_elements = 2048;
constexpr size_t most_scratch = 256 * 1024;  // a part of the second cache
constexpr int64_t reduction_grain = 32768;   // elements that a reducing task handles

// Memory of one thread while it runs tiles.
class Room {
 public:
  explicit Room(size_t bytes) : bytes_(bytes + 64) {
    memory_ = static_cast<char*>(cpu_allocate(bytes_));
  }
  ~Room() { cpu_free(memory_, bytes_); }
  Room(const Room&) = delete;
  char* get() const {
    const auto at = reinterpret_cast<uintptr_t>(memory_);
    return memory_ + ((at + 63) / 64 * 64 - at);
  }

 private:
  const size_t bytes_;
  char* memory_;
};

constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

RowTiles::RowTiles(const RowGroup& group)
    : group_(group),
      frame_(group.frame_),
      tile_(frame_.is_whole()
                ? tile_elements
                : std::clamp<int64_t>(tile_elements / frame_.row(), 1, frame_.rows())),
      row_(frame_.is_whole() ? 1 : frame_.row()) {
  static_assert(tile_elements % PieceReduction::multiple == 0);
}

RowTiles::Place RowTiles::place_of(Extent e, const Tensor& t) const {
  const auto item = static_cast<int64_t>(t.itemsize());
  Place p;
  if (e == Extent::Full) p.row_step = row_ * item;
  if (e == Extent::Row) p.row_step = item;
  if (e == Extent::Full || e == Extent::Column) p.step = item;
  return p;
}

RowTiles::Place RowTiles::memory_place(Extent e, const Tensor& t) const {
  Place p = place_of(e, t);
  p.where = Place::Memory;
  p.at = static_cast<char*>(t.data());
  return p;
}

// Whether a step's result is stored, and not in the scratch alone.
bool RowTiles::in_memory(const RowGroup::Step& s) const {
  return s.kept || (frame_.is_whole() && s.reduces());
}

// Pointwise steps on whole rows between others make a run; any other step is one by itself.
void RowTiles::find_runs() {
  const auto joins = [&](int i) {
    const RowGroup::Step& s = group_.steps_[static_cast<size_t>(i)];
    return s.extent == Extent::Full && !s.reduces();
  };
  const int count = static_cast<int>(group_.steps_.size());
  for (int i = 0; i < count; ++i) {
    if (i > 0 && joins(i) && joins(i - 1))
      runs_.back().end = i + 1;
    else
      runs_.push_back({i, i + 1});
  }
  if (!find_compiled_loop.load(std::memory_order_relaxed)) return;
  for (Run& run : runs_)
    if (run.end - run.begin > 1 && describe(run)) run.code = run.request.find();
}

// The tensor whose memory an operand is; none for results in the scratch.
const Tensor* RowTiles::memory_of(const RowGroup::Operand& o) const {
  if (o.step < 0) return o.tensor;
  const RowGroup::Step& s = group_.steps_[static_cast<size_t>(o.step)];
  return in_memory(s) ? s.out : nullptr;
}

bool RowTiles::is_same(const RowGroup::Operand& a, const RowGroup::Operand& b) const {
  const Tensor *x = memory_of(a), *y = memory_of(b);
  if (!x || !y) return !x && !y && a.step == b.step;
  return (*x)->storage == (*y)->storage && same_geometry(*x, *y);
}

// The position of an operand among those of a run's code.
int RowTiles::operand_of(Run& run, const RowGroup::Operand& o) const {
  const auto same = [&](const RowGroup::Operand& each) { return is_same(each, o); };
  const auto found = std::ranges::find_if(run.operands, same);
  if (found != run.operands.end()) return static_cast<int>(found - run.operands.begin());
  run.operands.push_back(o);
  run.row_by_row |= o.extent == Extent::Row || o.extent == Extent::Column;
  const Tensor& t = o.step < 0 ? *o.tensor : *group_.steps_[static_cast<size_t>(o.step)].out;
  const bool one = o.extent == Extent::Row || o.extent == Extent::One;
  return run.request.add_memory(static_cast<int64_t>(t.itemsize()),
                                one ? FusedLoop::Stepping::None : FusedLoop::Stepping::Unit);
}

// Describes the steps of a run as a loop; false where no code is to be made of it.
bool RowTiles::describe(Run& run) const {
  for (int i = run.begin; i < run.end; ++i) {
    const RowGroup::Step& s = group_.steps_[static_cast<size_t>(i)];
    FusedLoop::Operand in[LoopOfCall::most_inputs];
    for (int k = 0; k < s.inputs; ++k) {
      const RowGroup::Operand& o = s.in[k];
      if (o.step >= run.begin)
        in[k] = {FusedLoop::Source::Step, static_cast<uint16_t>(o.step - run.begin)};
      else if (o.step >= 0 || o.tensor)
        in[k] = {FusedLoop::Source::Memory, static_cast<uint16_t>(operand_of(run, o))};
    }
    const bool stored = in_memory(s) || s.last_use >= run.end;
    const int stores = stored ? operand_of(run, {s.out, i, Extent::Full}) : -1;
    if (!run.request.add_step(s.loop(), static_cast<int64_t>(s.out->itemsize()), stores, in))
      return false;
  }
  return run.operands.size() <= most_operands;
}

// Finds places in the scratch for what is not in memory. Machine code reads and writes all its
// operands at once, so none of its results may lie where another operand was.
bool RowTiles::make_room(std::vector<size_t>& offsets, size_t& full_bytes, size_t& bytes) const {
  TileScratch full(most_scratch, tile_ * row_), rows(most_scratch, tile_);
  for (const Run& run : runs_)
    for (int i = run.begin; i < run.end; ++i) {
      const RowGroup::Step& s = group_.steps_[static_cast<size_t>(i)];
      if (in_memory(s) || (run.code && s.last_use < run.end)) continue;
      TileScratch& room = s.extent == Extent::Full ? full : rows;
      const auto item = static_cast<int64_t>(s.out->itemsize());
      const int from = run.code ? run.begin : i;
      if (!room.take(item, s.last_use, from, offsets[static_cast<size_t>(i)])) return false;
    }
  full_bytes = full.used();
  bytes = full.used() + rows.used();
  return bytes <= most_scratch;
}

bool RowTiles::make_steps(size_t& scratch_bytes) {
  const auto& from = group_.steps_;
  std::vector<size_t> offsets(from.size());
  size_t full_bytes = 0;
  if (!make_room(offsets, full_bytes, scratch_bytes)) return false;
  for (const RowGroup::Step& s : from)
    if (!s.call->writes() && in_memory(s)) (*s.out)->storage->allocate_pending();

  const auto made = [&](size_t i) {
    const RowGroup::Step& s = from[i];
    if (in_memory(s)) return memory_place(s.extent, *s.out);
    Place p = place_of(s.extent, *s.out);
    p.where = Place::Scratch;
    p.offset = offsets[i] + (s.extent == Extent::Full ? 0 : full_bytes);
    return p;
  };
  const auto place = [&](const RowGroup::Operand& o) {
    return o.step >= 0 ? made(static_cast<size_t>(o.step)) : memory_place(o.extent, *o.tensor);
  };
  for (size_t i = 0; i < from.size(); ++i) {
    const RowGroup::Step& s = from[i];
    Step& to = steps_.emplace_back(Step{&s, 1 + s.inputs});
    to.place[0] = made(i);
    for (int k = 0; k < s.inputs; ++k) {
      const RowGroup::Operand& o = s.in[k];
      Place& p = to.place[1 + k];
      if (o.step >= 0 || o.tensor)
        p = place(o);
      else
        p.at = const_cast<char*>(s.loop().in[k].cell);
      to.row_by_row |=
          s.extent == Extent::Full && (o.extent == Extent::Row || o.extent == Extent::Column);
    }
  }
  for (Run& run : runs_)
    if (run.code)
      for (const RowGroup::Operand& o : run.operands) run.place.push_back(place(o));
  return true;
}

char* RowTiles::address(const Place& p, const Tile& tile) {
  if (p.where == Place::Scratch) return tile.scratch + p.offset;
  return p.where == Place::Memory ? p.at + tile.begin * p.row_step : p.at;
}

void RowTiles::run_loop(const Step& s, const Tile& tile) const {
  const LoopOfCall& loop = s.from->loop();
  char* at[1 + LoopOfCall::most_inputs];
  int64_t by[1 + LoopOfCall::most_inputs];
  const bool row = s.from->extent == Extent::Row;
  for (int k = 0; k < s.operands; ++k) {
    at[k] = address(s.place[k], tile);
    by[k] = row ? s.place[k].row_step : s.place[k].step;
  }
  if (!s.row_by_row) return loop.loop(at, by, row ? tile.rows : tile.rows * row_, loop.params);
  for (int64_t r = 0; r < tile.rows; ++r) {
    loop.loop(at, by, row_, loop.params);
    for (int k = 0; k < s.operands; ++k) at[k] += s.place[k].row_step;
  }
}

void RowTiles::run_step(const Step& s, const Tile& tile) const {
  if (!s.from->reduces()) return run_loop(s, tile);
  const cpu::RowReduction& r = s.from->call->reduction;
  const char* in = address(s.place[1], tile);
  char* out = address(s.place[0], tile);
  if (tile.rows == tile_) return r.loop(plan_, r.params, in, out, nullptr);
  r.loop(cpu::plan_rows(tile.rows, row_), r.params, in, out, nullptr);
}

void RowTiles::run_code(const Run& run, const Tile& tile) const {
  char* at[most_operands];
  static constexpr int64_t no_steps[most_operands] = {};  // the code knows them all
  const size_t count = run.place.size();
  for (size_t k = 0; k < count; ++k) at[k] = address(run.place[k], tile);
  if (!run.row_by_row) return run.code(at, no_steps, tile.rows * row_, run.request.params());
  for (int64_t r = 0; r < tile.rows; ++r) {
    run.code(at, no_steps, row_, run.request.params());
    for (size_t k = 0; k < count; ++k) at[k] += run.place[k].row_step;
  }
}

// How many elements make a task.
int64_t RowTiles::elements_of_task() const {
  double tasks = 0;
  for (const Step& s : steps_)
    if (s.from->extent == Extent::Full || s.from->reduces())
      tasks +=
          1.0 / static_cast<double>(s.from->reduces() ? reduction_grain : s.from->loop().grain);
  return static_cast<int64_t>(1 / tasks);
}

void RowTiles::run_rows(size_t scratch_bytes) const {
  const int64_t tile = tile_ * row_;
  const int64_t grain = std::max<int64_t>(1, elements_of_task() / tile) * tile_;
  parallel_for(frame_.rows(), grain, [&](int64_t begin, int64_t end) {
    const Room room(scratch_bytes);
    for (; begin < end; begin += tile_) {
      const Tile t{begin, std::min(tile_, end - begin), room.get()};
      for (const Run& run : runs_) {
        if (run.code) {
          run_code(run, t);
          continue;
        }
        for (int i = run.begin; i < run.end; ++i) run_step(steps_[static_cast<size_t>(i)], t);
      }
    }
  });
}

const PieceReduction& RowTiles::pieces_of(const Step& s) { return *s.from->call->reduction.pieces; }

// Walks one part of the row: accumulators at the beginning of `room`, then the scratch of tiles.
// The sums' results go to their places in `results`, one for each part.
void RowTiles::run_part(const cpu::ReducePlan& plan, int64_t part, char* room, size_t sums,
                        const std::vector<char*>& results) const {
  char* mine = room;
  for (const Step& s : steps_) {
    if (!s.from->reduces()) continue;
    pieces_of(s).begin(mine, s.from->call->reduction.params);
    mine += aligned(pieces_of(s).room);
  }
  const int64_t end = std::min(frame_.row(), (part + 1) * plan.part_length);
  for (int64_t begin = part * plan.part_length; begin < end; begin += tile_) {
    const Tile t{begin, std::min(tile_, end - begin), room + sums};
    mine = room;
    for (const Run& run : runs_) {
      if (run.code) {
        run_code(run, t);
        continue;
      }
      for (int i = run.begin; i < run.end; ++i) {
        const Step& s = steps_[static_cast<size_t>(i)];
        if (!s.from->reduces()) {
          run_loop(s, t);
          continue;
        }
        pieces_of(s).add(mine, address(s.place[1], t), t.rows);
        mine += aligned(pieces_of(s).room);
      }
    }
  }
  mine = room;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].from->reduces()) continue;
    const PieceReduction& p = pieces_of(steps_[i]);
    p.end(mine, results[i] + static_cast<size_t>(part) * p.result);
    mine += aligned(p.room);
  }
}

void RowTiles::run_pieces(size_t scratch_bytes) const {
  const cpu::ReducePlan plan = cpu::plan_one_row(frame_.row());
  std::vector<std::unique_ptr<Room>> rooms;
  std::vector<char*> results(steps_.size());
  size_t sums = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].from->reduces()) continue;
    const PieceReduction& p = pieces_of(steps_[i]);
    rooms.push_back(std::make_unique<Room>(static_cast<size_t>(plan.parts) * p.result));
    results[i] = rooms.back()->get();
    sums += aligned(p.room);
  }
  parallel_for(plan.parts, 1, [&](int64_t begin, int64_t end) {
    const Room room(sums + scratch_bytes);
    for (int64_t part = begin; part < end; ++part) run_part(plan, part, room.get(), sums, results);
  });
  for (size_t i = 0; i < steps_.size(); ++i)
    if (results[i])
      pieces_of(steps_[i]).finish(plan, steps_[i].from->call->reduction.params, results[i],
                                  steps_[i].place[0].at);
}

bool RowTiles::run() {
  find_runs();
  size_t scratch_bytes = 0;
  if (!make_steps(scratch_bytes)) return false;
  if (frame_.is_whole()) {
    run_pieces(scratch_bytes);
    return true;
  }
  plan_ = cpu::plan_rows(tile_, row_);
  run_rows(scratch_bytes);
  return true;
}

}  // namespace facula

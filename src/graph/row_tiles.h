// Runs a group that reduces rows (graph/rows.h), a few rows at a time: pointwise steps pass over
// whole rows, a reduction gives a number for each, and what reads that reads it while the rows are
// still in the cache. A single long row is walked in pieces by accumulators instead. Pointwise
// steps between two reductions may be one loop of machine code.
#pragma once
#include "graph/loop_request.h"
#include "graph/rows.h"

namespace facula {

class RowTiles {
 public:
  explicit RowTiles(const RowGroup& group);
  // False, with nothing done, where the group's results do not fit the scratch.
  bool run();

 private:
  // Where an operand of a tile lies, and how far its next row and its next element are.
  struct Place {
    enum Where : uint8_t { Memory, Scratch, Cell };
    Where where = Cell;
    char* at = nullptr;  // memory or cell
    size_t offset = 0;   // in the scratch
    int64_t row_step = 0, step = 0;
  };
  struct Step {
    const RowGroup::Step* from;
    int operands;  // with the result, which comes first
    bool row_by_row = false;
    Place place[1 + cpu::LoopOfCall::most_inputs];
  };
  struct Tile {
    int64_t begin, rows;
    char* scratch;
  };
  // Steps that pass over a tile one after another, and machine code that stands for them all: only
  // its operands lie in memory then, in this order.
  struct Run {
    int begin, end;
    CompiledLoop code = nullptr;
    bool row_by_row = false;
    LoopRequest request = {};
    std::vector<RowGroup::Operand> operands = {};
    std::vector<Place> place = {};
  };
  static constexpr size_t most_operands = 64;  // of code

  bool in_memory(const RowGroup::Step& s) const;
  void find_runs();
  bool describe(Run& run) const;
  int operand_of(Run& run, const RowGroup::Operand& o) const;
  bool is_same(const RowGroup::Operand& a, const RowGroup::Operand& b) const;
  const Tensor* memory_of(const RowGroup::Operand& o) const;
  bool make_steps(size_t& scratch_bytes);
  bool make_room(std::vector<size_t>& offsets, size_t& full_bytes, size_t& bytes) const;
  Place place_of(Extent e, const Tensor& t) const;
  Place memory_place(Extent e, const Tensor& t) const;
  static char* address(const Place& p, const Tile& tile);
  int64_t elements_of_task() const;
  void run_step(const Step& s, const Tile& tile) const;
  void run_loop(const Step& s, const Tile& tile) const;
  void run_code(const Run& run, const Tile& tile) const;
  void run_rows(size_t scratch_bytes) const;
  static const cpu::PieceReduction& pieces_of(const Step& s);
  void run_part(const cpu::ReducePlan& plan, int64_t part, char* room, size_t sums,
                const std::vector<char*>& results) const;
  void run_pieces(size_t scratch_bytes) const;

  const RowGroup& group_;
  const RowFrame& frame_;
  int64_t tile_;  // rows, or elements of a single row
  int64_t row_;   // elements that a row of a tile has: one, where a single row is walked
  std::vector<Run> runs_;
  std::vector<Step> steps_;
  cpu::ReducePlan plan_;  // of a full tile
};

}  // namespace facula

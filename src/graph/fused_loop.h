// A group of pointwise calls as one loop, in the form in which a compiler of loops is asked for it
// (codegen/loop_cache.h). It says all that the machine code depends on, so equal ones share it.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace facula {

struct FusedLoop {
  static constexpr int most_inputs = 3;
  enum class Source : uint8_t { Step, Memory, Number };
  // A step's result, an operand in memory, or a number among the step's parameters.
  struct Operand {
    Source source = Source::Number;
    uint16_t at = 0;
  };
  struct Step {
    const char* function = nullptr;  // the scalar function (LoopTable::function), or a copy
    DType compute = DType::Undefined;
    bool by_number = false;  // half types by a number that is a float
    uint8_t inputs = 0, itemsize = 0;
    int16_t stores = -1;  // the operand in memory that gets the result, too
    Operand in[most_inputs];
  };
  enum class Stepping : uint8_t { Unit, None, Any };
  struct Memory {
    uint8_t itemsize = 0;
    Stepping stepping = Stepping::Unit;
  };
  std::vector<Step> steps;
  std::vector<Memory> memory;

  // What a step has among the parameters: those of its function, then its numbers.
  static constexpr size_t params_of_step = 128, numbers_begin = 64, number_size = 16;

  // Equal for loops that the same code serves.
  std::string key() const;
};

// n elements: data and steps (in bytes) of the operands in memory, parameters of all steps.
using CompiledLoop = void (*)(char* const* data, const int64_t* steps, int64_t n,
                              const void* params);

// Gives the code of a loop if there is some by now. Null without a compiler.
using FindLoop = CompiledLoop (*)(const FusedLoop& loop);
extern std::atomic<FindLoop> find_compiled_loop;

}  // namespace facula

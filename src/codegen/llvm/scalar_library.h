// The scalar functions of elementwise kernels as bitcode: the very loops that the kernels consist
// of, compiled by clang from the same source, one module for each instruction set.
#pragma once
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "core/dtype.h"

namespace facula::codegen {

class ScalarLibrary {
 public:
  // Of an instruction set; null where there is no bitcode for it.
  static const ScalarLibrary* of(const std::string& isa);

  // A number that differs where any of the bitcode does.
  static std::string digest();

  // The symbol of the loop of a function for a dtype; empty where there is none. `text` ends in the
  // function's name, as LoopTable::function does.
  std::string loop(const char* text, DType compute, bool by_number) const;
  // The bitcode as a module whose functions are read when they are linked.
  std::unique_ptr<llvm::Module> module(llvm::LLVMContext& context) const;

 private:
  ScalarLibrary(const char* begin, const char* end);
  void read_tables();

  const char *begin_, *end_;
  std::unordered_map<std::string, std::string> symbols_;  // by name, dtype and kind
};

}  // namespace facula::codegen

// A fused loop as LLVM's code: one loop over the elements, which calls for each step the kernel's
// own loop for a single element. What these calls come to, once they are inlined, is a loop without
// calls that the vectoriser takes.
#pragma once
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "codegen/llvm/scalar_library.h"
#include "graph/fused_loop.h"

namespace facula::codegen {

// A module that defines `symbol` as a CompiledLoop; null, with the reason, where a step is unknown.
std::unique_ptr<llvm::Module> build_loop(const FusedLoop& loop, const ScalarLibrary& library,
                                         const std::string& symbol, llvm::LLVMContext& context,
                                         std::string& error);

}  // namespace facula::codegen

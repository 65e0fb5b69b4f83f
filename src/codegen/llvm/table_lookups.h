// Look-ups in the tables of scalar functions, by permutes in place of gathers.
#pragma once
#include <llvm/IR/Module.h>

namespace facula::codegen {

// Turns gathers from constant tables of sixteen numbers into permutes of registers, as the packs of
// kernels/scalar/table.h have them. False where a gather from a constant table is left: row
// functions are faster then.
bool permute_tables(llvm::Module& m, bool has_avx512);

}  // namespace facula::codegen

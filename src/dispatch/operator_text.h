// Writing an operator's name into error texts.
#pragma once
#include <iosfwd>

#include "dispatch/operator.h"

namespace facula {

// Writes "aten::add.Tensor". Passing the operator to check() costs nothing unless the check fails,
// while Operator::name() would build a string each time.
std::ostream& operator<<(std::ostream& s, const Operator& op);

}  // namespace facula

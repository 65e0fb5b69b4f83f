#pragma once

#include <iosfwd>

#include "dispatch/operator.h"

namespace facula {

// Writes "aten::add.Tensor". The text of a check is made only where the check fails; a call of
// name() among its arguments would be made always.
std::ostream& operator<<(std::ostream& s, const Operator& op);

}  // namespace facula

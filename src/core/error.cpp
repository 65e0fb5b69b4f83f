#include "core/error.h"

namespace facula {

void throw_error(ErrorKind kind, std::string text) { throw Error(kind, text); }

}  // namespace facula

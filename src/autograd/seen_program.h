// Modes in Python that see a program call by call.
#pragma once

namespace facula {

// Whether a dispatch mode that is written in Python is on this thread's stack. Null without Python.
// What a node saves of its own results then passes the mode as a `detach`, so that the mode knows
// the tensor when a derivative reads it.
extern bool (*program_is_seen)();

}  // namespace facula

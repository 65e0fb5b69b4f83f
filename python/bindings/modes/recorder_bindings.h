// The recorder of compiled functions for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Opens the recorder of this thread; false if there is one, or modes are on. `on_break`, which may
// be null, is called at breaks.
bool open_recorder(PyObject* on_break);
// Runs what was put off and closes it. Gives the result of the function that ran in between, or
// null with an exception if that or the rest has raised one.
PyObject* close_recorder(PyObject* result);

// Calls f(opened), which gives a new reference or null, with the recorder on.
template <class F>
PyObject* in_recorder(PyObject* on_break, F&& f) {
  return guard([&]() -> PyObject* {
    const bool opened = open_recorder(on_break);
    PyObject* result = guard([&] { return f(opened); });
    return opened ? close_recorder(result) : result;
  });
}

// Adds the functions to facula._C.
void add_recorder_functions(PyObject* module);

}  // namespace facula::python

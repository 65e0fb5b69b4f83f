// Where the Python package with LAPACK is, for the library that opens it.
#pragma once

namespace facula::python {

// Lets the library ask, when it first needs LAPACK, where scipy-openblas32 is installed.
void offer_lapack_package();

}  // namespace facula::python

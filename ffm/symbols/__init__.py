"""Code addresses to function, file and line; C++ demangling; Python frames."""

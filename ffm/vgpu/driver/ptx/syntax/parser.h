/* What the parser's two halves, declarations and function bodies, share. */
#pragma once

#include "lexer.h"
#include "syntax.h"

namespace vgpu::ptx
{

/* Space, alignment, type and extents up to the initializer or the end; throws Error. */
Variable read_variable(Lexer &words, Space space);

/* `= …`, for a variable that has been read. */
void read_initializer(Lexer &words, Variable &variable);

/* `{ … }` of a function whose parameters are known. Shared and global variables of it that outlive a call are named
 * after the function. */
void read_body(Lexer &words, Function &function, Module &module);

Space space_of(const std::string &word);

/* An integer as PTX writes it, in decimal, hexadecimal, octal or binary; throws Error. */
std::uint64_t integer_of(const std::string &word);

} // namespace vgpu::ptx

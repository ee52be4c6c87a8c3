/* The text of a PTX module as a tree: variables, functions, instructions (PTX ISA, "Syntax"). */
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "type.h"

namespace vgpu::ptx
{

/* What is wrong with the text, or what is not implemented. */
class Error : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

enum class Space { none, reg, special, constant, global, local, parameter, shared };

struct Initializer {
    std::size_t offset;  /* bytes from the variable's start */
    std::size_t size;    /* bytes */
    std::uint64_t value; /* added to the symbol's address, where there is a symbol */
    std::string symbol;
    bool generic = false;
    int byte = -1; /* this byte of the address only; -1: all */
};

struct Variable {
    std::string name; /* unique in the module for those of functions */
    Space space = Space::none;
    Type type;
    std::size_t alignment = 1;
    std::size_t size = 0; /* bytes; 0 for an array without extent */
    bool external = false;
    bool managed = false;
    std::vector<Initializer> initializers;
};

struct Operand {
    enum class Form { name, integer, real, address, vector, discarded };
    Form form = Form::discarded;
    std::string name;             /* of a register, variable, label or function */
    std::string second;           /* the second destination of `p|q` */
    std::string selector;         /* the parts of a register that `%r1.b0` names */
    bool negated = false;         /* `!p`, `-x` */
    std::int64_t value = 0;       /* an integer, the bits of a floating-point number, or an address's offset */
    int real_bits = 0;            /* 32 or 64 for numbers written as bits */
    std::vector<Operand> members; /* of a vector, a list of arguments, a texture's coordinates */
};

struct Instruction {
    std::vector<std::string> words; /* the opcode and its modifiers, without dots */
    std::vector<Operand> operands;
    std::string guard; /* the predicate's register; empty: always executed */
    bool guard_negated = false;
    std::string label; /* this is no instruction but a label */
    int line = 0;

    std::string text() const; /* the opcode with its modifiers */
    bool has(const char *word) const;
};

struct Function {
    std::string name;
    bool entry = false;
    bool defined = false;
    std::vector<Variable> parameters;
    std::vector<Variable> results;
    std::vector<Variable> variables; /* registers, local and shared variables, parameters of calls */
    std::vector<Instruction> body;
    std::map<std::string, std::vector<std::string>> branch_targets;
    std::uint32_t required_threads[3] = {0, 0, 0};
    std::uint32_t maximum_threads = 0;
    std::string unsupported; /* a directive that changes what the kernel does */
};

struct Module {
    std::vector<Variable> variables;
    std::map<std::string, Function> functions;
    std::vector<std::string> order; /* of the functions, as they are written */

    const Variable *variable(const std::string &name) const;
};

/* Throws Error with the line for text that is no PTX. */
Module parse(const std::string &text);

} // namespace vgpu::ptx

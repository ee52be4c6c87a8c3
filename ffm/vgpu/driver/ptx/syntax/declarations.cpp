/* Everything outside function bodies. */
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>

#include "parser.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::size_t size_of_handle = 8; /* .texref, .samplerref, .surfref */

[[noreturn]] void fail(const Lexer &words, const std::string &cause)
{
    throw Error("line " + std::to_string(words.line()) + ": " + cause);
}

/* The product of the extents in `[2][4]`; 0 for `[]`. */
std::size_t read_extents(Lexer &words)
{
    std::size_t count = 1;
    while (words.accept("[")) {
        if (words.accept("]")) {
            count = 0;
            continue;
        }
        count *= integer_of(words.next());
        words.expect("]");
    }
    return count;
}

/* Reads `( .param .u64 name, … )`, which may be empty. */
void read_parameters(Lexer &words, std::vector<Variable> &parameters)
{
    words.expect("(");
    while (!words.accept(")")) {
        Space space = space_of(words.peek());
        if (space == Space::none)
            fail(words, "expected a parameter, found '" + words.peek() + "'");
        words.next();
        parameters.push_back(read_variable(words, space));
        words.accept(",");
    }
}

void skip_statement(Lexer &words)
{
    while (!words.at_end() && !words.accept(";"))
        words.next();
}

/* Reads three extents, as in `.maxntid 256, 1, 1`. Missing ones are 1. */
void read_extent_triple(Lexer &words, std::uint32_t extents[3])
{
    for (int axis = 0; axis < 3; ++axis) {
        extents[axis] = 1;
        if (axis == 0 || words.accept(","))
            extents[axis] = static_cast<std::uint32_t>(integer_of(words.next()));
    }
}

/* Directives that a compiler may follow, but that do not change what the code does. */
bool is_advice(const std::string &word)
{
    static const std::set<std::string> *known = new std::set<std::string>{
        ".maxnreg", ".minnctapersm", ".maxnctapersm", ".noreturn", ".abi_preserve", ".abi_preserve_control"};
    return known->count(word) > 0;
}

/* Reads the directives between a function's parameters and its body. */
void read_attributes(Lexer &words, Function &function)
{
    while (words.peek() != "{" && words.peek() != ";" && !words.at_end()) {
        std::string word = words.next();
        std::uint32_t extents[3];
        if (word == ".maxntid") {
            read_extent_triple(words, extents);
            function.maximum_threads = extents[0] * extents[1] * extents[2];
        } else if (word == ".reqntid") {
            read_extent_triple(words, function.required_threads);
        } else if (word == ".pragma") { /* only a hint */
            skip_statement(words);
        } else if (word[0] == '.' && !is_advice(word)) {
            function.unsupported = word;
        }
    }
}

void read_function(Lexer &words, Module &module, bool entry, bool weak)
{
    Function function;
    function.entry = entry;
    if (words.peek() == "(")
        read_parameters(words, function.results);
    function.name = words.next();
    if (words.peek() == "(")
        read_parameters(words, function.parameters);
    read_attributes(words, function);
    if (words.accept(";")) {
        module.functions.emplace(function.name, function);
        return;
    }
    auto earlier = module.functions.find(function.name);
    if (earlier != module.functions.end() && earlier->second.defined && !weak)
        throw Error("line " + std::to_string(words.line()) + ": " + function.name + " is defined twice");
    function.defined = true;
    read_body(words, function, module);
    if (earlier != module.functions.end() && earlier->second.defined)
        return; /* the first of several weak definitions counts */
    module.order.push_back(function.name);
    module.functions[function.name] = std::move(function);
}

/* Reads one `{ … }` level of bytes or numbers. `place` is the offset of the next one. */
void read_values(Lexer &words, Variable &variable, std::size_t &place);

void read_value(Lexer &words, Variable &variable, std::size_t &place)
{
    std::size_t size = static_cast<std::size_t>(variable.type.bytes());
    Initializer value{place, size, 0, "", false};
    place += size;
    bool negative = words.accept("-");
    std::string word = words.next();
    if (words.peek() == "(") { /* generic(name), or 0xFF00(name) for one byte of the address */
        words.next();
        value.generic = word == "generic";
        if (!value.generic) {
            std::uint64_t mask = integer_of(word);
            value.byte = mask ? __builtin_ctzll(mask) / 8 : 0;
        }
        word = words.next();
        if (words.accept("(")) {
            value.generic = true;
            word = words.next();
            words.expect(")");
        }
        value.symbol = word;
        if (words.accept("+"))
            value.value = integer_of(words.next());
        words.expect(")");
    } else if (std::isdigit(static_cast<unsigned char>(word[0]))) {
        bool bits = word.size() > 2 && word[0] == '0' && std::strchr("fFdD", word[1]);
        if (bits) {
            value.value = std::strtoull(word.c_str() + 2, nullptr, 16);
        } else if (variable.type.is_float()) {
            double number = std::strtod(word.c_str(), nullptr);
            float narrow = static_cast<float>(number);
            std::memcpy(&value.value, size == 4 ? static_cast<void *>(&narrow) : &number, size);
        } else {
            value.value = integer_of(word);
        }
        if (negative)
            value.value = variable.type.is_float() ? value.value ^ (std::uint64_t{1} << (8 * size - 1)) : -value.value;
    } else {
        value.symbol = word;
    }
    if (words.accept("+"))
        value.value += integer_of(words.next());
    variable.initializers.push_back(value);
}

void read_values(Lexer &words, Variable &variable, std::size_t &place)
{
    if (!words.accept("{")) {
        read_value(words, variable, place);
        return;
    }
    while (!words.accept("}")) {
        if (words.at_end())
            fail(words, "a list of values without an end");
        read_values(words, variable, place);
        words.accept(",");
    }
}

void read_module_variable(Lexer &words, Module &module, Space space, bool external)
{
    do {
        Variable variable = read_variable(words, space);
        variable.external = external;
        if (words.peek() == "=")
            read_initializer(words, variable);
        auto same = [&variable](const Variable &known) { return known.name == variable.name; };
        auto known = std::find_if(module.variables.begin(), module.variables.end(), same);
        if (known == module.variables.end())
            module.variables.push_back(variable);
        else if (!external)
            *known = variable;
    } while (words.accept(","));
    words.expect(";");
}

} // namespace

Space space_of(const std::string &word)
{
    static const std::map<std::string, Space> *spaces = new std::map<std::string, Space>{
        {".reg", Space::reg},     {".const", Space::constant},  {".global", Space::global},
        {".local", Space::local}, {".param", Space::parameter}, {".shared", Space::shared}};
    auto found = spaces->find(word);
    return found == spaces->end() ? Space::none : found->second;
}

std::uint64_t integer_of(const std::string &word)
{
    bool binary = word.size() > 2 && word[0] == '0' && (word[1] == 'b' || word[1] == 'B');
    char *end = nullptr;
    std::uint64_t value = std::strtoull(word.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
    if (word.empty() || (*end != '\0' && *end != 'U'))
        throw Error("'" + word + "' is no integer");
    return value;
}

Variable read_variable(Lexer &words, Space space)
{
    Variable variable;
    variable.space = space;
    std::size_t alignment = 0, elements = 1;
    while (words.peek()[0] == '.') {
        std::string word = words.next();
        if (word == ".align") {
            alignment = integer_of(words.next());
        } else if (word == ".v2" || word == ".v4" || word == ".v8") {
            elements = static_cast<std::size_t>(word[2] - '0');
        } else if (word == ".attribute") {
            words.expect("(");
            while (!words.at_end() && !words.accept(")"))
                variable.managed |= words.next() == ".managed";
        } else if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
            variable.type = bits_type(8 * size_of_handle);
        } else if (type_of(word.substr(1)).kind != Kind::none) {
            variable.type = type_of(word.substr(1));
        } /* the rest is .ptr and its space, which only describe a pointer */
    }
    if (variable.type.kind == Kind::none)
        fail(words, "a declaration without a type");
    if (space == Space::reg && elements > 1)
        fail(words, "vectors of registers are not implemented");
    variable.name = words.next();
    std::size_t element = variable.type.kind == Kind::predicate ? 1 : static_cast<std::size_t>(variable.type.bytes());
    variable.size = element * elements * read_extents(words);
    variable.alignment = alignment ? alignment : element * elements;
    return variable;
}

void read_initializer(Lexer &words, Variable &variable)
{
    words.expect("=");
    std::size_t place = 0;
    read_values(words, variable, place);
    variable.size = std::max(variable.size, place);
}

const Variable *Module::variable(const std::string &name) const
{
    for (const Variable &candidate : variables)
        if (candidate.name == name)
            return &candidate;
    return nullptr;
}

Module parse(const std::string &text)
{
    Lexer words(text);
    Module module;
    bool external = false, weak = false;
    while (!words.at_end()) {
        std::string word = words.next();
        if (word == ".entry" || word == ".func") {
            read_function(words, module, word == ".entry", weak);
        } else if (Space space = space_of(word); space != Space::none) {
            read_module_variable(words, module, space, external);
        } else if (word == ".extern") {
            external = true;
            continue;
        } else if (word == ".section") {
            while (!words.at_end() && !words.accept("}"))
                words.next();
        } else if (word == ".pragma" || word == ".alias") {
            skip_statement(words);
        } /* the rest belongs to the file's head, to debugging or to linking */
        if (word != ".visible" && word != ".weak" && word != ".common")
            external = false;
        weak = word == ".weak";
    }
    return module;
}

} // namespace vgpu::ptx

/* Function bodies: declarations, labels and instructions, in nested scopes. */
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "parser.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::size_t most_variables = std::size_t{1} << 18; /* in a function; compilers declare far fewer */

/* Without overflow: the negative of the smallest number is that number. */
std::int64_t negative_of(std::int64_t value)
{
    return static_cast<std::int64_t>(-static_cast<std::uint64_t>(value));
}

struct Scope {
    int parent;
    std::map<std::string, std::string> names; /* from the name in the text to one that is unique in the function */
};

class BodyReader
{
  public:
    BodyReader(Lexer &words, Function &function, Module &module)
        : words_(words), function_(function), module_(module), scopes_{{-1, {}}}
    {
    }

    void read()
    {
        words_.expect("{");
        for (int depth = 1; depth > 0;) {
            if (words_.at_end())
                fail("the body of " + function_.name + " does not end");
            if (words_.accept("{")) {
                scopes_.push_back({scope_, {}});
                scope_ = static_cast<int>(scopes_.size()) - 1;
                ++depth;
            } else if (words_.accept("}")) {
                scope_ = scopes_[static_cast<std::size_t>(scope_)].parent;
                --depth;
            } else {
                read_statement();
            }
        }
        for (std::size_t index = 0; index < function_.body.size(); ++index)
            for (Operand &operand : function_.body[index].operands)
                resolve(operand, scope_of_instruction_[index]);
        for (const auto &list : scope_of_targets_)
            for (std::string &label : function_.branch_targets[list.first])
                label = lookup(label, list.second);
    }

  private:
    [[noreturn]] void fail(const std::string &cause)
    {
        throw Error("line " + std::to_string(words_.line()) + ": " + cause);
    }

    std::string unique(const std::string &name)
    {
        std::string made = scope_ == 0 ? name : name + "@" + std::to_string(scope_);
        scopes_[static_cast<std::size_t>(scope_)].names[name] = made;
        return made;
    }

    std::string lookup(const std::string &name, int scope) const
    {
        for (; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)].parent) {
            const auto &names = scopes_[static_cast<std::size_t>(scope)].names;
            auto found = names.find(name);
            if (found != names.end())
                return found->second;
        }
        return name;
    }

    bool declared(const std::string &name, int scope) const
    {
        for (; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)].parent)
            if (scopes_[static_cast<std::size_t>(scope)].names.count(name))
                return true;
        return false;
    }

    /* Only special registers have dots in their names. After any other register, a dot introduces the parts that are
     * selected. */
    void resolve(Operand &operand, int scope) const
    {
        std::size_t dot = operand.name.find('.');
        if (dot != std::string::npos && declared(operand.name.substr(0, dot), scope)) {
            operand.selector = operand.name.substr(dot + 1);
            operand.name.resize(dot);
        }
        operand.name = lookup(operand.name, scope);
        operand.second = lookup(operand.second, scope);
        for (Operand &member : operand.members)
            resolve(member, scope);
    }

    void read_statement()
    {
        std::string word = words_.peek();
        Space space = space_of(word);
        if (space != Space::none) {
            words_.next();
            read_declarations(space);
        } else if (word == ".loc" || word == ".file") {
            skip_line();
        } else if (words_.peek(1) == ":") {
            read_label();
        } else if (word[0] == '.') {
            if (word != ".pragma") /* only a hint */
                function_.unsupported = word;
            while (!words_.at_end() && !words_.accept(";"))
                words_.next();
        } else {
            read_instruction();
        }
    }

    void skip_line()
    {
        int line = words_.line();
        while (!words_.at_end() && words_.line() == line)
            words_.next();
    }

    void read_label()
    {
        std::string label = unique(words_.next());
        words_.expect(":");
        if (words_.peek() == ".branchtargets") {
            words_.next();
            do
                function_.branch_targets[label].push_back(words_.next());
            while (words_.accept(","));
            words_.expect(";");
            scope_of_targets_[label] = scope_;
            return;
        }
        if (words_.peek() == ".callprototype" || words_.peek() == ".calltargets") {
            while (!words_.at_end() && !words_.accept(";"))
                words_.next();
            return;
        }
        Instruction instruction;
        instruction.label = label;
        instruction.line = words_.line();
        add(instruction);
    }

    void add(const Instruction &instruction)
    {
        function_.body.push_back(instruction);
        scope_of_instruction_.push_back(scope_);
    }

    void read_declarations(Space space)
    {
        Variable first;
        do {
            Variable variable = first;
            if (first.type.kind == Kind::none)
                variable = first = read_variable(words_, space);
            else
                variable.name = words_.next();
            if (words_.accept("<")) {
                std::uint64_t count = integer_of(words_.next());
                words_.expect(">");
                if (count > most_variables || function_.variables.size() > most_variables - count)
                    fail(function_.name + " has more variables than can be translated");
                std::string prefix = variable.name;
                for (std::uint64_t number = 0; number < count; ++number) {
                    variable.name = unique(prefix + std::to_string(number));
                    function_.variables.push_back(variable);
                }
                continue;
            }
            std::string name = unique(variable.name);
            if (words_.peek() == "=")
                read_initializer(words_, variable);
            if (space == Space::global || space == Space::constant || space == Space::shared) {
                name = function_.name + "." + name; /* all calls share it */
                scopes_[static_cast<std::size_t>(scope_)].names[variable.name] = name;
                variable.name = name;
                module_.variables.push_back(variable);
                continue;
            }
            variable.name = name;
            function_.variables.push_back(variable);
        } while (words_.accept(","));
        words_.expect(";");
    }

    void read_instruction()
    {
        Instruction instruction;
        instruction.line = words_.line();
        if (words_.accept("@")) {
            instruction.guard_negated = words_.accept("!");
            instruction.guard = lookup(words_.next(), scope_);
        }
        std::istringstream parts(words_.next());
        for (std::string part; std::getline(parts, part, '.');)
            instruction.words.push_back(part);
        if (instruction.words.empty() || instruction.words.front().empty())
            fail("expected an instruction");
        while (!words_.accept(";")) {
            if (words_.at_end())
                fail("an instruction without an end");
            instruction.operands.push_back(read_operand());
            words_.accept(",");
        }
        add(instruction);
    }

    /* Reads up to `end`: `{a, b}`, `(a, b)`, or the rest of `[name, {x, y}]`. */
    Operand read_list(const std::string &end)
    {
        Operand list;
        list.form = Operand::Form::vector;
        while (!words_.accept(end)) {
            if (words_.at_end())
                fail("a list without an end");
            list.members.push_back(read_operand());
            words_.accept(",");
        }
        return list;
    }

    Operand read_address()
    {
        Operand address = read_operand();
        if (address.form == Operand::Form::integer)
            address.name.clear();
        else if (address.form != Operand::Form::name)
            fail("an address that is neither a name nor a number");
        address.form = Operand::Form::address;
        while (words_.accept(",")) /* a texture's coordinates */
            address.members.push_back(read_operand());
        words_.expect("]");
        return address;
    }

    Operand read_operand()
    {
        if (words_.accept("{"))
            return read_list("}");
        if (words_.accept("("))
            return read_list(")");
        if (words_.accept("["))
            return read_address();
        Operand operand;
        if (words_.accept("!") || words_.accept("-"))
            operand.negated = true;
        std::string word = words_.next();
        if (std::isdigit(static_cast<unsigned char>(word[0]))) {
            read_number(word, operand);
            return operand;
        }
        if (word == "_")
            return operand;
        operand.form = Operand::Form::name;
        operand.name = word;
        if (words_.accept("|"))
            operand.second = words_.next();
        else if (words_.accept("+"))
            operand.value = read_offset();
        else if (words_.peek() == "-")
            operand.value = read_offset();
        return operand;
    }

    std::int64_t read_offset()
    {
        bool negative = words_.accept("-");
        std::int64_t value = static_cast<std::int64_t>(integer_of(words_.next()));
        return negative ? negative_of(value) : value;
    }

    void read_number(const std::string &word, Operand &operand)
    {
        bool hexadecimal = word.size() > 1 && word[0] == '0' && std::strchr("xX", word[1]);
        if (word.size() > 2 && word[0] == '0' && std::strchr("fFdD", word[1])) {
            operand.form = Operand::Form::real;
            operand.real_bits = std::strchr("fF", word[1]) ? 32 : 64;
            operand.value = static_cast<std::int64_t>(std::strtoull(word.c_str() + 2, nullptr, 16));
        } else if (!hexadecimal && word.find_first_of(".eE") != std::string::npos) {
            double number = std::strtod(word.c_str(), nullptr);
            operand.form = Operand::Form::real;
            operand.real_bits = 64;
            number = operand.negated ? -number : number;
            operand.negated = false;
            std::memcpy(&operand.value, &number, sizeof number);
        } else {
            operand.form = Operand::Form::integer;
            operand.value = static_cast<std::int64_t>(integer_of(word));
            if (operand.negated)
                operand.value = negative_of(operand.value);
            operand.negated = false;
        }
    }

    Lexer &words_;
    Function &function_;
    Module &module_;
    std::vector<Scope> scopes_;
    std::vector<int> scope_of_instruction_;
    std::map<std::string, int> scope_of_targets_; /* by the list's label; the labels it names may come later */
    int scope_ = 0;
};

} // namespace

std::string Instruction::text() const
{
    std::string joined;
    for (const std::string &word : words)
        joined += (joined.empty() ? "" : ".") + word;
    return joined;
}

bool Instruction::has(const char *word) const
{
    for (const std::string &candidate : words)
        if (candidate == word)
            return true;
    return false;
}

void read_body(Lexer &words, Function &function, Module &module)
{
    BodyReader(words, function, module).read();
}

} // namespace vgpu::ptx

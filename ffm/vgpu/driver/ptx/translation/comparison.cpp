/* Comparisons and selections (PTX ISA, "Comparison and Selection Instructions"). */
#include <cstring>

#include "emitter.h"

namespace vgpu::ptx
{

/* Compares two values. `how` is PTX's name for the comparison. Yields an i1. */
std::string Emitter::compare(const Instruction &instruction, const std::string &how, Type kind, const Values &values)
{
    static const std::map<std::string, std::string> *real = new std::map<std::string, std::string>{
        {"eq", "oeq"},  {"ne", "one"},  {"lt", "olt"},  {"le", "ole"},  {"gt", "ogt"},  {"ge", "oge"},  {"equ", "ueq"},
        {"neu", "une"}, {"ltu", "ult"}, {"leu", "ule"}, {"gtu", "ugt"}, {"geu", "uge"}, {"num", "ord"}, {"nan", "uno"}};
    static const std::map<std::string, std::string> *whole =
        new std::map<std::string, std::string>{{"eq", "eq"}, {"ne", "ne"}, {"lt", "lt"}, {"le", "le"}, {"gt", "gt"},
                                               {"ge", "ge"}, {"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
    if (kind.is_float()) {
        auto found = real->find(how);
        if (found == real->end())
            unsupported(instruction);
        bool brain = kind.kind == Kind::brain;
        Values compared;
        for (const std::string &value : values)
            compared.push_back(brain ? widened(kind, value)
                                     : flushed_half(instruction, kind, flushed(instruction, kind, value)));
        std::string in = brain ? "float" : kind.llvm();
        return operation("fcmp " + found->second + " " + in + " " + compared[0] + ", " + compared[1]);
    }
    auto found = whole->find(how);
    if (found == whole->end())
        unsupported(instruction);
    std::string sign = how == "eq" || how == "ne" ? "" : kind.kind == Kind::sign ? "s" : "u";
    return operation("icmp " + sign + found->second + " " + kind.integer() + " " + values[0] + ", " + values[1]);
}

/* The comparison, combined with another predicate if `.and`, `.or` or `.xor` says so. */
std::string Emitter::combined(const Instruction &instruction, std::size_t how, std::string compared, bool &joins)
{
    joins = how < instruction.words.size() &&
            (instruction.words[how] == "and" || instruction.words[how] == "or" || instruction.words[how] == "xor");
    if (!joins)
        return compared;
    std::string given = read(operand(instruction, 3), type_of("pred"));
    return operation(instruction.words[how] + " i1 " + compared + ", " + given);
}

void Emitter::set_predicate(const Instruction &instruction)
{
    Type kind = type(instruction);
    Values values = {read(operand(instruction, 1), kind), read(operand(instruction, 2), kind)};
    const Operand &target = operand(instruction, 0);
    if (kind.lanes == 2) {
        const std::string &how = instruction.words[1];
        Type lane = {kind.kind, kind.bits, 1};
        std::string name[2] = {target.name, target.second};
        for (int index = 0; index < 2; ++index) {
            Values parts;
            for (const std::string &value : values)
                parts.push_back(cast(index == 0 ? value : operation("lshr i32 " + value + ", 16"), "i32", lane.llvm()));
            bool joins;
            write_predicate(name[index], combined(instruction, 2, compare(instruction, how, lane, parts), joins));
        }
        return;
    }
    std::string compared = compare(instruction, instruction.words[1], kind, values);
    bool joins;
    std::string both = combined(instruction, 2, compared, joins);
    write_predicate(target.name, both);
    if (!target.second.empty())
        write_predicate(target.second, combined(instruction, 2, negate_predicate(compared), joins));
}

/* set: all ones, or 1.0, if the comparison holds */
void Emitter::set_value(const Instruction &instruction)
{
    Type kind = type(instruction), result = type(instruction, 1);
    Values values = {read(operand(instruction, 1), kind), read(operand(instruction, 2), kind)};
    const std::string &how = instruction.words[1];
    auto one = [&](Type lane, Type out, const Values &parts) {
        bool joins;
        std::string holds = combined(instruction, 2, compare(instruction, how, lane, parts), joins);
        if (!out.is_float())
            return operation("sext i1 " + holds + " to " + out.integer());
        std::string bits = out.kind == Kind::brain ? "16256" : out.bits == 16 ? "15360" : "1065353216";
        std::string value =
            operation("select i1 " + holds + ", " + out.integer() + " " + bits + ", " + out.integer() + " 0");
        return cast(value, out.integer(), out.llvm());
    };
    if (kind.lanes == 1)
        return write(operand(instruction, 0), result, one(kind, result, values));
    Type half = result.lanes == 2 ? Type{result.kind, 16, 1} : bits_type(16);
    std::string packed = lanes(kind, values, [&](Type lane, const Values &parts) {
        return cast(one(lane, half, parts), half.llvm(), lane.llvm());
    });
    write(operand(instruction, 0), bits_type(32), packed);
}

void Emitter::select(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string in = kind.llvm() + " ";
    std::string first = read(operand(instruction, 1), kind), second = read(operand(instruction, 2), kind);
    std::string which = read(operand(instruction, 3), type_of("pred"));
    write(operand(instruction, 0), kind, operation("select i1 " + which + ", " + in + first + ", " + in + second));
}

/* slct: the first value if the third is not negative, otherwise the second */
void Emitter::select_by_sign(const Instruction &instruction)
{
    Type kind = type(instruction, 1), tested = type(instruction);
    std::string in = kind.llvm() + " ";
    std::string first = read(operand(instruction, 1), kind), second = read(operand(instruction, 2), kind);
    std::string value = read(operand(instruction, 3), tested);
    std::string which = tested.is_float() ? operation("fcmp oge float " + flushed(instruction, tested, value) + ", 0.0")
                                          : operation("icmp sge i32 " + value + ", 0");
    write(operand(instruction, 0), kind, operation("select i1 " + which + ", " + in + first + ", " + in + second));
}

void Emitter::test_property(const Instruction &instruction)
{
    static const std::map<std::string, int> *classes =
        new std::map<std::string, int>{{"finite", 0x1f8}, {"infinite", 0x204}, {"number", 0x3fc}, {"notanumber", 0x3},
                                       {"normal", 0x108}, {"subnormal", 0x90}}; /* masks of LLVM's is.fpclass */
    Type kind = type(instruction);
    auto found = classes->find(instruction.words[1]);
    if (found == classes->end())
        unsupported(instruction);
    std::string name = kind.bits == 32 ? "f32" : "f64", in = kind.llvm();
    declared_->insert("declare i1 @llvm.is.fpclass." + name + "(" + in + ", i32)");
    std::string value = read(operand(instruction, 1), kind);
    std::string holds =
        call("i1", "llvm.is.fpclass." + name, in + " " + value + ", i32 " + std::to_string(found->second));
    write_predicate(operand(instruction, 0).name, holds);
}

/* isspacep. Here constant memory lies in global memory, so an address does not tell which of the two it is in. */
void Emitter::is_space(const Instruction &instruction)
{
    if (instruction.words[1] == "const")
        unsupported(instruction);
    std::size_t parameters = 0;
    for (const Variable &parameter : unit_.kernel->parameters)
        parameters = std::max(parameters, unit_.parameter_place.at(parameter.name) + parameter.size);
    std::string address = read(operand(instruction, 1), bits_type(64));
    std::string shared = operation("icmp ult i64 " + operation("sub i64 " + address + ", " + field(3, -1, "i64")) +
                                   ", " + field(4, -1, "i64"));
    std::string stack = operation("load i64, ptr " + operation("getelementptr %Thread, ptr %thread, i32 0, i32 2"));
    std::string size = operation("load i64, ptr " + operation("getelementptr %Thread, ptr %thread, i32 0, i32 3"));
    std::string local = operation("icmp ult i64 " + operation("sub i64 " + address + ", " + stack) + ", " + size);
    std::string first = operation("ptrtoint ptr " + field(5, -1, "ptr") + " to i64");
    std::string parameter =
        operation("icmp ult i64 " + operation("sub i64 " + address + ", " + first) + ", " + std::to_string(parameters));
    std::string word = instruction.words[1], holds = "false";
    if (word.rfind("shared", 0) == 0)
        holds = shared;
    else if (word == "local")
        holds = local;
    else if (word == "global")
        holds = negate_predicate(operation("or i1 " + parameter + ", " + operation("or i1 " + shared + ", " + local)));
    else if (word.rfind("param", 0) == 0)
        holds = parameter;
    write_predicate(operand(instruction, 0).name, holds);
}

void Emitter::add_comparisons(std::map<std::string, Handler> &handlers)
{
    handlers["setp"] = &Emitter::set_predicate;
    handlers["set"] = &Emitter::set_value;
    handlers["selp"] = &Emitter::select;
    handlers["slct"] = &Emitter::select_by_sign;
    handlers["testp"] = &Emitter::test_property;
    handlers["isspacep"] = &Emitter::is_space;
}

} // namespace vgpu::ptx

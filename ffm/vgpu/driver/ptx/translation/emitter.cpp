/* What all families of instructions share: lines, values and registers. */
#include "emitter.h"

#include "indirect.h"

namespace vgpu::ptx
{

namespace
{

bool is_real(const std::string &type)
{
    return type == "half" || type == "float" || type == "double";
}

int width_of(const std::string &type)
{
    if (type[0] == 'i')
        return std::stoi(type.substr(1));
    return type == "half" ? 16 : type == "float" ? 32 : 64;
}

} // namespace

void Emitter::line(const std::string &text)
{
    if (!open_) /* unreachable, but LLVM requires a label */
        begin(fresh_label());
    text_ += "  " + text + "\n";
}

std::string Emitter::operation(const std::string &text)
{
    std::string name = "%v" + std::to_string(next_++);
    line(name + " = " + text);
    return name;
}

std::string Emitter::call(const std::string &type, const std::string &name, const std::string &arguments)
{
    std::string text = "call " + type + " @" + name + "(" + arguments + ")";
    if (type != "void")
        return operation(text);
    line(text);
    return "";
}

/* Calls one of LLVM's own functions whose arguments are all of the same type. */
std::string Emitter::intrinsic(const std::string &name, const std::string &type, const Values &arguments)
{
    std::string given, types;
    for (const std::string &argument : arguments) {
        given += (given.empty() ? "" : ", ") + type + " " + argument;
        types += (types.empty() ? "" : ", ") + type;
    }
    std::string suffix = type == "half" ? "f16" : type == "float" ? "f32" : type == "double" ? "f64" : type;
    declared_->insert("declare " + type + " @llvm." + name + "." + suffix + "(" + types + ")");
    return call(type, "llvm." + name + "." + suffix, given);
}

std::string Emitter::fresh_label()
{
    return "l" + std::to_string(next_++);
}

void Emitter::begin(const std::string &label)
{
    if (open_)
        jump(label);
    text_ += quoted(label) + ":\n";
    open_ = true;
}

void Emitter::jump(const std::string &label)
{
    line("br label %" + quoted(label));
    open_ = false;
}

void Emitter::branch(const std::string &condition, const std::string &yes, const std::string &no)
{
    line("br i1 " + condition + ", label %" + quoted(yes) + ", label %" + quoted(no));
    open_ = false;
}

/* Converts between types of registers and of values. The bits stay; they are cut off or filled with zeros. */
std::string Emitter::cast(const std::string &value, const std::string &from, const std::string &to)
{
    if (from == to)
        return value;
    if (is_real(from)) {
        std::string bits = "i" + std::to_string(width_of(from));
        return cast(operation("bitcast " + from + " " + value + " to " + bits), bits, to);
    }
    if (is_real(to)) {
        std::string bits = "i" + std::to_string(width_of(to));
        return operation("bitcast " + bits + " " + cast(value, from, bits) + " to " + to);
    }
    return extend(value, width_of(from), width_of(to), false);
}

std::string Emitter::extend(const std::string &value, int from, int to, bool sign)
{
    if (from == to)
        return value;
    std::string how = from > to ? "trunc" : sign ? "sext" : "zext";
    return operation(how + " i" + std::to_string(from) + " " + value + " to i" + std::to_string(to));
}

std::string Emitter::constant(const Operand &operand, Type type)
{
    std::uint64_t bits = static_cast<std::uint64_t>(operand.value);
    if (operand.form == Operand::Form::real && type.is_float() && operand.real_bits != type.bits) {
        double number;
        float single;
        __builtin_memcpy(&number, &bits, sizeof number);
        __builtin_memcpy(&single, &bits, sizeof single);
        if (operand.real_bits == 64 && type.bits == 32) {
            single = static_cast<float>(number);
            std::uint32_t narrow;
            __builtin_memcpy(&narrow, &single, sizeof narrow);
            bits = narrow;
        } else if (operand.real_bits == 32 && type.bits == 64) {
            number = single;
            __builtin_memcpy(&bits, &number, sizeof bits);
        }
    }
    if (operand.negated) /* of a floating-point number that is written as bits */
        bits ^= std::uint64_t{1} << (operand.real_bits - 1);
    if (type.kind == Kind::predicate)
        return bits ? "true" : "false";
    if (type.width() < 64)
        bits &= (std::uint64_t{1} << type.width()) - 1;
    if (type.width() == 128)
        return cast(std::to_string(static_cast<std::int64_t>(bits)), "i128", "i128");
    return cast(std::to_string(bits), type.integer(), type.llvm());
}

/* A symbol's address. Shared variables have one in their own state space, others where they lie in this process. */
std::string Emitter::address_of(const std::string &name)
{
    auto shared = unit_.shared_place.find(name);
    if (shared != unit_.shared_place.end())
        return std::to_string(shared->second);
    auto variable = unit_.variable_index.find(name);
    if (variable != unit_.variable_index.end()) {
        std::string table = field(6, -1, "ptr");
        std::string place = operation("getelementptr i64, ptr " + table + ", i64 " + std::to_string(variable->second));
        return operation("load i64, ptr " + place + ", !invariant.load !0");
    }
    auto local = variables_.find(name);
    if (local != variables_.end() && local->second->space != Space::reg) {
        auto parameter = unit_.parameter_place.find(name);
        if (function_.entry && parameter != unit_.parameter_place.end()) {
            std::string first = operation("ptrtoint ptr " + field(5, -1, "ptr") + " to i64");
            return operation("add i64 " + first + ", " + std::to_string(parameter->second));
        }
        return operation("ptrtoint ptr %" + quoted(name) + " to i64");
    }
    if (std::uint64_t function = function_address(*unit_.module, name))
        return std::to_string(function);
    throw Error("'" + name + "' is not declared");
}

std::string Emitter::read(const Operand &operand, Type type)
{
    if (operand.form == Operand::Form::integer || operand.form == Operand::Form::real)
        return constant(operand, type);
    if (operand.form != Operand::Form::name && operand.form != Operand::Form::address)
        throw Error("an operand that has no value");
    if (auto known = constants_.find(operand.name); known != constants_.end() && !operand.negated)
        return cast(constant(known->second, variables_.at(operand.name)->type),
                    variables_.at(operand.name)->type.llvm(), type.llvm());
    auto found = variables_.find(operand.name);
    if (found == variables_.end() || found->second->space != Space::reg) {
        bool is_special = operand.name[0] == '%' || operand.name == "WARP_SZ";
        std::string value = is_special && found == variables_.end() ? special(operand.name) : address_of(operand.name);
        if (operand.value != 0)
            value = operation("add i64 " + value + ", " + std::to_string(operand.value));
        return cast(value, "i64", type.llvm());
    }
    std::string slot = found->second->type.llvm();
    std::string value = operation("load " + slot + ", ptr %" + quoted(operand.name));
    if (type.kind == Kind::predicate && operand.negated)
        return negate_predicate(value);
    return cast(value, slot, type.llvm());
}

/* Writes to a register that may be wider. Signed types are sign-extended. */
void Emitter::write(const Operand &operand, Type type, const std::string &value)
{
    if (operand.form == Operand::Form::discarded)
        return;
    auto found = variables_.find(operand.name);
    if (operand.form != Operand::Form::name || found == variables_.end() || found->second->space != Space::reg)
        throw Error("'" + operand.name + "' is no register");
    const Type &slot = found->second->type;
    std::string stored;
    if (type.kind == Kind::sign && slot.width() > type.width())
        stored = cast(extend(value, type.width(), slot.width(), true), slot.integer(), slot.llvm());
    else
        stored = cast(value, type.llvm(), slot.llvm());
    line("store " + slot.llvm() + " " + stored + ", ptr %" + quoted(operand.name));
}

void Emitter::write_predicate(const std::string &name, const std::string &value)
{
    if (name.empty() || name == "_")
        return;
    Operand target;
    target.form = Operand::Form::name;
    target.name = name;
    write(target, type_of("pred"), value);
}

std::string Emitter::negate_predicate(const std::string &value)
{
    return operation("xor i1 " + value + ", true");
}

std::string Emitter::field(int member, int element, const std::string &type)
{
    std::string place = operation("getelementptr %Block, ptr %block, i32 0, i32 " + std::to_string(member) +
                                  (element < 0 ? "" : ", i32 " + std::to_string(element)));
    return operation("load " + type + ", ptr " + place + ", !invariant.load !0");
}

const Operand &Emitter::operand(const Instruction &instruction, std::size_t index) const
{
    if (index >= instruction.operands.size())
        throw Error("too few operands");
    return instruction.operands[index];
}

/* The last type among the modifiers, or the one `from_end` places before it. */
Type Emitter::type(const Instruction &instruction, std::size_t from_end) const
{
    for (std::size_t index = instruction.words.size(); index-- > 1;) {
        Type found = type_of(instruction.words[index]);
        if (found.kind != Kind::none && from_end-- == 0)
            return found;
    }
    throw Error("an instruction without a type");
}

void Emitter::unsupported(const Instruction &instruction, const std::string &detail) const
{
    throw Error("'" + instruction.text() + "' is not implemented" + (detail.empty() ? "" : ": " + detail));
}

/* Applies an operation on single values to each lane of packed ones. */
std::string Emitter::lanes(Type type, const std::vector<std::string> &values,
                           const std::function<std::string(Type, const Values &)> &scalar)
{
    if (type.lanes == 1)
        return scalar(type, values);
    Type lane = {type.kind, type.bits, 1};
    std::string results[2];
    for (int index = 0; index < 2; ++index) {
        Values parts;
        for (const std::string &value : values) {
            std::string part = index == 0 ? value : operation("lshr i32 " + value + ", 16");
            parts.push_back(cast(part, "i32", lane.llvm()));
        }
        results[index] = cast(scalar(lane, parts), lane.llvm(), "i32");
    }
    return operation("or i32 " + results[0] + ", " + operation("shl i32 " + results[1] + ", 16"));
}

} // namespace vgpu::ptx

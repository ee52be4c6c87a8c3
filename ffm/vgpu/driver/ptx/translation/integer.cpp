/* Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic"). */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

std::string of(const Type &type)
{
    return type.integer() + " ";
}

} // namespace

void Emitter::add(const Instruction &instruction)
{
    Type kind = type(instruction);
    if (kind.is_float())
        return real_arithmetic(instruction);
    std::string name = instruction.words.front();
    if (instruction.has("cc"))
        return carry(instruction);
    Values values = {read(operand(instruction, 1), kind), read(operand(instruction, 2), kind)};
    bool saturates = instruction.has("sat");
    std::string how = (kind.kind == Kind::sign ? "s" : "u") + name + ".sat";
    std::string result = lanes(kind, values, [&](Type lane, const Values &parts) {
        return saturates ? intrinsic(how, lane.integer(), parts)
                         : operation(name + " " + of(lane) + parts[0] + ", " + parts[1]);
    });
    write(operand(instruction, 0), kind, result);
}

/* The part of the product that `.lo`, `.hi` or `.wide` names, and its type. */
std::string Emitter::product(const Instruction &instruction, Type kind, Type &result)
{
    std::string first = read(operand(instruction, 1), kind), second = read(operand(instruction, 2), kind);
    result = kind;
    if (!instruction.has("hi") && !instruction.has("wide"))
        return operation("mul " + of(kind) + first + ", " + second);
    Type wide = {kind.kind, 2 * kind.bits, 1};
    bool sign = kind.kind == Kind::sign;
    first = extend(first, kind.bits, wide.bits, sign);
    second = extend(second, kind.bits, wide.bits, sign);
    std::string whole = operation("mul " + of(wide) + first + ", " + second);
    if (instruction.has("wide")) {
        result = wide;
        return whole;
    }
    std::string high = operation("lshr " + of(wide) + whole + ", " + std::to_string(kind.bits));
    return extend(high, wide.bits, kind.bits, false);
}

/* mul and mad */
void Emitter::multiply(const Instruction &instruction)
{
    Type kind = type(instruction), result;
    if (kind.is_float())
        return real_arithmetic(instruction);
    if (instruction.has("cc"))
        return multiply_carry(instruction);
    std::string value = product(instruction, kind, result);
    if (instruction.words.front() == "mad") {
        std::string added = read(operand(instruction, 3), result);
        bool saturates = instruction.has("sat");
        value = saturates ? intrinsic("sadd.sat", result.integer(), {value, added})
                          : operation("add " + of(result) + value + ", " + added);
    }
    write(operand(instruction, 0), result, value);
}

/* PTX leaves division by zero undefined, but it must not fault here: the quotient is all ones, and the remainder the
 * dividend. */
void Emitter::divide(const Instruction &instruction)
{
    Type kind = type(instruction);
    if (kind.is_float())
        return real_arithmetic(instruction);
    bool sign = kind.kind == Kind::sign, rest = instruction.words.front() == "rem";
    std::string dividend = read(operand(instruction, 1), kind), divisor = read(operand(instruction, 2), kind);
    std::string zero = operation("icmp eq " + of(kind) + divisor + ", 0");
    std::string bad = zero;
    if (sign) { /* the smallest number divided by -1 overflows */
        std::string minus = operation("icmp eq " + of(kind) + divisor + ", -1");
        bad = operation("or i1 " + zero + ", " + minus);
    }
    std::string safe = operation("select i1 " + bad + ", " + of(kind) + "1, " + of(kind) + divisor);
    std::string how = std::string(sign ? "s" : "u") + (rest ? "rem " : "div ");
    std::string result = operation(how + of(kind) + dividend + ", " + safe);
    if (sign) {
        std::string negative = rest ? std::string("0") : operation("sub " + of(kind) + "0, " + dividend);
        result = operation("select i1 " + bad + ", " + of(kind) + negative + ", " + of(kind) + result);
    }
    result = operation("select i1 " + zero + ", " + of(kind) + (rest ? dividend : "-1") + ", " + of(kind) + result);
    write(operand(instruction, 0), kind, result);
}

void Emitter::extremum(const Instruction &instruction)
{
    Type kind = type(instruction);
    if (kind.is_float())
        return real_arithmetic(instruction);
    Values values = {read(operand(instruction, 1), kind), read(operand(instruction, 2), kind)};
    std::string how = (kind.kind == Kind::sign ? "s" : "u") + instruction.words.front();
    std::string result =
        lanes(kind, values, [&](Type lane, const Values &parts) { return intrinsic(how, lane.integer(), parts); });
    if (instruction.has("relu"))
        result = lanes(kind, {result}, [&](Type lane, const Values &parts) {
            return intrinsic("smax", lane.integer(), {parts[0], "0"});
        });
    write(operand(instruction, 0), kind, result);
}

/* abs and neg */
void Emitter::one_operand(const Instruction &instruction)
{
    Type kind = type(instruction);
    if (kind.is_float())
        return real_one_operand(instruction);
    std::string value = read(operand(instruction, 1), kind);
    std::string negative = operation("sub " + of(kind) + "0, " + value);
    if (instruction.words.front() == "abs") {
        std::string below = operation("icmp slt " + of(kind) + value + ", 0");
        negative = operation("select i1 " + below + ", " + of(kind) + negative + ", " + of(kind) + value);
    }
    write(operand(instruction, 0), kind, negative);
}

/* add.cc, addc, sub.cc and subc, computed with twice the width. The ISA speaks of a borrow after a subtraction. GPUs
 * keep its inverse in the carry flag, and so does this code: nvcc's division of 128-bit integers uses `addc` to find
 * out whether `subc.cc` did not borrow. */
void Emitter::carry(const Instruction &instruction)
{
    Type kind = type(instruction), wide = {kind.kind, 2 * kind.bits, 1};
    std::string name = instruction.words.front();
    std::string how = name.substr(0, 3);
    bool subtracts = how == "sub";
    std::string first = extend(read(operand(instruction, 1), kind), kind.bits, wide.bits, false);
    std::string second = extend(read(operand(instruction, 2), kind), kind.bits, wide.bits, false);
    std::string result = operation(how + " " + of(wide) + first + ", " + second);
    if (name == "addc" || name == "subc") {
        std::string flag = operation("load i1, ptr %carry");
        std::string before =
            operation("zext i1 " + (subtracts ? negate_predicate(flag) : flag) + " to " + wide.integer());
        result = operation(how + " " + of(wide) + result + ", " + before);
    }
    if (instruction.has("cc")) {
        std::string high = operation("lshr " + of(wide) + result + ", " + std::to_string(kind.bits));
        std::string flag = operation("trunc " + of(wide) + high + " to i1");
        line("store i1 " + (subtracts ? negate_predicate(flag) : flag) + ", ptr %carry");
    }
    write(operand(instruction, 0), kind, extend(result, wide.bits, kind.bits, false));
}

/* mad.cc and madc */
void Emitter::multiply_carry(const Instruction &instruction)
{
    Type kind = type(instruction), result, wide = {kind.kind, 2 * kind.bits, 1};
    std::string value = extend(product(instruction, kind, result), kind.bits, wide.bits, false);
    std::string added = extend(read(operand(instruction, 3), kind), kind.bits, wide.bits, false);
    value = operation("add " + of(wide) + value + ", " + added);
    if (instruction.words.front() == "madc") {
        std::string before = operation("zext i1 " + operation("load i1, ptr %carry") + " to " + wide.integer());
        value = operation("add " + of(wide) + value + ", " + before);
    }
    if (instruction.has("cc")) {
        std::string high = operation("lshr " + of(wide) + value + ", " + std::to_string(kind.bits));
        line("store i1 " + operation("trunc " + of(wide) + high + " to i1") + ", ptr %carry");
    }
    write(operand(instruction, 0), kind, extend(value, wide.bits, kind.bits, false));
}

/* mul24 and mad24: the low or the high 32 bits of a 48-bit product. */
void Emitter::multiply_24(const Instruction &instruction)
{
    Type kind = type(instruction);
    bool sign = kind.kind == Kind::sign;
    std::string factors[2];
    for (std::size_t index = 0; index < 2; ++index) {
        std::string top = operation("shl i32 " + read(operand(instruction, index + 1), kind) + ", 8");
        factors[index] = extend(operation((sign ? "ashr i32 " : "lshr i32 ") + top + ", 8"), 32, 64, sign);
    }
    std::string whole = operation("mul i64 " + factors[0] + ", " + factors[1]);
    std::string part = instruction.has("hi") ? operation("lshr i64 " + whole + ", 16") : whole;
    std::string result = extend(part, 64, 32, false);
    if (instruction.words.front() == "mad24") {
        std::string added = read(operand(instruction, 3), kind);
        result = instruction.has("sat") ? intrinsic("sadd.sat", "i32", {result, added})
                                        : operation("add i32 " + result + ", " + added);
    }
    write(operand(instruction, 0), kind, result);
}

/* sad: c + |a - b| */
void Emitter::difference(const Instruction &instruction)
{
    Type kind = type(instruction);
    Values values = {read(operand(instruction, 1), kind), read(operand(instruction, 2), kind)};
    std::string sign = kind.kind == Kind::sign ? "s" : "u";
    std::string larger = intrinsic(sign + "max", kind.integer(), values);
    std::string smaller = intrinsic(sign + "min", kind.integer(), values);
    std::string distance = operation("sub " + of(kind) + larger + ", " + smaller);
    std::string added = read(operand(instruction, 3), kind);
    write(operand(instruction, 0), kind, operation("add " + of(kind) + distance + ", " + added));
}

/* dp4a: four products of bytes. dp2a: two products of a 16-bit number and a byte. */
void Emitter::dot_product(const Instruction &instruction)
{
    bool four = instruction.words.front() == "dp4a";
    Type first = type(instruction, 1), second = type(instruction);
    int width = four ? 8 : 16, count = four ? 4 : 2;
    int offset = !four && instruction.has("hi") ? 16 : 0;
    std::string a = read(operand(instruction, 1), bits_type(32)), b = read(operand(instruction, 2), bits_type(32));
    std::string sum = read(operand(instruction, 3), bits_type(32));
    auto part = [this](const std::string &value, int place, int bits, Type kind) {
        std::string low = operation("lshr i32 " + value + ", " + std::to_string(place));
        return extend(extend(low, 32, bits, false), bits, 32, kind.kind == Kind::sign);
    };
    for (int index = 0; index < count; ++index) {
        std::string x = part(a, index * width, width, first), y = part(b, offset + index * 8, 8, second);
        sum = operation("add i32 " + sum + ", " + operation("mul i32 " + x + ", " + y));
    }
    write(operand(instruction, 0), bits_type(32), sum);
}

void Emitter::add_integer(std::map<std::string, Handler> &handlers)
{
    handlers["add"] = handlers["sub"] = &Emitter::add;
    handlers["addc"] = handlers["subc"] = &Emitter::carry;
    handlers["mul"] = handlers["mad"] = &Emitter::multiply;
    handlers["madc"] = &Emitter::multiply_carry;
    handlers["mul24"] = handlers["mad24"] = &Emitter::multiply_24;
    handlers["div"] = handlers["rem"] = &Emitter::divide;
    handlers["min"] = handlers["max"] = &Emitter::extremum;
    handlers["abs"] = handlers["neg"] = &Emitter::one_operand;
    handlers["sad"] = &Emitter::difference;
    handlers["dp4a"] = handlers["dp2a"] = &Emitter::dot_product;
}

} // namespace vgpu::ptx

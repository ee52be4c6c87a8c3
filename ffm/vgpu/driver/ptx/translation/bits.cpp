/* Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions"), and moves. */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

std::string number(std::int64_t value)
{
    return std::to_string(value);
}

} // namespace

/* and, or, xor, not, cnot, which also work on predicates */
void Emitter::logic(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string name = instruction.words.front(), in = kind.llvm() + " ";
    std::string value = read(operand(instruction, 1), kind), result;
    if (name == "not")
        result = operation("xor " + in + value + (kind.kind == Kind::predicate ? ", true" : ", -1"));
    else if (name == "cnot")
        result = cast(operation("icmp eq " + in + value + ", 0"), "i1", kind.llvm());
    else
        result = operation(name + " " + in + value + ", " + read(operand(instruction, 2), kind));
    write(operand(instruction, 0), kind, result);
}

/* lop3: the union of the terms whose bits are set in the table. With `.or` or `.and`, a predicate tells whether the
 * result is not zero, combined with another predicate. */
void Emitter::lookup(const Instruction &instruction)
{
    std::string inputs[3], inverse[3];
    for (std::size_t index = 0; index < 3; ++index) {
        inputs[index] = read(operand(instruction, index + 1), bits_type(32));
        inverse[index] = operation("xor i32 " + inputs[index] + ", -1");
    }
    std::int64_t table = operand(instruction, 4).value;
    const Operand &target = operand(instruction, 0);
    std::string result = "0", joined;
    if (instruction.words.size() > 2)
        joined = read(operand(instruction, 5), type_of("pred"));
    for (int term = 0; term < 8; ++term) {
        if (!(table >> term & 1))
            continue;
        std::string both =
            operation("and i32 " + (term & 4 ? inputs[0] : inverse[0]) + ", " + (term & 2 ? inputs[1] : inverse[1]));
        std::string all = operation("and i32 " + both + ", " + (term & 1 ? inputs[2] : inverse[2]));
        result = operation("or i32 " + result + ", " + all);
    }
    write(target, bits_type(32), result);
    if (!joined.empty())
        write_predicate(target.second, operation(instruction.words[1] + " i1 " + joined + ", " +
                                                 operation("icmp ne i32 " + result + ", 0")));
}

/* Shifting by the type's width or more shifts everything out. */
std::string Emitter::shifted(const std::string &op, Type kind, const std::string &value, const std::string &amount)
{
    std::string in = kind.integer() + " ";
    std::string last = number(kind.bits - 1);
    std::string large = operation("icmp ugt i32 " + amount + ", " + last);
    std::string safe = operation("select i1 " + large + ", i32 " + last + ", i32 " + amount);
    std::string result = operation(op + " " + in + value + ", " + extend(safe, 32, kind.bits, false));
    if (op == "ashr")
        return result;
    return operation("select i1 " + large + ", " + in + "0, " + in + result);
}

void Emitter::shift(const Instruction &instruction)
{
    Type kind = type(instruction);
    bool left = instruction.words.front() == "shl";
    std::string amount = read(operand(instruction, 2), bits_type(32));
    std::string value = read(operand(instruction, 1), kind);
    const char *op = left ? "shl" : kind.kind == Kind::sign ? "ashr" : "lshr";
    write(operand(instruction, 0), kind, shifted(op, kind, value, amount));
}

/* shf: 32 bits of a shifted pair of registers */
void Emitter::funnel_shift(const Instruction &instruction)
{
    std::string low = read(operand(instruction, 1), bits_type(32));
    std::string high = read(operand(instruction, 2), bits_type(32));
    std::string amount = read(operand(instruction, 3), bits_type(32));
    bool left = instruction.has("l");
    std::string whole = operation("or i64 " + extend(low, 32, 64, false) + ", " +
                                  operation("shl i64 " + extend(high, 32, 64, false) + ", 32"));
    if (instruction.has("wrap"))
        amount = operation("and i32 " + amount + ", 31");
    else
        amount = intrinsic("umin", "i32", {amount, "32"});
    std::string by = extend(amount, 32, 64, false);
    std::string moved = operation((left ? "shl i64 " : "lshr i64 ") + whole + ", " + by);
    if (left)
        moved = operation("lshr i64 " + moved + ", 32");
    write(operand(instruction, 0), bits_type(32), extend(moved, 64, 32, false));
}

/* prmt: each byte of the result is one of eight bytes, or copies of that byte's highest bit */
void Emitter::permute(const Instruction &instruction)
{
    std::string low = read(operand(instruction, 1), bits_type(32));
    std::string high = read(operand(instruction, 2), bits_type(32));
    std::string selector = read(operand(instruction, 3), bits_type(32)), mode;
    for (const char *candidate : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
        if (instruction.has(candidate))
            mode = candidate;
    std::string whole = operation("or i64 " + extend(low, 32, 64, false) + ", " +
                                  operation("shl i64 " + extend(high, 32, 64, false) + ", 32"));
    std::string start = operation("and i32 " + selector + ", 3"), result = "0";
    for (int byte = 0; byte < 4; ++byte) {
        std::string control;
        std::string at = number(byte);
        if (mode.empty())
            control = operation("lshr i32 " + selector + ", " + number(4 * byte));
        else if (mode == "f4e")
            control = operation("add i32 " + start + ", " + at);
        else if (mode == "b4e")
            control = operation("and i32 " + operation("sub i32 " + start + ", " + at) + ", 7");
        else if (mode == "rc8")
            control = start;
        else if (mode == "ecl")
            control = intrinsic("umax", "i32", {start, at});
        else if (mode == "ecr")
            control = intrinsic("umin", "i32", {start, at});
        else
            control = operation("or i32 " + operation("shl i32 " + operation("and i32 " + start + ", 1") + ", 1") +
                                ", " + number(byte & 1));
        std::string place = operation("shl i32 " + operation("and i32 " + control + ", 7") + ", 3");
        std::string chosen = extend(operation("lshr i64 " + whole + ", " + extend(place, 32, 64, false)), 64, 8, false);
        if (mode.empty()) {
            std::string copies = operation("ashr i8 " + chosen + ", 7");
            std::string sign = operation("icmp ne i32 " + operation("and i32 " + control + ", 8") + ", 0");
            chosen = operation("select i1 " + sign + ", i8 " + copies + ", i8 " + chosen);
        }
        std::string placed = operation("shl i32 " + extend(chosen, 8, 32, false) + ", " + number(8 * byte));
        result = operation("or i32 " + result + ", " + placed);
    }
    write(operand(instruction, 0), bits_type(32), result);
}

/* popc, clz, brev */
void Emitter::count(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string value = read(operand(instruction, 1), kind), name = instruction.words.front();
    if (name == "brev")
        return write(operand(instruction, 0), kind, intrinsic("bitreverse", kind.integer(), {value}));
    std::string result;
    if (name == "popc") {
        result = intrinsic("ctpop", kind.integer(), {value});
    } else {
        declared_->insert("declare " + kind.integer() + " @llvm.ctlz." + kind.integer() + "(" + kind.integer() +
                          ", i1)");
        result = call(kind.integer(), "llvm.ctlz." + kind.integer(), kind.integer() + " " + value + ", i1 false");
    }
    write(operand(instruction, 0), bits_type(32), extend(result, kind.bits, 32, false));
}

/* bfind: the place of the highest bit that is not a copy of the sign; all ones if there is none */
void Emitter::find(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string in = kind.integer() + " ", value = read(operand(instruction, 1), kind);
    if (kind.kind == Kind::sign)
        value = operation("xor " + in + value + ", " + operation("ashr " + in + value + ", " + number(kind.bits - 1)));
    declared_->insert("declare " + kind.integer() + " @llvm.ctlz." + kind.integer() + "(" + kind.integer() + ", i1)");
    std::string zeros =
        extend(call(kind.integer(), "llvm.ctlz." + kind.integer(), in + value + ", i1 false"), kind.bits, 32, false);
    std::string none = operation("icmp eq " + in + value + ", 0");
    std::string found =
        instruction.has("shiftamt") ? zeros : operation("sub i32 " + number(kind.bits - 1) + ", " + zeros);
    write(operand(instruction, 0), bits_type(32), operation("select i1 " + none + ", i32 -1, i32 " + found));
}

void Emitter::field_extract(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string in = kind.integer() + " ", value = read(operand(instruction, 1), kind);
    std::string first = operation("and i32 " + read(operand(instruction, 2), bits_type(32)) + ", 255");
    std::string length = operation("and i32 " + read(operand(instruction, 3), bits_type(32)) + ", 255");
    bool sign = kind.kind == Kind::sign;
    Type unsign = {Kind::unsign, kind.bits, 1};
    std::string low = shifted(sign ? "ashr" : "lshr", kind, value, first);
    std::string ones = shifted("shl", unsign, "-1", length);
    std::string field = operation("and " + in + low + ", " + operation("xor " + in + ones + ", -1"));
    if (sign) { /* extends the field's highest bit, or the value's if the field reaches beyond it */
        std::string last = operation("sub i32 " + operation("add i32 " + first + ", " + length) + ", 1");
        std::string at = intrinsic("umin", "i32", {last, number(kind.bits - 1)});
        std::string moved = operation("lshr " + in + value + ", " + extend(at, 32, kind.bits, false));
        std::string set = operation("trunc " + in + moved + " to i1");
        std::string filled = operation("or " + in + field + ", " + ones);
        std::string empty = operation("icmp eq i32 " + length + ", 0");
        field = operation("select i1 " + set + ", " + in + filled + ", " + in + field);
        field = operation("select i1 " + empty + ", " + in + "0, " + in + field);
    }
    write(operand(instruction, 0), kind, field);
}

void Emitter::field_insert(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string in = kind.integer() + " ";
    std::string source = read(operand(instruction, 1), kind), target = read(operand(instruction, 2), kind);
    std::string first = operation("and i32 " + read(operand(instruction, 3), bits_type(32)) + ", 255");
    std::string length = operation("and i32 " + read(operand(instruction, 4), bits_type(32)) + ", 255");
    std::string ones = operation("xor " + in + shifted("shl", kind, "-1", length) + ", -1");
    std::string there = shifted("shl", kind, ones, first);
    std::string inserted = operation("and " + in + shifted("shl", kind, source, first) + ", " + there);
    std::string kept = operation("and " + in + target + ", " + operation("xor " + in + there + ", -1"));
    write(operand(instruction, 0), kind, operation("or " + in + inserted + ", " + kept));
}

/* bmsk: `b` ones from bit `a` on; szext: the low `b` bits, extended to the whole register */
void Emitter::mask(const Instruction &instruction)
{
    bool wraps = instruction.has("wrap");
    Type kind = type(instruction);
    std::string a = read(operand(instruction, 1), bits_type(32)), b = read(operand(instruction, 2), bits_type(32));
    std::string amount = wraps ? operation("and i32 " + b + ", 31") : b;
    if (instruction.words.front() == "bmsk") {
        std::string from = wraps ? operation("and i32 " + a + ", 31") : a;
        std::string ones = operation("xor i32 " + shifted("shl", bits_type(32), "-1", amount) + ", -1");
        write(operand(instruction, 0), bits_type(32), shifted("shl", bits_type(32), ones, from));
        return;
    }
    std::string left = operation("sub i32 32, " + intrinsic("umin", "i32", {amount, "32"}));
    std::string top = shifted("shl", kind, a, left);
    write(operand(instruction, 0), kind, shifted(kind.kind == Kind::sign ? "ashr" : "lshr", kind, top, left));
}

void Emitter::nth_bit(const Instruction &instruction)
{
    std::string arguments;
    for (std::size_t index = 1; index <= 3; ++index)
        arguments += (index > 1 ? ", i32 " : "i32 ") + read(operand(instruction, index), bits_type(32));
    write(operand(instruction, 0), bits_type(32), call("i32", "vgpu_nth_bit", arguments));
}

/* mov, which also packs registers into a wider one and unpacks it */
void Emitter::move(const Instruction &instruction)
{
    Type kind = type(instruction);
    const Operand &target = operand(instruction, 0), &source = operand(instruction, 1);
    auto part = [&kind](const Operand &list) {
        return bits_type(kind.width() / static_cast<int>(list.members.size()));
    };
    std::string whole = kind.kind == Kind::predicate ? "" : bits_type(kind.width()).integer();
    if (source.form == Operand::Form::vector) {
        Type piece = part(source);
        std::string value = "0";
        for (std::size_t index = 0; index < source.members.size(); ++index) {
            std::string wide = extend(read(source.members[index], piece), piece.bits, kind.width(), false);
            std::string place = number(static_cast<std::int64_t>(index) * piece.bits);
            value =
                operation("or " + whole + " " + value + ", " + operation("shl " + whole + " " + wide + ", " + place));
        }
        return write(target, bits_type(kind.width()), value);
    }
    std::string value = read(source, kind);
    if (target.form != Operand::Form::vector)
        return write(target, kind, value);
    Type piece = part(target);
    value = cast(value, kind.llvm(), whole);
    for (std::size_t index = 0; index < target.members.size(); ++index) {
        std::string place = number(static_cast<std::int64_t>(index) * piece.bits);
        std::string low = operation("lshr " + whole + " " + value + ", " + place);
        write(target.members[index], piece, extend(low, kind.width(), piece.bits, false));
    }
}

void Emitter::add_bits(std::map<std::string, Handler> &handlers)
{
    handlers["and"] = handlers["or"] = handlers["xor"] = handlers["not"] = handlers["cnot"] = &Emitter::logic;
    handlers["lop3"] = &Emitter::lookup;
    handlers["shl"] = handlers["shr"] = &Emitter::shift;
    handlers["shf"] = &Emitter::funnel_shift;
    handlers["prmt"] = &Emitter::permute;
    handlers["popc"] = handlers["clz"] = handlers["brev"] = &Emitter::count;
    handlers["bfind"] = &Emitter::find;
    handlers["bfe"] = &Emitter::field_extract;
    handlers["bfi"] = &Emitter::field_insert;
    handlers["bmsk"] = handlers["szext"] = &Emitter::mask;
    handlers["fns"] = &Emitter::nth_bit;
    handlers["mov"] = &Emitter::move;
}

} // namespace vgpu::ptx

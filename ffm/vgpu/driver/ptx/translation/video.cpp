/* Instructions on parts of registers (PTX ISA, "Video Instructions"): on one part, or on 2 or 4 at once. */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

constexpr int wide_bits = 128; /* enough for every intermediate result */

std::vector<Type> types_of(const Instruction &instruction)
{
    std::vector<Type> types;
    for (const std::string &word : instruction.words)
        if (Type kind = type_of(word); kind.kind != Kind::none)
            types.push_back(kind);
    return types;
}

/* The width of the part that a scalar instruction's selector names, and where it starts. */
int part_bits(const std::string &selector)
{
    return selector.empty() ? 32 : selector[0] == 'b' ? 8 : 16;
}

int part_place(const std::string &selector)
{
    return selector.empty() ? 0 : (selector[1] - '0') * part_bits(selector);
}

const char *secondary(const Instruction &instruction)
{
    for (const char *name : {"add", "min", "max"})
        if (instruction.has(name))
            return name;
    return nullptr;
}

} // namespace

/* A part of a register, or the whole register, extended to `wide_bits`. */
std::string Emitter::video_part(const Operand &operand, Type kind)
{
    std::string value = read(operand, bits_type(32));
    int bits = part_bits(operand.selector);
    if (int place = part_place(operand.selector))
        value = operation("lshr i32 " + value + ", " + std::to_string(place));
    return extend(extend(value, 32, bits, false), bits, wide_bits, kind.kind == Kind::sign);
}

std::string Emitter::video_clamped(const std::string &value, bool sign, int bits)
{
    std::int64_t largest = (std::int64_t{1} << (sign ? bits - 1 : bits)) - 1, smallest = sign ? -largest - 1 : 0;
    std::string cut = intrinsic("smax", "i128", {value, std::to_string(smallest)});
    return intrinsic("smin", "i128", {cut, std::to_string(largest)});
}

/* The result for two wide numbers, before it is cut off or saturated. */
std::string Emitter::video_result(const Instruction &instruction, const std::string &a, const std::string &b)
{
    std::string name = instruction.words.front();
    if (name.back() == '2' || name.back() == '4')
        name.pop_back();
    if (name == "vadd" || name == "vsub")
        return operation(name.substr(1) + " i128 " + a + ", " + b);
    if (name == "vavrg") { /* halves are rounded up if the sum is not negative */
        std::string sum = operation("add i128 " + a + ", " + b);
        std::string odd = extend(operation("icmp sge i128 " + sum + ", 0"), 1, wide_bits, false);
        return operation("ashr i128 " + operation("add i128 " + sum + ", " + odd) + ", 1");
    }
    if (name == "vmin" || name == "vmax")
        return intrinsic("s" + name.substr(1), "i128", {a, b});
    if (name == "vshl" || name == "vshr") {
        std::string amount =
            instruction.has("wrap") ? operation("and i128 " + b + ", 31") : intrinsic("umin", "i128", {b, "32"});
        return operation((name == "vshl" ? "shl i128 " : "ashr i128 ") + a + ", " + amount);
    }
    if (name == "vset") {
        const std::string &how = secondary(instruction) ? *(instruction.words.end() - 2) : instruction.words.back();
        std::string condition = how == "eq" || how == "ne" ? how : "s" + how;
        return extend(operation("icmp " + condition + " i128 " + a + ", " + b), 1, wide_bits, false);
    }
    std::string difference = operation("sub i128 " + a + ", " + b); /* vabsdiff */
    return intrinsic("smax", "i128", {difference, operation("sub i128 0, " + difference)});
}

/* The second step of an operation on one part: the result is combined with the operand `third`, or replaces a part
 * of it. */
void Emitter::video_finish(const Instruction &instruction, Type kind, const std::string &value, std::size_t third)
{
    const Operand &target = operand(instruction, 0);
    std::string result = extend(value, wide_bits, 32, false);
    if (const char *name = secondary(instruction)) {
        std::string other = read(operand(instruction, third), bits_type(32));
        bool sign = kind.kind == Kind::sign;
        result = std::string(name) == "add" ? operation("add i32 " + result + ", " + other)
                                            : intrinsic((sign ? "s" : "u") + std::string(name), "i32", {result, other});
    } else if (!target.selector.empty()) {
        int place = part_place(target.selector);
        std::uint32_t ones = (std::uint32_t{1} << part_bits(target.selector)) - 1;
        std::string other = read(operand(instruction, third), bits_type(32));
        std::string part = operation("and i32 " + result + ", " + std::to_string(ones));
        part = operation("shl i32 " + part + ", " + std::to_string(place));
        result = operation("or i32 " + part + ", " +
                           operation("and i32 " + other + ", " + std::to_string(~(ones << place))));
    }
    write(target, bits_type(32), result);
}

/* vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset */
void Emitter::video_scalar(const Instruction &instruction)
{
    std::vector<Type> types = types_of(instruction);
    bool compares = instruction.words.front() == "vset"; /* its types are only those of the operands */
    if (types.size() != (compares ? 2 : 3))
        unsupported(instruction);
    Type result = compares ? type_of("u32") : types.front();
    std::string value = video_result(instruction, video_part(operand(instruction, 1), *(types.end() - 2)),
                                     video_part(operand(instruction, 2), types.back()));
    if (instruction.has("sat"))
        value = video_clamped(value, result.kind == Kind::sign, part_bits(operand(instruction, 0).selector));
    video_finish(instruction, result, value, 3);
}

/* vmad, whose operands may be negated; `.po` adds one. */
void Emitter::video_multiply(const Instruction &instruction)
{
    std::vector<Type> types = types_of(instruction);
    if (types.size() != 3)
        unsupported(instruction);
    const Operand &a = operand(instruction, 1), &b = operand(instruction, 2), &c = operand(instruction, 3);
    auto plain = [](Operand operand) {
        operand.negated = false;
        return operand;
    };
    bool minus = a.negated != b.negated;
    bool sign = types[1].kind == Kind::sign || types[2].kind == Kind::sign || minus || c.negated;
    std::string product =
        operation("mul i128 " + video_part(plain(a), types[1]) + ", " + video_part(plain(b), types[2]));
    std::string added = extend(read(plain(c), bits_type(32)), 32, wide_bits, sign);
    if (minus)
        product = operation("sub i128 0, " + product);
    else if (c.negated)
        added = operation("sub i128 0, " + added);
    std::string sum = operation("add i128 " + product + ", " + added);
    if (instruction.has("po"))
        sum = operation("add i128 " + sum + ", 1");
    if (instruction.has("shr7") || instruction.has("shr15"))
        sum = operation("ashr i128 " + sum + (instruction.has("shr7") ? ", 7" : ", 15"));
    if (instruction.has("sat"))
        sum = video_clamped(sum, sign, 32);
    write(operand(instruction, 0), bits_type(32), extend(sum, wide_bits, 32, false));
}

/* One part of two registers. The parts of `b` are numbered after those of `a`. */
std::string Emitter::video_lane(const Operand &a, const Operand &b, int source, int width, Type kind)
{
    int count = 32 / width;
    bool first = source < count;
    std::string value = read(first ? a : b, bits_type(32));
    value = operation("lshr i32 " + value + ", " + std::to_string(source % count * width));
    return extend(extend(value, 32, width, false), width, wide_bits, kind.kind == Kind::sign);
}

/* Instructions on 2 or 4 parts. An operand's selector names the part for each lane, the highest lane first. The
 * target's selector names the lanes to compute. The other lanes come from the third operand. */
void Emitter::video_lanes(const Instruction &instruction)
{
    int count = instruction.words.front().back() - '0', width = 32 / count;
    std::vector<Type> types = types_of(instruction);
    bool compares = instruction.words.front().compare(0, 4, "vset") == 0, adds = instruction.has("add");
    if (types.size() != (compares ? 2 : 3))
        unsupported(instruction);
    Type result = compares ? type_of("u32") : types.front();
    const Operand &target = operand(instruction, 0), &a = operand(instruction, 1), &b = operand(instruction, 2);
    const std::string third = read(operand(instruction, 3), bits_type(32));
    std::string sum = third, packed = "0";
    for (int index = 0; index < count; ++index) {
        auto source = [&](const Operand &operand, int otherwise) {
            return operand.selector.empty() ? otherwise
                                            : operand.selector.at(static_cast<std::size_t>(count - index)) - '0';
        };
        std::string value = video_result(instruction, video_lane(a, b, source(a, index), width, *(types.end() - 2)),
                                         video_lane(a, b, source(b, count + index), width, types.back()));
        if (instruction.has("sat"))
            value = video_clamped(value, result.kind == Kind::sign, width);
        std::string part = extend(value, wide_bits, 32, false);
        bool computed =
            target.selector.empty() || target.selector.find(static_cast<char>('0' + index)) != std::string::npos;
        if (computed)
            sum = operation("add i32 " + sum + ", " + part);
        std::uint32_t mask = (count == 2 ? 0xffffu : 0xffu) << (index * width);
        std::string placed = computed ? operation("shl i32 " + part + ", " + std::to_string(index * width)) : third;
        packed = operation("or i32 " + packed + ", " + operation("and i32 " + placed + ", " + std::to_string(mask)));
    }
    write(target, bits_type(32), adds ? sum : packed);
}

void Emitter::add_video(std::map<std::string, Handler> &handlers)
{
    for (const char *name : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"})
        handlers[name] = &Emitter::video_scalar;
    handlers["vmad"] = &Emitter::video_multiply;
    for (const char *name : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"})
        for (const char *count : {"2", "4"})
            handlers[std::string(name) + count] = &Emitter::video_lanes;
}

} // namespace vgpu::ptx

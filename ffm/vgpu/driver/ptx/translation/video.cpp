/* Instructions on 4 or 2 integers in one register (PTX ISA, "SIMD Video Instructions"). */
#include "emitter.h"

namespace vgpu::ptx
{

/* Of two lanes, as 32 bits with their signs, the result before it is cut off or saturated. */
std::string Emitter::lane_result(const Instruction &instruction, const std::string &a, const std::string &b)
{
    std::string name = instruction.words.front();
    name.pop_back(); /* the number of lanes */
    if (name == "vadd" || name == "vsub")
        return operation(name.substr(1) + " i32 " + a + ", " + b);
    if (name == "vavrg") { /* halves are rounded upwards, unless the sum is negative */
        std::string sum = operation("add i32 " + a + ", " + b);
        std::string odd = extend(operation("icmp sge i32 " + sum + ", 0"), 1, 32, false);
        return operation("ashr i32 " + operation("add i32 " + sum + ", " + odd) + ", 1");
    }
    if (name == "vmin" || name == "vmax")
        return intrinsic("s" + name.substr(1), "i32", {a, b});
    if (name == "vset") {
        const std::string &how =
            instruction.words.back() == "add" ? *(instruction.words.end() - 2) : instruction.words.back();
        std::string condition = how == "eq" || how == "ne" ? how : "s" + how;
        return extend(operation("icmp " + condition + " i32 " + a + ", " + b), 1, 32, false);
    }
    std::string difference = operation("sub i32 " + a + ", " + b); /* vabsdiff */
    return intrinsic("smax", "i32", {difference, operation("sub i32 0, " + difference)});
}

void Emitter::lanes_of_integers(const Instruction &instruction)
{
    int count = instruction.words.front().back() - '0', width = 32 / count;
    std::vector<Type> types;
    for (const std::string &word : instruction.words)
        if (Type kind = type_of(word); kind.kind != Kind::none)
            types.push_back(kind);
    bool compares = instruction.words.front().compare(0, 4, "vset") == 0;
    if (types.size() != (compares ? 2 : 3)) /* those of a comparison are of its operands only */
        unsupported(instruction);
    Type result = compares ? type_of("u32") : types.front(), first = *(types.end() - 2), second = types.back();
    std::string a = read(operand(instruction, 1), bits_type(32)), b = read(operand(instruction, 2), bits_type(32));
    std::string sum = instruction.has("add") ? read(operand(instruction, 3), bits_type(32)) : "0", packed = "0";
    auto lane = [this, width](const std::string &value, int index, Type kind) {
        std::string low = operation("lshr i32 " + value + ", " + std::to_string(index * width));
        return extend(extend(low, 32, width, false), width, 32, kind.kind == Kind::sign);
    };
    bool sign = result.kind == Kind::sign;
    int largest = (1 << (sign ? width - 1 : width)) - 1, smallest = sign ? -largest - 1 : 0;
    for (int index = 0; index < count; ++index) {
        std::string value = lane_result(instruction, lane(a, index, first), lane(b, index, second));
        if (instruction.has("sat"))
            value = intrinsic("smin", "i32",
                              {intrinsic("smax", "i32", {value, std::to_string(smallest)}), std::to_string(largest)});
        sum = operation("add i32 " + sum + ", " + value);
        std::string cut = extend(extend(value, 32, width, false), width, 32, false);
        packed =
            operation("or i32 " + packed + ", " + operation("shl i32 " + cut + ", " + std::to_string(index * width)));
    }
    write(operand(instruction, 0), bits_type(32), instruction.has("add") ? sum : packed);
}

void Emitter::add_video(std::map<std::string, Handler> &handlers)
{
    for (const char *name : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"})
        for (const char *count : {"2", "4"})
            handlers[std::string(name) + count] = &Emitter::lanes_of_integers;
}

} // namespace vgpu::ptx

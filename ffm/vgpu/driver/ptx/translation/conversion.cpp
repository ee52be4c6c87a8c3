/* cvt and cvta (PTX ISA, "Data Movement and Conversion Instructions: cvt"). */
#include "emitter.h"

namespace vgpu::ptx
{

int rounding_direction(const Instruction &instruction)
{
    for (const char *stem : {"rz", "rm", "rp"})
        if (instruction.has(stem) || instruction.has((std::string(stem) + "i").c_str()))
            return stem[1] == 'z' ? 1 : stem[1] == 'm' ? 2 : 3;
    return 0;
}

namespace
{

bool rounds_to_integer(const Instruction &instruction)
{
    return instruction.has("rni") || instruction.has("rzi") || instruction.has("rmi") || instruction.has("rpi");
}

const char *rounding_function(int direction)
{
    static const char *const names[] = {"roundeven", "trunc", "floor", "ceil"};
    return names[direction];
}

} // namespace

/* f16 and bf16 become f32. Other types stay as they are. */
std::string Emitter::widened(Type from, const std::string &value)
{
    if (from.kind == Kind::brain)
        return call("float", "widen_bf16", "i16 " + value);
    return from.bits == 16 ? operation("fpext half " + value + " to float") : value;
}

/* Values that the integer cannot hold become the nearest that it can. NaN becomes 0, or only the highest bit if
 * either side has 64 bits. */
std::string Emitter::real_to_integer(const Instruction &instruction, Type to, Type from, const std::string &value)
{
    std::string wide = widened(from, value), in = from.bits == 64 ? "double" : "float";
    std::string whole = intrinsic(rounding_function(rounding_direction(instruction)), in, {wide});
    std::string sign = to.kind == Kind::sign ? "s" : "u", out = to.integer();
    std::string name = "llvm.fpto" + sign + "i.sat." + out + (from.bits == 64 ? ".f64" : ".f32");
    declared_->insert("declare " + out + " @" + name + "(" + in + ")");
    std::string result = call(out, name, in + " " + whole);
    if (from.bits == 64 || to.bits == 64) {
        std::string highest = std::to_string(std::uint64_t{1} << (to.bits - 1));
        std::string none = operation("fcmp uno " + in + " " + wide + ", 0.0");
        result = operation("select i1 " + none + ", " + out + " " + highest + ", " + out + " " + result);
    }
    return result;
}

std::string Emitter::integer_to_real(const Instruction &instruction, Type to, Type from, const std::string &value)
{
    bool sign = from.kind == Kind::sign;
    int mode = rounding_direction(instruction);
    if (to.bits == 16) { /* through f64: exact up to 53 bits, and rounded to odd beyond */
        std::string wide = extend(value, from.bits, 64, sign);
        std::string exact = call("double", "vgpu_integer_f64", "i32 4, i64 " + wide + ", i32 " + std::to_string(sign));
        std::string brain = std::to_string(to.kind == Kind::brain);
        return cast(
            call("i16", "vgpu_narrow_f64", "i32 " + brain + ", i32 " + std::to_string(mode) + ", double " + exact),
            "i16", to.llvm());
    }
    if (mode == 0)
        return operation((sign ? "sitofp " : "uitofp ") + from.integer() + " " + value + " to " + to.llvm());
    std::string wide = extend(value, from.bits, 64, sign);
    return call(to.llvm(), to.bits == 32 ? "vgpu_integer_f32" : "vgpu_integer_f64",
                "i32 " + std::to_string(mode) + ", i64 " + wide + ", i32 " + std::to_string(sign));
}

std::string Emitter::real_to_real(const Instruction &instruction, Type to, Type from, const std::string &value)
{
    int mode = rounding_direction(instruction);
    std::string wide = widened(from, value);
    int wide_bits = from.bits == 16 ? 32 : from.bits;
    std::string in = wide_bits == 64 ? "double" : "float";
    if (rounds_to_integer(instruction)) {
        wide = intrinsic(rounding_function(mode), in, {wide});
        mode = 0;
    }
    if (instruction.has("relu"))
        wide = intrinsic("maximum", in, {wide, "0.0"});
    if (instruction.has("satfinite")) {
        const std::string largest = to.kind == Kind::brain ? "0x47EFE00000000000" : "6.550400e+04";
        const std::string least = to.kind == Kind::brain ? "0xC7EFE00000000000" : "-6.550400e+04";
        wide = intrinsic("maximum", in, {intrinsic("minimum", in, {wide, largest}), least});
    }
    std::string result = wide;
    if (to.bits == 16 && wide_bits == 32 && mode == 0) {
        result = to.kind == Kind::brain ? call("i16", "narrow_bf16", "float " + wide)
                                        : operation("fptrunc float " + wide + " to half");
    } else if (to.bits == 16) {
        std::string exact = wide_bits == 64 ? wide : operation("fpext float " + wide + " to double");
        std::string brain = std::to_string(to.kind == Kind::brain);
        result =
            cast(call("i16", "vgpu_narrow_f64", "i32 " + brain + ", i32 " + std::to_string(mode) + ", double " + exact),
                 "i16", to.llvm());
    } else if (to.bits == 32 && wide_bits == 64) {
        result = mode == 0 ? operation("fptrunc double " + wide + " to float")
                           : call("float", "vgpu_narrow_f32", "i32 " + std::to_string(mode) + ", double " + wide);
    } else if (to.bits == 64 && wide_bits == 32) {
        result = operation("fpext float " + wide + " to double");
    }
    return result;
}

std::string Emitter::integer_to_integer(const Instruction &instruction, Type to, Type from, const std::string &value)
{
    bool sign = from.kind == Kind::sign;
    if (!instruction.has("sat"))
        return extend(value, from.bits, to.bits, sign);
    /* Compared with one bit more than both types have, so that values of either sign fit. */
    int bits = std::max(from.bits, to.bits) + 1;
    bool to_sign = to.kind == Kind::sign;
    std::string in = "i" + std::to_string(bits), wide = extend(value, from.bits, bits, sign);
    int magnitude = to_sign ? to.bits - 1 : to.bits;
    std::string high = std::to_string(magnitude == 64 ? UINT64_MAX : (std::uint64_t{1} << magnitude) - 1);
    std::string low = to_sign ? "-" + std::to_string(std::uint64_t{1} << (to.bits - 1)) : "0";
    wide = intrinsic("smin", in, {wide, high});
    wide = intrinsic("smax", in, {wide, low});
    return extend(wide, bits, to.bits, false);
}

/* Makes two 8-bit numbers from two f32 operands, or from one packed operand. The first operand becomes the higher
 * one. */
void Emitter::convert_to_8(const Instruction &instruction)
{
    Type from = type(instruction), lane = {from.kind, from.bits, 1};
    std::string parts[2];
    for (int index = 0; index < 2; ++index) { /* the lower one first */
        std::string value;
        if (from.lanes == 1) {
            value = read(operand(instruction, static_cast<std::size_t>(2 - index)), from);
        } else {
            std::string both =
                operation("lshr i32 " + read(operand(instruction, 1), from) + ", " + std::to_string(16 * index));
            value = widened(lane, cast(operation("trunc i32 " + both + " to i16"), "i16", lane.llvm()));
        }
        if (instruction.has("relu"))
            value = intrinsic("maxnum", "float", {value, "0.0"});
        parts[index] =
            call("i32", "vgpu_narrow_8", "i32 " + std::to_string(instruction.has("e5m2x2")) + ", float " + value);
    }
    std::string high = operation("shl i32 " + parts[1] + ", 8");
    write(operand(instruction, 0), bits_type(16), extend(operation("or i32 " + parts[0] + ", " + high), 32, 16, false));
}

void Emitter::convert_from_8(const Instruction &instruction)
{
    std::string both = extend(read(operand(instruction, 1), bits_type(16)), 16, 32, false), result = "0";
    for (int index = 0; index < 2; ++index) {
        std::string bits =
            operation("and i32 " + operation("lshr i32 " + both + ", " + std::to_string(8 * index)) + ", 255");
        std::string value =
            call("float", "vgpu_widen_8", "i32 " + std::to_string(instruction.has("e5m2x2")) + ", i32 " + bits);
        if (instruction.has("relu"))
            value = intrinsic("maximum", "float", {value, "0.0"});
        std::string half = cast(operation("fptrunc float " + value + " to half"), "half", "i32");
        result =
            operation("or i32 " + result + ", " + operation("shl i32 " + half + ", " + std::to_string(16 * index)));
    }
    write(operand(instruction, 0), type_of("f16x2"), result);
}

void Emitter::convert(const Instruction &instruction)
{
    if (instruction.has("pack"))
        return pack(instruction);
    const std::string &last = instruction.words.back();
    if (last == "e4m3x2" || last == "e5m2x2")
        return convert_from_8(instruction);
    if (instruction.has("e4m3x2") || instruction.has("e5m2x2"))
        return convert_to_8(instruction);
    Type to = type(instruction, 1), from = type(instruction);
    if (to.lanes == 2 && from.lanes == 1) { /* cvt.f16x2.f32 d, high, low */
        Type lane = {to.kind, to.bits, 1};
        std::string parts[2];
        for (std::size_t index = 0; index < 2; ++index) {
            std::string value = flushed(instruction, from, read(operand(instruction, 2 - index), from));
            parts[index] = cast(real_to_real(instruction, lane, from, value), lane.llvm(), "i32");
        }
        std::string high = operation("shl i32 " + parts[1] + ", 16");
        return write(operand(instruction, 0), to, operation("or i32 " + parts[0] + ", " + high));
    }
    if (to.lanes != from.lanes || to.lanes == 2)
        unsupported(instruction);
    std::string value = flushed(instruction, from, read(operand(instruction, 1), from)), result;
    if (to.is_float() && from.is_float())
        result = real_to_real(instruction, to, from, value);
    else if (to.is_float())
        result = integer_to_real(instruction, to, from, value);
    else if (from.is_float())
        result = real_to_integer(instruction, to, from, value);
    else
        result = integer_to_integer(instruction, to, from, value);
    if (to.is_float() && to.bits != 32 && instruction.has("sat"))
        result = saturated(to, result);
    write(operand(instruction, 0), to, to.is_float() ? finish_real(instruction, to, result) : result);
}

/* cvt.pack.sat: narrows and packs two numbers. The low bits of a third operand go above them. */
void Emitter::pack(const Instruction &instruction)
{
    const std::string &word = instruction.words.size() > 3 ? instruction.words[3] : instruction.words[0];
    Type from = type_of("s32");
    std::map<std::string, Type> small = {{"u2", {Kind::unsign, 2, 1}},
                                         {"s2", {Kind::sign, 2, 1}},
                                         {"u4", {Kind::unsign, 4, 1}},
                                         {"s4", {Kind::sign, 4, 1}}};
    Type to = small.count(word) ? small[word] : type_of(word);
    if (to.kind == Kind::none)
        unsupported(instruction);
    std::string a = integer_to_integer(instruction, to, from, read(operand(instruction, 1), from));
    std::string b = integer_to_integer(instruction, to, from, read(operand(instruction, 2), from));
    std::string width = std::to_string(to.bits);
    std::string high = operation("shl i32 " + extend(a, to.bits, 32, false) + ", " + width);
    std::string result = operation("or i32 " + high + ", " + extend(b, to.bits, 32, false));
    if (instruction.operands.size() > 3) {
        std::string above =
            operation("shl i32 " + read(operand(instruction, 3), from) + ", " + std::to_string(2 * to.bits));
        result = operation("or i32 " + result + ", " + above);
    }
    write(operand(instruction, 0), bits_type(32), result);
}

/* cvta: only shared addresses differ from generic ones. */
void Emitter::convert_address(const Instruction &instruction)
{
    Type kind = type(instruction);
    bool to_space = instruction.has("to"), shared = false;
    for (const std::string &word : instruction.words)
        shared |= word.rfind("shared", 0) == 0;
    std::string value = cast(read(operand(instruction, 1), kind), kind.integer(), "i64");
    if (shared) {
        std::string base = field(3, -1, "i64");
        value = operation((to_space ? "sub i64 " : "add i64 ") + value + ", " + base);
    }
    write(operand(instruction, 0), kind, cast(value, "i64", kind.integer()));
}

void Emitter::add_conversions(std::map<std::string, Handler> &handlers)
{
    handlers["cvt"] = &Emitter::convert;
    handlers["cvta"] = &Emitter::convert_address;
}

} // namespace vgpu::ptx

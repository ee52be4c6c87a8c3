/* Floating-point arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision Floating-Point Instructions").
 *
 * Sums, products and quotients of 16-bit numbers are computed in single precision and rounded once more. The result
 * is rounded correctly, because 24 >= 2 * 11 + 2 bits. Fused multiply-add of such numbers needs the driver's help.
 * Operations that PTX calls approximate are as precise as the C library's. */
#include <utility>

#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

/* mathematics.cpp uses the same numbers. */
const std::map<std::string, int> &operation_numbers()
{
    static const std::map<std::string, int> *numbers =
        new std::map<std::string, int>{{"add", 0}, {"sub", 1}, {"mul", 2}, {"fma", 3}, {"div", 4}, {"sqrt", 5}};
    return *numbers;
}

} // namespace

std::string Emitter::flushed(const Instruction &instruction, Type kind, const std::string &value)
{
    bool flushes = kind.kind == Kind::real && kind.bits == 32 && instruction.has("ftz");
    return flushes ? call("float", "flush_f32", "float " + value) : value;
}

/* The same for f16, where only arithmetic has the option. */
std::string Emitter::flushed_half(const Instruction &instruction, Type kind, const std::string &value)
{
    if (kind.kind != Kind::real || kind.bits != 16 || !instruction.has("ftz"))
        return value;
    std::string size = intrinsic("fabs", "half", {value});
    std::string subnormal = operation("fcmp olt half " + size + ", 0xH0400");
    return operation("select i1 " + subnormal + ", half " + intrinsic("copysign", "half", {"0.0", value}) + ", half " +
                     value);
}

/* Clamps to 0 to 1. NaN becomes 0. */
std::string Emitter::saturated(Type kind, const std::string &value)
{
    if (kind.bits == 16) {
        std::string wide = call("float", "saturate_f32", "float " + widened(kind, value));
        return kind.kind == Kind::brain ? call("i16", "narrow_bf16", "float " + wide)
                                        : operation("fptrunc float " + wide + " to half");
    }
    return call(kind.llvm(), kind.bits == 64 ? "saturate_f64" : "saturate_f32", kind.llvm() + " " + value);
}

std::string Emitter::finish_real(const Instruction &instruction, Type kind, const std::string &value)
{
    std::string result = flushed(instruction, kind, value);
    return instruction.has("sat") && kind.bits == 32 ? saturated(kind, result) : result;
}

/* An operation on f32 or f64. `values` holds as many as the operation takes. */
std::string Emitter::real_operation(const Instruction &instruction, const std::string &name, Type kind,
                                    const Values &values)
{
    std::string in = kind.llvm();
    if (name == "min" || name == "max")
        return real_extremum(instruction, name, kind, values);
    if (rounding_direction(instruction) != 0) {
        if (kind.bits == 32 && (name == "add" || name == "sub" || name == "mul" || name == "fma"))
            return directed(name, rounding_direction(instruction), values);
        std::string arguments = "i32 " + std::to_string(operation_numbers().at(name)) + ", i32 " +
                                std::to_string(rounding_direction(instruction));
        for (std::size_t index = 0; index < 3; ++index)
            arguments += ", " + in + " " + (index < values.size() ? values[index] : std::string("0.0"));
        return call(in, kind.bits == 32 ? "vgpu_round_f32" : "vgpu_round_f64", arguments);
    }
    if (name == "fma")
        return intrinsic("fma", in, values);
    if (name == "sqrt")
        return intrinsic("sqrt", in, values);
    return operation("f" + name + " " + in + " " + values[0] + ", " + values[1]);
}

/* A sum, difference, product or fused multiply-add of f32 with directed rounding. `directed_f32` treats each as a
 * fused multiply-add. */
std::string Emitter::directed(const std::string &name, int direction, const Values &values)
{
    Values given = values, fused = values;
    given.resize(3, "0.0");
    if (name == "add")
        fused = {values[0], "1.0", values[1]};
    else if (name == "sub")
        fused = {values[0], "1.0", operation("fneg float " + values[1])};
    else if (name == "mul")
        fused = {values[0], values[1], "-0.0"};
    std::string arguments =
        "i32 " + std::to_string(operation_numbers().at(name)) + ", i32 " + std::to_string(direction);
    for (const Values *list : {&given, &fused})
        for (const std::string &value : *list)
            arguments += ", float " + value;
    return call("float", "directed_f32", arguments);
}

/* -0 is less than +0. A number is preferred to NaN, except with `.NaN`. */
std::string Emitter::real_extremum(const Instruction &instruction, const std::string &name, Type kind,
                                   const Values &values)
{
    std::string in = kind.llvm(), bits = kind.integer(), sign;
    Values given = values;
    if (instruction.has("xorsign")) {
        std::string differs =
            operation("xor " + bits + " " + cast(values[0], in, bits) + ", " + cast(values[1], in, bits));
        sign = cast(differs, bits, in);
        for (std::string &value : given)
            value = intrinsic("fabs", in, {value});
    }
    std::string result = given[0];
    for (std::size_t index = 1; index < given.size(); ++index) {
        std::string before = result, other = given[index];
        result = intrinsic(name == "min" ? "minimum" : "maximum", in, {before, other});
        if (instruction.has("NaN"))
            continue;
        for (auto [none, number] : {std::pair(before, other), std::pair(other, before)})
            result = operation("select i1 " + operation("fcmp uno " + in + " " + none + ", 0.0") + ", " + in + " " +
                               number + ", " + in + " " + result);
    }
    return sign.empty() ? result : intrinsic("copysign", in, {result, sign});
}

/* An operation on f16 or bf16. */
std::string Emitter::narrow_operation(const Instruction &instruction, const std::string &name, Type kind,
                                      const Values &values)
{
    bool brain = kind.kind == Kind::brain;
    Type single = type_of("f32");
    Values given;
    for (const std::string &value : values)
        given.push_back(flushed_half(instruction, kind, value));
    std::string result;
    if (name == "fma") {
        std::string arguments = "i32 " + std::to_string(brain);
        for (const std::string &value : given)
            arguments += ", i16 " + cast(value, kind.llvm(), "i16");
        result = cast(call("i16", "vgpu_fma_16", arguments), "i16", kind.llvm());
    } else {
        Values wide;
        for (const std::string &value : given)
            wide.push_back(widened(kind, value));
        result = real_operation(instruction, name, single, wide);
        result =
            brain ? call("i16", "narrow_bf16", "float " + result) : operation("fptrunc float " + result + " to half");
    }
    result = flushed_half(instruction, kind, result);
    if (instruction.has("sat"))
        return saturated(kind, result);
    if (!instruction.has("relu"))
        return result;
    std::string wide = intrinsic("maximum", "float", {widened(kind, result), "0.0"});
    return brain ? call("i16", "narrow_bf16", "float " + wide) : operation("fptrunc float " + wide + " to half");
}

/* Arithmetic with two or three operands. */
void Emitter::real_arithmetic(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string name = instruction.words.front();
    if (name == "mad")
        name = "fma";
    Values values;
    for (std::size_t index = 1; index < instruction.operands.size(); ++index)
        values.push_back(flushed(instruction, kind, read(operand(instruction, index), kind)));
    if (instruction.has("abs") && !instruction.has("xorsign"))
        for (std::string &value : values)
            value = intrinsic("fabs", kind.llvm(), {value});
    if (values.size() < 2)
        throw Error("too few operands");
    std::string result = lanes(kind, values, [&](Type lane, const Values &parts) {
        return lane.bits == 16 ? narrow_operation(instruction, name, lane, parts)
                               : real_operation(instruction, name, lane, parts);
    });
    write(operand(instruction, 0), kind, finish_real(instruction, kind, result));
}

/* abs, neg, sqrt and rcp. The approximate forms are as precise as the others. */
void Emitter::real_one_operand(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string name = instruction.words.front();
    std::string value = flushed(instruction, kind, read(operand(instruction, 1), kind));
    std::string result = lanes(kind, {value}, [&](Type lane, const Values &parts) -> std::string {
        if (lane.kind == Kind::brain)
            return operation((name == "neg" ? "xor i16 " : "and i16 ") + parts[0] +
                             (name == "neg" ? ", -32768" : ", 32767"));
        if (name == "neg")
            return operation("fneg " + lane.llvm() + " " + flushed_half(instruction, lane, parts[0]));
        if (name == "abs")
            return intrinsic("fabs", lane.llvm(), {flushed_half(instruction, lane, parts[0])});
        if (name == "sqrt")
            return real_operation(instruction, name, lane, parts);
        return real_operation(instruction, "div", lane, {"1.0", parts[0]});
    });
    write(operand(instruction, 0), kind, gross(instruction, kind, finish_real(instruction, kind, result)));
}

/* What rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 yield: only the higher 32 bits, and no subnormal numbers. */
std::string Emitter::gross(const Instruction &instruction, Type kind, const std::string &value)
{
    if (kind.bits != 64 || !instruction.has("approx") || !instruction.has("ftz"))
        return value;
    std::string bits = operation("and i64 " + cast(value, "double", "i64") + ", -4294967296");
    std::string size = operation("and i64 " + bits + ", " + std::to_string(INT64_MAX));
    std::string subnormal = operation("icmp ult i64 " + size + ", " + std::to_string(std::int64_t{1} << 52));
    std::string zero = operation("xor i64 " + bits + ", " + size);
    return cast(operation("select i1 " + subnormal + ", i64 " + zero + ", i64 " + bits), "i64", "double");
}

/* sin, cos, ex2, lg2, tanh, rsqrt */
void Emitter::approximate(const Instruction &instruction)
{
    static const std::map<std::string, int> *numbers =
        new std::map<std::string, int>{{"sin", 0}, {"cos", 1}, {"ex2", 2}, {"lg2", 3}, {"tanh", 4}};
    Type kind = type(instruction);
    std::string name = instruction.words.front();
    std::string value = flushed(instruction, kind, read(operand(instruction, 1), kind));
    std::string result = lanes(kind, {value}, [&](Type lane, const Values &parts) {
        if (name == "rsqrt")
            return operation("fdiv " + lane.llvm() + " 1.0, " + intrinsic("sqrt", lane.llvm(), parts));
        std::string wide = widened(lane, parts[0]);
        std::string number = std::to_string(numbers->at(name));
        std::string single = call("float", "vgpu_approximate", "i32 " + number + ", float " + wide);
        if (lane.kind == Kind::brain)
            return call("i16", "narrow_bf16", "float " + single);
        return lane.bits == 16 ? operation("fptrunc float " + single + " to half") : single;
    });
    write(operand(instruction, 0), kind, gross(instruction, kind, finish_real(instruction, kind, result)));
}

/* copysign: the second operand with the sign of the first. */
void Emitter::copy_sign(const Instruction &instruction)
{
    Type kind = type(instruction);
    std::string sign = read(operand(instruction, 1), kind), size = read(operand(instruction, 2), kind);
    write(operand(instruction, 0), kind, intrinsic("copysign", kind.llvm(), {size, sign}));
}

void Emitter::add_real(std::map<std::string, Handler> &handlers)
{
    handlers["fma"] = &Emitter::real_arithmetic;
    handlers["sqrt"] = handlers["rcp"] = &Emitter::real_one_operand;
    for (const char *name : {"sin", "cos", "ex2", "lg2", "tanh", "rsqrt"})
        handlers[name] = &Emitter::approximate;
    handlers["copysign"] = &Emitter::copy_sign;
}

} // namespace vgpu::ptx

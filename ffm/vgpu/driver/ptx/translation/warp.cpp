/* What the threads of a warp do together (PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync",
 * "activemask"). */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

/* The index of the first of `names` that the instruction has. */
int which(const Instruction &instruction, const std::vector<const char *> &names)
{
    for (std::size_t index = 0; index < names.size(); ++index)
        if (instruction.has(names[index]))
            return static_cast<int>(index);
    throw Error("a modifier is missing");
}

} // namespace

void Emitter::shuffle(const Instruction &instruction)
{
    int mode = which(instruction, {"up", "down", "bfly", "idx"});
    std::string value = read(operand(instruction, 1), bits_type(32));
    std::string lane = read(operand(instruction, 2), bits_type(32));
    std::string clamp = read(operand(instruction, 3), bits_type(32));
    if (!instruction.has("sync"))
        unsupported(instruction);
    std::string mask = read(operand(instruction, 4), bits_type(32));
    wait("vgpu_shuffle",
         ", i32 " + std::to_string(mode) + ", i32 " + value + ", i32 " + lane + ", i32 " + clamp + ", i32 " + mask);
    std::string result = waited_for("i64");
    const Operand &target = operand(instruction, 0);
    write(target, bits_type(32), extend(result, 64, 32, false));
    if (!target.second.empty())
        write_predicate(target.second, operation("icmp ne i64 " + operation("lshr i64 " + result + ", 32") + ", 0"));
}

void Emitter::vote(const Instruction &instruction)
{
    if (!instruction.has("sync"))
        unsupported(instruction);
    int mode = which(instruction, {"all", "any", "uni", "ballot"});
    std::string holds = operation("zext i1 " + read(operand(instruction, 1), type_of("pred")) + " to i32");
    std::string mask = read(operand(instruction, 2), bits_type(32));
    wait("vgpu_vote", ", i32 " + std::to_string(mode) + ", i32 " + holds + ", i32 " + mask);
    std::string result = waited_for("i32");
    if (mode == 3)
        write(operand(instruction, 0), bits_type(32), result);
    else
        write(operand(instruction, 0), type_of("pred"), operation("icmp ne i32 " + result + ", 0"));
}

void Emitter::match(const Instruction &instruction)
{
    int all = which(instruction, {"any", "all"});
    Type kind = type(instruction);
    std::string value = extend(read(operand(instruction, 1), kind), kind.bits, 64, false);
    std::string mask = read(operand(instruction, 2), bits_type(32));
    wait("vgpu_match", ", i32 " + std::to_string(all) + ", i64 " + value + ", i32 " + mask);
    std::string result = waited_for("i64");
    const Operand &target = operand(instruction, 0);
    write(target, bits_type(32), extend(result, 64, 32, false));
    if (!target.second.empty())
        write_predicate(target.second, operation("icmp ne i64 " + operation("lshr i64 " + result + ", 32") + ", 0"));
}

/* redux.sync. Signed operations have numbers of their own. */
void Emitter::reduce(const Instruction &instruction)
{
    Type kind = type(instruction);
    int how = which(instruction, {"add", "min", "max", "and", "or", "xor"});
    if (kind.is_float())
        unsupported(instruction);
    if (kind.kind == Kind::sign && (how == 1 || how == 2))
        how += 5;
    std::string value = read(operand(instruction, 1), kind), mask = read(operand(instruction, 2), bits_type(32));
    wait("vgpu_reduce", ", i32 " + std::to_string(how) + ", i32 " + value + ", i32 " + mask);
    write(operand(instruction, 0), kind, waited_for("i32"));
}

void Emitter::active(const Instruction &instruction)
{
    wait("vgpu_active", ", i32 " + std::to_string(instruction.line));
    write(operand(instruction, 0), bits_type(32), waited_for("i32"));
}

/* elect.sync: the lowest lane of the mask */
void Emitter::elect(const Instruction &instruction)
{
    std::string mask = read(operand(instruction, 1), bits_type(32));
    wait("vgpu_warp_barrier", ", i32 " + mask);
    mask = read(operand(instruction, 1), bits_type(32)); /* read again, since a wait invalidates values */
    declared_->insert("declare i32 @llvm.cttz.i32(i32, i1)");
    std::string lowest = call("i32", "llvm.cttz.i32", "i32 " + mask + ", i1 false");
    std::string own = cast(special("%laneid"), "i64", "i32");
    const Operand &target = operand(instruction, 0);
    write(target, bits_type(32), lowest);
    if (!target.second.empty())
        write_predicate(target.second, operation("icmp eq i32 " + own + ", " + lowest));
}

void Emitter::add_warp(std::map<std::string, Handler> &handlers)
{
    handlers["shfl"] = &Emitter::shuffle;
    handlers["vote"] = &Emitter::vote;
    handlers["match"] = &Emitter::match;
    handlers["redux"] = &Emitter::reduce;
    handlers["activemask"] = &Emitter::active;
    handlers["elect"] = &Emitter::elect;
}

} // namespace vgpu::ptx

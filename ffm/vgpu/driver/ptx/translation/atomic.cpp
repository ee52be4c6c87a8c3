/* atom, red and fences (PTX ISA, "Parallel Synchronization and Communication Instructions").
 *
 * Here every scope is the whole machine. The threads of a block share one host thread and lose it only when they
 * wait, so atomics on shared memory need no locked instructions. */
#include "emitter.h"

namespace vgpu::ptx
{

/* Atomically replaces the value at `pointer` by `next` of it. Yields the value before. */
std::string Emitter::compare_loop(Type kind, const std::string &pointer,
                                  const std::function<std::string(const std::string &)> &next)
{
    std::string in = kind.integer(), align = ", align " + std::to_string(kind.bytes());
    std::string first = fresh_label(), again = fresh_label(), last = fresh_label(), done = fresh_label();
    begin(first);
    std::string looked = operation("load atomic " + in + ", ptr " + pointer + " monotonic" + align);
    begin(again);
    std::string found = "%" + fresh_label();
    std::string before = operation("phi " + in + " [ " + looked + ", %" + quoted(first) + " ], [ " + found + ", %" +
                                   quoted(last) + " ]");
    std::string after = next(before);
    begin(last);
    std::string pair = operation("cmpxchg ptr " + pointer + ", " + in + " " + before + ", " + in + " " + after +
                                 " seq_cst seq_cst" + align);
    line(found + " = extractvalue { " + in + ", i1 } " + pair + ", 0");
    branch(operation("extractvalue { " + in + ", i1 } " + pair + ", 1"), done, again);
    begin(done);
    return before;
}

/* The same where no other host thread has access. */
std::string Emitter::replace_alone(Type kind, const std::string &pointer,
                                   const std::function<std::string(const std::string &)> &next)
{
    std::string in = kind.integer(), align = ", align " + std::to_string(kind.bytes());
    std::string before = operation("load " + in + ", ptr " + pointer + align);
    line("store " + in + " " + next(before) + ", ptr " + pointer + align);
    return before;
}

/* The new value of an integer: what the operation makes of the value before and the one given. */
std::string Emitter::combined(const std::string &name, Type kind, const std::string &before, const std::string &given)
{
    std::string in = kind.integer();
    if (name == "exch")
        return given;
    if (name == "min" || name == "max")
        return intrinsic((kind.kind == Kind::sign ? "s" : "u") + name, in, {before, given});
    if (name == "inc") {
        std::string more = operation("add " + in + " " + before + ", 1");
        std::string over = operation("icmp uge " + in + " " + before + ", " + given);
        return operation("select i1 " + over + ", " + in + " 0, " + in + " " + more);
    }
    if (name == "dec") { /* below 0 it wraps around, and is larger than any bound */
        std::string less = operation("sub " + in + " " + before + ", 1");
        std::string over = operation("icmp uge " + in + " " + less + ", " + given);
        return operation("select i1 " + over + ", " + in + " " + given + ", " + in + " " + less);
    }
    return operation(name + " " + in + " " + before + ", " + given);
}

/* The atomic operation on one value. Yields the value before, as an integer. */
std::string Emitter::exchange(const Instruction &instruction, Type kind, const std::string &pointer,
                              const Operand &operand)
{
    bool alone = space(instruction) == Space::shared;
    static const std::map<std::string, std::string> *operations = new std::map<std::string, std::string>{
        {"add", "add"}, {"and", "and"}, {"or", "or"},         {"xor", "xor"},      {"exch", "xchg"},
        {"min", "min"}, {"max", "max"}, {"inc", "uinc_wrap"}, {"dec", "udec_wrap"}};
    std::string name;
    for (const std::string &word : instruction.words)
        if (operations->count(word))
            name = word;
    if (name.empty())
        unsupported(instruction);
    std::string value = read(operand, kind), in = kind.llvm();
    std::string align = ", align " + std::to_string(kind.bytes());
    if (kind.is_float() && name != "exch") {
        if (kind.bits >= 32 && name == "add" && !alone)
            return cast(operation("atomicrmw fadd ptr " + pointer + ", " + in + " " + value + " seq_cst" + align), in,
                        kind.integer());
        auto next = [&](const std::string &before) {
            std::string result =
                lanes(kind, {cast(before, kind.integer(), in), value}, [&](Type lane, const Values &parts) {
                    return lane.bits == 16 ? narrow_operation(instruction, name, lane, parts)
                                           : real_operation(instruction, name, lane, parts);
                });
            return cast(result, in, kind.integer());
        };
        return alone ? replace_alone(kind, pointer, next) : compare_loop(kind, pointer, next);
    }
    std::string given = cast(value, in, kind.integer());
    if (alone)
        return replace_alone(kind, pointer,
                             [&](const std::string &before) { return combined(name, kind, before, given); });
    std::string how = operations->at(name);
    if ((name == "min" || name == "max") && kind.kind != Kind::sign)
        how = "u" + how;
    return operation("atomicrmw " + how + " ptr " + pointer + ", " + kind.integer() + " " + given + " seq_cst" + align);
}

/* atom.cas */
std::string Emitter::swap_if_equal(const Instruction &instruction, Type kind, const std::string &pointer)
{
    std::string in = kind.integer();
    std::string expected = cast(read(operand(instruction, 2), kind), kind.llvm(), in);
    std::string desired = cast(read(operand(instruction, 3), kind), kind.llvm(), in);
    if (space(instruction) == Space::shared)
        return replace_alone(kind, pointer, [&](const std::string &found) {
            std::string same = operation("icmp eq " + in + " " + found + ", " + expected);
            return operation("select i1 " + same + ", " + in + " " + desired + ", " + in + " " + found);
        });
    return operation("extractvalue { " + in + ", i1 } " +
                     operation("cmpxchg ptr " + pointer + ", " + in + " " + expected + ", " + in + " " + desired +
                               " seq_cst seq_cst, align " + std::to_string(kind.bytes())) +
                     ", 0");
}

/* The elements of a vector are atomic one by one, but the vector as a whole is not, as the ISA says. */
void Emitter::atomic(const Instruction &instruction)
{
    Type kind = type(instruction);
    bool yields = instruction.words.front() == "atom";
    if (yields)
        spin();
    const Operand &address = operand(instruction, yields ? 1 : 0);
    if (instruction.has("cas")) {
        std::string at = pointer(address, space(instruction), kind.bytes());
        std::string before = swap_if_equal(instruction, kind, at);
        return write(operand(instruction, 0), kind, cast(before, kind.integer(), kind.llvm()));
    }
    int length = vector_length(instruction);
    std::string at = pointer(address, space(instruction), length * kind.bytes());
    const Operand &given = operand(instruction, yields ? 2 : 1), &taken = operand(instruction, 0);
    for (int index = 0; index < length; ++index) {
        std::size_t member = static_cast<std::size_t>(index);
        std::string place = at;
        if (index > 0)
            place = operation("getelementptr i8, ptr " + at + ", i64 " + std::to_string(index * kind.bytes()));
        std::string before = exchange(instruction, kind, place, length == 1 ? given : given.members.at(member));
        if (yields && taken.form != Operand::Form::discarded)
            write(length == 1 ? taken : taken.members.at(member), kind, cast(before, kind.integer(), kind.llvm()));
    }
}

void Emitter::fence(const Instruction &)
{
    line("fence seq_cst");
}

void Emitter::add_atomics(std::map<std::string, Handler> &handlers)
{
    handlers["atom"] = handlers["red"] = &Emitter::atomic;
    handlers["membar"] = handlers["fence"] = &Emitter::fence;
}

} // namespace vgpu::ptx

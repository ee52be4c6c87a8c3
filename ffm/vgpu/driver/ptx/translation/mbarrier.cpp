/* mbarrier: barrier objects in shared memory (PTX ISA, "mbarrier").
 *
 * The ISA does not define the layout. Here the lowest 20 bits count the arrivals that are pending, and the next 20
 * those that each phase expects. The next 21 count the bytes that copies have yet to deliver; they are negative if
 * bytes arrive before they are expected. The highest 3 count the phases.
 *
 * An arrival yields the object as it was before. A wait for that phase ends when the phases differ, since only the
 * current phase and the one before it may be waited for. The threads of a block share one host thread, so no access
 * needs to be atomic. */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::int64_t count_bits = 20;
constexpr std::int64_t count_mask = (std::int64_t{1} << count_bits) - 1;
constexpr std::int64_t bytes_place = 2 * count_bits;
constexpr std::int64_t phase_place = 61;
constexpr std::uint64_t bytes_mask = (std::uint64_t{1} << phase_place) - (std::uint64_t{1} << bytes_place);

/* A 64-bit word as LLVM's assembly language writes it. */
std::string word(std::uint64_t value)
{
    return std::to_string(static_cast<std::int64_t>(value));
}

} // namespace

/* Stores the object's new value. The next phase starts when no arrivals and no bytes are missing. */
void Emitter::settle(const std::string &object, const std::string &counted)
{
    std::string missing = operation("and i64 " + counted + ", " + word(count_mask | bytes_mask));
    std::string expected =
        operation("and i64 " + operation("lshr i64 " + counted + ", " + word(count_bits)) + ", " + word(count_mask));
    std::string advanced = operation("add i64 " + counted + ", " + word(std::uint64_t{1} << phase_place));
    std::string next = operation("or i64 " + advanced + ", " + expected);
    std::string completes = operation("icmp eq i64 " + missing + ", 0");
    std::string after = operation("select i1 " + completes + ", i64 " + next + ", i64 " + counted);
    line("store volatile i64 " + after + ", ptr " + object);
}

/* Counts `arrivals` (an i64). With `drops`, later phases do not expect them either. Yields the object as it was
 * before. */
std::string Emitter::arrive_at(const std::string &object, const std::string &arrivals, bool drops)
{
    std::string before = operation("load volatile i64, ptr " + object);
    std::string counted = operation("sub i64 " + before + ", " + arrivals);
    if (drops)
        counted = operation("sub i64 " + counted + ", " + operation("shl i64 " + arrivals + ", " + word(count_bits)));
    settle(object, counted);
    return before;
}

/* Makes the current phase wait for `bytes` (an i32) more, or fewer. */
void Emitter::count_bytes(const std::string &object, const std::string &bytes, bool fewer)
{
    std::string before = operation("load volatile i64, ptr " + object);
    std::string change = operation("shl i64 " + extend(bytes, 32, 64, false) + ", " + word(bytes_place));
    std::string changed = operation(std::string(fewer ? "sub" : "add") + " i64 " + before + ", " + change);
    std::string differs = operation("and i64 " + operation("xor i64 " + before + ", " + changed) + ", " +
                                    word(bytes_mask)); /* drops what carries out of the field */
    settle(object, operation("xor i64 " + before + ", " + differs));
}

/* Whether a phase is over, as an i1. The phase is given by an arrival's state, or by its parity. */
std::string Emitter::phase_is_over(const std::string &object, const std::string &given, bool by_parity)
{
    const std::string place = std::to_string(phase_place);
    std::string phase = operation("lshr i64 " + operation("load volatile i64, ptr " + object) + ", " + place);
    if (!by_parity)
        return operation("icmp ne i64 " + phase + ", " + operation("lshr i64 " + given + ", " + place));
    std::string differs = operation("xor i64 " + phase + ", " + given);
    return operation("trunc i64 " + differs + " to i1");
}

void Emitter::wait_at_object(const Instruction &instruction)
{
    bool by_parity = instruction.has("parity");
    Type kind = bits_type(by_parity ? 32 : 64);
    std::string object = pointer(operand(instruction, 1), space(instruction), 8);
    std::string given = extend(read(operand(instruction, 2), kind), kind.bits, 64, false);
    if (instruction.words[1] == "test_wait") {
        spin();
    } else { /* PTX may suspend the thread for a while; here it gives the others one turn */
        std::string turn = fresh_label(), done = fresh_label();
        branch(phase_is_over(object, given, by_parity), done, turn);
        begin(turn);
        wait("vgpu_turn", "");
        begin(done);
    }
    write(operand(instruction, 0), type_of("pred"), phase_is_over(object, given, by_parity));
}

void Emitter::barrier_object(const Instruction &instruction)
{
    const std::string &what = instruction.words.at(1);
    Type count = bits_type(32), whole = bits_type(64);
    if (what == "expect_tx" || what == "complete_tx")
        return count_bytes(pointer(operand(instruction, 0), space(instruction), 8),
                           read(operand(instruction, 1), count), what == "complete_tx");
    if (what == "test_wait" || what == "try_wait")
        return wait_at_object(instruction);
    if (what == "pending_count") {
        std::string pending =
            operation("and i64 " + read(operand(instruction, 1), whole) + ", " + std::to_string(count_mask));
        return write(operand(instruction, 0), count, operation("trunc i64 " + pending + " to i32"));
    }
    if (what == "init" || what == "inval") {
        std::string object = pointer(operand(instruction, 0), space(instruction), 8), value = "0";
        if (what == "init") {
            std::string expected = extend(read(operand(instruction, 1), count), 32, 64, false);
            value = operation("mul i64 " + expected + ", " + std::to_string((std::int64_t{1} << count_bits) + 1));
        }
        return line("store volatile i64 " + value + ", ptr " + object);
    }
    if (what != "arrive" && what != "arrive_drop")
        unsupported(instruction);
    std::string object = pointer(operand(instruction, 1), space(instruction), 8), arrivals = "1";
    if (instruction.has("expect_tx"))
        count_bytes(object, read(operand(instruction, 2), count), false);
    else if (instruction.operands.size() > 2)
        arrivals = extend(read(operand(instruction, 2), count), 32, 64, false);
    std::string before = arrive_at(object, arrivals, what == "arrive_drop");
    if (operand(instruction, 0).form != Operand::Form::discarded)
        write(operand(instruction, 0), whole, before);
}

/* cp.async.mbarrier.arrive: arrives when the thread's copies are done, and here they always are. Without `.noinc`,
 * the object expects one more arrival for it, so that nothing changes. */
void Emitter::arrive_after_copies(const Instruction &instruction)
{
    if (instruction.has("noinc"))
        arrive_at(pointer(operand(instruction, 0), space(instruction), 8), "1", false);
}

void Emitter::add_barrier_objects(std::map<std::string, Handler> &handlers)
{
    handlers["mbarrier"] = &Emitter::barrier_object;
}

} // namespace vgpu::ptx

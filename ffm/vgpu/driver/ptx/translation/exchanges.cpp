/* Sequences of exchanges in a whole warp, as in a sum over a warp. If all 32 lanes reach the first exchange
 * together, each exchange is one permutation of the lanes' values. What the lanes compute between two exchanges is a
 * loop over the lanes, which LLVM vectorizes. Lanes that do not arrive together are handled as in any other wait. */
#include <algorithm>

#include "../execution/block.h"
#include "../execution/shuffle.h"
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::uint32_t whole_warp = ~std::uint32_t{0};
const std::string given = "%whole.given", got = "%whole.got"; /* a word for each lane */

/* Which lane each lane gets its value from. A bit in `inside` says whether that lane exists. */
struct Permutation {
    int source[warp_size];
    std::uint32_t inside = 0;
};

template <Shuffle mode> Permutation permutation(std::uint32_t b, std::uint32_t c)
{
    Permutation found;
    for (int lane = 0; lane < warp_size; ++lane)
        found.inside |= source_lane<mode>(lane, b, c, found.source[lane]) ? lane_bit(lane) : 0;
    return found;
}

Permutation permutation_of(const WaitPoint &point)
{
    auto value = [&](int index) { return static_cast<std::uint32_t>(point.arguments[index].value); };
    switch (static_cast<Shuffle>(value(0))) {
    case Shuffle::up:
        return permutation<Shuffle::up>(value(2), value(3));
    case Shuffle::down:
        return permutation<Shuffle::down>(value(2), value(3));
    case Shuffle::butterfly:
        return permutation<Shuffle::butterfly>(value(2), value(3));
    default:
        return permutation<Shuffle::index>(value(2), value(3));
    }
}

/* "<i32 4, i32 5, ...>" */
template <typename Value> std::string constants(const std::string &type, Value value)
{
    std::string text = "<";
    for (int lane = 0; lane < warp_size; ++lane)
        text += (lane ? ", " : "") + type + " " + std::to_string(value(lane));
    return text + ">";
}

/* Instructions that do the same for each lane: they use only registers and do not branch. */
bool is_alike(const Instruction &instruction)
{
    static const std::set<std::string> *names =
        new std::set<std::string>{"mov", "add", "sub", "mul", "mad", "fma", "min", "max",  "and",
                                  "or",  "xor", "not", "neg", "abs", "shl", "shr", "selp", "setp"};
    return instruction.label.empty() && instruction.guard.empty() && names->count(instruction.words.front()) &&
           !instruction.has("cc");
}

} // namespace

bool Emitter::has_only_registers(const Operand &operand) const
{
    auto is_register = [this](const std::string &name) {
        auto found = variables_.find(name);
        return name.empty() || name == "_" || (found != variables_.end() && found->second->space == Space::reg);
    };
    return operand.form != Operand::Form::address && is_register(operand.name) && is_register(operand.second) &&
           std::all_of(operand.members.begin(), operand.members.end(),
                       [this](const Operand &member) { return has_only_registers(member); });
}

/* Whether the exchange at `place` involves whole warps, and moves the lanes' values in the same, known way each
 * time. */
bool Emitter::is_whole_exchange(std::size_t place) const
{
    const Instruction &instruction = function_.body[place];
    if (!instruction.label.empty() || !instruction.guard.empty() || instruction.words.front() != "shfl" ||
        !instruction.has("sync") || instruction.operands.size() < 5)
        return false;
    auto known = [this](const Operand &operand, std::int64_t &value) {
        auto constant = constants_.find(operand.name);
        const Operand &source = constant == constants_.end() ? operand : constant->second;
        value = source.value;
        return source.form == Operand::Form::integer && !source.negated;
    };
    std::int64_t lane, clamp, mask;
    return known(instruction.operands[2], lane) && known(instruction.operands[3], clamp) &&
           known(instruction.operands[4], mask) && static_cast<std::uint32_t>(mask) == whole_warp;
}

void Emitter::find_exchanges()
{
    auto together = unit_.exchanges.find(&function_);
    const std::size_t none = function_.body.size();
    std::size_t last = none;
    for (std::size_t place = 0; place < function_.body.size(); ++place) {
        const Instruction &instruction = function_.body[place];
        bool meets = together != unit_.exchanges.end() && together->second.count(place);
        if (meets)
            last = none;
        if (is_whole_exchange(place)) {
            if (last != none)
                next_exchange_[last] = place;
            last = place;
        } else if (!is_alike(instruction) ||
                   !std::all_of(instruction.operands.begin(), instruction.operands.end(),
                                [this](const Operand &operand) { return has_only_registers(operand); })) {
            last = none;
        }
    }
    std::set<std::size_t> later;
    for (const auto &[place, next] : next_exchange_)
        later.insert(next);
    for (const auto &[place, next] : next_exchange_)
        if (!later.count(place))
            first_exchanges_.insert(place);
}

void Emitter::emit_exchange_slots()
{
    for (std::size_t place : first_exchanges_) {
        line("%whole.count." + std::to_string(place) + " = alloca i32");
        line("store i32 0, ptr %whole.count." + std::to_string(place));
    }
    if (!first_exchanges_.empty())
        for (const std::string &words : {given, got})
            line(words + " = alloca [32 x i32], align 128");
}

/* A lane reaches an exchange. Counts the lanes at the first exchange of a sequence. */
void Emitter::count_exchange()
{
    point_at_[place_] = points_.size() - 1;
    if (!first_exchanges_.count(place_))
        return;
    std::string slot = "%whole.count." + std::to_string(place_);
    line("store i32 " + operation("add i32 " + operation("load i32, ptr " + slot) + ", 1") + ", ptr " + slot);
}

/* Runs the sequences of exchanges, once none of the lanes that were to run is left. */
void Emitter::emit_exchanges()
{
    for (std::size_t first : first_exchanges_) {
        std::string name = std::to_string(first), goes_on = fresh_label();
        std::string here = operation("load i32, ptr %whole.count." + name);
        branch(operation("icmp eq i32 " + here + ", 32"), "whole." + name, goes_on);
        begin("whole." + name);
        line("store i32 0, ptr %whole.count." + name);
        std::string arguments = operation("getelementptr %Warp, ptr %warp, i32 0, i32 1, i32 1");
        std::string words = operation("load <64 x i32>, ptr " + arguments + ", align 8");
        std::string low = operation("shufflevector <64 x i32> " + words + ", <64 x i32> poison, <32 x i32> " +
                                    constants("i32", [](int lane) { return 2 * lane; }));
        line("store <32 x i32> " + low + ", ptr " + given + ", align 128");
        std::size_t place = first;
        for (auto next = next_exchange_.find(place); next != next_exchange_.end(); next = next_exchange_.find(place)) {
            emit_permutation(place);
            emit_between(place, next->second);
            place = next->second;
        }
        emit_last_exchange(place);
        begin(goes_on);
    }
}

void Emitter::emit_permutation(std::size_t place)
{
    Permutation moved = permutation_of(points_[point_at_.at(place)]);
    std::string before = operation("load <32 x i32>, ptr " + given + ", align 128");
    std::string after = operation("shufflevector <32 x i32> " + before + ", <32 x i32> poison, <32 x i32> " +
                                  constants("i32", [&](int lane) { return moved.source[lane]; }));
    line("store <32 x i32> " + after + ", ptr " + got + ", align 128");
}

/* Emits what all lanes do between one exchange and the next. */
void Emitter::emit_between(std::size_t place, std::size_t next)
{
    std::string name = std::to_string(place), lane = "%whole.lane." + name, more = "%whole.more." + name;
    jump("whole.enter." + name);
    begin("whole.enter." + name);
    begin("whole.turn." + name);
    line(lane + " = phi i64 [ 0, %\"whole.enter." + name + "\" ], [ " + more + ", %\"whole.latch." + name + "\" ]");
    lane_index_ = lane;
    auto word_of = [&](const std::string &words) {
        return operation("getelementptr i32, ptr " + words + ", i64 " + lane);
    };
    emit_region_kept(kept_.at(place).needed, false);
    const Operand &target = function_.body[place].operands.front();
    write(target, bits_type(32), operation("load i32, ptr " + word_of(got)));
    if (!target.second.empty()) {
        std::uint32_t inside = permutation_of(points_[point_at_.at(place)]).inside;
        std::string bits = operation("lshr i32 " + std::to_string(inside) + ", " + cast(lane, "i64", "i32"));
        write_predicate(target.second, operation("trunc i32 " + bits + " to i1"));
    }
    for (place_ = place + 1; place_ < next; ++place_)
        emit(function_.body[place_]);
    line("store i32 " + read(function_.body[next].operands[1], bits_type(32)) + ", ptr " + word_of(given));
    emit_region_kept(kept_.at(next).changed, true);
    lane_index_ = "%lane.index";
    jump("whole.latch." + name);
    begin("whole.latch." + name);
    line(more + " = add i64 " + lane + ", 1");
    line("%whole.goes." + name + " = icmp ult i64 " + more + ", 32");
    line("br i1 %whole.goes." + name + ", label %\"whole.turn." + name + "\", label %\"whole.left." + name +
         "\", !llvm.loop !" + std::to_string(first_loop + place));
    open_ = false;
    loops_.insert(place);
    begin("whole.left." + name);
}

/* After the last exchange, each lane continues by itself. */
void Emitter::emit_last_exchange(std::size_t place)
{
    std::size_t point = point_at_.at(place);
    Permutation moved = permutation_of(points_[point]);
    emit_permutation(place);
    std::string words = operation("load <32 x i32>, ptr " + got + ", align 128");
    std::string wide = operation("zext <32 x i32> " + words + " to <32 x i64>");
    std::string inside =
        constants("i64", [&](int lane) { return std::uint64_t{moved.inside & lane_bit(lane) ? 1U : 0U} << 32; });
    wide = operation("or <32 x i64> " + wide + ", " + inside);
    line("store <32 x i64> " + wide + ", ptr %warp, align 8");
    line("store i32 " + std::to_string(point) + ", ptr %point.now");
    line("store i32 -1, ptr %lanes.left");
    jump("lane.next");
}

/* The loops are as wide as a warp, so that one turn with vectors does all the work. */
std::string Emitter::loop_facts() const
{
    if (loops_.empty())
        return "";
    std::string first = std::to_string(first_loop - 2), second = std::to_string(first_loop - 1);
    std::string text = "!" + first + " = !{!\"llvm.loop.vectorize.enable\", i1 true}\n!" + second +
                       " = !{!\"llvm.loop.vectorize.width\", i32 32}\n";
    for (std::size_t place : loops_) {
        std::string name = "!" + std::to_string(first_loop + place);
        text += name + " = distinct !{" + name + ", !" + first + ", !" + second + "}\n";
    }
    return text;
}

} // namespace vgpu::ptx

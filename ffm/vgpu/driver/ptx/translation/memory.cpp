/* Loads and stores (PTX ISA, "Data Movement and Conversion Instructions"). Every address is checked (`prelude.cpp`). */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

int logarithm(int bytes)
{
    return bytes <= 1 ? 0 : 31 - __builtin_clz(static_cast<unsigned>(bytes));
}

int vector_length(const Instruction &instruction)
{
    return instruction.has("v8") ? 8 : instruction.has("v4") ? 4 : instruction.has("v2") ? 2 : 1;
}

/* How LLVM is to order the access; empty for ordinary ones. */
std::string ordering(const Instruction &instruction, bool load)
{
    if (instruction.has("acquire") || instruction.has("release"))
        return load ? "acquire" : "release";
    bool volatile_access = instruction.has("volatile") || instruction.has("mmio");
    return volatile_access || instruction.has("relaxed") ? "monotonic" : "";
}

} // namespace

/* The state space that is written as a modifier; none: generic. */
Space Emitter::space(const Instruction &instruction) const
{
    for (const std::string &word : instruction.words) {
        std::string stem = word.substr(0, word.find("::"));
        if (word == "shared::cluster")
            unsupported(instruction);
        static const std::map<std::string, Space> *spaces =
            new std::map<std::string, Space>{{"global", Space::global},
                                             {"shared", Space::shared},
                                             {"local", Space::local},
                                             {"const", Space::constant},
                                             {"param", Space::parameter}};
        auto found = spaces->find(stem);
        if (found != spaces->end())
            return found->second;
    }
    return Space::none;
}

std::string Emitter::unchecked_address(const Operand &operand)
{
    auto found = variables_.find(operand.name);
    std::string base = "0";
    if (found != variables_.end() && found->second->space == Space::reg) {
        Operand whole = operand;
        whole.form = Operand::Form::name;
        Type kind = {Kind::unsign, found->second->type.bits, 1};
        base = cast(read(whole, kind), kind.integer(), "i64");
    } else if (!operand.name.empty()) {
        base = address_of(operand.name);
    }
    if (operand.value == 0)
        return base;
    return operation("add i64 " + base + ", " + std::to_string(operand.value));
}

/* Of a kernel's or a function's parameter, or of what is handed to a called function. */
std::string Emitter::parameter_pointer(const Operand &operand)
{
    auto found = variables_.find(operand.name);
    if (found == variables_.end() || found->second->space != Space::parameter)
        return ""; /* an address in a register */
    auto place = unit_.parameter_place.find(operand.name);
    bool of_kernel = function_.entry && place != unit_.parameter_place.end();
    std::int64_t offset = operand.value + (of_kernel ? static_cast<std::int64_t>(place->second) : 0);
    std::string base = of_kernel ? field(5, -1, "ptr") : "%\"" + operand.name + "\"";
    return operation("getelementptr i8, ptr " + base + ", i64 " + std::to_string(offset));
}

std::string Emitter::pointer(const Operand &operand, Space space, int bytes)
{
    if (space == Space::parameter || space == Space::none) {
        std::string direct = parameter_pointer(operand);
        if (!direct.empty())
            return direct;
    }
    std::string name = space == Space::shared ? "at_shared" : space == Space::local ? "at_local" : "at";
    std::string arguments = "ptr %block, ptr %thread, i64 " + unchecked_address(operand) + ", i64 " +
                            std::to_string(logarithm(bytes)) + ", i64 " + std::to_string(bytes);
    if (name == "at")
        arguments += ", i1 " + std::string(space == Space::global ? "false" : "true");
    return operation("inttoptr i64 " + call("i64", name, arguments) + " to ptr");
}

void Emitter::load(const Instruction &instruction)
{
    Type kind = type(instruction);
    int length = vector_length(instruction);
    std::string order = ordering(instruction, true);
    Space where = space(instruction);
    if (!order.empty() && where != Space::local)
        spin();
    std::string from = pointer(operand(instruction, 1), where, length * kind.bytes());
    for (int index = 0; index < length; ++index) {
        const Operand &target =
            length == 1 ? operand(instruction, 0) : operand(instruction, 0).members.at(static_cast<std::size_t>(index));
        std::string place = from;
        if (index > 0)
            place = operation("getelementptr i8, ptr " + from + ", i64 " + std::to_string(index * kind.bytes()));
        std::string how = (order.empty() || kind.bits > 64 ? "load " : "load atomic volatile ");
        std::string text = how + kind.integer() + ", ptr " + place;
        if (!order.empty() && kind.bits <= 64)
            text += " " + order;
        int alignment = where == Space::parameter || kind.bits > 64 ? std::min(kind.bytes(), 8) : kind.bytes();
        std::string value = operation(text + ", align " + std::to_string(alignment));
        if (target.form != Operand::Form::discarded)
            write(target, kind, cast(value, kind.integer(), kind.llvm()));
    }
}

void Emitter::store(const Instruction &instruction)
{
    if (instruction.words[1] == "async" || instruction.words[1] == "bulk")
        unsupported(instruction);
    Type kind = type(instruction);
    int length = vector_length(instruction);
    std::string order = ordering(instruction, false);
    Space where = space(instruction);
    Values values;
    for (int index = 0; index < length; ++index) {
        const Operand &source =
            length == 1 ? operand(instruction, 1) : operand(instruction, 1).members.at(static_cast<std::size_t>(index));
        values.push_back(cast(read(source, kind), kind.llvm(), kind.integer()));
    }
    std::string to = pointer(operand(instruction, 0), where, length * kind.bytes());
    for (int index = 0; index < length; ++index) {
        std::string place = to;
        if (index > 0)
            place = operation("getelementptr i8, ptr " + to + ", i64 " + std::to_string(index * kind.bytes()));
        bool ordered = !order.empty() && kind.bits <= 64;
        int alignment = where == Space::parameter || kind.bits > 64 ? std::min(kind.bytes(), 8) : kind.bytes();
        line((ordered ? "store atomic volatile " : "store ") + kind.integer() + " " +
             values[static_cast<std::size_t>(index)] + ", ptr " + place + (ordered ? " " + order : "") + ", align " +
             std::to_string(alignment));
    }
}

/* Hints to caches. */
void Emitter::nothing(const Instruction &instruction)
{
    if (instruction.has("tensor"))
        unsupported(instruction);
}

/* cp.async copies at once, so that there is nothing to wait for. */
void Emitter::copy_async(const Instruction &instruction)
{
    if (instruction.words.size() < 2 || instruction.words[1] != "async" || instruction.has("bulk"))
        unsupported(instruction);
    if (instruction.has("mbarrier"))
        return arrive_after_copies(instruction);
    if (instruction.has("commit_group") || instruction.has("wait_group") || instruction.has("wait_all"))
        return;
    int size = static_cast<int>(operand(instruction, 2).value);
    if (size != 4 && size != 8 && size != 16)
        unsupported(instruction, "the size of the copy");
    std::string to = pointer(operand(instruction, 0), Space::shared, size), kept = std::to_string(size);
    if (instruction.operands.size() > 3 && operand(instruction, 3).form == Operand::Form::name &&
        variables_.count(operand(instruction, 3).name) &&
        variables_[operand(instruction, 3).name]->type.kind == Kind::predicate)
        unsupported(instruction, "ignoring the source");
    if (instruction.operands.size() > 3) { /* fewer bytes, and zeros behind them */
        kept = intrinsic("umin", "i32", {read(operand(instruction, 3), bits_type(32)), std::to_string(size)});
        line("store " + bits_type(8 * size).integer() + " 0, ptr " + to + ", align " + std::to_string(size));
        kept = extend(kept, 32, 64, false);
        std::string copies = operation("icmp ne i64 " + kept + ", 0");
        std::string inside = fresh_label(), behind = fresh_label();
        branch(copies, inside, behind);
        begin(inside);
        std::string from = pointer(operand(instruction, 1), Space::global, size);
        line("call void @llvm.memcpy.p0.p0.i64(ptr " + to + ", ptr " + from + ", i64 " + kept + ", i1 false)");
        begin(behind);
        return;
    }
    std::string from = pointer(operand(instruction, 1), Space::global, size);
    line("call void @llvm.memcpy.p0.p0.i64(ptr " + to + ", ptr " + from + ", i64 " + kept + ", i1 false)");
}

void Emitter::add_memory(std::map<std::string, Handler> &handlers)
{
    handlers["ld"] = handlers["ldu"] = &Emitter::load;
    handlers["st"] = &Emitter::store;
    handlers["cp"] = &Emitter::copy_async;
    for (const char *name : {"prefetch", "prefetchu", "applypriority", "discard", "createpolicy", "griddepcontrol",
                             "setmaxnreg", "pmevent"})
        handlers[name] = &Emitter::nothing;
}

} // namespace vgpu::ptx

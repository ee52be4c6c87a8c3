/* Loads and stores (PTX ISA, "Data Movement and Conversion Instructions"). Each address is checked (`prelude.cpp`). */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

int logarithm(int bytes)
{
    return bytes <= 1 ? 0 : 31 - __builtin_clz(static_cast<unsigned>(bytes));
}

/* The memory ordering that LLVM is told; empty for ordinary accesses. */
std::string ordering(const Instruction &instruction, bool load)
{
    if (instruction.has("acquire") || instruction.has("release"))
        return load ? "acquire" : "release";
    bool volatile_access = instruction.has("volatile") || instruction.has("mmio");
    return volatile_access || instruction.has("relaxed") ? "monotonic" : "";
}

} // namespace

int vector_length(const Instruction &instruction)
{
    return instruction.has("v8") ? 8 : instruction.has("v4") ? 4 : instruction.has("v2") ? 2 : 1;
}

/* The state space of a modifier. A cluster is one block here, so its shared memory is the block's own. */
Space Emitter::space_of(const std::string &word)
{
    static const std::map<std::string, Space> *spaces = new std::map<std::string, Space>{{"global", Space::global},
                                                                                         {"shared", Space::shared},
                                                                                         {"local", Space::local},
                                                                                         {"const", Space::constant},
                                                                                         {"param", Space::parameter}};
    auto found = spaces->find(word.substr(0, word.find("::")));
    return found == spaces->end() ? Space::none : found->second;
}

/* The state space among the modifiers; generic if there is none. */
Space Emitter::space(const Instruction &instruction) const
{
    for (const std::string &word : instruction.words)
        if (Space found = space_of(word); found != Space::none)
            return found;
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
        std::string start = read(whole, kind);
        if (operand.value != 0) /* a 32-bit address wraps around */
            start = operation("add " + kind.integer() + " " + start + ", " + std::to_string(operand.value));
        return cast(start, kind.integer(), "i64");
    } else if (!operand.name.empty()) {
        base = address_of(operand.name);
    }
    if (operand.value == 0)
        return base;
    return operation("add i64 " + base + ", " + std::to_string(operand.value));
}

/* The address of a kernel's or function's parameter, or of a call's argument. */
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

/* A pointer into a local variable, if the access is known to lie inside and to be aligned; otherwise empty. LLVM can
 * then keep the variable in registers. */
std::string Emitter::local_pointer(const Operand &operand, int bytes)
{
    auto found = local_places_.find(operand.name);
    if (found == local_places_.end())
        return "";
    const Variable &variable = *found->second.variable;
    std::int64_t offset = found->second.offset + operand.value;
    auto alignment = static_cast<std::int64_t>(std::max(variable.alignment, least_local_alignment));
    if (offset < 0 || offset + bytes > static_cast<std::int64_t>(variable.size) || offset % bytes != 0 ||
        alignment % bytes != 0)
        return "";
    return operation("getelementptr i8, ptr %" + quoted(variable.name) + ", i64 " + std::to_string(offset));
}

std::string Emitter::pointer(const Operand &operand, Space space, int bytes)
{
    if (space == Space::parameter || space == Space::none) {
        std::string direct = parameter_pointer(operand);
        if (!direct.empty())
            return direct;
    }
    if (space == Space::local || space == Space::none) {
        std::string direct = local_pointer(operand, bytes);
        if (!direct.empty())
            return direct;
    }
    return checked(unchecked_address(operand), space, bytes);
}

std::string Emitter::checked(const std::string &address, Space space, int bytes)
{
    std::string name = space == Space::shared ? "at_shared" : space == Space::local ? "at_local" : "at";
    std::string arguments = "ptr %block, ptr %thread, i64 " + address + ", i64 " + std::to_string(logarithm(bytes)) +
                            ", i64 " + std::to_string(bytes);
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
void Emitter::nothing(const Instruction &) {}

/* cp.async copies at once, so there is nothing to wait for. */
void Emitter::copy_async(const Instruction &instruction)
{
    if (instruction.words.size() < 2 || instruction.words[1] != "async")
        unsupported(instruction);
    if (instruction.has("bulk"))
        return copy_bulk(instruction);
    if (instruction.has("mbarrier"))
        return arrive_after_copies(instruction);
    if (instruction.has("commit_group") || instruction.has("wait_group") || instruction.has("wait_all"))
        return;
    int size = static_cast<int>(operand(instruction, 2).value);
    if (size != 4 && size != 8 && size != 16)
        unsupported(instruction, "the size of the copy");
    std::string to = pointer(operand(instruction, 0), Space::shared, size), kept = std::to_string(size);
    bool has_policy = instruction.has("L2::cache_hint");
    if (instruction.operands.size() > (has_policy ? 4 : 3)) { /* fewer bytes, followed by zeros */
        const Operand &fewer = operand(instruction, 3);
        auto named = variables_.find(fewer.name);
        if (named != variables_.end() && named->second->type.kind == Kind::predicate)
            kept = operation("select i1 " + read(fewer, type_of("pred")) + ", i32 0, i32 " + kept);
        else
            kept = intrinsic("umin", "i32", {read(fewer, bits_type(32)), kept});
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

/* cp.async.bulk also copies at once, in units of 16 bytes. A barrier object learns how many bytes have arrived. */
void Emitter::copy_bulk(const Instruction &instruction)
{
    if (instruction.has("commit_group") || instruction.has("wait_group"))
        return;
    bool tells = instruction.has("mbarrier::complete_tx::bytes");
    if (!tells && !instruction.has("bulk_group"))
        unsupported(instruction);
    std::string size = read(operand(instruction, 2), bits_type(32));
    std::string to = unchecked_address(operand(instruction, 0)), from = unchecked_address(operand(instruction, 1));
    std::string behind = extend(size, 32, 64, false);
    std::string before = fresh_label(), again = fresh_label(), inside = fresh_label(), next = fresh_label(),
                done = fresh_label(), following = "%" + fresh_label();
    begin(before);
    begin(again);
    std::string offset =
        operation("phi i64 [ 0, %" + quoted(before) + " ], [ " + following + ", %" + quoted(next) + " ]");
    branch(operation("icmp ult i64 " + offset + ", " + behind), inside, done);
    begin(inside);
    std::string source = checked(operation("add i64 " + from + ", " + offset), space_of(instruction.words[4]), 16);
    std::string target = checked(operation("add i64 " + to + ", " + offset), space_of(instruction.words[3]), 16);
    line("store i128 " + operation("load i128, ptr " + source + ", align 16") + ", ptr " + target + ", align 16");
    begin(next);
    line(following + " = add i64 " + offset + ", 16");
    jump(again);
    begin(done);
    if (tells)
        count_bytes(pointer(operand(instruction, 3), Space::shared, 8), size, true);
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

/* Branches, calls, barriers and exits (PTX ISA, "Control Flow Instructions", "bar"). */
#include <algorithm>
#include <cstdint>

#include "emitter.h"
#include "schedules.h"

namespace vgpu::ptx
{

namespace
{

/* The causes have the same numbers in fault.h. */
constexpr int cause_trap = 3;

std::string pointer_to(const std::string &name)
{
    return "ptr %\"" + name + "\"";
}

} // namespace

void Emitter::poll()
{
    line("call void @poll(ptr %block, ptr %thread)");
}

void Emitter::spin()
{
    auto places = unit_.spins.find(&function_);
    if (places == unit_.spins.end() || !places->second.count(place_))
        return;
    if (is_region())
        spin_in_region();
    else
        wait("spin", "");
}

void Emitter::branch_to(const Instruction &instruction)
{
    const std::string &label = operand(instruction, 0).name;
    if (!labels_.count(label))
        throw Error("the label '" + label + "' is not there");
    if (is_backward(label))
        poll();
    if (unit_.strided.count(place_) && is_region())
        stride();
    else if (unit_.strided.count(place_) && is_coroutine())
        wait("stride", ", ptr %turns");
    jump(label);
}

/* brx.idx: an index beyond the list is undefined in PTX. Here it goes to the first target. */
void Emitter::branch_by_index(const Instruction &instruction)
{
    auto found = function_.branch_targets.find(operand(instruction, 1).name);
    if (found == function_.branch_targets.end() || found->second.empty())
        throw Error("the list of targets is not there");
    poll();
    std::string text =
        "switch i32 " + read(operand(instruction, 0), bits_type(32)) + ", label %\"" + found->second[0] + "\" [";
    for (std::size_t index = 0; index < found->second.size(); ++index)
        text += " i32 " + std::to_string(index) + ", label %\"" + found->second[index] + "\"";
    line(text + " ]");
    open_ = false;
}

/* The functions that NVIDIA's driver provides to kernels: printf, assert, malloc and free. */
bool Emitter::call_system(const Instruction &instruction, const std::string &name, const Operand *results,
                          const Operand *arguments)
{
    auto argument = [&](std::size_t index, const std::string &kind) {
        if (!arguments || index >= arguments->members.size())
            throw Error("too few arguments");
        return kind + " " + operation("load " + kind + ", " + pointer_to(arguments->members[index].name));
    };
    const std::string self = "ptr %block, ptr %thread, ";
    std::string value, kind = "i32";
    if (name == "vprintf") {
        value = call("i32", "vgpu_print", self + argument(0, "i64") + ", " + argument(1, "i64"));
    } else if (name == "__assertfail") {
        call("void", "vgpu_assert",
             self + argument(0, "i64") + ", " + argument(1, "i64") + ", " + argument(2, "i32") + ", " +
                 argument(3, "i64"));
    } else if (name == "malloc") {
        value = call("i64", "vgpu_allocate", self + argument(0, "i64"));
        kind = "i64";
    } else if (name == "free") {
        call("void", "vgpu_free", self + argument(0, "i64"));
    } else {
        unsupported(instruction, "the function " + name + " is not in the module");
    }
    if (!value.empty() && results && !results->members.empty())
        line("store " + kind + " " + value + ", " + pointer_to(results->members[0].name));
    return true;
}

/* call (results), name, (arguments): results and arguments are passed by address. */
void Emitter::call_function(const Instruction &instruction)
{
    const Operand *results = nullptr, *arguments = nullptr, *target = nullptr;
    for (const Operand &candidate : instruction.operands) {
        if (candidate.form != Operand::Form::vector) {
            if (!target)
                target = &candidate;
        } else if (!target) {
            results = &candidate;
        } else {
            arguments = &candidate;
        }
    }
    if (!target)
        throw Error("a call of nothing");
    auto called = unit_.module->functions.find(target->name);
    bool indirect = variables_.count(target->name) != 0;
    if (!indirect && (called == unit_.module->functions.end() || !called->second.defined)) {
        call_system(instruction, target->name, results, arguments);
        return;
    }
    std::size_t taken[] = {SIZE_MAX, SIZE_MAX};
    if (!indirect) { /* function types are not checked in C: a caller may expect a missing result */
        taken[0] = called->second.results.size();
        taken[1] = called->second.parameters.size();
        if (taken[0] > (results ? results->members.size() : 0) ||
            taken[1] != (arguments ? arguments->members.size() : 0))
            unsupported(instruction, "the function " + target->name + " has other parameters or results");
    }
    std::string given = "ptr %block, ptr %thread";
    int which = 0;
    for (const Operand *list : {results, arguments}) {
        std::size_t count = list ? std::min(list->members.size(), taken[which]) : 0;
        ++which;
        for (std::size_t index = 0; index < count; ++index) {
            auto variable = variables_.find(list->members[index].name);
            if (variable == variables_.end() || variable->second->space == Space::reg)
                unsupported(instruction, "arguments in registers");
            given += ", " + pointer_to(list->members[index].name);
        }
    }
    if (!indirect) {
        line("call void @\"" + target->name + "\"(" + given + ")");
        return;
    }
    std::string address = read(*target, bits_type(64));
    std::string found = call("ptr", "function_at", "ptr %block, ptr %thread, i64 " + address);
    line("call void " + found + "(" + given + ")");
}

void Emitter::leave(const Instruction &)
{
    if (is_coroutine())
        return jump(coroutine_over);
    if (is_region())
        return jump(region_over);
    line("ret void");
    open_ = false;
}

void Emitter::exit_thread(const Instruction &instruction)
{
    if (function_.entry)
        return leave(instruction);
    line("call void @vgpu_exit(ptr %block, ptr %thread)");
    line("unreachable");
    open_ = false;
}

void Emitter::trap(const Instruction &instruction)
{
    if (instruction.words.front() == "brkpt")
        return;
    line("call void @vgpu_fault(ptr %block, ptr %thread, i32 " + std::to_string(cause_trap) + ")");
    line("unreachable");
    open_ = false;
}

/* bar, barrier: waits of a whole block, of some of its threads, or of a warp */
void Emitter::barrier(const Instruction &instruction)
{
    if (instruction.has("cluster")) { /* a cluster has one block */
        if (instruction.has("arrive"))
            return;
        wait("vgpu_barrier", ", i32 0, i32 0, i32 0, i32 0");
        return;
    }
    if (instruction.has("warp")) {
        std::string mask = read(operand(instruction, 0), bits_type(32));
        wait("vgpu_warp_barrier", ", i32 " + mask);
        return;
    }
    bool reduces = instruction.has("red"), arrives = instruction.has("arrive");
    std::size_t first = reduces ? 1 : 0;
    std::size_t count = instruction.operands.size() - first - (reduces ? 1 : 0);
    std::string barrier_id = read(operand(instruction, first), bits_type(32));
    std::string threads = count > 1 ? read(operand(instruction, first + 1), bits_type(32)) : "0";
    int how = arrives ? 1 : !reduces ? 0 : instruction.has("popc") ? 2 : instruction.has("and") ? 3 : 4;
    std::string holds = "0";
    if (reduces)
        holds = operation("zext i1 " + read(instruction.operands.back(), type_of("pred")) + " to i32");
    wait("vgpu_barrier",
         ", i32 " + barrier_id + ", i32 " + threads + ", i32 " + std::to_string(how) + ", i32 " + holds);
    if (how == 2)
        write(operand(instruction, 0), bits_type(32), waited_for("i32"));
    else if (how > 2)
        write(operand(instruction, 0), type_of("pred"), operation("icmp ne i32 " + waited_for("i32") + ", 0"));
}

void Emitter::sleep(const Instruction &instruction)
{
    std::string time = read(operand(instruction, 0), bits_type(32));
    wait("vgpu_sleep", ", i32 " + time);
}

/* alloca: memory on the thread's own stack. Every thread of such a kernel runs on one of its own. */
void Emitter::allocate_local(const Instruction &instruction)
{
    std::string size = read(operand(instruction, 1), bits_type(64));
    std::size_t alignment = least_local_alignment;
    if (instruction.operands.size() > 2)
        alignment = std::max(alignment, static_cast<std::size_t>(operand(instruction, 2).value));
    line("call void @enter_with(ptr %block, ptr %thread, i64 " + size + ")");
    std::string place = operation("alloca i8, i64 " + size + ", align " + std::to_string(alignment));
    write(operand(instruction, 0), bits_type(64), operation("ptrtoint ptr " + place + " to i64"));
}

void Emitter::save_stack(const Instruction &instruction)
{
    std::string place = operation("call ptr @llvm.stacksave.p0()");
    write(operand(instruction, 0), bits_type(64), operation("ptrtoint ptr " + place + " to i64"));
}

void Emitter::restore_stack(const Instruction &instruction)
{
    std::string place = operation("inttoptr i64 " + read(operand(instruction, 0), bits_type(64)) + " to ptr");
    line("call void @llvm.stackrestore.p0(ptr " + place + ")");
}

void Emitter::add_control(std::map<std::string, Handler> &handlers)
{
    handlers["bra"] = &Emitter::branch_to;
    handlers["brx"] = &Emitter::branch_by_index;
    handlers["call"] = &Emitter::call_function;
    handlers["ret"] = &Emitter::leave;
    handlers["exit"] = &Emitter::exit_thread;
    handlers["trap"] = handlers["brkpt"] = &Emitter::trap;
    handlers["bar"] = handlers["barrier"] = &Emitter::barrier;
    handlers["nanosleep"] = &Emitter::sleep;
    handlers["alloca"] = &Emitter::allocate_local;
    handlers["stacksave"] = &Emitter::save_stack;
    handlers["stackrestore"] = &Emitter::restore_stack;
}

} // namespace vgpu::ptx

#include "unit.h"

#include <algorithm>
#include <set>

#include "../analysis/lockstep.h"
#include "../analysis/strides.h"
#include "indirect.h"

namespace vgpu::ptx
{

namespace
{

std::size_t rounded_up(std::size_t place, std::size_t alignment)
{
    return (place + alignment - 1) / alignment * alignment;
}

/* Adds the names in an instruction's operands. */
void add_names(const Operand &operand, std::set<std::string> &names)
{
    if (!operand.name.empty())
        names.insert(operand.name);
    for (const Operand &member : operand.members)
        add_names(member, names);
}

/* Whether a loop with this instruction may wait for something that another thread does. */
bool may_spin(const Instruction &instruction)
{
    if (instruction.words.empty())
        return false;
    if (instruction.words.front() == "atom")
        return true;
    if (instruction.words.front() == "mbarrier")
        return instruction.has("test_wait");
    return instruction.words.front() == "ld" &&
           (instruction.has("volatile") || instruction.has("acquire") || instruction.has("relaxed"));
}

/* For each instruction, whether it is in a loop, between a label and a branch back to it. */
std::vector<bool> in_loops(const Function &function)
{
    std::map<std::string, std::size_t> labels;
    std::vector<bool> inside(function.body.size(), false);
    for (std::size_t place = 0; place < function.body.size(); ++place) {
        const Instruction &instruction = function.body[place];
        if (!instruction.label.empty())
            labels[instruction.label] = place;
        for (const std::string &target : targets(function, instruction)) {
            auto label = labels.find(target);
            if (label != labels.end())
                std::fill(inside.begin() + static_cast<std::ptrdiff_t>(label->second),
                          inside.begin() + static_cast<std::ptrdiff_t>(place) + 1, true);
        }
    }
    return inside;
}

/* The registers that any instruction reads. The result of an atomic operation does not count. */
std::set<std::string> used_registers(const Function &function)
{
    std::set<std::string> used;
    for (const Instruction &instruction : function.body) {
        bool yields = !instruction.words.empty() && instruction.words.front() == "atom";
        for (std::size_t index = yields ? 1 : 0; index < instruction.operands.size(); ++index)
            add_names(instruction.operands[index], used);
        if (!instruction.guard.empty())
            used.insert(instruction.guard);
    }
    return used;
}

/* The places where a thread may wait until another one changes memory. That needs a loop that reads the result. A
 * called function counts as well, because its caller may have the loop. */
std::set<std::size_t> spins(const Function &function)
{
    std::set<std::size_t> found;
    std::vector<bool> inside;
    std::set<std::string> used;
    for (std::size_t place = 0; place < function.body.size(); ++place) {
        const Instruction &instruction = function.body[place];
        if (!may_spin(instruction))
            continue;
        if (inside.empty()) {
            inside = in_loops(function);
            used = used_registers(function);
        }
        bool looks = instruction.words.front() != "atom" || instruction.operands.empty() ||
                     used.count(instruction.operands.front().name) > 0;
        if (looks && (inside[place] || !function.entry))
            found.insert(place);
    }
    return found;
}

/* Depth first, so that functions come before those that call them. */
void reach(const Module &module, const Function &function, std::set<std::string> &seen, Unit &unit)
{
    seen.insert(function.name);
    std::set<std::string> names;
    for (const Instruction &instruction : function.body)
        for (const Operand &operand : instruction.operands)
            add_names(operand, names);
    for (const std::string &name : names) {
        auto found = module.functions.find(name);
        if (found != module.functions.end() && found->second.defined && !seen.count(name))
            reach(module, found->second, seen, unit);
        const Variable *variable = module.variable(name);
        if (variable && variable->space == Space::shared && !unit.shared_place.count(name)) {
            if (variable->external) {
                unit.shared_place[name] = SIZE_MAX; /* dynamic: behind all others */
                continue;
            }
            unit.shared_size = rounded_up(unit.shared_size, std::max<std::size_t>(variable->alignment, 1));
            unit.shared_place[name] = unit.shared_size;
            unit.shared_size += variable->size;
        }
    }
    std::size_t local = 0;
    for (const Variable &variable : function.variables)
        if (variable.space == Space::local || variable.space == Space::parameter)
            local += rounded_up(variable.size, 16);
    unit.local_size = std::max(unit.local_size, local);
    std::set<std::size_t> found = exchanges(function);
    if (!found.empty())
        unit.exchanges[&function] = found;
    std::set<std::size_t> spinning = spins(function);
    if (!spinning.empty())
        unit.spins[&function] = spinning;
    unit.functions.push_back(&function);
}

bool calls_addresses(const Unit &unit)
{
    return std::any_of(unit.functions.begin(), unit.functions.end(), [](const Function *function) {
        return std::any_of(function->body.begin(), function->body.end(), is_indirect_call);
    });
}

/* Threads wait at barrier objects in the middle of an instruction. */
bool is_barrier_object(const Instruction &instruction)
{
    return !instruction.words.empty() && instruction.words.front() == "mbarrier";
}

Schedule schedule_of(const Unit &unit)
{
    if (unit.calls_addresses)
        return Schedule::fibers; /* the called function is not known */
    bool waits_inside = false, waits_outside = false;
    for (const Function *function : unit.functions) {
        bool meets = unit.exchanges.count(function) > 0 || unit.spins.count(function) > 0;
        if (function->entry)
            waits_inside |= !unit.strided.empty();
        (function->entry ? waits_inside : waits_outside) |= meets;
        for (const Instruction &instruction : function->body) {
            (function->entry ? waits_inside : waits_outside) |= waits(instruction);
            const std::string word = instruction.words.empty() ? "" : instruction.words.front();
            if ((word == "exit" && !function->entry) || word == "alloca")
                return Schedule::fibers; /* it ends its thread inside a call, or needs a stack of its own */
        }
    }
    if (waits_outside)
        return Schedule::fibers;
    if (!waits_inside)
        return Schedule::loop;
    const std::vector<Instruction> &body = unit.kernel->body;
    return std::any_of(body.begin(), body.end(), is_barrier_object) ? Schedule::coroutines : Schedule::regions;
}

} // namespace

Unit unit_of(const Module &module, const std::string &kernel)
{
    auto found = module.functions.find(kernel);
    if (found == module.functions.end() || !found->second.entry)
        throw Error("there is no kernel " + kernel);
    Unit unit;
    unit.module = &module;
    unit.kernel = &found->second;
    for (const Variable &variable : module.variables)
        if (variable.space == Space::global || variable.space == Space::constant) {
            std::size_t index = unit.variable_index.size();
            unit.variable_index[variable.name] = index;
        }
    std::size_t place = 0;
    for (const Variable &parameter : unit.kernel->parameters) {
        place = rounded_up(place, parameter.alignment);
        unit.parameter_place[parameter.name] = place;
        place += parameter.size;
    }
    std::set<std::string> seen;
    reach(module, *unit.kernel, seen, unit);
    unit.calls_addresses = calls_addresses(unit);
    if (unit.calls_addresses) {
        for (const std::string &name : addressed_functions(module))
            if (!seen.count(name))
                reach(module, module.functions.at(name), seen, unit);
        unit.functions.erase(std::find(unit.functions.begin(), unit.functions.end(), unit.kernel));
        unit.functions.push_back(unit.kernel);
    }
    unit.static_shared = unit.shared_size;
    unit.shared_size = rounded_up(unit.shared_size, 16);
    for (auto &shared : unit.shared_place)
        if (shared.second == SIZE_MAX)
            shared.second = unit.shared_size;
    unit.strided = strided_loops(*unit.kernel);
    unit.schedule = schedule_of(unit);
    return unit;
}

} // namespace vgpu::ptx

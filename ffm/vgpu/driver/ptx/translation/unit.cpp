#include "unit.h"

#include <algorithm>
#include <set>

#include "lockstep.h"

namespace vgpu::ptx
{

namespace
{

std::size_t rounded(std::size_t place, std::size_t alignment)
{
    return (place + alignment - 1) / alignment * alignment;
}

/* The names that an instruction's operands mention. */
void add_names(const Operand &operand, std::set<std::string> &names)
{
    if (!operand.name.empty())
        names.insert(operand.name);
    for (const Operand &member : operand.members)
        add_names(member, names);
}

/* Depth first, so that what is called comes before what calls it. */
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
            unit.shared_size = rounded(unit.shared_size, std::max<std::size_t>(variable->alignment, 1));
            unit.shared_place[name] = unit.shared_size;
            unit.shared_size += variable->size;
        }
    }
    std::size_t local = 0;
    for (const Variable &variable : function.variables)
        if (variable.space == Space::local || variable.space == Space::parameter)
            local += rounded(variable.size, 16);
    unit.local_size = std::max(unit.local_size, local);
    std::set<std::size_t> found = exchanges(function);
    if (!found.empty())
        unit.exchanges[&function] = found;
    unit.functions.push_back(&function);
}

/* Whether the instruction makes its thread wait for others of the block. */
bool waits(const Instruction &instruction)
{
    static const std::set<std::string> *names = new std::set<std::string>{
        "bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "nanosleep"};
    return !instruction.words.empty() && names->count(instruction.words.front());
}

/* Whether a loop with the instruction may wait for what another thread does. */
bool may_spin(const Instruction &instruction)
{
    if (instruction.words.empty())
        return false;
    if (instruction.words.front() == "atom")
        return true;
    return instruction.words.front() == "ld" &&
           (instruction.has("volatile") || instruction.has("acquire") || instruction.has("relaxed"));
}

bool has_loop(const Function &function)
{
    std::set<std::string> before;
    for (const Instruction &instruction : function.body) {
        if (!instruction.label.empty())
            before.insert(instruction.label);
        else if (instruction.words.front() == "bra" && !instruction.operands.empty() &&
                 before.count(instruction.operands.front().name))
            return true;
    }
    return false;
}

Schedule schedule_of(const Unit &unit)
{
    bool loops = false, spins = false, waits_outside = false, spins_outside = false;
    bool waits_inside = unit.exchanges.count(unit.kernel) > 0;
    for (const Function *function : unit.functions) {
        loops |= has_loop(*function) || !function->entry;
        waits_outside |= !function->entry && unit.exchanges.count(function) > 0;
        for (const Instruction &instruction : function->body) {
            (function->entry ? waits_inside : waits_outside) |= waits(instruction);
            bool spinning = may_spin(instruction);
            spins |= spinning;
            spins_outside |= spinning && !function->entry;
            if (!instruction.words.empty() && instruction.words.front() == "exit" && !function->entry)
                return Schedule::fibers; /* ends its thread from within a call */
            bool indirect = !instruction.words.empty() && instruction.words.front() == "call" &&
                            std::any_of(instruction.operands.begin(), instruction.operands.end(),
                                        [](const Operand &operand) { return operand.name.rfind("%", 0) == 0; });
            if (indirect)
                return Schedule::fibers; /* whom it calls is not known */
        }
    }
    bool waits_or_spins = waits_inside || waits_outside || (loops && spins);
    if (!waits_or_spins)
        return Schedule::loop;
    return waits_outside || spins_outside ? Schedule::fibers : Schedule::coroutines;
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
        place = rounded(place, parameter.alignment);
        unit.parameter_place[parameter.name] = place;
        place += parameter.size;
    }
    std::set<std::string> seen;
    reach(module, *unit.kernel, seen, unit);
    unit.shared_size = rounded(unit.shared_size, 16);
    for (auto &shared : unit.shared_place)
        if (shared.second == SIZE_MAX)
            shared.second = unit.shared_size;
    unit.schedule = schedule_of(unit);
    return unit;
}

} // namespace vgpu::ptx

#include "local_places.h"

namespace vgpu::ptx
{

namespace
{

/* The one instruction that writes each register; null if several do. */
std::map<std::string, const Instruction *> only_writers(const Function &function)
{
    std::map<std::string, const Instruction *> writers;
    auto write = [&](const std::string &name, const Instruction &instruction) {
        auto [place, first] = writers.emplace(name, &instruction);
        if (!first)
            place->second = nullptr;
    };
    for (const Instruction &instruction : function.body) {
        if (!instruction.label.empty() || instruction.operands.empty())
            continue;
        const Operand &target = instruction.operands.front();
        if (target.form == Operand::Form::address)
            continue; /* a store does not write its address register */
        write(target.name, instruction);
        if (!target.second.empty())
            write(target.second, instruction);
        for (const Operand &member : target.members)
            write(member.name, instruction);
    }
    return writers;
}

/* Whether the instruction only passes on the address in its second operand, plus a constant at most: `mov`, `add`,
 * and `cvta` of a local address, which is a generic one already. */
bool passes_address_on(const Instruction &instruction)
{
    const std::vector<std::string> &words = instruction.words;
    const std::string &name = words.front(), &type = words.back();
    if (!instruction.guard.empty() || instruction.operands.size() < 2 ||
        instruction.operands.front().form != Operand::Form::name ||
        instruction.operands[1].form != Operand::Form::name || (type != "u64" && type != "s64" && type != "b64"))
        return false;
    if (name == "cvta")
        return words.size() == 3 && words[1] == "local";
    if (name == "add")
        return words.size() == 2 && instruction.operands.size() == 3 &&
               instruction.operands[2].form == Operand::Form::integer;
    return name == "mov" && words.size() == 2;
}

} // namespace

std::map<std::string, LocalPlace> local_places(const Function &function)
{
    std::map<std::string, LocalPlace> known;
    for (const Variable &variable : function.variables)
        if (variable.space == Space::local)
            known[variable.name] = {&variable, 0};
    if (known.empty())
        return {};
    std::map<std::string, const Instruction *> writers = only_writers(function);
    /* A compiler writes a register before it uses it. Where the order is different, the place stays unknown. */
    for (const Instruction &instruction : function.body) {
        if (!instruction.label.empty() || instruction.operands.empty() || !passes_address_on(instruction))
            continue;
        const std::string &target = instruction.operands.front().name;
        auto source = known.find(instruction.operands[1].name);
        if (source == known.end() || writers.at(target) != &instruction)
            continue;
        std::int64_t more = instruction.operands.size() == 3 ? instruction.operands[2].value : 0;
        known[target] = {source->second.variable, source->second.offset + more + instruction.operands[1].value};
    }
    return known;
}

} // namespace vgpu::ptx

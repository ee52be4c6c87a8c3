#include "indirect.h"

#include <algorithm>
#include <iterator>

namespace vgpu::ptx
{

namespace
{

/* No allocation or variable lies at these addresses. */
constexpr std::uint64_t first_address = std::uint64_t{1} << 56;

} // namespace

bool is_indirect_call(const Instruction &instruction)
{
    if (instruction.words.empty() || instruction.words.front() != "call")
        return false;
    return std::any_of(instruction.operands.begin(), instruction.operands.end(),
                       [](const Operand &operand) { return operand.name.rfind("%", 0) == 0; });
}

std::set<std::string> addressed_functions(const Module &module)
{
    std::set<std::string> names;
    auto add = [&module, &names](const std::string &name) {
        auto found = module.functions.find(name);
        if (found != module.functions.end() && found->second.defined && !found->second.entry)
            names.insert(name);
    };
    for (const Variable &variable : module.variables)
        for (const Initializer &initial : variable.initializers)
            add(initial.symbol);
    for (const auto &function : module.functions)
        for (const Instruction &instruction : function.second.body)
            if (!instruction.words.empty() && instruction.words.front() == "mov")
                for (const Operand &operand : instruction.operands)
                    add(operand.name);
    return names;
}

std::uint64_t function_address(const Module &module, const std::string &name)
{
    auto found = module.functions.find(name);
    if (found == module.functions.end())
        return 0;
    return first_address + static_cast<std::uint64_t>(std::distance(module.functions.begin(), found));
}

std::string function_at(const Module &module, const std::vector<const Function *> &compiled)
{
    const auto &functions = module.functions;
    std::string table;
    for (const auto &candidate : functions) {
        auto is_it = [&candidate](const Function *function) { return function == &candidate.second; };
        bool there = !candidate.second.entry && std::any_of(compiled.begin(), compiled.end(), is_it);
        table += (table.empty() ? "ptr " : ", ptr ") + (there ? "@\"" + candidate.first + "\"" : std::string("null"));
    }
    std::string count = std::to_string(functions.size()), type = "[" + count + " x ptr]";
    return "\n@functions = internal constant " + type + " [" + table + "]\n" +
           "define internal ptr @function_at(ptr %block, ptr %thread, i64 %address) nounwind {\n"
           "  %index = sub i64 %address, " +
           std::to_string(first_address) + "\n  %inside = icmp ult i64 %index, " + count +
           "\n  br i1 %inside, label %look, label %none\nlook:\n  %place = getelementptr " + type +
           ", ptr @functions, i64 0, i64 %index" + R"IR(
  %found = load ptr, ptr %place
  %empty = icmp eq ptr %found, null
  br i1 %empty, label %none, label %there
there:
  ret ptr %found
none:
  call void @vgpu_no_function(ptr %block, ptr %thread, i64 %address)
  unreachable
}
)IR";
}

} // namespace vgpu::ptx

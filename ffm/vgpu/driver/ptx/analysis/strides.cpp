#include "strides.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace vgpu::ptx
{

namespace
{

constexpr std::int64_t far_apart = 256; /* bytes by which an address grows: four cache lines */
constexpr std::int64_t far_index = 64;  /* the same for an index */

bool is(const Instruction &instruction, const std::set<std::string> &names)
{
    return !instruction.words.empty() && names.count(instruction.words.front()) > 0;
}

bool accesses_memory(const Instruction &instruction)
{
    static const std::set<std::string> *names = new std::set<std::string>{"ld", "ldu", "st", "atom", "red"};
    return is(instruction, *names) && !instruction.has("shared") && !instruction.has("param") &&
           !instruction.has("local") && !instruction.has("const");
}

/* The register that the instruction writes; empty if it writes none. */
std::string target(const Instruction &instruction)
{
    static const std::set<std::string> *none = new std::set<std::string>{"st", "red", "bra", "brx", "call", "ret"};
    if (instruction.words.empty() || instruction.operands.empty() || is(instruction, *none))
        return "";
    return instruction.operands.front().name;
}

/* A loop, from its label to the branch back to it. */
class Loop
{
  public:
    Loop(const Function &function, std::size_t label, std::size_t branch)
    {
        for (std::size_t place = label; place <= branch; ++place) {
            const Instruction &instruction = function.body[place];
            waits_ |= waits(instruction);
            accesses_ |= accesses_memory(instruction);
            if (std::string written = target(instruction); !written.empty())
                writers_[written].push_back(&instruction);
        }
    }

    bool is_strided() const
    {
        return accesses_ && !waits_ && std::any_of(writers_.begin(), writers_.end(), [this](const auto &written) {
                   return std::any_of(written.second.begin(), written.second.end(),
                                      [&](const Instruction *adds) { return strides(written.first, *adds); });
               });
    }

  private:
    /* Whether the instruction adds a step to the register in each turn, and the step is not known to be small. */
    bool strides(const std::string &written, const Instruction &instruction) const
    {
        static const std::set<std::string> *sums = new std::set<std::string>{"add", "sub"};
        if (!is(instruction, *sums) || instruction.operands.size() < 3 || instruction.has("f32") ||
            instruction.has("f64"))
            return false;
        for (std::size_t index : {std::size_t{1}, std::size_t{2}}) {
            const Operand &carried = instruction.operands[index], &step = instruction.operands[3 - index];
            if (carried.form == Operand::Form::name && is_far(step, instruction) &&
                comes_from(carried.name, written, 0))
                return true;
        }
        return false;
    }

    bool is_far(const Operand &step, const Instruction &instruction) const
    {
        if (step.form == Operand::Form::name)
            return !writers_.count(step.name);
        bool wide = instruction.has("s64") || instruction.has("u64") || instruction.has("b64");
        return step.form == Operand::Form::integer && std::llabs(step.value) >= (wide ? far_apart : far_index);
    }

    /* Whether the register's value comes from `source`, through copies and sums only. */
    bool comes_from(const std::string &name, const std::string &source, int depth) const
    {
        constexpr int deepest = 8;
        static const std::set<std::string> *ways = new std::set<std::string>{"mov", "add", "sub"};
        if (name == source)
            return true;
        auto found = writers_.find(name);
        if (found == writers_.end() || depth == deepest)
            return false;
        return std::any_of(found->second.begin(), found->second.end(), [&](const Instruction *writer) {
            return is(*writer, *ways) &&
                   std::any_of(writer->operands.begin() + 1, writer->operands.end(), [&](const Operand &operand) {
                       return operand.form == Operand::Form::name && comes_from(operand.name, source, depth + 1);
                   });
        });
    }

    std::map<std::string, std::vector<const Instruction *>> writers_;
    bool waits_ = false, accesses_ = false;
};

} // namespace

bool waits(const Instruction &instruction)
{
    static const std::set<std::string> *names = new std::set<std::string>{
        "bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "nanosleep"};
    return is(instruction, *names) ||
           (!instruction.words.empty() && instruction.words.front() == "mbarrier" && instruction.has("try_wait"));
}

std::vector<std::string> targets(const Function &function, const Instruction &instruction)
{
    if (instruction.words.empty() || instruction.operands.empty())
        return {};
    if (instruction.words.front() == "bra")
        return {instruction.operands.front().name};
    if (instruction.words.front() != "brx" || instruction.operands.size() < 2)
        return {};
    auto found = function.branch_targets.find(instruction.operands[1].name);
    return found == function.branch_targets.end() ? std::vector<std::string>{} : found->second;
}

std::set<std::size_t> strided_loops(const Function &function)
{
    std::map<std::string, std::size_t> labels;
    std::set<std::size_t> found;
    for (std::size_t place = 0; place < function.body.size(); ++place) {
        const Instruction &instruction = function.body[place];
        if (!instruction.label.empty())
            labels[instruction.label] = place;
        if (instruction.words.empty() || instruction.words.front() != "bra" || instruction.operands.empty())
            continue;
        auto label = labels.find(instruction.operands.front().name);
        if (label != labels.end() && Loop(function, label->second, place).is_strided())
            found.insert(place);
    }
    return found;
}

} // namespace vgpu::ptx

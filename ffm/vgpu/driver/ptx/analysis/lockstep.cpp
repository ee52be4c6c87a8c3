#include "lockstep.h"

#include <algorithm>
#include <map>
#include <string>

namespace vgpu::ptx
{

namespace
{

using Address = std::pair<std::string, std::int64_t>; /* a register or variable, and an offset in bytes */

/* What a lane did in shared memory since the lanes of its warp were last together. */
struct Accesses {
    bool reached = false;
    std::set<Address> stored, loaded;

    /* Adds the other accesses. Returns whether these grew. */
    bool merge(const Accesses &other)
    {
        bool grows = other.reached && !reached;
        reached |= other.reached;
        for (const Address &address : other.stored)
            grows |= stored.insert(address).second;
        for (const Address &address : other.loaded)
            grows |= loaded.insert(address).second;
        return grows;
    }
    void clear()
    {
        stored.clear();
        loaded.clear();
    }
};

bool is_shared(const Instruction &instruction, const char *opcode)
{
    return instruction.words.front() == opcode &&
           std::any_of(instruction.words.begin(), instruction.words.end(),
                       [](const std::string &word) { return word.compare(0, 6, "shared") == 0; });
}

/* Whether all lanes that execute the instruction are together behind it. A call counts, because the analysis does
 * not look into functions. */
bool brings_together(const Instruction &instruction)
{
    static const std::set<std::string> *names =
        new std::set<std::string>{"bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "call"};
    return names->count(instruction.words.front()) > 0;
}

class Analysis
{
  public:
    explicit Analysis(const Function &function) : function_(function) {}

    /* The places of exchanges. Stores are exchanges only with `stores`. */
    std::set<std::size_t> run(bool stores)
    {
        at_label_.clear();
        do
            pass(stores);
        while (changed_);
        return found_;
    }

  private:
    void pass(bool stores)
    {
        changed_ = false;
        found_.clear();
        Accesses now;
        now.reached = true;
        for (std::size_t place = 0; place < function_.body.size(); ++place) {
            const Instruction &instruction = function_.body[place];
            if (!instruction.label.empty()) {
                Accesses &there = at_label_[instruction.label];
                there.merge(now);
                now = there;
            } else if (now.reached) {
                access(instruction, place, stores, now);
                follow(instruction, now);
            }
        }
    }

    void access(const Instruction &instruction, std::size_t place, bool stores, Accesses &now)
    {
        bool loads = is_shared(instruction, "ld");
        if (brings_together(instruction)) {
            now.clear();
        } else if (loads || is_shared(instruction, "st")) {
            const Operand &operand = instruction.operands.at(loads ? 1 : 0);
            Address address{operand.name, operand.value};
            if (loads ? !now.stored.empty() && !now.stored.count(address) : stores && is_awaited(address, now)) {
                found_.insert(place);
                now.clear();
            }
            (loads ? now.loaded : now.stored).insert(address);
        }
    }

    /* Whether another lane, which runs later, may still have to load the value that this store overwrites, or to
     * store there first. Lanes run in the order of their numbers, and their addresses grow with their numbers. */
    static bool is_awaited(const Address &stored, const Accesses &now)
    {
        auto comes_before = [&stored](const Address &earlier) {
            return earlier.first != stored.first || earlier.second < stored.second;
        };
        return std::any_of(now.loaded.begin(), now.loaded.end(), comes_before) ||
               std::any_of(now.stored.begin(), now.stored.end(), comes_before);
    }

    void follow(const Instruction &instruction, Accesses &now)
    {
        const std::string &opcode = instruction.words.front();
        if (opcode == "bra" && !instruction.operands.empty()) {
            changed_ |= at_label_[instruction.operands.front().name].merge(now);
        } else if (opcode == "brx" && instruction.operands.size() > 1) {
            auto targets = function_.branch_targets.find(instruction.operands[1].name);
            if (targets != function_.branch_targets.end())
                for (const std::string &target : targets->second)
                    changed_ |= at_label_[target].merge(now);
        } else if (opcode != "ret" && opcode != "exit") {
            return;
        }
        if (instruction.guard.empty())
            now = Accesses{};
    }

    const Function &function_;
    std::map<std::string, Accesses> at_label_;
    std::set<std::size_t> found_;
    bool changed_ = false;
};

/* The ends of branches around an exchange. Lanes that skip the exchange wait there for those that take part, since
 * on a GPU they would be together again. */
std::set<std::size_t> joins(const Function &function, const std::set<std::size_t> &exchanged)
{
    std::map<std::string, std::size_t> branches; /* the first branch to each label that is still ahead */
    std::set<std::size_t> found;
    for (std::size_t place = 0; place < function.body.size(); ++place) {
        const Instruction &instruction = function.body[place];
        if (!instruction.label.empty()) {
            auto branch = branches.find(instruction.label);
            if (branch != branches.end() && exchanged.upper_bound(branch->second) != exchanged.lower_bound(place))
                found.insert(place);
        } else if (instruction.words.front() == "bra" && !instruction.guard.empty() && !instruction.operands.empty()) {
            branches.emplace(instruction.operands.front().name, place);
        }
    }
    return found;
}

/* The fences of code that works on memory one warp at a time. Behind a fence, one lane may publish what all lanes
 * stored, for example by releasing a lock. */
std::set<std::size_t> fences(const Function &function)
{
    static const std::set<std::string> *together = new std::set<std::string>{"shfl", "vote", "match", "redux"};
    std::set<std::size_t> found;
    bool exchanges = false, stores = false;
    for (std::size_t place = 0; place < function.body.size(); ++place) {
        const Instruction &instruction = function.body[place];
        if (!instruction.label.empty())
            continue;
        const std::string &opcode = instruction.words.front();
        exchanges |= together->count(opcode) > 0;
        stores |=
            opcode == "st" && !is_shared(instruction, "st") && !instruction.has("local") && !instruction.has("param");
        if (opcode == "membar" || (opcode == "fence" && !instruction.has("proxy")))
            found.insert(place);
    }
    return exchanges && stores ? found : std::set<std::size_t>{};
}

/* Exchanges through shared memory. */
std::set<std::size_t> exchanges_by_address(const Function &function)
{
    bool stores = std::any_of(function.body.begin(), function.body.end(), [](const Instruction &instruction) {
        return instruction.label.empty() && is_shared(instruction, "st");
    });
    if (!stores)
        return {};
    Analysis analysis(function);
    std::set<std::size_t> loads = analysis.run(false);
    if (loads.empty())
        return loads;
    std::set<std::size_t> found = analysis.run(true);
    found.merge(joins(function, found));
    return found;
}

} // namespace

std::set<std::size_t> exchanges(const Function &function)
{
    std::set<std::size_t> found = exchanges_by_address(function);
    found.merge(fences(function));
    return found;
}

} // namespace vgpu::ptx

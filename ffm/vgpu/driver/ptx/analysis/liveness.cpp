#include "liveness.h"

#include <algorithm>
#include <cstdint>

#include "strides.h"

namespace vgpu::ptx
{

namespace
{

/* A set of registers, by number. */
class Registers
{
  public:
    explicit Registers(std::size_t count = 0) : words_((count + 63) / 64) {}

    void add(std::size_t number)
    {
        words_[number / 64] |= std::uint64_t{1} << number % 64;
    }
    void remove(std::size_t number)
    {
        words_[number / 64] &= ~(std::uint64_t{1} << number % 64);
    }
    bool has(std::size_t number) const
    {
        return words_[number / 64] >> number % 64 & 1;
    }
    void clear()
    {
        std::fill(words_.begin(), words_.end(), 0);
    }
    /* Adds the other set. Returns whether this one grew. */
    bool merge(const Registers &other)
    {
        std::uint64_t grown = 0;
        for (std::size_t index = 0; index < words_.size(); ++index) {
            grown |= other.words_[index] & ~words_[index];
            words_[index] |= other.words_[index];
        }
        return grown != 0;
    }

    void keep(const Registers &other)
    {
        for (std::size_t index = 0; index < words_.size(); ++index)
            words_[index] &= other.words_[index];
    }

  private:
    std::vector<std::uint64_t> words_;
};

/* Whether the instruction writes its first operand whenever it runs. All operands of other instructions count as
 * used, since nothing is known of them. */
bool writes_first(const Instruction &instruction)
{
    static const std::set<std::string> *others = new std::set<std::string>{"st",
                                                                           "red",
                                                                           "bar",
                                                                           "barrier",
                                                                           "bra",
                                                                           "brx",
                                                                           "call",
                                                                           "ret",
                                                                           "exit",
                                                                           "trap",
                                                                           "brkpt",
                                                                           "membar",
                                                                           "fence",
                                                                           "prefetch",
                                                                           "cp",
                                                                           "mbarrier",
                                                                           "sust",
                                                                           "suld",
                                                                           "nanosleep",
                                                                           "discard",
                                                                           "sured",
                                                                           "prefetchu",
                                                                           "applypriority",
                                                                           "pmevent",
                                                                           "setmaxnreg",
                                                                           "griddepcontrol",
                                                                           "stackrestore",
                                                                           "createpolicy"};
    return others->count(instruction.words.front()) == 0;
}

class Liveness
{
  public:
    Liveness(const Function &function, const std::set<std::size_t> &exchanges, const std::set<std::size_t> &possible)
        : function_(function), exchanges_(exchanges), possible_(possible)
    {
        for (const Variable &variable : function.variables)
            if (variable.space == Space::reg && numbers_.emplace(variable.name, names_.size()).second)
                names_.push_back(variable.name);
        split();
    }

    std::map<std::size_t, Kept> run()
    {
        find_needed();
        find_changed();
        return kept_;
    }

  private:
    /* The instructions [first, behind). Only the first may be a label, and only the last a branch. */
    struct Part {
        std::size_t first, behind;
        std::vector<std::size_t> next;
        Registers needed, changed; /* when it begins */
        Registers passed;          /* those it does not write */
        Registers written;         /* since its last wait */
        bool saves = false;        /* a thread always waits in it */
    };

    void split()
    {
        std::map<std::string, std::size_t> at_label;
        std::size_t first = 0, count = function_.body.size();
        for (std::size_t place = 0; place < count; ++place) {
            const Instruction &instruction = function_.body[place];
            if (!instruction.label.empty() && place > first) {
                add_part(first, place);
                first = place;
            }
            if (!instruction.label.empty())
                at_label[instruction.label] = parts_.size();
            else if (ends_part(instruction) || place + 1 == count) {
                add_part(first, place + 1);
                first = place + 1;
            }
        }
        if (first < count)
            add_part(first, count);
        for (std::size_t index = 0; index < parts_.size(); ++index)
            link(index, at_label);
    }

    static bool ends_part(const Instruction &instruction)
    {
        const std::string &opcode = instruction.words.front();
        return opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit";
    }

    void add_part(std::size_t first, std::size_t behind)
    {
        Registers none(names_.size());
        parts_.push_back({first, behind, {}, none, none, none, none, false});
    }

    void link(std::size_t index, const std::map<std::string, std::size_t> &at_label)
    {
        Part &part = parts_[index];
        const Instruction &last = function_.body[part.behind - 1];
        bool branches = last.label.empty() && ends_part(last);
        if (branches)
            for (const std::string &target : targets(function_, last))
                if (auto found = at_label.find(target); found != at_label.end())
                    part.next.push_back(found->second);
        if ((!branches || !last.guard.empty()) && index + 1 < parts_.size())
            part.next.push_back(index + 1);
    }

    template <typename Action> void for_each(const Operand &operand, Action action) const
    {
        for (const std::string *name : {&operand.name, &operand.second})
            if (auto found = numbers_.find(*name); found != numbers_.end())
                action(found->second);
        for (const Operand &member : operand.members)
            for_each(member, action);
    }

    template <typename Action> void for_each_written(const Instruction &instruction, Action action) const
    {
        if (!instruction.operands.empty())
            for_each(instruction.operands.front(), action);
    }

    /* Turns the registers needed after the instruction into those needed before it. */
    void step_back(const Instruction &instruction, Registers &needed) const
    {
        if (!instruction.label.empty())
            return;
        bool writes = writes_first(instruction);
        if (writes && instruction.guard.empty())
            for_each_written(instruction, [&](std::size_t number) { needed.remove(number); });
        for (std::size_t index = writes && instruction.guard.empty() ? 1 : 0; index < instruction.operands.size();
             ++index)
            for_each(instruction.operands[index], [&](std::size_t number) { needed.add(number); });
        if (auto found = numbers_.find(instruction.guard); found != numbers_.end())
            needed.add(found->second);
    }

    bool waits_itself(const Instruction &instruction) const
    {
        return instruction.label.empty() && waits(instruction);
    }

    /* Whether every thread that gets here saves its changed registers. */
    bool surely_waits(const Instruction &instruction, std::size_t place) const
    {
        bool only_arrives = instruction.has("cluster") && instruction.has("arrive");
        return exchanges_.count(place) > 0 || (waits_itself(instruction) && instruction.guard.empty() && !only_arrives);
    }

    bool may_wait(std::size_t place) const
    {
        return exchanges_.count(place) || possible_.count(place) || waits_itself(function_.body[place]);
    }

    /* Notes what a thread that waits here needs afterwards: what is needed behind the instruction, and also the
     * instruction's own operands if it runs only after the wait. */
    void note_needed(std::size_t place, Registers needed)
    {
        const Instruction &instruction = function_.body[place];
        Registers before = needed;
        step_back(instruction, before);
        bool itself = waits_itself(instruction);
        if (itself && writes_first(instruction))
            for_each_written(instruction, [&](std::size_t number) { needed.remove(number); });
        if (!itself || exchanges_.count(place) || instruction.words.front() == "elect")
            needed.merge(before);
        Kept &kept = kept_[place];
        for (std::size_t number = 0; number < names_.size(); ++number)
            if (needed.has(number))
                kept.needed.push_back(names_[number]);
    }

    /* Walks through the part from its end. `needed` is what is needed there. */
    template <typename Action> void walk_back(const Part &part, Registers needed, Action action)
    {
        for (std::size_t place = part.behind; place-- > part.first;) {
            action(place, needed);
            step_back(function_.body[place], needed);
        }
    }

    void find_needed()
    {
        for (Part &part : parts_) {
            Registers all(names_.size());
            for (std::size_t number = 0; number < names_.size(); ++number)
                all.add(number);
            part.passed = all;
            for (std::size_t place = part.behind; place-- > part.first;) {
                step_back(function_.body[place], part.needed);
                step_back(function_.body[place], part.passed);
            }
        }
        for (bool grows = true; grows;) {
            grows = false;
            for (std::size_t index = parts_.size(); index-- > 0;) {
                Registers behind = needed_behind(parts_[index]);
                behind.keep(parts_[index].passed);
                grows |= parts_[index].needed.merge(behind);
            }
        }
        for (const Part &part : parts_)
            walk_back(part, needed_behind(part), [&](std::size_t place, const Registers &needed) {
                if (may_wait(place))
                    note_needed(place, needed);
            });
    }

    Registers needed_behind(const Part &part) const
    {
        Registers needed(names_.size());
        for (std::size_t next : part.next)
            needed.merge(parts_[next].needed);
        return needed;
    }

    /* Walks through the part. `changed` is what may have changed before it. */
    template <typename Action> Registers walk(const Part &part, Registers changed, Action at_wait)
    {
        for (std::size_t place = part.first; place < part.behind; ++place) {
            const Instruction &instruction = function_.body[place];
            if (may_wait(place))
                at_wait(place, changed);
            if (surely_waits(instruction, place))
                changed.clear();
            if (instruction.label.empty())
                for_each_written(instruction, [&](std::size_t number) { changed.add(number); });
        }
        return changed;
    }

    void find_changed()
    {
        auto nothing = [](std::size_t, const Registers &) {};
        for (Part &part : parts_) {
            part.written = walk(part, Registers(names_.size()), nothing);
            for (std::size_t place = part.first; place < part.behind; ++place)
                part.saves |= surely_waits(function_.body[place], place);
        }
        for (bool grows = true; grows;) {
            grows = false;
            for (const Part &part : parts_) {
                Registers behind = part.written;
                if (!part.saves)
                    behind.merge(part.changed);
                for (std::size_t next : part.next)
                    grows |= parts_[next].changed.merge(behind);
            }
        }
        for (const Part &part : parts_)
            walk(part, part.changed, [&](std::size_t place, const Registers &changed) {
                Kept &kept = kept_.at(place);
                for (const std::string &name : kept.needed)
                    if (changed.has(numbers_.at(name)))
                        kept.changed.push_back(name);
            });
    }

    const Function &function_;
    const std::set<std::size_t> &exchanges_, &possible_;
    std::map<std::string, std::size_t> numbers_;
    std::vector<std::string> names_;
    std::vector<Part> parts_;
    std::map<std::size_t, Kept> kept_;
};

} // namespace

std::map<std::size_t, Kept> kept_registers(const Function &function, const std::set<std::size_t> &exchanges,
                                           const std::set<std::size_t> &possible)
{
    return Liveness(function, exchanges, possible).run();
}

} // namespace vgpu::ptx

#include "schedules.h"

#include <algorithm>
#include <cctype>

#include "../execution/block.h"
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

const char *const lane_left = "lane.left"; /* where a lane that waits goes */

Wait wait_of(const std::string &name)
{
    static const std::map<std::string, Wait> *waits =
        new std::map<std::string, Wait>{{"stride", Wait::stride},
                                        {"spin", Wait::turn},
                                        {"vgpu_sleep", Wait::turn},
                                        {"vgpu_barrier", Wait::barrier},
                                        {"vgpu_vote", Wait::vote},
                                        {"vgpu_shuffle", Wait::shuffle},
                                        {"vgpu_warp_barrier", Wait::warp_barrier},
                                        {"vgpu_match", Wait::match},
                                        {"vgpu_reduce", Wait::reduce},
                                        {"vgpu_active", Wait::active}};
    return waits->at(name);
}

/* Splits ", i32 %a, i32 5" into its parts. */
std::vector<std::string> parts_of(const std::string &arguments)
{
    std::vector<std::string> parts;
    for (std::size_t place = 0; place < arguments.size();) {
        std::size_t behind = std::min(arguments.find(", ", place + 2), arguments.size());
        parts.push_back(arguments.substr(place + 2, behind - place - 2));
        place = behind;
    }
    return parts;
}

bool is_number(const std::string &value)
{
    return std::all_of(value.begin(), value.end(), [](unsigned char digit) { return std::isdigit(digit); });
}

std::size_t element_size(const Variable &variable)
{
    return variable.type.kind == Kind::predicate ? 1 : static_cast<std::size_t>(variable.type.bytes());
}

} // namespace

const char *const region_over = "lane.over";
const char *const region_parameters = "ptr %block, ptr %threads, ptr %warp, ptr %frame, i32 %point, i32 %lanes";

std::string region_entry(const std::string &body)
{
    return "\ndefine void @vgpu_entry(" + std::string(region_parameters) + ") nounwind {\n  call void @\"" + body +
           "\"(" + region_parameters + ") alwaysinline\n  ret void\n}\n";
}

bool Emitter::is_region() const
{
    return unit_.schedule == Schedule::regions && function_.entry;
}

/* Compilers put constants into registers. If a lane waits with such a register as an argument, its value is known in
 * advance. */
void Emitter::find_constants()
{
    std::set<std::string> written;
    auto write = [&](const std::string &name) {
        if (!name.empty() && !written.insert(name).second)
            constants_.erase(name);
    };
    for (const Instruction &instruction : function_.body) {
        if (!instruction.label.empty() || instruction.operands.empty())
            continue;
        const Operand &target = instruction.operands.front();
        bool sets = instruction.words.front() == "mov" && instruction.guard.empty() &&
                    target.form == Operand::Form::name && instruction.operands.size() == 2 &&
                    instruction.operands[1].form == Operand::Form::integer && !written.count(target.name);
        auto variable = variables_.find(target.name);
        if (sets && variable != variables_.end() && variable->second->space == Space::reg &&
            variable->second->type.kind != Kind::predicate && variable->second->type.bits <= 64)
            constants_[target.name] = instruction.operands[1];
        write(target.name);
        write(target.second);
        for (const Operand &member : target.members)
            write(member.name);
    }
}

/* Lays out the frame: an array for each register, the widest first so that all are aligned, then the local variables
 * of each lane. */
void Emitter::lay_out_frame()
{
    auto exchanges = unit_.exchanges.find(&function_);
    auto spins = unit_.spins.find(&function_);
    std::set<std::size_t> possible = unit_.strided;
    if (spins != unit_.spins.end())
        possible.insert(spins->second.begin(), spins->second.end());
    kept_ = kept_registers(function_, exchanges == unit_.exchanges.end() ? std::set<std::size_t>{} : exchanges->second,
                           possible);
    find_constants();
    std::set<std::string> needed;
    auto is_constant = [this](const std::string &name) { return constants_.count(name) > 0; };
    for (auto &[place, kept] : kept_) {
        for (auto *list : {&kept.needed, &kept.changed})
            list->erase(std::remove_if(list->begin(), list->end(), is_constant), list->end());
        needed.insert(kept.needed.begin(), kept.needed.end());
    }
    std::vector<std::string> order(needed.begin(), needed.end());
    std::stable_sort(order.begin(), order.end(), [this](const std::string &one, const std::string &other) {
        return element_size(*variables_.at(one)) > element_size(*variables_.at(other));
    });
    for (const std::string &name : order) {
        in_frame_[name] = frame_size_;
        frame_size_ += warp_size * element_size(*variables_.at(name));
    }
    frame_size_ = (frame_size_ + 63) / 64 * 64;
    std::size_t lane = 0;
    for (const Variable &variable : function_.variables)
        if (variable.space == Space::local) {
            std::size_t alignment = std::max(variable.alignment, least_local_alignment);
            lane = (lane + alignment - 1) / alignment * alignment;
            in_frame_[variable.name] = frame_size_ + lane;
            lane += variable.size;
        }
    local_stride_ = (lane + 63) / 64 * 64;
    frame_size_ += warp_size * local_stride_;
    points_.resize(1); /* the kernel's start */
    find_exchanges();
}

void Emitter::emit_region_begin()
{
    text_ += R"IR(  %lanes.left = alloca i32
  store i32 %lanes, ptr %lanes.left
  %point.now = alloca i32
  store i32 %point, ptr %point.now
)IR";
    emit_exchange_slots();
    text_ += R"IR(  br label %"lane.next"
lane.next:
  %lanes.now = load i32, ptr %lanes.left
  %lane = call i32 @llvm.cttz.i32(i32 %lanes.now, i1 true)
  %lane.index = zext i32 %lane to i64
  %lanes.below = sub i32 %lanes.now, 1
  %lanes.rest = and i32 %lanes.now, %lanes.below
  store i32 %lanes.rest, ptr %lanes.left
  %thread = getelementptr %Thread, ptr %threads, i64 %lane.index
)IR";
    declared_->insert("declare i32 @llvm.cttz.i32(i32, i1)");
    if (!unit_.strided.empty())
        line("store i32 8, ptr %turns");
    if (local_stride_ > 0)
        line("%lane.local = mul i64 %lane.index, " + std::to_string(local_stride_));
    for (const Variable &variable : function_.variables)
        if (variable.space == Space::local) {
            std::string first = std::to_string(in_frame_.at(variable.name));
            std::string place = operation("add i64 %lane.local, " + first);
            line("%" + quoted(variable.name) + " = getelementptr i8, ptr %frame, i64 " + place);
        }
    jump("lane.choice");
    begin("lane.begin");
}

/* The switch to the place where a lane continues comes last, because only then are all places known. */
void Emitter::emit_region_end()
{
    begin(region_over);
    line("store i32 " + std::to_string(point_over) + ", ptr " + lane_place("i32 2"));
    begin(lane_left);
    std::string left = operation("load i32, ptr %lanes.left");
    branch(operation("icmp ne i32 " + left + ", 0"), "lane.next", "lane.none");
    begin("lane.none");
    emit_exchanges();
    line("ret void");
    open_ = false;
    begin("lane.choice");
    std::string text = "switch i32 " + operation("load i32, ptr %point.now") + ", label %\"lane.begin\" [";
    for (std::size_t point = 1; point < points_.size(); ++point)
        text += " i32 " + std::to_string(point) + ", label %\"resume." + std::to_string(point) + "\"";
    line(text + " ]");
    open_ = false;
}

/* The current lane's element of a member of the warp's record. */
std::string Emitter::lane_place(const std::string &member)
{
    return operation("getelementptr %Warp, ptr %warp, i32 0, " + member + ", i64 " + lane_index_);
}

void Emitter::emit_region_kept(const std::vector<std::string> &registers, bool saves)
{
    for (const std::string &name : registers) {
        std::string type = variables_.at(name)->type.llvm(), slot = "%" + quoted(name);
        std::string first = operation("getelementptr i8, ptr %frame, i64 " + std::to_string(in_frame_.at(name)));
        std::string kept = type == "i1" ? "i8" : type;
        std::string place = operation("getelementptr " + kept + ", ptr " + first + ", i64 " + lane_index_);
        std::string value = operation("load " + (saves ? type : kept) + ", ptr " + (saves ? slot : place));
        if (kept != type)
            value = operation(saves ? "zext i1 " + value + " to i8" : "trunc i8 " + value + " to i1");
        line("store " + (saves ? kept : type) + " " + value + ", ptr " + (saves ? place : slot));
    }
}

void Emitter::wait_in_region(const std::string &name, const std::string &arguments)
{
    std::string number = std::to_string(points_.size());
    WaitPoint point;
    point.wait = wait_of(name);
    std::size_t index = 0;
    for (const std::string &part : parts_of(arguments)) {
        std::string type = part.substr(0, part.find(' ')), value = part.substr(part.find(' ') + 1);
        WaitArgument &argument = point.arguments[index];
        argument.known = is_number(value);
        if (argument.known)
            argument.value = std::stoull(value);
        else
            line("store " + type + " " + value + ", ptr " + lane_place("i32 1, i32 " + std::to_string(index)));
        ++index;
    }
    points_.push_back(point);
    count_exchange();
    const auto found = kept_.find(place_);
    if (found == kept_.end())
        throw Error("a wait that the analysis does not know");
    const Kept &kept = found->second;
    emit_region_kept(kept.changed, true);
    line("store i32 " + number + ", ptr " + lane_place("i32 2"));
    jump(lane_left);
    begin("resume." + number);
    emit_region_kept(kept.needed, false);
}

/* Code that may wait for another thread in a loop gives the others a turn now and then. */
void Emitter::spin_in_region()
{
    std::string waits = fresh_label(), goes_on = fresh_label();
    std::string place = operation("getelementptr %Block, ptr %block, i32 0, i32 12");
    std::string left = operation("sub i32 " + operation("load i32, ptr " + place) + ", 1");
    line("store i32 " + left + ", ptr " + place);
    branch(operation("icmp sgt i32 " + left + ", 0"), goes_on, waits);
    begin(waits);
    wait("spin", "");
    begin(goes_on);
}

/* A turn of a loop whose accesses lie far apart. After every eighth turn, the warp's other lanes run, and use the
 * cache lines that this one fetched. */
void Emitter::stride()
{
    std::string waits = fresh_label(), goes_on = fresh_label();
    std::string left = operation("sub i32 " + operation("load i32, ptr %turns") + ", 1");
    line("store i32 " + left + ", ptr %turns");
    branch(operation("icmp sgt i32 " + left + ", 0"), goes_on, waits);
    begin(waits);
    wait("stride", "");
    begin(goes_on);
}

} // namespace vgpu::ptx

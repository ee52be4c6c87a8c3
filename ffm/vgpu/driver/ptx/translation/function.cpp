/* Translates whole functions, and the unit that they belong to. */
#include <algorithm>

#include "../syntax/forms.h"
#include "emitter.h"
#include "indirect.h"
#include "schedules.h"

namespace vgpu::ptx
{

namespace
{

/* An entry that runs all threads of the block one after the other. */
std::string loop_entry(const std::string &body)
{
    return R"IR(
define void @vgpu_entry(ptr %block, ptr %thread) nounwind {
  %xp = getelementptr %Block, ptr %block, i32 0, i32 8, i32 0
  %yp = getelementptr %Block, ptr %block, i32 0, i32 8, i32 1
  %zp = getelementptr %Block, ptr %block, i32 0, i32 8, i32 2
  %nx = load i32, ptr %xp, !invariant.load !0
  %ny = load i32, ptr %yp, !invariant.load !0
  %nz = load i32, ptr %zp, !invariant.load !0
  %iy = getelementptr %Thread, ptr %thread, i32 0, i32 0, i32 1
  %iz = getelementptr %Thread, ptr %thread, i32 0, i32 0, i32 2
  %il = getelementptr %Thread, ptr %thread, i32 0, i32 1
  br label %layers
layers:
  %z = phi i32 [ 0, %0 ], [ %z2, %layer_end ]
  br label %rows
rows:
  %y = phi i32 [ 0, %layers ], [ %y2, %row_end ]
  %row = mul i32 %z, %ny
  %line = add i32 %row, %y
  %base = mul i32 %line, %nx
  br label %columns
columns:
  %x = phi i32 [ 0, %rows ], [ %x2, %columns ]
  store i32 %x, ptr %thread
  store i32 %y, ptr %iy
  store i32 %z, ptr %iz
  %linear = add i32 %base, %x
  store i32 %linear, ptr %il
  call void @)IR" +
           quoted(body) + R"IR((ptr %block, ptr %thread) alwaysinline
  %x2 = add i32 %x, 1
  %more = icmp ult i32 %x2, %nx
  br i1 %more, label %columns, label %row_end
row_end:
  %y2 = add i32 %y, 1
  %more_rows = icmp ult i32 %y2, %ny
  br i1 %more_rows, label %rows, label %layer_end
layer_end:
  %z2 = add i32 %z, 1
  %more_layers = icmp ult i32 %z2, %nz
  br i1 %more_layers, label %layers, label %done
done:
  ret void
}
)IR";
}

std::string fiber_entry(const std::string &body)
{
    return "\ndefine void @vgpu_entry(ptr %block, ptr %thread) nounwind {\n  call void @" + quoted(body) +
           "(ptr %block, ptr %thread) alwaysinline\n  ret void\n}\n";
}

} // namespace

Emitter::Emitter(const Unit &unit, const Function &function)
    : unit_(unit), function_(function), local_places_(local_places(function))
{
    for (const auto *list : {&function.parameters, &function.results, &function.variables})
        for (const Variable &variable : *list)
            variables_[variable.name] = &variable;
    for (std::size_t index = 0; index < function.body.size(); ++index)
        if (!function.body[index].label.empty())
            labels_[function.body[index].label] = index;
}

const std::map<std::string, Emitter::Handler> &Emitter::handlers()
{
    static const std::map<std::string, Handler> *table = [] {
        auto *made = new std::map<std::string, Handler>;
        for (auto family : {add_integer, add_bits, add_real, add_conversions, add_video, add_comparisons, add_memory,
                            add_atomics, add_barrier_objects, add_textures, add_control, add_warp})
            family(*made);
        return made;
    }();
    return *table;
}

bool Emitter::is_backward(const std::string &label) const
{
    auto found = labels_.find(label);
    return found != labels_.end() && found->second < place_;
}

std::string Emitter::signature() const
{
    if (is_region())
        return region_parameters;
    std::string parameters = "ptr %block, ptr %thread";
    if (!function_.entry)
        for (const auto *list : {&function_.results, &function_.parameters})
            for (const Variable &variable : *list) {
                if (variable.space == Space::reg)
                    throw Error("parameters in registers are not implemented");
                parameters += ", ptr %" + quoted(variable.name);
            }
    return parameters;
}

/* Emits the slots for registers and local variables. */
void Emitter::emit_slots()
{
    for (const Variable &variable : function_.variables) {
        std::string name = "%" + quoted(variable.name);
        if (in_frame_.count(variable.name) && variable.space != Space::reg)
            continue;
        if (variable.space == Space::reg)
            line(name + " = alloca " + variable.type.llvm());
        else
            line(name + " = alloca [" + std::to_string(std::max<std::size_t>(variable.size, 1)) + " x i8], align " +
                 std::to_string(std::max(variable.alignment, least_local_alignment)));
    }
    line("%carry = alloca i1");
    line("%image = alloca i128");
    line("store i1 false, ptr %carry");
    if ((is_coroutine() || is_region()) && !unit_.strided.empty()) {
        line("%turns = alloca i32");
        line("store i32 8, ptr %turns");
    }
}

std::string Emitter::emit(std::set<std::string> &declared)
{
    declared_ = &declared;
    text_ = "\ndefine internal void @" + quoted(function_.name) + "(" + signature() + ") nounwind " +
            (is_coroutine()    ? "presplitcoroutine "
             : function_.entry ? "alwaysinline "
                               : "") +
            "{\n";
    if (is_region())
        lay_out_frame();
    emit_slots();
    if (is_coroutine())
        emit_coroutine_begin();
    if (is_region())
        emit_region_begin();
    if (!function_.entry)
        line("call void @enter(ptr %block, ptr %thread)");
    auto together = unit_.exchanges.find(&function_);
    for (place_ = 0; place_ < function_.body.size(); ++place_) {
        const Instruction &instruction = function_.body[place_];
        if (!instruction.label.empty())
            begin(instruction.label);
        if (together != unit_.exchanges.end() && together->second.count(place_))
            wait("vgpu_active", ", i32 " + std::to_string(instruction.line));
        if (instruction.label.empty())
            emit(instruction);
    }
    if (is_coroutine())
        emit_coroutine_end();
    else if (is_region())
        emit_region_end();
    else if (open_)
        line("ret void");
    return text_ + "}\n" + loop_facts();
}

void Emitter::emit(const Instruction &instruction)
{
    try {
        auto handler = handlers().find(instruction.words.front());
        if (handler == handlers().end())
            unsupported(instruction);
        if (std::string unknown = unknown_part(instruction); !unknown.empty())
            unsupported(instruction, unknown);
        std::string behind;
        if (!instruction.guard.empty()) {
            Operand guard;
            guard.form = Operand::Form::name;
            guard.name = instruction.guard;
            guard.negated = instruction.guard_negated;
            std::string inside = fresh_label();
            behind = fresh_label();
            branch(read(guard, type_of("pred")), inside, behind);
            begin(inside);
        }
        (this->*handler->second)(instruction);
        if (!behind.empty())
            begin(behind);
    } catch (const Error &error) {
        std::string place = function_.entry ? "" : " in the function " + function_.name;
        throw Error("line " + std::to_string(instruction.line) + place + ": " + instruction.text() + ": " +
                    error.what());
    }
}

Translation translate(const Unit &unit)
{
    Translation translation;
    std::set<std::string> declared;
    std::string functions;
    for (const Function *function : unit.functions) {
        if (!function->unsupported.empty())
            throw Error("'" + function->unsupported + "' is not implemented");
        Emitter emitter(unit, *function);
        functions += emitter.emit(declared);
        if (function->entry) {
            translation.points = emitter.points();
            translation.frame_size = emitter.frame_size();
        }
    }
    std::string &text = translation.assembly;
    text = prelude();
    for (const std::string &declaration : declared)
        if (text.find(declaration.substr(0, declaration.find('(') + 1)) == std::string::npos)
            text += declaration + "\n";
    text += functions;
    if (unit.calls_addresses)
        text += function_at(*unit.module, unit.functions);
    switch (unit.schedule) {
    case Schedule::loop:
        text += loop_entry(unit.kernel->name);
        break;
    case Schedule::regions:
        text += region_entry(unit.kernel->name);
        break;
    case Schedule::coroutines:
        text += coroutine_entry(unit.kernel->name);
        break;
    default:
        text += fiber_entry(unit.kernel->name);
    }
    return translation;
}

} // namespace vgpu::ptx

#include "schedules.h"

#include "emitter.h"

namespace vgpu::ptx
{

const char *const coroutine_over = "thread.over";

std::string coroutine_entry(const std::string &body)
{
    return "\ndefine void @vgpu_entry(ptr %block, ptr %thread) nounwind {\n  call void @\"" + body +
           "\"(ptr %block, ptr %thread)\n  ret void\n}\n";
}

bool Emitter::is_coroutine() const
{
    return unit_.schedule == Schedule::coroutines && function_.entry;
}

/* The frame's address is stored back, because LLVM drops writes to a frame whose address nobody else has. */
void Emitter::emit_coroutine_begin()
{
    text_ += R"IR(  %thread.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)
  %thread.size = call i64 @llvm.coro.size.i64()
  %thread.sizep = getelementptr %Thread, ptr %thread, i32 0, i32 6
  store i64 %thread.size, ptr %thread.sizep
  %thread.framep = getelementptr %Thread, ptr %thread, i32 0, i32 5
  %thread.memory = load ptr, ptr %thread.framep
  %thread.asks = icmp eq ptr %thread.memory, null
  br i1 %thread.asks, label %"thread.told", label %"thread.begin"
thread.told:
  ret void
thread.begin:
  %thread.frame = call noalias ptr @llvm.coro.begin(token %thread.id, ptr %thread.memory)
  store ptr %thread.frame, ptr %thread.framep
)IR";
}

void Emitter::emit_coroutine_end()
{
    begin(coroutine_over);
    text_ += R"IR(  %thread.overp = getelementptr %Thread, ptr %thread, i32 0, i32 7
  store i32 1, ptr %thread.overp
  br label %"thread.left"
thread.left:
  %thread.freed = call ptr @llvm.coro.free(token %thread.id, ptr %thread.frame)
  br label %"thread.suspended"
thread.suspended:
  call void @llvm.coro.end(ptr %thread.frame, i1 false, token none)
  ret void
)IR";
}

/* A fiber returns from the call when it is its turn again. A coroutine suspends itself if the call says so. */
void Emitter::wait(const std::string &name, const std::string &arguments)
{
    if (is_region())
        return wait_in_region(name, arguments);
    std::string told = call("i32", name, "ptr %block, ptr %thread" + arguments);
    if (!is_coroutine())
        return;
    std::string waits = fresh_label(), goes_on = fresh_label();
    branch(operation("icmp ne i32 " + told + ", 0"), waits, goes_on);
    begin(waits);
    std::string why = operation("call i8 @llvm.coro.suspend(token none, i1 false)");
    line("switch i8 " + why + ", label %\"thread.suspended\" [ i8 0, label %\"" + goes_on +
         "\" i8 1, label %\"thread.left\" ]");
    open_ = false;
    begin(goes_on);
}

std::string Emitter::waited_for(const std::string &type)
{
    if (is_region())
        return operation("load " + type + ", ptr " + lane_place("i32 0"));
    std::string place = operation("getelementptr %Thread, ptr %thread, i32 0, i32 4");
    return operation("load " + type + ", ptr " + place);
}

} // namespace vgpu::ptx

// A coroutine whose stack is changed by the program's own instructions, on memory of the heap or of its own mapping. It
// downloads into a variable on that stack and gives way; it goes on in the same thread or in another one, and reads the
// variable.
// variants: heap, mapped, other_thread
#include "planted.h"

#include <thread>

constexpr int count = 2048;

extern "C" void change_stack(void **kept, void *next);
asm(R"(
    .text
    .type change_stack, @function
change_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size change_stack, . - change_stack
)");

static void *outside, *inside;
static int *device;

static void coroutine()
{
    int result[count] = {};
    fill(device, count, 7);
    // sync: required
    DOWNLOAD(copy, result, device, count * sizeof(int));
    change_stack(&inside, outside);
    expect("sum", sum(result, count), 7 * count);
    settle(); // the variable is gone afterwards
    change_stack(&inside, outside);
}

static void go_on()
{
    change_stack(&outside, inside);
}

void program()
{
    constexpr size_t room = 1 << 18;
    constexpr int protection = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    void *stack = variant("mapped") ? mmap(nullptr, room, protection, kind, -1, 0) : std::malloc(room);
    uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + room) / 16 * 16;
    void **frame = reinterpret_cast<void **>(top) - 8; // six registers, where to go on, and nowhere to return to
    std::memset(frame, 0, 8 * sizeof *frame);
    frame[6] = reinterpret_cast<void *>(coroutine);
    inside = frame;
    device = device_integers(count);
    go_on();
    if (variant("other_thread"))
        std::thread(go_on).join();
    else
        go_on();
}

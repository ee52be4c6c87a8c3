#include "fiber.h"

#include <cstdint>
#include <sys/mman.h>

/* The callee-saved registers stay on the old stack (System V ABI for x86-64, "Registers"). The rounding mode is the
 * same for all stacks. */
asm(R"(
    .text
    .hidden vgpu_resume
    .globl vgpu_resume
    .type vgpu_resume, @function
vgpu_resume:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size vgpu_resume, .-vgpu_resume

    .hidden vgpu_fiber_start
    .globl vgpu_fiber_start
    .type vgpu_fiber_start, @function
vgpu_fiber_start:
    movq %r12, %rdi
    callq *%r13
    ud2
    .size vgpu_fiber_start, .-vgpu_fiber_start
)");

extern "C" void vgpu_fiber_start();

namespace vgpu::ptx
{

StackPool::StackPool(std::size_t size) : size_(size) {}

StackPool::~StackPool()
{
    for (char *stacks : mapped_)
        munmap(stacks, size_ * at_a_time);
}

char *StackPool::take()
{
    if (free_.empty()) {
        void *stacks = mmap(nullptr, size_ * at_a_time, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
            return nullptr;
        mapped_.push_back(static_cast<char *>(stacks));
        for (std::size_t index = at_a_time; index-- > 0;)
            free_.push_back(static_cast<char *>(stacks) + index * size_);
    }
    char *stack = free_.back();
    free_.pop_back();
    return stack;
}

void *prepare(char *stack, std::size_t size, void (*main)(void *), void *argument)
{
    /* Stacks start at different distances from their ends. Otherwise they would all compete for the same cache
     * lines. */
    std::size_t shift = reinterpret_cast<std::uintptr_t>(stack) / size % 128 * 576;
    void **top = reinterpret_cast<void **>(stack + size - 128 - shift);
    *--top = nullptr; /* in place of a return address: keeps the alignment that the ABI requires */
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(&vgpu_fiber_start);
    *--top = nullptr;                        /* rbp */
    *--top = nullptr;                        /* rbx */
    *--top = argument;                       /* r12 */
    *--top = reinterpret_cast<void *>(main); /* r13 */
    *--top = nullptr;                        /* r14 */
    *--top = nullptr;                        /* r15 */
    return top;
}

} // namespace vgpu::ptx

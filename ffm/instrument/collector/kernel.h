/* System calls that no hook sees and that leave errno alone. */
#ifndef FFM_KERNEL_H
#define FFM_KERNEL_H

#include <stdint.h>

/* Returns what the kernel does: a negative number is an error. */
static inline int64_t ffm_kernel(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    int64_t result;
    register uint64_t fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

#endif

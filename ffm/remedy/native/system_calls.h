/* System calls that bypass the C library, whose functions are guarded. */
#ifndef FFM_REMEDY_SYSTEM_CALLS_H
#define FFM_REMEDY_SYSTEM_CALLS_H

#include <stdint.h>

/* Returns the kernel's result: a negative error number on failure. x86-64. */
static inline int64_t ffm_system_call(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
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

/* Our own system calls: directly to the kernel, without errno. */
#ifndef FFM_KERNEL_H
#define FFM_KERNEL_H

#include <stdint.h>
#include <sys/syscall.h>

/* A system call with its six arguments. Returns the kernel's result: a negative number is an error. All arguments are
 * loaded before any is put into a register by name: ThreadSanitizer turns loads into calls, which change these. */
static inline int64_t ffm_kernel_call(uint64_t number, const uint64_t *a)
{
    int64_t result;
    const uint64_t first = a[0], second = a[1], third = a[2], a3 = a[3], a4 = a[4], a5 = a[5];
    register uint64_t fourth __asm__("r10") = a3;
    register uint64_t fifth __asm__("r8") = a4;
    register uint64_t sixth __asm__("r9") = a5;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

/* The same for calls with up to four arguments. */
static inline int64_t ffm_kernel(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t arguments[6] = {a, b, c, d, 0, 0};
    return ffm_kernel_call(number, arguments);
}

#endif

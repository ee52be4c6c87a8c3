#include "code_changes.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"

enum { PAGE = 4096 };

static bool locked; /* two changes on one page would take each other's right to write */

static bool protect(uint64_t address, uint64_t rights)
{
    return ffm_kernel(SYS_mprotect, address & ~(uint64_t)(PAGE - 1), PAGE, rights, 0) == 0;
}

bool ffm_code_open(uint64_t address, bool waits)
{
    while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) {
        if (!waits)
            return false;
        __builtin_ia32_pause();
    }
    if (protect(address, PROT_READ | PROT_WRITE | PROT_EXEC))
        return true;
    __atomic_clear(&locked, __ATOMIC_RELEASE);
    return false;
}

void ffm_code_close(uint64_t address)
{
    protect(address, PROT_READ | PROT_EXEC);
    __atomic_clear(&locked, __ATOMIC_RELEASE);
}

void ffm_code_changes_after_fork(void)
{
    __atomic_clear(&locked, __ATOMIC_RELEASE);
}

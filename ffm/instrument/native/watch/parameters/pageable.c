#include "pageable.h"

#include <cuda.h>
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "boxes.h"
#include "kernel.h"
#include "questions.h"

enum { PAGE = 4096, LOWEST = 1 << 16 }; /* the system maps nothing below */

static const uint64_t HIGHEST = 1ULL << 47; /* addresses of user space, with four levels of page tables */

typedef int (*attribute_function)(int *, uint32_t, int);

static attribute_function device_attribute;
static bool ruled_out;

void ffm_pageable_ask(void *function)
{
    device_attribute = (attribute_function)(uintptr_t)function;
}

void ffm_pageable_rule_out(void)
{
    ruled_out = true;
}

static bool ask_all_devices(void)
{
    int value = 0;
    for (int device = 0;
         value == 0 && device_attribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) == CUDA_SUCCESS;
         device++)
        continue;
    return value != 0;
}

bool ffm_pageable_used(void)
{
    enum { UNKNOWN, NO, YES };
    static int known = UNKNOWN;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (ruled_out)
        return false;
    if (answer == UNKNOWN && device_attribute != NULL) {
        answer = ask_all_devices() ? YES : NO;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == YES;
}

/* Whether the program may read the page; pages that the watch protects count as readable. */
static bool readable(uint64_t word)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)word, 1};
    const uint64_t arguments[6] = {(uint64_t)getpid(), (uint64_t)&here, 1, (uint64_t)&there, 1, 0};
    return ffm_ranges_overlap(word, word + 1) || ffm_kernel_call(SYS_process_vm_readv, arguments) != -EFAULT ||
           ffm_ranges_overlap(word, word + 1);
}

/* Also just past the end of the driver's memory, as iterators are. No other memory begins within a page. */
static bool of_driver(uint64_t word)
{
    return ffm_boxes_of_driver(word) || (word % PAGE != 0 && ffm_boxes_of_driver(word - 1));
}

bool ffm_pageable_holds(uint64_t word)
{
    unsigned char resident;
    return word >= LOWEST && word < HIGHEST && ffm_pageable_used() && !of_driver(word) &&
           mincore((void *)(word & ~(uint64_t)(PAGE - 1)), 1, &resident) == 0 && readable(word);
}

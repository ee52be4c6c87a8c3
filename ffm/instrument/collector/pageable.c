#include "pageable.h"

#include <cuda.h>
#include <stddef.h>
#include <sys/mman.h>

#include "boxes.h"

enum { PAGE = 4096, LOWEST = 1 << 16 }; /* the system maps nothing below */

static const uint64_t HIGHEST = 1ULL << 47; /* addresses of user space, with four levels of page tables */

typedef int (*attribute_function)(int *, uint32_t, int);

static attribute_function device_attribute;

void ffm_pageable_ask(void *function)
{
    device_attribute = (attribute_function)(uintptr_t)function;
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
    if (answer == UNKNOWN && device_attribute != NULL) {
        answer = ask_all_devices() ? YES : NO;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == YES;
}

bool ffm_pageable_holds(uint64_t word)
{
    unsigned char resident;
    return word >= LOWEST && word < HIGHEST && ffm_pageable_used() && !ffm_boxes_of_driver(word) &&
           mincore((void *)(word & ~(uint64_t)(PAGE - 1)), 1, &resident) == 0;
}

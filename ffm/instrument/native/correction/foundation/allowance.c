#include "allowance.h"

#include <stdbool.h>
#include <stdio.h>

#include "extras.h"

enum { PART_OF_FREE = 4 };

static size_t largest, host, device;

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* What the kernel could hand out without swapping; 0 if it does not say. */
static size_t available_host_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return 0;
    char line[128];
    size_t kibibytes = 0;
    while (kibibytes == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %zu kB", &kibibytes) != 1)
            kibibytes = 0;
    fclose(file);
    return kibibytes << 10;
}

void ffm_allowance_open(size_t bytes)
{
    largest = bytes;
    host = least(largest, available_host_memory() / PART_OF_FREE);
    device = 0;
}

size_t ffm_allowance_host(void)
{
    return host;
}

void ffm_allowance_ask(void)
{
    if (largest == 0 || ffm_allowance_device() != 0)
        return;
    size_t unknown = 0;
    const size_t allowed = least(largest, ffm_free_device_memory() / PART_OF_FREE);
    /* Of two threads that ask at once, the first one's answer stays. */
    __atomic_compare_exchange_n(&device, &unknown, allowed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

size_t ffm_allowance_device(void)
{
    return __atomic_load_n(&device, __ATOMIC_RELAXED);
}

#include "allowance.h"

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

size_t ffm_allowance_device(void)
{
    if (device == 0 && largest != 0)
        device = least(largest, ffm_free_device_memory() / PART_OF_FREE);
    return device;
}

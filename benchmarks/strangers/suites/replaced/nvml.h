/* For BabelStream, which prints the memory's clock rate: no management library is there, and every rate is 0 MHz. */
#pragma once

enum nvmlReturn_t { NVML_SUCCESS };
enum nvmlClockType_t { NVML_CLOCK_MEM };
struct nvmlDevice_t {};

static inline const char *nvmlErrorString(nvmlReturn_t)
{
    return "";
}

static inline nvmlReturn_t nvmlInit()
{
    return NVML_SUCCESS;
}

static inline nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *, nvmlDevice_t *)
{
    return NVML_SUCCESS;
}

static inline nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned int *rate)
{
    *rate = 0;
    return NVML_SUCCESS;
}

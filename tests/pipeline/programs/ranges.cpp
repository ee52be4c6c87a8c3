/* Marks its loop with NVTX in four ways. Without a device's work there would be nothing to count. */
#include <thread>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

enum { TIMES = 6 };

static void wait(void *device, int times)
{
    for (int time = 0; time < times; time++) {
        cudaMemsetAsync(device, time, 64);
        cudaDeviceSynchronize();
    }
}

static void pushed(void *device)
{
    for (int time = 0; time < TIMES; time++) {
        nvtxRangePushA("pushed");
        wait(device, 1);
        nvtxRangePushA("inner");
        wait(device, 1);
        nvtxRangePop();
        nvtxRangePop();
        wait(device, 3); /* between the iterations */
    }
}

static void in_domain(void *device)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("own");
    nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "in domain");
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = name;
    for (int time = 0; time < TIMES; time++) {
        nvtxDomainRangePushEx(domain, &attributes);
        wait(device, 2);
        nvtxDomainRangePop(domain);
    }
}

static void numbered(void *device)
{
    char name[] = "step 0";
    for (int time = 0; time < TIMES; time++, name[5]++) {
        const nvtxRangeId_t range = nvtxRangeStartA(name);
        wait(device, 1);
        nvtxRangeEnd(range);
    }
}

int main()
{
    void *device = nullptr;
    cudaMalloc(&device, 64);
    pushed(device);
    in_domain(device);
    std::thread(numbered, device).join();
    return 0;
}

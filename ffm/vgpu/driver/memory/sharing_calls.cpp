/* cuIpc…MemHandle: device memory that other processes open. A handle names a file of the owning process. */
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>

#include "contexts/context.h"
#include "contexts/wait.h"
#include "memory.h"

using namespace vgpu;

namespace
{

constexpr std::uint32_t mark = 0x75706776;

/* The content of a handle. */
struct Shared {
    std::uint32_t mark;
    pid_t process;
    int file;
    std::uint64_t offset, size;
};
static_assert(sizeof(Shared) <= sizeof(CUipcMemHandle));

/* Another process's memory, mapped here. */
struct Opened {
    std::uintptr_t address;
    void *mapping;
    std::size_t length;
    unsigned count;
};

using Key = std::tuple<pid_t, int, std::uint64_t>;

struct AllOpened {
    std::mutex mutex;
    std::map<Key, Opened> all;
};

AllOpened &opened()
{
    static AllOpened *instance = new AllOpened;
    return *instance;
}

/* Opens the owner's file; -1 if that process has ended or the handle is invalid. */
int open_file(const Shared &shared)
{
    const std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
    char target[64] = {};
    if (shared.mark != mark || readlink(path.c_str(), target, sizeof target - 1) < 0 ||
        !std::strstr(target, "vgpu-device-memory"))
        return -1;
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

CUresult map_shared(const Shared &shared, Opened &made)
{
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const int file = open_file(shared);
    if (file < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    const std::size_t first = shared.offset / page * page, behind = shared.offset + shared.size;
    made.length = (behind - first + page - 1) / page * page;
    made.mapping = mmap(nullptr, made.length, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(first));
    close(file);
    if (made.mapping == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    made.address = reinterpret_cast<std::uintptr_t>(made.mapping) + (shared.offset - first);
    made.count = 1;
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuIpcGetMemHandle)(CUipcMemHandle *handle, CUdeviceptr address)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    Allocation allocation;
    if (!handle || !find_allocation(address, allocation) || allocation.kind != MemoryKind::device || allocation.pool ||
        !DeviceMemory::owns(allocation.device, address))
        return CUDA_ERROR_INVALID_VALUE;
    wait_for_context(*context);
    Shared shared = {mark, getpid(), -1, 0, allocation.size};
    std::size_t offset = 0;
    result = DeviceMemory::share(allocation.device, allocation.address, allocation.size, shared.file, offset);
    shared.offset = offset;
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle, &shared, sizeof shared);
    return result;
}

DRIVER_CALL(cuIpcOpenMemHandle_v2)(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    Shared shared;
    std::memcpy(&shared, &handle, sizeof shared);
    if (shared.mark == mark && shared.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    std::lock_guard<std::mutex> lock(opened().mutex);
    const Key key = {shared.process, shared.file, shared.offset};
    if (auto known = opened().all.find(key); known != opened().all.end()) {
        ++known->second.count;
        *address = known->second.address;
        return CUDA_SUCCESS;
    }
    Opened made;
    result = map_shared(shared, made);
    if (result != CUDA_SUCCESS)
        return result;
    opened().all[key] = made;
    Allocation allocation;
    allocation.address = made.address;
    allocation.size = shared.size;
    allocation.kind = MemoryKind::device;
    allocation.gpu_view = reinterpret_cast<char *>(made.address);
    allocation.device = context->device;
    add_allocation(allocation);
    *address = made.address;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuIpcCloseMemHandle)(CUdeviceptr address)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    wait_for_context(*context);
    std::lock_guard<std::mutex> lock(opened().mutex);
    for (auto known = opened().all.begin(); known != opened().all.end(); ++known) {
        if (known->second.address != address)
            continue;
        if (--known->second.count == 0) {
            Allocation removed;
            remove_allocation(address, MemoryKind::device, removed);
            munmap(known->second.mapping, known->second.length);
            opened().all.erase(known);
        }
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

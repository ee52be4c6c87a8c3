/* All memory that the virtual GPU knows: its address, its kind, and how the GPU accesses it. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "foundation/cuda_api.h"

namespace vgpu
{

enum class MemoryKind {
    device,     /* the GPU's own memory */
    pinned,     /* cuMemAllocHost, cuMemHostAlloc: mapped twice, the GPU uses the second mapping */
    managed,    /* cuMemAllocManaged: the same */
    registered, /* cuMemHostRegister: the program's own pages; the GPU maps shared ones again */
    pageable,   /* unknown to the driver */
};

struct Allocation {
    std::uintptr_t address = 0; /* as the program knows it */
    std::size_t size = 0;
    MemoryKind kind = MemoryKind::pageable;
    char *gpu_view = nullptr; /* where GPU threads can access it; null: through /proc/self/mem */
    std::size_t before = 0;   /* bytes of its mapping before it, */
    std::size_t behind = 0;   /* and behind it */
    unsigned flags = 0;       /* the flags it was allocated with */
    std::uint64_t id = 0;
    CUcontext context = nullptr;
    CUdevice device = 0;
    CUmemoryPool pool = nullptr; /* of cuMemAllocAsync */
    bool graph = false;          /* of a node of a graph (graphs/graph_memory.h) */
};

/* A range of memory as the GPU's copy engines access it. */
struct GpuRange {
    MemoryKind kind = MemoryKind::pageable;
    std::uintptr_t program_address = 0;
    char *gpu_view = nullptr; /* null: through /proc/self/mem, or pageable */
    CUdevice device = 0;      /* the owner, if it is device memory */
    std::size_t size = 0;     /* bytes from here to the end of the allocation; pageable: unknown, SIZE_MAX */
};

/* Records an allocation. */
void add_allocation(const Allocation &allocation);

/* Forgets the allocation that starts at `address`; false if there is none of that `kind`. */
bool remove_allocation(std::uintptr_t address, MemoryKind kind, Allocation &removed);

/* Forgets all allocations of a context and frees their memory. None of it may be in use. */
void release_allocations(CUcontext context);

/* Forgets a context's arrays and objects, whose memory goes with its allocations. */
void release_arrays(CUcontext context);
void release_image_objects(CUcontext context);

/* Page-locked memory, as the GPU sees it, is about to be freed: objects that show it have no memory from now on. */
void empty_image_objects(const char *start, std::size_t size);

/* The allocation that contains `address`; false if it is unknown to the driver. */
bool find_allocation(std::uintptr_t address, Allocation &found);

/* Pinned, managed or registered memory by the address of the GPU's view of it; false where there is none. */
bool find_gpu_view(std::uintptr_t address, Allocation &found);

/* How the GPU accesses `address`; its kind is pageable if the driver does not know it. */
GpuRange gpu_range(std::uintptr_t address);

/* Whether an allocation still holds the `size` bytes that the GPU is about to use. It may have been freed since it was
 * looked up, when the work was enqueued; memory of a graph can be. */
bool still_allocated(const GpuRange &range, std::size_t size);

/* Replaces, in a kernel's parameter of `size` bytes, every aligned pointer into pinned or managed memory by
 * the GPU's own view of it: a kernel must not depend on the protection of the program's pages. */
void translate_pointers(char *parameter, std::size_t size);

/* Moves bytes on a GPU thread; neither side is pageable. False if the program's registered pages cannot be accessed. */
bool transfer(const GpuRange &destination, std::size_t destination_offset, const GpuRange &source,
              std::size_t source_offset, std::size_t bytes);

/* A device's own memory: addresses from one reserved range for each, allocated first fit. */
class DeviceMemory
{
  public:
    /* CUDA_ERROR_OUT_OF_MEMORY if the device, or this machine, has no room. */
    static CUresult allocate(CUdevice device, std::size_t size, std::uintptr_t &address);
    static void release(CUdevice device, std::uintptr_t address, std::size_t size);
    /* Makes bytes of the device's range zero. */
    static void clear(CUdevice device, char *first, std::size_t size);
    /* For memory that is elsewhere: false if the device has no room. */
    static bool take(CUdevice device, std::size_t size);
    static void give_back(CUdevice device, std::size_t size);
    static std::size_t total();
    static std::size_t used(CUdevice device);

    /* Whether the address lies in the device's range, not in memory that is elsewhere. */
    static bool owns(CUdevice device, std::uintptr_t address);

    /* Moves the range into a file that other processes can map. It keeps its bytes and its address; nothing may use it
     * meanwhile. Returns the file and the range's offset in it. CUDA_ERROR_OUT_OF_MEMORY. */
    static CUresult share(CUdevice device, std::uintptr_t address, std::size_t size, int &file, std::size_t &offset);

    /* The reserved range (empty before the first allocation), and for each 2 MiB of it whether an allocation lies
     * there: what kernels may address, as on a GPU, whose pages are that large. */
    struct Map {
        std::uintptr_t first;
        std::size_t size;
        const std::uint8_t *present;
    };
    static Map map(CUdevice device);
};

/* Memory mapped twice. */
CUresult map_twice(std::size_t size, std::uintptr_t &program_address, char *&gpu_view);
void unmap_twice(const Allocation &allocation);

/* A second mapping of `size` bytes of the program's pages from `first` on; returns the address of the byte at `offset`
 * in it. Only shared mappings can be mapped again (mremap(2)): null for private ones, which can be accessed through
 * /proc/self/mem whatever their protection. */
char *map_again(std::uintptr_t first, std::size_t size, std::size_t offset);
void unmap_again(const Allocation &registered);

} // namespace vgpu

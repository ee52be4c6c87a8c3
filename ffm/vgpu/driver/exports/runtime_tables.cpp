/* NVIDIA does not document these tables. Their keys, slots and prototypes are from ZLUDA, dark_api/src/lib.rs and
 * zluda/src/impl/driver.rs (github.com/vosen/ZLUDA). A slot that ZLUDA does not know returns
 * CUDA_ERROR_NOT_SUPPORTED, and reports the call if `log.refused` is set. */
#include "runtime_tables.h"

#include <cstring>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "attestation.h"
#include "contexts/context.h"
#include "contexts/context_storage.h"
#include "foundation/refusal.h"

DRIVER_IMPLEMENTATION(cuCtxGetCurrent);
DRIVER_IMPLEMENTATION(cuCtxGetId);
DRIVER_IMPLEMENTATION(cuDevicePrimaryCtxRetain);
DRIVER_IMPLEMENTATION(cuDriverGetVersion);
DRIVER_IMPLEMENTATION(cuModuleLoadData);

namespace vgpu
{

namespace
{

using Slot = const void *;

/* The table that a refused call belongs to. */
enum Table {
    runtime_interface,
    thread_storage,
    tools,
    context_creation,
    context_questions,
    heap,
    device_extension,
    attestation,
    checks
};
const char *const table_names[] = {"runtime interface", "thread storage",    "tools",
                                   "context creation",  "context questions", "heap",
                                   "device extension",  "attestation",       "checks"};

template <int table, std::size_t index> CUresult absent()
{
    refused("place %zu of the private table '%s'", index, table_names[table]);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* A table of `size` slots. The first one holds the table's size in bytes. */
template <int table, std::size_t size> struct Places {
    Slot slots[size];

    Places() : Places(std::make_index_sequence<size>()) {}
    template <std::size_t... index>
    explicit Places(std::index_sequence<index...>) : slots{reinterpret_cast<Slot>(&absent<table, index>)...}
    {
        slots[0] = reinterpret_cast<Slot>(size * sizeof(Slot));
    }

    template <typename Function> Places &with(std::size_t index, Function *function)
    {
        slots[index] = reinterpret_cast<Slot>(function);
        return *this;
    }
};

CUresult load_wrapped(CUmodule *module, const void *wrapper)
{
    return implementation_cuModuleLoadData(module, wrapper);
}

CUresult load_with_options(CUmodule *module, const void *wrapper, void *, void *, unsigned)
{
    return implementation_cuModuleLoadData(module, wrapper);
}

CUresult load_container(const void *container, CUmodule *module, void *, void *, unsigned)
{
    return implementation_cuModuleLoadData(module, container);
}

CUresult primary(CUcontext *context, CUdevice device)
{
    return implementation_cuDevicePrimaryCtxRetain(context, device);
}

void nothing(std::size_t) {}

CUresult load_compilers()
{
    return CUDA_SUCCESS;
}

const void *interface_table()
{
    static Places<runtime_interface, 13> places = Places<runtime_interface, 13>()
                                                      .with(1, load_wrapped)
                                                      .with(2, primary)
                                                      .with(6, load_with_options)
                                                      .with(7, nothing)
                                                      .with(8, load_container)
                                                      .with(12, load_compilers);
    return places.slots;
}

/* NVIDIA's tools keep flags in these buffers. No tool is attached here. */
void first_buffer(void **buffer, std::size_t *size)
{
    static std::uint32_t words[1024];
    *buffer = words;
    *size = std::size(words);
}

void second_buffer(void **buffer, std::size_t *size)
{
    static std::uint32_t words[14];
    *buffer = words;
    *size = std::size(words);
}

const void *tools_table()
{
    static Places<tools, 7> places = Places<tools, 7>().with(2, first_buffer).with(6, second_buffer);
    return places.slots;
}

CUresult thread_context(CUcontext *context)
{
    return implementation_cuCtxGetCurrent(context);
}

const void *thread_storage_table()
{
    static Places<thread_storage, 4> places = Places<thread_storage, 4>().with(2, thread_context);
    return places.slots;
}

CUresult context_id(CUcontext context, unsigned long long *id)
{
    return implementation_cuCtxGetId(context, id);
}

/* The runtime asks for this table since CUDA 13.4. NVIDIA's driver of that version fills all 95 slots. */
const void *context_questions_table()
{
    static Places<context_questions, 95> places = Places<context_questions, 95>().with(4, context_id);
    return places.slots;
}

const void *context_creation_table()
{
    static Places<context_creation, 2> places;
    return places.slots;
}

const void *heap_table()
{
    static Places<heap, 3> places;
    return places.slots;
}

const void *device_extension_table()
{
    static Places<device_extension, 26> places;
    return places.slots;
}

/* Null stands for the calling thread's context. */
CUresult context_or_current(CUcontext &handle)
{
    if (!handle)
        handle = reinterpret_cast<CUcontext>(current_context());
    return handle && find_context(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult storage_put(CUcontext context, void *key, void *value, StorageDestructor destructor)
{
    CUresult result = context_or_current(context);
    if (result == CUDA_SUCCESS)
        store(context, key, value, destructor);
    return result;
}

CUresult storage_delete(CUcontext context, void *key)
{
    CUresult result = context_or_current(context);
    if (result == CUDA_SUCCESS)
        forget(context, key);
    return result;
}

CUresult storage_get(void **value, CUcontext context, void *key)
{
    CUresult result = context_or_current(context);
    if (result != CUDA_SUCCESS)
        return result;
    return stored(context, key, *value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The only table that does not start with its size. */
const void *storage_table()
{
    static const Slot slots[] = {reinterpret_cast<Slot>(&storage_put), reinterpret_cast<Slot>(&storage_delete),
                                 reinterpret_cast<Slot>(&storage_get), nullptr};
    return slots;
}

const void *attestation_table();

CUresult attest_runtime(std::uint32_t runtime_version, std::uint64_t unix_seconds, unsigned char *answer)
{
    int version = 0;
    implementation_cuDriverGetVersion(&version);
    AttestedCall call = {};
    call.driver_version = static_cast<std::uint32_t>(version);
    call.runtime_version = runtime_version;
    call.process = static_cast<std::uint32_t>(getpid());
    call.thread = static_cast<std::uint32_t>(pthread_self());
    call.runtime_table = interface_table();
    call.attestation_table = attestation_table();
    call.function = reinterpret_cast<Slot>(&attest_runtime);
    call.unix_seconds = unix_seconds;
    attest(call, answer);
    return CUDA_SUCCESS;
}

const void *attestation_table()
{
    static Places<attestation, 3> places = Places<attestation, 3>().with(1, attest_runtime);
    return places.slots;
}

CUresult check_context(CUcontext, std::uint32_t *state, const void **)
{
    *state = 0;
    return CUDA_SUCCESS;
}

std::uint32_t check_flags()
{
    return 0;
}

const void *checks_table()
{
    static Places<checks, 4> places = Places<checks, 4>().with(2, check_context).with(3, check_flags);
    return places.slots;
}

struct Known {
    unsigned char id[16];
    const void *(*table)();
};

const Known known[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}, interface_table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
     thread_storage_table},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2},
     context_questions_table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, tools_table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}, storage_table},
    {{0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72, 0x86},
     context_creation_table},
    {{0x19, 0x5b, 0xcb, 0xf4, 0xd6, 0x7d, 0x02, 0x4a, 0xac, 0xc5, 0x1d, 0x29, 0xce, 0xa6, 0x31, 0xae}, heap_table},
    {{0xb1, 0x05, 0x41, 0xe1, 0xf7, 0xc7, 0xc7, 0x4a, 0x9f, 0x64, 0xf2, 0x23, 0xbe, 0x99, 0xf1, 0xe2},
     device_extension_table},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
     attestation_table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}, checks_table},
};

} // namespace

const void *runtime_table(const CUuuid &id)
{
    for (const Known &one : known) {
        if (std::memcmp(one.id, id.bytes, sizeof one.id) == 0)
            return one.table();
    }
    return nullptr;
}

} // namespace vgpu

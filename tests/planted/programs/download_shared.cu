// A download is repeated from memory that another process may write, and then does. Neither runs a kernel in between.
// variants: exported, imported
#include "planted.h"

#include <cuda.h>
#include <sys/socket.h>
#include <sys/wait.h>

constexpr size_t bytes = 2 << 20;
constexpr int count = bytes / sizeof(int);
constexpr CUmemAllocationHandleType descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static int ends[2];

static void done(CUresult result)
{
    if (result != CUDA_SUCCESS)
        expect("result", result, CUDA_SUCCESS);
}

static CUmemAllocationProp properties()
{
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = descriptor;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle handle)
{
    CUdeviceptr address = 0;
    CUmemAccessDesc access = {};
    access.location = properties().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    done(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    done(cuMemMap(address, bytes, 0, handle, 0));
    done(cuMemSetAccess(address, bytes, &access, 1)); // sync: required (undecidable)
    return address;
}

/* A message of one byte, with a descriptor or without. */
struct Message {
    char byte = 0;
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = {};

    Message()
    {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof control;
    }
};

static void send(int end, int file)
{
    Message message;
    cmsghdr *control = CMSG_FIRSTHDR(&message.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(control), &file, sizeof file);
    expect("sent", sendmsg(end, &message.header, 0), 1);
}

static int receive(int end)
{
    Message message;
    int file = -1;
    expect("received", recvmsg(end, &message.header, 0), 1);
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof file);
    return file;
}

static CUdeviceptr exported_to(int end)
{
    CUmemGenericAllocationHandle handle = 0;
    int file = -1;
    const CUmemAllocationProp wanted = properties();
    check(cudaFree(nullptr)); // the context
    done(cuMemCreate(&handle, bytes, &wanted, 0));
    done(cuMemExportToShareableHandle(&file, handle, descriptor, 0));
    send(end, file);
    return mapped(handle);
}

static CUdeviceptr imported_from(int end)
{
    CUmemGenericAllocationHandle handle = 0;
    check(cudaFree(nullptr)); // the context
    done(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void *>(static_cast<intptr_t>(receive(end))),
                                        descriptor));
    return mapped(handle);
}

/* The other process fills the memory whenever it is asked to. */
static void fill_on_demand(int end)
{
    char letter = 0;
    const CUdeviceptr memory = variant("exported") ? imported_from(end) : exported_to(end);
    while (read(end, &letter, 1) == 1) {
        done(cuMemsetD32(memory, 7, count));
        done(cuCtxSynchronize()); // sync: required (undecidable)
        expect("told", write(end, "", 1), 1);
    }
    std::fflush(stdout);
    _exit(0);
}

static void have_it_filled(int end)
{
    char letter = 0;
    expect("asked", write(end, "", 1), 1);
    expect("answered", read(end, &letter, 1), 1);
}

void program()
{
    expect("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const pid_t child = fork();
    close(ends[child != 0]);
    if (child == 0)
        fill_on_demand(ends[1]);
    void *memory = reinterpret_cast<void *>(variant("exported") ? exported_to(ends[0]) : imported_from(ends[0]));
    int *host = pageable_integers(count);
    have_it_filled(ends[0]);
    DOWNLOAD(first, host, memory, bytes); // sync: required (undecidable); transfer: needed (first)
    expect("first", sum(host, count), 7LL * count);
    have_it_filled(ends[0]);
    DOWNLOAD(second, host, memory, bytes); // sync: required (undecidable); transfer: needed
    expect("second", sum(host, count), 7LL * count);
    close(ends[0]);
    waitpid(child, nullptr, 0);
}

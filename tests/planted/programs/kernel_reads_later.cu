// The kernel reads the result for the program when no system call names it: for a request to a ring that waits for
// another one, for a message that is sent without a copy, or at an address within a structure.
// variants: chained, unsent, within, never
#include "planted.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <vector>

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static int told[2], answer[2];
static int sender = -1, receiver = -1;
static size_t sent_before = 0;

/* Reads a byte of a pipe, and only then writes the result to another one. False if rings are forbidden here. */
static bool submit_chain()
{
    static char letter;
    io_uring_params parameters = {};
    const int ring = int(syscall(SYS_io_uring_setup, 2, &parameters));
    if (ring < 0)
        return false;
    auto mapped = [ring](off_t what) {
        return static_cast<char *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, what));
    };
    char *queue = mapped(IORING_OFF_SQ_RING);
    io_uring_sqe *requests = reinterpret_cast<io_uring_sqe *>(mapped(IORING_OFF_SQES));
    requests[0] = {};
    requests[0].opcode = IORING_OP_READ;
    requests[0].flags = IOSQE_IO_LINK;
    requests[0].fd = told[0];
    requests[0].addr = reinterpret_cast<uint64_t>(&letter);
    requests[0].len = 1;
    requests[1] = {};
    requests[1].opcode = IORING_OP_WRITE;
    requests[1].fd = answer[1];
    requests[1].addr = reinterpret_cast<uint64_t>(host);
    requests[1].len = bytes;
    unsigned *places = reinterpret_cast<unsigned *>(queue + parameters.sq_off.array);
    places[0] = 0;
    places[1] = 1;
    __atomic_store_n(reinterpret_cast<unsigned *>(queue + parameters.sq_off.tail), 2, __ATOMIC_RELEASE);
    expect("submitted", syscall(SYS_io_uring_enter, ring, 2, 0, 0, nullptr, 0), 2);
    return true;
}

/* The other side does not read yet: what follows stays where it is. False if that is refused here. */
static bool send_without_copy()
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0), little = 4096, much = 4 << 20, yes = 1;
    sockaddr_in name = {};
    sockaddr *address = reinterpret_cast<sockaddr *>(&name);
    socklen_t length = sizeof name;
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    expect("bound", bind(listener, address, sizeof name), 0);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    listen(listener, 1);
    getsockname(listener, address, &length);
    sender = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(sender, SOL_SOCKET, SO_SNDBUF, &much, sizeof much);
    const bool allowed = setsockopt(sender, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof yes) == 0;
    expect("connected", connect(sender, address, sizeof name), 0);
    receiver = accept(listener, nullptr, nullptr);
    const std::vector<char> filler(1 << 20);
    const ssize_t sent = send(sender, filler.data(), filler.size(), MSG_DONTWAIT);
    sent_before = sent > 0 ? size_t(sent) : 0;
    return allowed && send(sender, host, bytes, MSG_ZEROCOPY) == ssize_t(bytes);
}

static void receive(int file, void *to, size_t size)
{
    for (size_t got = 0; got < size;) {
        const ssize_t more = read(file, static_cast<char *>(to) + got, size - got);
        if (more <= 0)
            return;
        got += size_t(more);
    }
}

/* Copies the result to where another thread could wait for pages. */
static void copy_pages(int *to)
{
    const int file = int(syscall(SYS_userfaultfd, O_CLOEXEC));
    if (file < 0) { /* it is forbidden here */
        std::memcpy(to, host, bytes);
        return;
    }
    uffdio_api interface = {UFFD_API, 0, 0};
    expect("interface", ioctl(file, UFFDIO_API, &interface), 0);
    uffdio_register missing = {{reinterpret_cast<uint64_t>(to), bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
    expect("registered", ioctl(file, UFFDIO_REGISTER, &missing), 0);
    uffdio_copy copy = {reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(host), bytes, 0, 0};
    expect("copied", ioctl(file, UFFDIO_COPY, &copy), 0);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    int *copy = static_cast<int *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    expect("pipes", pipe(told) + pipe(answer), 0);
    const bool chained = variant("chained") && submit_chain();
    const bool unsent = variant("unsent") && send_without_copy();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: chained, unsent, within required, never unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (chained) {
        expect("told", write(told[1], "", 1), 1);
        receive(answer[0], copy, bytes);
    } else if (unsent) {
        std::vector<char> before(sent_before);
        receive(receiver, before.data(), before.size());
        receive(receiver, copy, bytes);
    } else if (variant("within")) {
        copy_pages(copy);
    } else if (!variant("never")) {
        std::memcpy(copy, host, bytes);
    }
    expect("sum", sum(copy, count), variant("never") ? 0 : 7LL * count);
    settle();
}

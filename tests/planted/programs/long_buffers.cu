// The kernel fills or reads more than a page at once, where a result lies, by calls that are rarely made.
// variants: events, completed, messages, semaphores, filter, none
#include "planted.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

constexpr int bytes = 128 << 10, count = bytes / sizeof(int), most = 600;

static const timespec at_once = {};

static void events(char *buffer)
{
    const int all = epoll_create1(0);
    epoll_event wanted = {};
    wanted.events = EPOLLIN;
    for (int number = 0; number < most; number++)
        epoll_ctl(all, EPOLL_CTL_ADD, eventfd(1, 0), &wanted);
    expect("events", syscall(SYS_epoll_pwait2, all, buffer, most, &at_once, nullptr, 8), most);
    settle();
    expect("last", reinterpret_cast<epoll_event *>(buffer)[most - 1].events, EPOLLIN);
}

static void completed(char *buffer)
{
    aio_context_t context = 0;
    char byte = 0;
    expect("context", syscall(SYS_io_setup, most, &context), 0);
    const int zeros = open("/dev/zero", O_RDONLY);
    for (int number = 0; number < most; number++) {
        iocb request = {}, *requests = &request;
        request.aio_lio_opcode = IOCB_CMD_PREAD;
        request.aio_fildes = static_cast<unsigned>(zeros);
        request.aio_buf = reinterpret_cast<uint64_t>(&byte);
        request.aio_nbytes = 1;
        syscall(SYS_io_submit, context, 1L, &requests);
    }
    expect("completed", syscall(SYS_io_pgetevents, context, 1L, long(most), buffer, &at_once, nullptr), most);
    settle();
    expect("last", reinterpret_cast<io_event *>(buffer)[most - 1].res, 1);
}

/* More messages than one call can send. Each is a byte. */
static void messages(char *buffer)
{
    constexpr int all = 1100, apart = 64;
    int ends[2] = {};
    expect("ends", socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    std::thread sends([&] {
        for (int number = 0; number < all; number++)
            if (send(ends[0], "\t", 1, 0) != 1)
                std::abort();
    });
    std::vector<iovec> parts(all);
    std::vector<mmsghdr> headers(all);
    for (int number = 0; number < all; number++) {
        parts[number] = {buffer + number * apart, 1};
        headers[number].msg_hdr.msg_iov = &parts[number];
        headers[number].msg_hdr.msg_iovlen = 1;
    }
    expect("heard", recvmmsg(ends[1], headers.data(), all, 0, nullptr), all);
    sends.join();
    settle();
    expect("last", buffer[(all - 1) * apart], '\t');
}

static void semaphores(char *buffer)
{
    constexpr int all = 8000;
    const int set = semget(IPC_PRIVATE, all, 0600);
    expect("set", semctl(set, 0, SETALL, buffer), 0);
    expect("last", semctl(set, all - 2, GETVAL), 7);
    semctl(set, 0, IPC_RMID);
}

static void filter(char *buffer)
{
    constexpr int all = 1000;
    std::vector<sock_filter> accepts(all, sock_filter{BPF_RET | BPF_K, 0, 0, 9});
    const sock_fprog whole = {all, accepts.data()};
    socklen_t instructions = all;
    const int end = socket(AF_UNIX, SOCK_DGRAM, 0);
    expect("attached", setsockopt(end, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole), 0);
    expect("asked", getsockopt(end, SOL_SOCKET, SO_GET_FILTER, buffer, &instructions), 0);
    settle();
    expect("last", reinterpret_cast<sock_filter *>(buffer)[all - 1].k, 9);
}

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count);
    char *buffer = reinterpret_cast<char *>(host);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: events, completed, messages, semaphores, filter required, none unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("events"))
        events(buffer);
    else if (variant("completed"))
        completed(buffer);
    else if (variant("messages"))
        messages(buffer);
    else if (variant("semaphores"))
        semaphores(buffer);
    else if (variant("filter"))
        filter(buffer);
}

// The kernel fills or reads more than a page at once, where a result lies, by calls that are rarely made.
// variants: events, completed, messages, semaphores, filter, none
#include "planted.h"

#include <functional>
#include <string>
#include <vector>

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

/* The call, prepared: hundreds of objects take longer to make than the download that they must not outlast. */
using Call = std::function<void(char *buffer)>;

static Call events()
{
    const int all = epoll_create1(0);
    epoll_event wanted = {};
    wanted.events = EPOLLIN;
    for (int number = 0; number < most; number++)
        epoll_ctl(all, EPOLL_CTL_ADD, eventfd(1, 0), &wanted);
    return [all](char *buffer) {
        expect("events", syscall(SYS_epoll_pwait2, all, buffer, most, &at_once, nullptr, 8), most);
        settle();
        expect("last", reinterpret_cast<epoll_event *>(buffer)[most - 1].events, EPOLLIN);
    };
}

static Call completed()
{
    static char byte;
    aio_context_t context = 0;
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
    return [context](char *buffer) {
        expect("completed", syscall(SYS_io_pgetevents, context, 1L, long(most), buffer, &at_once, nullptr), most);
        settle();
        expect("last", reinterpret_cast<io_event *>(buffer)[most - 1].res, 1);
    };
}

/* More messages than one call can send. Each is a byte of a stream. */
static Call messages()
{
    constexpr int all = 1100, apart = 64;
    int ends[2] = {};
    expect("ends", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    expect("sent", write(ends[0], std::string(all, '\t').data(), all), all);
    return [from = ends[1]](char *buffer) {
        std::vector<iovec> parts(all);
        std::vector<mmsghdr> headers(all);
        for (int number = 0; number < all; number++) {
            parts[number] = {buffer + number * apart, 1};
            headers[number].msg_hdr.msg_iov = &parts[number];
            headers[number].msg_hdr.msg_iovlen = 1;
        }
        expect("heard", recvmmsg(from, headers.data(), all, 0, nullptr), all);
        settle();
        expect("last", buffer[(all - 1) * apart], '\t');
    };
}

static Call semaphores()
{
    constexpr int all = 8000;
    const int set = semget(IPC_PRIVATE, all, 0600);
    return [set](char *buffer) {
        expect("set", semctl(set, 0, SETALL, buffer), 0);
        expect("last", semctl(set, all - 2, GETVAL), 7);
        semctl(set, 0, IPC_RMID);
    };
}

static Call filter()
{
    constexpr int all = 1000;
    std::vector<sock_filter> accepts(all, sock_filter{BPF_RET | BPF_K, 0, 0, 9});
    const sock_fprog whole = {all, accepts.data()};
    const int end = socket(AF_UNIX, SOCK_DGRAM, 0);
    expect("attached", setsockopt(end, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole), 0);
    return [end](char *buffer) {
        socklen_t instructions = all;
        expect("asked", getsockopt(end, SOL_SOCKET, SO_GET_FILTER, buffer, &instructions), 0);
        settle();
        expect("last", reinterpret_cast<sock_filter *>(buffer)[all - 1].k, 9);
    };
}

static Call prepared()
{
    return variant("events")       ? events()
           : variant("completed")  ? completed()
           : variant("messages")   ? messages()
           : variant("semaphores") ? semaphores()
           : variant("filter")     ? filter()
                                   : [](char *) {};
}

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count);
    const Call call = prepared();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: events, completed, messages, semaphores, filter required, none unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    call(reinterpret_cast<char *>(host));
}

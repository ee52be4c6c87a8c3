// Others read the result for the program: the kernel by a ring of requests, which it is told of or looks at by itself,
// or by the older asynchronous interface; a pipe that was given the pages earlier; another program, as its argument; a
// child, through the file that holds this process's memory.
// variants: ring, polled, idle, asynchronous, pipe, argument, executed, file, never
#include "planted.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <spawn.h>
#include <string>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static int ends[2];

struct Ring {
    int file = -1;
    io_uring_params parameters = {};
    char *queue = nullptr;
    io_uring_sqe *requests = nullptr;
};

static Ring ring;

template <typename Type> static Type *in_ring(unsigned offset)
{
    return reinterpret_cast<Type *>(ring.queue + offset);
}

static void open_ring()
{
    if (!variant("ring")) { /* the kernel's thread takes what it finds, unless it sleeps */
        ring.parameters.flags = IORING_SETUP_SQPOLL;
        ring.parameters.sq_thread_idle = 10000;
    }
    ring.file = int(syscall(SYS_io_uring_setup, 4, &ring.parameters));
    if (ring.file < 0)
        return;
    void *queue = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.file, IORING_OFF_SQ_RING);
    void *requests = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.file, IORING_OFF_SQES);
    ring.queue = static_cast<char *>(queue);
    ring.requests = static_cast<io_uring_sqe *>(requests);
}

static void write_by_ring()
{
    const io_sqring_offsets &places = ring.parameters.sq_off;
    unsigned *tail = in_ring<unsigned>(places.tail);
    ring.requests[0] = {};
    ring.requests[0].opcode = IORING_OP_WRITE;
    ring.requests[0].fd = ends[1];
    ring.requests[0].addr = reinterpret_cast<uint64_t>(host);
    ring.requests[0].len = bytes;
    in_ring<unsigned>(places.array)[0] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
    if (variant("polled") &&
        (__atomic_load_n(in_ring<unsigned>(places.flags), __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP))
        syscall(SYS_io_uring_enter, ring.file, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    if (!variant("polled"))
        syscall(SYS_io_uring_enter, ring.file, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
}

static void write_asynchronously()
{
    aio_context_t context = 0;
    iocb request = {};
    iocb *requests[1] = {&request};
    io_event event;
    syscall(SYS_io_setup, 1, &context);
    request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = unsigned(ends[1]);
    request.aio_buf = reinterpret_cast<uint64_t>(host);
    request.aio_nbytes = bytes;
    syscall(SYS_io_submit, context, 1, requests);
    syscall(SYS_io_getevents, context, 1, 1, &event, nullptr);
}

static long long sum_of_pipe()
{
    std::vector<int> found(count);
    for (size_t got = 0; got < bytes;) {
        const ssize_t more = read(ends[0], reinterpret_cast<char *>(found.data()) + got, bytes - got);
        if (more <= 0)
            return -1;
        got += size_t(more);
    }
    return sum(found.data(), count);
}

/* Forked before the result is there; told by a byte of the pipe, it writes the sum there. */
static void read_through_file(const int *told, int answer)
{
    std::vector<int> found(count);
    const std::string path = "/proc/" + std::to_string(getppid()) + "/mem";
    char letter = 0;
    if (read(told[0], &letter, 1) != 1)
        _exit(1);
    const int memory = open(path.c_str(), O_RDONLY);
    const ssize_t got = pread(memory, found.data(), bytes, off_t(reinterpret_cast<uint64_t>(host)));
    const long long result = got == ssize_t(bytes) ? sum(found.data(), count) : -1;
    _exit(write(answer, &result, sizeof result) == sizeof result ? 0 : 1);
}

/* The result is the text of its argument: each integer is four letters. */
static int status_of_program()
{
    char test[] = "test $(printf %s \"$1\" | wc -c) = 4096", shell[] = "/bin/sh", option[] = "-c";
    char *words[] = {shell, option, test, option, reinterpret_cast<char *>(host), nullptr};
    pid_t child = 0;
    int status = -1;
    if (variant("executed") && (child = fork()) == 0) {
        execv(shell, words);
        _exit(127);
    }
    if (variant("argument"))
        posix_spawn(&child, shell, nullptr, nullptr, words, environ);
    waitpid(child, &status, 0);
    return status;
}

void program()
{
    const bool text = variant("argument") || variant("executed");
    int *device = device_integers(count + 1);
    host = pinned_integers(count + 1);
    check(cudaMemset(device, 0, bytes + sizeof(int)));
    expect("pipe", pipe(ends), 0);
    if (variant("ring") || variant("polled") || variant("idle"))
        open_ring();
    int told[2] = {-1, -1};
    pid_t reader = 0;
    if (variant("file")) {
        expect("told", pipe(told), 0);
        if ((reader = fork()) == 0)
            read_through_file(told, ends[1]);
    }
    if (variant("pipe")) {
        const iovec pages = {host, bytes};
        expect("given", vmsplice(ends[1], &pages, 1, 0), bytes);
    }
    fill(device, count, text ? 0x61616161 : 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: ring, polled, asynchronous, pipe, argument, executed, file required, idle required (undecidable), never unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("file")) {
        long long found = 0;
        expect("asked", write(told[1], "", 1), 1);
        expect("answered", read(ends[0], &found, sizeof found), sizeof found);
        expect("sum", found, 7LL * count);
        waitpid(reader, nullptr, 0);
        return;
    }
    if (variant("idle"))
        return;
    if (text)
        expect("status", status_of_program(), 0);
    else if (variant("asynchronous"))
        write_asynchronously();
    else if (ring.file >= 0)
        write_by_ring();
    if (!text && !variant("never"))
        expect("sum", sum_of_pipe(), 7LL * count);
}

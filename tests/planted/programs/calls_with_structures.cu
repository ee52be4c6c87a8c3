// The kernel reads a result, or what stands in one, by system calls that take it in structures of theirs.
// variants: messages, vectors, polled, selected, slept, named, queued, attribute, none
#include "planted.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int);

static long long use(int *result)
{
    int ends[2] = {}, got[8] = {};
    iovec part = {result, 8 * sizeof(int)};
    expect("ends", socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    if (variant("messages")) {
        mmsghdr message = {};
        message.msg_hdr.msg_iov = &part;
        message.msg_hdr.msg_iovlen = 1;
        expect("sent", sendmmsg(ends[0], &message, 1, 0), 1);
        expect("heard", read(ends[1], got, sizeof got), sizeof got);
        return sum(got, 8);
    }
    if (variant("vectors")) {
        const int file = memfd_create("planted", 0);
        expect("written", pwritev2(file, &part, 1, 0, 0), sizeof got);
        expect("read", pread(file, got, sizeof got, 0), sizeof got);
        return sum(got, 8);
    }
    if (variant("polled")) /* the result is a descriptor that is not open */
        return poll(reinterpret_cast<pollfd *>(result), 1, 0);
    if (variant("selected")) { /* the result is a set with the descriptor 0 */
        timeval at_once = {};
        dup2(open("/dev/null", O_RDONLY), 0);
        return select(1, reinterpret_cast<fd_set *>(result), nullptr, nullptr, &at_once);
    }
    if (variant("slept")) { /* the word is another one than expected */
        const timespec briefly = {0, 10'000'000};
        return syscall(SYS_futex, result, FUTEX_WAIT, 1, &briefly, nullptr, 0) == -1 ? errno : 0;
    }
    if (variant("named")) {
        char name[16] = {};
        prctl(PR_SET_NAME, result);
        prctl(PR_GET_NAME, name);
        return name[0];
    }
    if (variant("queued")) {
        mq_attr attributes = {};
        attributes.mq_maxmsg = 1;
        attributes.mq_msgsize = sizeof got;
        const std::string name = "/planted-" + std::to_string(getpid());
        const mqd_t queue = mq_open(name.c_str(), O_CREAT | O_RDWR, 0600, &attributes);
        mq_unlink(name.c_str());
        expect("queued", mq_send(queue, reinterpret_cast<char *>(result), sizeof got, 0), 0);
        expect("taken", mq_receive(queue, reinterpret_cast<char *>(got), sizeof got, nullptr), sizeof got);
        return sum(got, 8);
    }
    if (variant("attribute")) {
        const char *path = "/tmp/planted-attribute";
        const int file = open(path, O_CREAT | O_RDWR, 0600);
        const int error = fsetxattr(file, "user.planted", result, sizeof got, 0) == 0 ? 0 : errno;
        if (error == 0)
            fgetxattr(file, "user.planted", got, sizeof got);
        unlink(path);
        return error == 0 ? sum(got, 8) : error == EOPNOTSUPP ? 8ll * 0x41 : error;
    }
    return 0;
}

void program()
{
    int *device = device_integers(count), *result = pinned_integers(count);
    result[0] = variant("slept");
    fill(device, count, 0x41);
    DOWNLOAD_ASYNC(result, device, bytes);
    // sync: messages, vectors, polled, selected, slept, named, queued, attribute required, none unnecessary
    WAIT(wait, cudaDeviceSynchronize());
    const long long expected = variant("none")                            ? 0
                               : variant("polled") || variant("selected") ? 1
                               : variant("slept")                         ? EAGAIN
                               : variant("named")                         ? 0x41
                                                                          : 8ll * 0x41;
    expect("used", use(result), expected);
    settle();
}

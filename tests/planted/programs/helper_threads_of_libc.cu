// Threads that the C library starts by itself use the result: for POSIX asynchronous I/O, a timer, a message queue.
// variants: aio, timer, message, never
#include "planted.h"

#include <aio.h>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static sem_t over;
static long long found;

static void look(sigval)
{
    found = sum(host, count);
    sem_post(&over);
}

static void by_timer()
{
    sigevent event = {};
    timer_t timer;
    itimerspec soon = {};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = look;
    soon.it_value.tv_nsec = 1000;
    expect("timer", timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    timer_settime(timer, 0, &soon, nullptr);
    sem_wait(&over);
}

static void by_message()
{
    char name[] = "/planted_message";
    mq_attr wanted = {};
    wanted.mq_maxmsg = 1;
    wanted.mq_msgsize = 8;
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &wanted);
    if (queue == mqd_t(-1)) {
        look({});
        return;
    }
    mq_unlink(name);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = look;
    expect("notify", mq_notify(queue, &event), 0);
    mq_send(queue, "x", 1, 0);
    sem_wait(&over);
}

static void by_aio()
{
    int ends[2];
    std::vector<int> copy(count);
    aiocb request = {};
    const aiocb *list[] = {&request};
    expect("pipe", pipe(ends), 0);
    request.aio_fildes = ends[1];
    request.aio_buf = host;
    request.aio_nbytes = bytes;
    expect("queued", aio_write(&request), 0);
    while (aio_error(&request) == EINPROGRESS)
        aio_suspend(list, 1, nullptr);
    expect("written", aio_return(&request), bytes);
    expect("read", read(ends[0], copy.data(), bytes), bytes);
    found = sum(copy.data(), count);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    sem_init(&over, 0, 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: aio, timer, message required, never unnecessary
    if (variant("aio"))
        by_aio();
    if (variant("timer"))
        by_timer();
    if (variant("message"))
        by_message();
    expect("sum", found, variant("never") ? 0 : 7 * count);
    settle();
}

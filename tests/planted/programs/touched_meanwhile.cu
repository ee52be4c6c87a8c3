// Another thread uses the page of a small result without pause: by instructions that are stepped over, by system calls,
// or by copies of the driver. The first thread reads the result right after its wait. Of every fourth it reads nothing.
// variants: adds, exchanges, floats, vectors, reads, opens, polls, copies
// needs: keys
#include "planted.h"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <immintrin.h>
#include <poll.h>

constexpr int beside = 512, unread = 4;

static std::atomic<bool> over{false};

static void adds(int *word)
{
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
}

static void exchanges(int *word)
{
    __atomic_exchange_n(word, 1, __ATOMIC_SEQ_CST);
}

/* Ten bytes of the x87. */
static void floats(int *word)
{
    __asm__ volatile("fldt %0\n\tfstpt %0" : "+m"(*reinterpret_cast<long double *>(word)));
}

/* Arithmetic with a vector, and a store past the caches. */
static void vectors(int *word)
{
    __asm__ volatile("paddd %0, %%xmm5\n\tmovntps %%xmm5, %0" : "+m"(*reinterpret_cast<__m128i *>(word)) : : "xmm5");
}

static void reads(int *word)
{
    static const int zeros = open("/dev/zero", O_RDONLY);
    if (read(zeros, word, sizeof *word) != sizeof *word)
        std::abort();
}

static void opens(int *word)
{
    std::strcpy(reinterpret_cast<char *>(word), "/dev/null");
    close(open(reinterpret_cast<char *>(word), O_RDONLY));
}

static void polls(int *word)
{
    pollfd *file = reinterpret_cast<pollfd *>(word);
    *file = {-1, POLLIN, 0};
    poll(file, 1, 0);
}

static void copies(int *word)
{
    usleep(20); // the record of all these calls would be long
    // sync: copies unnecessary or required (undecidable), adds, exchanges, floats, vectors, reads, opens, polls absent
    check(cudaMemcpy(word + 1, word, sizeof *word, cudaMemcpyHostToHost));
}

static void without_pause(void (*use)(int *), int *word)
{
    while (!over)
        use(word);
}

static void (*use())(int *)
{
    return variant("adds")        ? adds
           : variant("exchanges") ? exchanges
           : variant("floats")    ? floats
           : variant("vectors")   ? vectors
           : variant("reads")     ? reads
           : variant("opens")     ? opens
           : variant("polls")     ? polls
                                  : copies;
}

void program()
{
    const int downloads = planted::proving() ? 2 * unread : 25 * unread;
    int *device = device_integers(1);
    int *page = static_cast<int *>(std::aligned_alloc(4096, 4096));
    std::memset(page, 0, 4096);
    check(cudaHostRegister(page, 4096, 0));
    cudaStream_t stream = independent_stream();
    std::thread other(without_pause, use(), page + beside);
    long long total = 0, expected = 0;
    for (int number = 1; number <= downloads; number++) {
        fill(device, 1, number, stream);
        if (number % unread == 0) {
            DOWNLOAD_ASYNC(page + 1, device, sizeof(int), stream);
            WAIT(vain, cudaStreamSynchronize(stream)); // sync: unnecessary or required (undecidable)
            continue;
        }
        DOWNLOAD_ASYNC(page, device, sizeof(int), stream);
        WAIT(each, cudaStreamSynchronize(stream)); // sync: required
        total += *static_cast<volatile int *>(page);
        expected += number;
    }
    over = true;
    other.join();
    expect("total", total, expected);
}

// Other threads use the page of a small result without pause, and the ones beside it: by instructions of several
// places, on two pages at once, in handlers of signals, or by calls about which not all is known.
// variants: straddles, copies, gathers, doubles, writes, asks, wakes, signalled, many, cleans
// like: touched_meanwhile
// needs: keys
#include "planted.h"

#include <atomic>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

constexpr int page_of_integers = 1024, unread = 4, threads = 8;

static std::atomic<bool> over{false};
static int *result; // the first of its page

static void straddles(int *)
{
    char *last = reinterpret_cast<char *>(result + page_of_integers) - 4;
    __asm__ volatile("incq %0" : "+m"(*reinterpret_cast<long *>(last)));
}

static void copies(int *word)
{
    void *from = word, *to = word - page_of_integers;
    long count = 64;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    from = word - page_of_integers;
    to = word;
    __asm__ volatile("movsq\n\tcmpsb" : "+S"(from), "+D"(to) : : "memory");
}

__attribute__((target("avx2"))) static void gathers(int *word)
{
    volatile __m128i found = _mm_i32gather_epi32(word, _mm_set_epi32(0, 8, 16, 24), 4);
    (void)found;
}

static void doubles(int *word)
{
    __asm__ volatile("lock cmpxchg16b %0"
                     : "+m"(*reinterpret_cast<__int128 *>(word))
                     :
                     : "rax", "rbx", "rcx", "rdx", "cc");
}

static void writes(int *word)
{
    static const int nowhere = open("/dev/null", O_WRONLY);
    if (pwrite(nowhere, word, 64, 0) != 64)
        std::abort();
}

static void asks(int *word)
{
    static int ends[2], once = pipe(ends);
    if (once != 0 || ioctl(ends[0], FIONREAD, word) != 0)
        std::abort();
}

static void wakes(int *word)
{
    const timespec soon = {0, 1};
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *word, &soon, nullptr, 0);
}

static void adds(int *word)
{
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
}

/* Both of the thread that is interrupted, and of the handler. */
static void signalled(int *word)
{
    for (int turn = 0; turn < 100; turn++)
        adds(word);
    raise(SIGUSR1);
}

static void cleans(int *word)
{
    _mm_stream_si32(word, 1);
    _mm_clflush(word + 16);
}

static void (*use())(int *)
{
    return variant("straddles")   ? straddles
           : variant("copies")    ? copies
           : variant("gathers")   ? gathers
           : variant("doubles")   ? doubles
           : variant("writes")    ? writes
           : variant("asks")      ? asks
           : variant("wakes")     ? wakes
           : variant("signalled") ? signalled
           : variant("cleans")    ? cleans
                                  : adds;
}

static void without_pause(void (*use)(int *), int *word)
{
    while (!over)
        use(word);
}

void program()
{
    const int downloads = planted::proving() ? 2 * unread : 25 * unread;
    int *device = device_integers(1);
    int *pages = static_cast<int *>(std::aligned_alloc(4096, 3 * 4096));
    std::memset(pages, 0, 3 * 4096);
    check(cudaHostRegister(pages, 3 * 4096, 0));
    result = pages + page_of_integers;
    signal(SIGUSR1, [](int) { adds(result + 256); });
    cudaStream_t stream = independent_stream();
    std::vector<std::thread> others;
    for (int number = 0; number < (variant("many") ? threads : 1); number++)
        others.emplace_back(without_pause, use(), result + 512 + 32 * number);
    if (variant("signalled"))
        others.emplace_back([other = others[0].native_handle()] {
            while (!over) {
                pthread_kill(other, SIGUSR1);
                usleep(100);
            }
        });
    long long total = 0, expected = 0;
    for (int number = 1; number <= downloads; number++) {
        int *to = variant("straddles") && number % 2 == 0 ? result + page_of_integers + 64 : result;
        fill(device, 1, number, stream);
        if (number % unread == 0) {
            DOWNLOAD_ASYNC(result + 1, device, sizeof(int), stream);
            WAIT(vain, cudaStreamSynchronize(stream)); // sync: unnecessary or required (undecidable)
            continue;
        }
        DOWNLOAD_ASYNC(to, device, sizeof(int), stream);
        WAIT(each, cudaStreamSynchronize(stream)); // sync: required
        total += *static_cast<volatile int *>(to);
        expected += number;
    }
    over = true;
    for (std::thread &other : others)
        other.join();
    expect("total", total, expected);
}

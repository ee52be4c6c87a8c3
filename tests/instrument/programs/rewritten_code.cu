// A program that writes other code to places where it has run code before: in pages that are writable, in pages that it
// protects in between, through a second mapping, over a function of its own while another thread calls it, and in files
// that it maps where another one was. Prints what the code computes.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

using function = int (*)(int);
constexpr size_t page = 4096;

static const unsigned char constant[] = {0xb8, 17, 0, 0, 0, 0xc3};
static const unsigned char plus[] = {0x8d, 0x47, 5, 0xc3};
// the sum of 1 to n: a loop
static const unsigned char total[] = {0x31, 0xc0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0xc3};
// test edi, edi; js; mov eax, 1; ret; mov eax, 2; ret
static const unsigned char choice[] = {0x85, 0xff, 0x78, 6, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3};

static const struct {
    const unsigned char *bytes;
    size_t size;
} bodies[] = {{constant, sizeof constant}, {plus, sizeof plus}, {total, sizeof total}, {choice, sizeof choice}};

static char *mapped(void *at, int protection, int flags, int file)
{
    void *result = mmap(at, page, protection, flags, file, 0);
    if (result == MAP_FAILED)
        std::abort();
    return static_cast<char *>(result);
}

static void run(const char *how, void *code)
{
    int sum = 0;
    for (int round = 0; round < 3; ++round)
        sum += reinterpret_cast<function>(code)(10) + reinterpret_cast<function>(code)(20);
    std::printf("%s %d\n", how, sum);
}

static void in_place()
{
    char *code = mapped(nullptr, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (int round = 0; round < 5; ++round) {
        std::memcpy(code, bodies[round % 4].bytes, bodies[round % 4].size);
        run("writable", code);
    }
}

static void protected_between()
{
    char *code = mapped(nullptr, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (int round = 0; round < 5; ++round) {
        mprotect(code, page, PROT_READ | PROT_WRITE);
        std::memcpy(code, bodies[round % 4].bytes, bodies[round % 4].size);
        mprotect(code, page, PROT_READ | PROT_EXEC);
        run("protected", code);
    }
}

static void through_second_mapping()
{
    const int file = memfd_create("code", 0);
    if (ftruncate(file, page) != 0)
        std::abort();
    char *written = mapped(nullptr, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    char *code = mapped(nullptr, PROT_READ | PROT_EXEC, MAP_SHARED, file);
    for (int round = 0; round < 5; ++round) {
        std::memcpy(written, bodies[round % 4].bytes, bodies[round % 4].size);
        run("mapped twice", code);
    }
}

__attribute__((noinline, aligned(64))) int own(int value)
{
    __asm__ volatile(".fill 32, 1, 0x90");
    return value * 3;
}

static std::atomic<int> asked, answered;
static std::atomic<int> result;

static void call_when_asked()
{
    for (int round = 1; round <= 4; ++round) {
        while (asked.load() < round)
            ;
        result = reinterpret_cast<function>(own)(10);
        answered = round;
    }
}

static void over_a_function()
{
    char *code = reinterpret_cast<char *>(own), *first = code - reinterpret_cast<size_t>(code) % page;
    std::thread other(call_when_asked);
    for (int round = 1; round <= 4; ++round) {
        if (round == 2)
            mprotect(first, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
        if (round >= 2)
            std::memcpy(code, bodies[round % 4].bytes, bodies[round % 4].size);
        asked = round;
        while (answered.load() < round)
            ;
        std::printf("own %d %d\n", reinterpret_cast<function>(own)(10), result.load());
    }
    other.join();
}

static void from_files()
{
    char *place = nullptr;
    for (int round = 0; round < 4; ++round) {
        char name[] = "/tmp/rewritten_code.XXXXXX";
        const int file = mkstemp(name);
        std::string text(page, '\0');
        std::memcpy(&text[0], bodies[round].bytes, bodies[round].size);
        if (write(file, text.data(), page) != static_cast<ssize_t>(page))
            std::abort();
        const int fixed = round % 2 != 0 ? MAP_FIXED : 0; // otherwise it may be where the last one was
        place = mapped(place, PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, file);
        run("file", place);
        if (round == 1)
            munmap(place, page);
        close(file);
        unlink(name);
    }
}

int main()
{
    int *host = nullptr, *device = nullptr;
    cudaMallocHost((void **)&host, page);
    cudaMalloc((void **)&device, page);
    cudaMemcpy(host, device, page, cudaMemcpyDeviceToHost);
    in_place();
    protected_between();
    through_second_mapping();
    over_a_function();
    from_files();
    cudaMemcpy(host, device, page, cudaMemcpyDeviceToHost);
    return 0;
}

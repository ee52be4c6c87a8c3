/* What the planted programs share, compiled once: the command line, checks, and kernels that take their time. */
#include "planted.h"

#include <chrono>
#include <set>
#include <string>
#include <thread>

namespace planted
{

/* How the program was called. */
static struct {
    std::string variant;
    std::set<std::string> without;
} arguments;

static bool wrong = false;

const char *variant()
{
    return arguments.variant.c_str();
}

bool failed()
{
    return wrong;
}

void check(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    std::printf("CUDA error: %s\n", cudaGetErrorString(error));
    wrong = true;
}

bool keeps(const char *name)
{
    return arguments.without.count(name) == 0;
}

bool complete()
{
    return arguments.without.empty();
}

void expect(const char *what, long long found, long long expected)
{
    bool right = found == expected;
    std::printf("%s: %lld%s\n", what, found, right ? "" : " is wrong");
    wrong = wrong || !right;
}

bool proving()
{
    return std::getenv("PLANTED_PROVING") != nullptr;
}

void settle()
{
    if (!complete())
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/* A shadow that the GPU fills, and that a host function of the stream delivers when the copy is over. */
struct Delivery {
    void *destination;
    void *shadow;
    size_t bytes;
};

static void deliver(void *data)
{
    Delivery *delivery = static_cast<Delivery *>(data);
    std::memcpy(delivery->destination, delivery->shadow, delivery->bytes);
}

cudaError_t download_later(void *destination, const void *source, size_t bytes, cudaStream_t stream)
{
    Delivery *delivery = new Delivery{destination, nullptr, bytes};
    check(cudaMallocHost(&delivery->shadow, bytes));
    check(cudaMemcpyAsync(delivery->shadow, source, bytes, cudaMemcpyDeviceToHost, stream));
    return cudaLaunchHostFunc(stream, deliver, delivery);
}

} // namespace planted

__global__ void slow_fill(int *data, int count, int value)
{
#ifdef __CUDACC__
    for (long long end = clock64() + 40'000'000; clock64() < end;)
        continue;
#endif
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        data[index] = value;
}
PORTABLE_KERNEL(slow_fill);

__global__ void slow_add_one(int *destination, const int *source, int count)
{
#ifdef __CUDACC__
    for (long long end = clock64() + 10'000'000; clock64() < end;)
        continue;
#endif
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        destination[index] = source[index] + 1;
}
PORTABLE_KERNEL(slow_add_one);

void fill(int *data, int count, int value, cudaStream_t stream)
{
    LAUNCH(slow_fill, dim3((count + threads_of_block - 1) / threads_of_block), dim3(threads_of_block), 0, stream, data,
           count, value);
}

void add_slowly(int *destination, const int *source, int count, cudaStream_t stream)
{
    LAUNCH(slow_add_one, dim3((count + threads_of_block - 1) / threads_of_block), dim3(threads_of_block), 0, stream,
           destination, source, count);
}

const void *const fill_kernel = reinterpret_cast<const void *>(slow_fill);

int main(int count, char **words)
{
    if (count < 2) {
        std::fprintf(stderr, "usage: %s VARIANT [--without NAME[,NAME...]]\n", words[0]);
        return 2;
    }
    planted::arguments.variant = words[1];
    if (count == 4 && !std::strcmp(words[2], "--without")) {
        std::string names = words[3];
        for (char *name = std::strtok(&names[0], ","); name; name = std::strtok(nullptr, ","))
            planted::arguments.without.insert(name);
    }
    program();
    std::fflush(stdout);
    return planted::failed() ? 1 : 0;
}

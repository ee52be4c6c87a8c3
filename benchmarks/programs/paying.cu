/* paying KIND TURNS: one kind of problem, TURNS times; for each kind of correction some where it pays, and some where
 * it does not. Prints a sum of what came back. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "portable_kernel.h"
#include "runtime.h"

static constexpr std::size_t large = 16 << 20, middle = 1 << 20, small = 64, page = 4096;

__global__ void step(int *data)
{
    if (threadIdx.x == 0)
        data[0] += 1;
}
PORTABLE_KERNEL(step);

static int *device, *other;
static std::vector<char> sent(large, 1), received(large);

static void launch(int *data)
{
    LAUNCH(step, dim3(1), dim3(1), 0, nullptr, data);
}

static void work(int microseconds)
{
    using clock = std::chrono::steady_clock;
    for (auto end = clock::now() + std::chrono::microseconds(microseconds); clock::now() < end;)
        continue;
}

static void upload(std::size_t bytes)
{
    check(cudaMemcpy(device, sent.data(), bytes, cudaMemcpyHostToDevice));
}

static int download(std::size_t bytes)
{
    check(cudaMemcpy(received.data(), device, bytes, cudaMemcpyDeviceToHost));
    return received[0];
}

static void allocate_and_free(std::size_t bytes, bool busy)
{
    int *block;
    check(cudaMalloc(reinterpret_cast<void **>(&block), bytes));
    if (busy)
        launch(device);
    check(cudaFree(block));
}

/* One turn of a kind; what it returns is printed. */
static int turn(const std::string &kind, int number)
{
    if (kind == "wait-overlaps") { /* the CPU could work meanwhile */
        launch(device);
        check(cudaDeviceSynchronize());
        work(300);
    } else if (kind == "wait-is-over") {
        launch(device);
        work(400);
        check(cudaDeviceSynchronize());
    } else if (kind == "wait-moves") { /* the download waits as long */
        launch(device);
        check(cudaDeviceSynchronize());
        return download(small);
    } else if (kind == "free-overlaps") {
        allocate_and_free(middle, true);
        work(300);
    } else if (kind == "free-of-idle") {
        allocate_and_free(page, false);
        work(20);
    } else if (kind == "upload-of-same") {
        upload(large);
        launch(other);
    } else if (kind == "upload-repeats-rarely") { /* most are hashed for nothing */
        std::memset(sent.data(), number / 10 * 10 == number ? number - 1 : number, 8);
        upload(large);
        launch(other);
    } else if (kind == "upload-overlaps") {
        launch(other);
        sent[0] = static_cast<char>(number);
        upload(middle);
        work(300);
    } else if (kind == "upload-of-little") {
        sent[0] = static_cast<char>(number);
        upload(small);
        work(5);
    } else if (kind == "download-used-later") {
        launch(device);
        check(cudaMemcpy(received.data(), device, large / 64, cudaMemcpyDeviceToHost));
        work(600);
        return received[0];
    } else if (kind == "download-used-soon") {
        launch(device);
        check(cudaMemcpy(received.data(), device, large / 64, cudaMemcpyDeviceToHost));
        work(2);
        int sum = 0;
        for (std::size_t at = 0; at < large / 64; at += page)
            sum += received[at];
        return sum;
    } else {
        std::fprintf(stderr, "there is no kind %s\n", kind.c_str());
        std::exit(2);
    }
    return 0;
}

int main(int, char **arguments)
{
    check(cudaMalloc(reinterpret_cast<void **>(&device), large));
    check(cudaMalloc(reinterpret_cast<void **>(&other), large));
    check(cudaMemset(device, 0, large));
    long long sum = 0;
    for (int number = 0; number < std::atoi(arguments[2]); number++)
        sum += turn(arguments[1], number);
    check(cudaDeviceSynchronize());
    std::printf("%s %lld %d\n", arguments[1], sum, download(small));
}

/* Exercises the runtime, portable kernels and libvblas; prints one line for each fact. argv[1] names the
 * scene. */
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "portable_kernel.h"
#include "vblas.h"

struct Pair {
    int *target;
    int value;
};

__global__ void fill(int *x, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = value + i;
}
PORTABLE_KERNEL(fill);

__global__ void slow_fill(int *x, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = value;
}
PORTABLE_KERNEL(slow_fill);

template <typename Type> __global__ void count(Type *total)
{
    atomicAdd(total, Type(1));
}
PORTABLE_KERNEL(count<int>);
PORTABLE_KERNEL(count<double>);

__global__ void store(Pair pair)
{
    *pair.target = pair.value;
}
PORTABLE_KERNEL(store);

__global__ void box(int *cells)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    cells[(z * height + y) * width + x] = 100 * z + 10 * y + x;
}
PORTABLE_KERNEL(box);

/* Never ends until the host says so. */
__global__ void hold(volatile int *flag)
{
    while (*flag == 0)
        ;
}
PORTABLE_KERNEL(hold);

__global__ void unregistered() {}

/* Parameters are packed as the members of a structure are. */
struct Members {
    char flag;
    double scale;
    short small;
    Pair pair;
    bool last;
};
constexpr auto parameters = portable_kernel::layout<char, double, short, Pair, bool>();
static_assert(parameters[1].offset == offsetof(Members, scale) && parameters[1].size == sizeof(double), "");
static_assert(parameters[2].offset == offsetof(Members, small) && parameters[2].size == sizeof(short), "");
static_assert(parameters[3].offset == offsetof(Members, pair) && parameters[3].size == sizeof(Pair), "");
static_assert(parameters[4].offset == offsetof(Members, last) && parameters[4].size == sizeof(bool), "");
static_assert(portable_kernel::layout<>()[0].offset == 0, "");

static void require(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
    std::exit(1);
}
#define REQUIRE(call) require(call, #call)

template <typename Type> Type *on_device(std::size_t count)
{
    Type *pointer = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void **>(&pointer), count * sizeof(Type)));
    return pointer;
}

template <typename Type> std::vector<Type> fetched(const Type *pointer, std::size_t count)
{
    std::vector<Type> values(count);
    REQUIRE(cudaMemcpy(values.data(), pointer, count * sizeof(Type), cudaMemcpyDeviceToHost));
    return values;
}

static void kernels()
{
    int *x = on_device<int>(1000);
    LAUNCH(fill, dim3(4), dim3(256), 0, nullptr, x, 5, 1000);
    auto filled = fetched(x, 1000);
    bool right = true;
    for (int i = 0; i < 1000; ++i)
        right = right && filled[i] == 5 + i;
    std::printf("fill %d\n", right);

    REQUIRE(cudaMemset(x, 0, 1000 * sizeof(int)));
    LAUNCH(count<int>, dim3(3, 4, 5), dim3(2, 3, 4), 0, nullptr, x);
    double *total = on_device<double>(1);
    REQUIRE(cudaMemset(total, 0, sizeof(double)));
    LAUNCH(count<double>, dim3(7), dim3(11), 0, nullptr, total);
    std::printf("count %d %g\n", fetched(x, 1)[0], fetched(total, 1)[0]);

    LAUNCH(box, dim3(2, 2, 2), dim3(2, 2, 2), 0, nullptr, x);
    auto cells = fetched(x, 64);
    std::printf("box %d %d %d\n", cells[0], cells[(3 * 4 + 2) * 4 + 1], cells[63]);

    LAUNCH(fill, dim3(1), dim3(2000), 0, nullptr, x, 0, 1);
    std::printf("block too large: %s\n", cudaGetErrorName(cudaGetLastError()));
    LAUNCH(unregistered, dim3(1), dim3(1), 0, nullptr);
    std::printf("unregistered: %s\n", cudaGetErrorName(cudaGetLastError()));
    std::printf("then: %s\n", cudaGetErrorName(cudaGetLastError()));
}

/* Without the wait the bytes are not there yet; with it they are. `slow_fill` lasts 200 ms by configuration.
 */
static void missing_wait()
{
    int *device = on_device<int>(4);
    int *host = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&host), sizeof(int)));
    *host = 1;
    LAUNCH(slow_fill, dim3(1), dim3(4), 0, nullptr, device, 2, 4);
    REQUIRE(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost));
    int early = *static_cast<volatile int *>(host);
    REQUIRE(cudaDeviceSynchronize());
    std::printf("before %d after %d\n", early, *host);

    /* Neither does another stream see a kernel's results before the kernel is over. */
    cudaStream_t other;
    REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    LAUNCH(slow_fill, dim3(1), dim3(4), 0, nullptr, device, 3, 4);
    REQUIRE(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost, other));
    REQUIRE(cudaStreamSynchronize(other));
    std::printf("unordered %d\n", *host);
    REQUIRE(cudaDeviceSynchronize());
}

/* Kernels reach managed and mapped memory though the program's pages are protected. */
static void protected_pages()
{
    int *managed = nullptr, *mapped = nullptr;
    REQUIRE(cudaMallocManaged(reinterpret_cast<void **>(&managed), 4096, cudaMemAttachGlobal));
    REQUIRE(cudaHostAlloc(reinterpret_cast<void **>(&mapped), 4096, cudaHostAllocMapped));
    for (int *pointer : {managed, mapped}) {
        mprotect(pointer, 4096, PROT_NONE);
        LAUNCH(fill, dim3(1), dim3(10), 0, nullptr, pointer, 1, 10);
        LAUNCH(store, dim3(1), dim3(1), 0, nullptr, Pair{pointer + 20, 77});
        REQUIRE(cudaDeviceSynchronize());
        mprotect(pointer, 4096, PROT_READ | PROT_WRITE);
        std::printf("protected %d %d\n", pointer[9], pointer[20]);
    }
}

/* A kernel that does not end holds back its own stream, and no other. */
static void overlap()
{
    cudaStream_t held, other;
    REQUIRE(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
    REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    int *flag = nullptr;
    REQUIRE(cudaHostAlloc(reinterpret_cast<void **>(&flag), sizeof(int), cudaHostAllocMapped));
    *flag = 0;
    int *x = on_device<int>(2), values[2] = {-1, -1};
    REQUIRE(cudaMemset(x, 0, 2 * sizeof(int)));
    REQUIRE(cudaDeviceSynchronize());
    LAUNCH(hold, dim3(1), dim3(1), 0, held, flag);
    LAUNCH(fill, dim3(1), dim3(1), 0, held, x, 1, 1);
    LAUNCH(fill, dim3(1), dim3(1), 0, other, x + 1, 2, 1);
    REQUIRE(cudaMemcpyAsync(values, x, sizeof values, cudaMemcpyDeviceToHost, other));
    std::printf("while held %d %d, %s\n", values[0], values[1], cudaGetErrorName(cudaStreamQuery(held)));
    *static_cast<volatile int *>(flag) = 1;
    REQUIRE(cudaStreamSynchronize(held));
    std::printf("released %d\n", fetched(x, 1)[0]);
}

static void library()
{
    int n = 100000;
    std::vector<float> values(n);
    double expected = 0;
    for (int i = 0; i < n; ++i) {
        values[i] = (i % 2 ? -1.0f : 1.0f) * (i % 10);
        expected += i % 10;
    }
    float *x = on_device<float>(n);
    REQUIRE(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    vblasHandle_t handle;
    float sum = -1, half = -1, none = -1;
    int status = vblasCreate(&handle);
    status += vblasSasum(handle, n, x, 1, &sum) + vblasSasum(handle, n / 2, x, 2, &half);
    status += vblasSasum(handle, 0, x, 1, &none);
    std::printf("sum %d %d %d %g\n", status, sum == float(expected), half == 200000.0f, none);
    std::printf("invalid %d %d\n", vblasSasum(handle, n, x, 0, &sum), vblasSasum(nullptr, n, x, 1, &sum));
    std::printf("destroyed %d\n", vblasDestroy(handle));
}

static void reset()
{
    int *x = on_device<int>(1);
    LAUNCH(slow_fill, dim3(1), dim3(1), 0, nullptr, x, 1, 1);
    REQUIRE(cudaDeviceReset());
    x = on_device<int>(1);
    LAUNCH(fill, dim3(1), dim3(1), 0, nullptr, x, 4, 1);
    std::printf("after reset %d\n", fetched(x, 1)[0]);
}

static void forks(bool used_before)
{
    if (used_before)
        on_device<int>(1);
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *pointer = nullptr;
        cudaError_t error = cudaMalloc(&pointer, 4);
        std::printf("child %s\n", cudaGetErrorName(error));
        std::fflush(stdout);
        std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child ended %d\n", status);
    on_device<int>(1);
    std::printf("parent goes on\n");
}

int main(int, char **arguments)
{
    std::string scene = arguments[1];
    if (scene == "kernels")
        kernels();
    else if (scene == "missing_wait")
        missing_wait();
    else if (scene == "protected_pages")
        protected_pages();
    else if (scene == "overlap")
        overlap();
    else if (scene == "library")
        library();
    else if (scene == "reset")
        reset();
    else if (scene == "fork_before_use")
        forks(false);
    else if (scene == "fork_after_use")
        forks(true);
    else
        return 2;
    return 0;
}

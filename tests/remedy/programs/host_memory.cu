/* Uploads from host memory of every origin, one line each; the test finds the lines by their marks. */
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <vector>

#include <cuda_runtime.h>

static constexpr std::size_t bytes = 65536;
static char *device;

static __attribute__((noinline)) void upload(const void *host)
{
    if (cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        std::exit(1);
    if (cudaMemcpy(device, static_cast<const char *>(host) + bytes / 2, bytes / 4, cudaMemcpyHostToDevice) !=
        cudaSuccess)
        std::exit(1);
}

static void grow(std::vector<int> &values)
{
    values.resize(bytes / sizeof(int)); /* allocates: vector */
}

int main(int one, char **)
{
    void *before_driver = std::malloc(bytes); /* allocates: malloc */
    std::vector<int> values;
    grow(values);
    if (cudaMalloc((void **)&device, bytes) != cudaSuccess)
        return 1;
    char *array = new char[bytes];       /* allocates: new */
    void *zeros = std::calloc(bytes, 1); /* allocates: calloc */
    void *aligned = nullptr;
    if (posix_memalign(&aligned, 4096, bytes) != 0) /* allocates: posix_memalign */
        return 1;
    void *pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* allocates: mmap */
    static char fixed[bytes];
    void *pinned = nullptr;
    if (cudaMallocHost(&pinned, bytes) != cudaSuccess)
        return 1;
    for (int turn = 0; turn < 2; ++turn) {
        upload(before_driver);
        upload(values.data());
        upload(array);
        upload(zeros);
        upload(aligned);
        upload(pages);
        upload(fixed);
    }
    const void *const both[] = {pinned, fixed};
    for (int turn = 0; turn <= one; ++turn) /* so that the compiler does not make two calls of it */
        upload(both[turn]);
    void *moved = std::realloc(zeros, 4 * bytes); /* frees: calloc */
    upload(moved);
    std::free(before_driver); /* frees: malloc */
    delete[] array;           /* frees: new */
    values.clear();
    values.shrink_to_fit(); /* frees: vector */
    std::free(moved);
    munmap(pages, bytes);
    std::printf("%d\n", cudaFree(device));
}

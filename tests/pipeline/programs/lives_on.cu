// lives_on FILE END: until the file END is there, threads upload, wait and download without pause, others come and go,
// memory is allocated and freed, and a child is forked at the end. Keeps writing the number of turns to FILE; at its
// end also how many bytes came back wrong, and the child's answer. Exits with 7.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<long> turns, wrong;
static std::atomic<bool> over;

static void turn(char value)
{
    enum { BYTES = 64 * 1024 };
    std::vector<char> host(BYTES, value); // large enough for its origin to be recorded
    void *device = nullptr;
    cudaMalloc(&device, BYTES);
    cudaMemcpy(device, host.data(), BYTES, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    std::memset(host.data(), 0, BYTES);
    cudaMemcpy(host.data(), device, BYTES, cudaMemcpyDeviceToHost);
    for (char byte : host)
        wrong += byte != value;
    cudaFree(device);
    turns++;
}

static void work(char value)
{
    while (!over)
        turn(value);
}

static void tell(const char *path, const char *end)
{
    char next[4096];
    std::snprintf(next, sizeof next, "%s.next", path);
    FILE *file = std::fopen(next, "w");
    std::fprintf(file, "%ld %ld %s\n", turns.load(), wrong.load(), end);
    std::fclose(file);
    std::rename(next, path);
}

int main(int, char **arguments)
{
    std::vector<std::thread> threads;
    for (char value = 1; value <= 3; value++)
        threads.emplace_back(work, value);
    while (access(arguments[2], F_OK) != 0) {
        std::thread(turn, 9).join();
        if (void *library = dlopen("libm.so.6", RTLD_NOW))
            dlclose(library);
        tell(arguments[1], "runs");
        usleep(10000);
    }
    over = true;
    for (std::thread &thread : threads)
        thread.join();
    const pid_t child = fork();
    if (child == 0)
        _exit(5);
    int status = 0;
    waitpid(child, &status, 0);
    tell(arguments[1], WIFEXITED(status) && WEXITSTATUS(status) == 5 ? "ended" : "lost");
    return 7;
}

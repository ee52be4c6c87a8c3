/* What programs do with children, and with descriptors: children WAY. Exits with 0 if all is as it should be. */
#include <cstring>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int use_gpu()
{
    int *device = nullptr, value = 0;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof value);
    cudaMemset(device, 1, sizeof value);
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    return value == 0x01010101 ? 0 : 2;
}

static int await(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 3;
}

static int fork_and_use(int generations)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(generations > 1 ? fork_and_use(generations - 1) : use_gpu());
    return await(child);
}

/* As a daemon does, and puts a file of its own in every low place. */
static int close_all_and_use()
{
    const int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    for (int number = 3; number < 1024; number++)
        if (number != file)
            close(number);
    for (int number = 3; number < 512; number++)
        if (number != file && dup2(file, number) != number)
            return 5;
    closefrom(512);
    const int result = use_gpu();
    return lseek(file, 0, SEEK_END) == 0 ? result : 6;
}

int main(int, char **arguments)
{
    const std::string way = arguments[1];
    int result = 1;
    if (way == "use")
        result = use_gpu();
    if (way == "close")
        result = close_all_and_use();
    if (way == "fork")
        result = fork_and_use(1);
    if (way == "generations")
        result = fork_and_use(4);
    if (way == "thread")
        std::thread([&] { result = fork_and_use(1); }).join();
    if (way == "unseen") { /* past the C library's handlers, as some runtimes do */
        result = use_gpu();
        const pid_t child = _Fork();
        if (child == 0)
            _exit(dlopen("libm.so.6", RTLD_NOW) == nullptr);
        result |= await(child);
    }
    if (way == "execute") {
        const pid_t child = vfork();
        if (child == 0) {
            execl("/proc/self/exe", arguments[0], "use", nullptr);
            _exit(4);
        }
        result = await(child);
    }
    return result;
}

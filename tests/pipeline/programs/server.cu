// Serves for ever: uploads, launches, waits, downloads in each turn. Its first argument says how it
// ends, or does not, the second after how many turns.
#include <cuda_runtime_api.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static volatile std::sig_atomic_t over;
static void end(int)
{
    over = 1;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    const long turns = count > 2 ? std::atol(arguments[2]) : -1;
    if (!std::strcmp(how, "stubborn"))
        std::signal(SIGTERM, SIG_IGN);
    else
        std::signal(SIGTERM, end);
    if (!std::strcmp(how, "family"))
        fork();
    enum { BYTES = 4096 };
    char *host = nullptr;
    void *device = nullptr;
    cudaMallocHost((void **)&host, BYTES);
    cudaMalloc(&device, BYTES);
    for (long turn = 0; turn != turns && !over; turn++) {
        host[0] = (char)turn;
        cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
        cudaMemset(device, 0, BYTES);
        cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize();
        if (host[0] != 0)
            return 3;
        cudaDeviceSynchronize();
        usleep(1000);
    }
    if (!std::strcmp(how, "crash"))
        std::raise(SIGKILL);
    cudaFree(device);
    return 0;
}

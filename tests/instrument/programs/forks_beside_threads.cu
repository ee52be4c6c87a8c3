// The process forks at once after it has made a thread, which may not run yet.
#include <cstdio>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

void *end(void *)
{
    return nullptr;
}

int main()
{
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; ++i) {
        pthread_t thread;
        int status = -1;
        pthread_create(&thread, nullptr, end, nullptr);
        const pid_t child = fork();
        if (child == 0)
            _exit(i);
        pthread_join(thread, nullptr);
        waitpid(child, &status, 0);
        std::printf("%d\n", WEXITSTATUS(status));
        cudaDeviceSynchronize();
    }
}

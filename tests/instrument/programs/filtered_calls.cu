// A program that lets the kernel end it for a system call that it never makes, and by which pages get keys, while a
// result that was waited for has not been used. Before that, it offers a filter that the kernel refuses, since it jumps
// to itself. Prints the sums of its results.
#include <cstddef>
#include <cstdio>

#include <cuda_runtime_api.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int count = 4096;

static void download(int *host, int *device, int byte)
{
    cudaMemset(device, byte, count * sizeof(int));
    cudaMemcpyAsync(host, device, count * sizeof(int), cudaMemcpyDeviceToHost, nullptr);
    cudaDeviceSynchronize();
}

static long sum(const int *values)
{
    long total = 0;
    for (int index = 0; index < count; ++index)
        total += values[index];
    return total;
}

template <size_t steps> static bool install(sock_filter (&filter)[steps])
{
    sock_fprog given = {steps, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &given) == 0;
}

static bool jump_for_ever()
{
    sock_filter steps[] = {
        BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(steps);
}

static bool forbid(unsigned call)
{
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
        BPF_STMT(BPF_ST, 3),
        BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_IMM, call),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    return install(steps);
}

int main()
{
    int *first = nullptr, *second = nullptr, *device = nullptr;
    cudaMallocHost(reinterpret_cast<void **>(&first), count * sizeof(int));
    cudaMallocHost(reinterpret_cast<void **>(&second), count * sizeof(int));
    cudaMalloc(reinterpret_cast<void **>(&device), count * sizeof(int));
    download(first, device, 1);
    std::printf("%d %d\n", jump_for_ever(), forbid(SYS_pkey_mprotect));
    std::printf("%ld\n", sum(first));
    for (int round = 2; round < 5; ++round) {
        download(second, device, round);
        std::printf("%ld\n", sum(second));
    }
    return 0;
}

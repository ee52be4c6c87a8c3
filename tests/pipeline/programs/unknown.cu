/* Executes an instruction that does nothing and that disassemblers do not know: unknown PLACE, of line (amid others) or
 * target (the first one after a jump). */
#include <cstring>

#include <cuda_runtime_api.h>

/* BNDSTX without memory, since Linux no longer turns MPX on. */
#define UNKNOWN ".byte 0x0f, 0x1b, 0xc0\n"

int main(int, char **arguments)
{
    static int value;
    int *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof value);
    cudaMemset(device, 0, sizeof value);
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    if (strcmp(arguments[1], "line") == 0)
        asm volatile("incl %0\n" UNKNOWN "incl %0\n" : "+m"(value));
    else
        asm volatile("jmp 1f\n .balign 16\n 1: " UNKNOWN "addl $2, %0\n" : "+m"(value));
    return value == 2 ? 0 : 1;
}

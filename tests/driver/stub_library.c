/* A library of the shape of a driver: exports jump through the slots of a table to internal functions. */
#include <stdlib.h>

#define API __attribute__((visibility("default")))
#define INTERNAL __attribute__((noinline, visibility("hidden")))

volatile int state;

INTERNAL int deep_wait(int x)
{
    while (state == x)
        ;
    return x + 1;
}

INTERNAL int shared_helper(int x)
{
    return deep_wait(x) * 3;
}

INTERNAL int body_of_synchronize(int x)
{
    return shared_helper(x) + 1;
}

/* Only jumped to, and only from free_memory. */
INTERNAL int body_of_free(int x)
{
    state = x;
    return shared_helper(x) + 7;
}

INTERNAL int free_memory(int x)
{
    state += 2;
    return body_of_free(x + 1);
}

__attribute__((cold)) INTERNAL void complain(void)
{
    abort();
}

INTERNAL int copy(int x)
{
    int result = shared_helper(x) - 2;
    if (__builtin_expect(result == 77, 0)) {
        state = 5;
        complain();
    }
    return result;
}

INTERNAL int launch(int x)
{
    state = x;
    return 0;
}

struct table {
    int (*synchronize)(int);
    int (*free_memory)(int);
    int (*copy)(int);
    int (*launch)(int);
};
static struct table table = {body_of_synchronize, free_memory, copy, launch};

API struct table *stub_table(void)
{
    return &table;
}

API int cuCtxSynchronize(int x)
{
    return table.synchronize(x);
}
API int cuStreamSynchronize(int x)
{
    return table.synchronize(x);
}
API int cuEventSynchronize(int x)
{
    return table.synchronize(x) + 1;
}
API int cuMemcpyDtoH_v2(int x)
{
    return table.copy(x);
}
API int cuMemFree_v2(int x)
{
    return table.free_memory(x);
}
API int cuLaunchKernel(int x)
{
    return table.launch(x);
}

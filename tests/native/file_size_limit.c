/* Opens a recording under a limit on the size of files, which another thread may change while room is reserved: that
 * other thread's change happens in the middle of posix_fallocate, which is this file's. Prints the limit afterwards.
 * Built by test_file_size_limit.py. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sink.h"

static rlim_t chosen_meanwhile; /* 0 for none */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

int posix_fallocate(int file, off_t offset, off_t bytes)
{
    const int failed = fallocate(file, 0, offset, bytes);
    if (chosen_meanwhile != 0)
        limit_files(chosen_meanwhile);
    return failed;
}

int main(int count, char **arguments)
{
    struct rlimit limit;
    if (count != 3)
        return 2;
    chosen_meanwhile = strtoul(arguments[2], NULL, 10);
    limit_files(512);
    if (!ffm_sink_open(arguments[1], 0))
        return 1;
    getrlimit(RLIMIT_FSIZE, &limit);
    printf("%lu\n", limit.rlim_cur);
    return 0;
}

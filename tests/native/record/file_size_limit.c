/* Opens a recording under a limit on the size of files. Another thread may change that limit, or fork, while room is
 * reserved: that happens in the middle of posix_fallocate, which is this file's. Prints the limit afterwards, or that
 * of the forked child. Built by test_file_size_limit.py. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sink.h"

static rlim_t chosen_meanwhile; /* 0 for none */
static bool forks_meanwhile;

static void print_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    printf("%lu\n", limit.rlim_cur);
    fflush(stdout);
}

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
    if (forks_meanwhile) {
        forks_meanwhile = false;
        const pid_t child = fork();
        if (child == 0) {
            ffm_sink_reopen();
            print_limit();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return failed;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    limit_files(512);
    if (strcmp(arguments[2], "fork") == 0) {
        if (!ffm_sink_open(arguments[1], 0))
            return 1;
        forks_meanwhile = true;
        ffm_stream stream = {0};
        return ffm_sink_next_chunk(&stream, FFM_CHUNK_LIVES, 0, sizeof(ffm_life)) ? 0 : 1;
    }
    chosen_meanwhile = strtoul(arguments[2], NULL, 10);
    if (!ffm_sink_open(arguments[1], 0))
        return 1;
    print_limit();
    return 0;
}

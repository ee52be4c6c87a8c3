/* Descriptors that are closed, replaced, used up. */
#define _GNU_SOURCE
#include "bad.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

THING(close_each)
{
    for (int number = 3; number < 1100; number++)
        close(number);
}
THING(close_each_raw)
{
    for (int number = 3; number < 1100; number++)
        syscall(SYS_close, number);
}
THING(close_from)
{
    closefrom(3);
}
THING(close_the_range)
{
    close_range(3, ~0u, 0);
}
THING(close_range_raw)
{
    syscall(SYS_close_range, 3, ~0u, 0);
}
THING(close_range_on_exec)
{
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    exec_self();
}
THING(close_listed)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(folder))
            close(atoi(entry->d_name));
    closedir(folder);
}
THING(close_standard)
{
    for (int number = 0; number < 3; number++)
        close(number);
}
THING(onto_standard)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 0; number < 3; number++)
        dup2(file, number);
}
THING(onto_each)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 3; number < 1100; number++)
        dup2(file, number);
}
THING(onto_each_raw)
{
    const int file = open("/dev/null", O_RDWR);
    for (int number = 3; number < 1100; number++)
        syscall(SYS_dup2, file, number);
}
THING(use_up_descriptors)
{
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024});
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}
THING(full_output)
{
    dup2(open("/dev/full", O_WRONLY), 1);
    puts("this is lost");
    fprintf(stderr, "flushed: %d\n", fflush(stdout));
    clearerr(stdout);
}
THING(broken_output)
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    close(ends[0]);
    dup2(ends[1], 1);
    say("nobody reads");
}
THING(much_output)
{
    for (int i = 0; i < 100000; i++)
        printf("line %d of very many lines of output\n", i);
}
THING(raw_output)
{
    for (int i = 0; i < 512; i++)
        putchar(i);
}

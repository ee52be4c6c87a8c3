/* Executes `env`, which prints its environment: `executes HOW`. Each way gives it one variable, or what it says. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENV "/usr/bin/env"

static char *const words[] = {"env", NULL};
static char *const given[] = {"GIVEN=1", NULL};
static char *const preloading[] = {"LD_PRELOAD=libm.so.6", "GIVEN=1", NULL};

static int spawn(void)
{
    pid_t child;
    int status = 1;
    return posix_spawn(&child, ENV, NULL, NULL, words, given) == 0 && waitpid(child, &status, 0) == child ? status : 1;
}

static int in_vfork(void)
{
    int status = 1;
    const pid_t child = vfork();
    if (child == 0) {
        execve(ENV, words, given);
        _exit(1);
    }
    return waitpid(child, &status, 0) == child ? status : 1;
}

static int with_many_variables(void)
{
    static char *many[4001];
    for (int i = 0; i < 4000; i++)
        if (asprintf(&many[i], "VARIABLE_%d=%d", i, i) < 0)
            return 1;
    return execve(ENV, words, many);
}

static int clean_shell(void)
{
    clearenv();
    setenv("GIVEN", "1", 1);
    return system(ENV);
}

int main(int count, char **arguments)
{
    const char *how = count == 2 ? arguments[1] : "";
    if (strcmp(how, "execve") == 0)
        return execve(ENV, words, given);
    if (strcmp(how, "execle") == 0)
        return execle(ENV, "env", (char *)NULL, given);
    if (strcmp(how, "execvpe") == 0)
        return execvpe("env", words, given);
    if (strcmp(how, "fexecve") == 0)
        return fexecve(open(ENV, O_RDONLY | O_CLOEXEC), words, given);
    if (strcmp(how, "execveat") == 0)
        return execveat(AT_FDCWD, ENV, words, given, 0);
    if (strcmp(how, "preloading") == 0)
        return execve(ENV, words, preloading);
    if (strcmp(how, "nothing") == 0)
        return execve(ENV, words, NULL);
    if (strcmp(how, "many") == 0)
        return with_many_variables();
    if (strcmp(how, "posix_spawn") == 0)
        return spawn();
    if (strcmp(how, "vfork") == 0)
        return in_vfork();
    return strcmp(how, "system") == 0 ? clean_shell() : 2;
}

/* Programs that execute others, and have children. */
#define _GNU_SOURCE
#include "bad.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void run_again(char *word)
{
    execv("/proc/self/exe", (char *[]){arguments[0], word, NULL});
}
THING(exec_self)
{
    run_again("nothing");
}
THING(exec_other)
{
    execl("/bin/echo", "echo", "other", (char *)NULL);
}
THING(exec_nothing)
{
    execl("/nowhere/at/all", "nothing", (char *)NULL);
}
static void *exec_of_thread(void *unused)
{
    exec_self();
    return unused;
}
THING(exec_in_thread)
{
    start(exec_of_thread);
    for (;;)
        pause();
}
THING(exec_without_environment)
{
    execve("/bin/echo", (char *[]){"echo", "bare", NULL}, (char *[]){NULL});
}
THING(exec_self_without_environment)
{
    execve("/proc/self/exe", (char *[]){arguments[0], "nothing", NULL}, (char *[]){NULL});
}
THING(exec_memory)
{
    const int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
    static char bytes[1 << 16];
    for (ssize_t count; (count = read(from, bytes, sizeof bytes)) > 0;)
        if (write(to, bytes, (size_t)count) != count)
            _exit(97);
    fexecve(to, (char *[]){arguments[0], "nothing", NULL}, environ);
}
THING(exec_unrandomized)
{
    if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
        return;
    personality(ADDR_NO_RANDOMIZE);
    run_again("nothing");
}
void await_child(pid_t child)
{
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0);
    printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
}
void in_child(void (*what)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        what();
        _exit(0);
    }
    await_child(child);
}
THING(child)
{
    in_child(exec_self);
}
THING(dying_child)
{
    in_child(null);
}
THING(late_child)
{
    in_child(late_exit);
}
THING(vforks)
{
    const pid_t child = vfork();
    if (child == 0) {
        execv("/proc/self/exe", (char *[]){arguments[0], "nothing", NULL});
        _exit(1);
    }
    await_child(child);
}
THING(spawns)
{
    pid_t child = 0;
    posix_spawn(&child, "/proc/self/exe", NULL, NULL, (char *[]){arguments[0], "nothing", NULL}, environ);
    await_child(child);
}
THING(shell)
{
    printf("%d\n", system("exit 3"));
}
THING(double_fork)
{
    int done[2];
    char byte;
    if (pipe(done) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            setsid();
            close(done[0]);
            usleep(50000);
            say("grandchild\n");
            _exit(0);
        }
        _exit(0);
    }
    close(done[1]);
    await_child(child);
    if (read(done[0], &byte, 1) < 0)
        return;
}
THING(daemonizes)
{
    if (daemon(1, 1) != 0)
        _exit(96);
}
THING(many_children)
{
    for (int i = 0; i < 20; i++)
        if (fork() == 0)
            _exit(0);
    while (wait(NULL) > 0)
        ;
}
THING(raw_fork)
{
    const pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        _exit(0);
    await_child(child);
}
THING(zombie)
{
    if (fork() == 0)
        _exit(0);
}
THING(ignores_children)
{
    signal(SIGCHLD, SIG_IGN);
    zombie();
}
THING(new_group)
{
    setpgid(0, 0);
}
THING(new_session)
{
    printf("%d\n", setsid() == (pid_t)-1);
}

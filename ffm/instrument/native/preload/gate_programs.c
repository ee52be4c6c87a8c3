#include "gate_programs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate_jump.h"

#define EXPORT __attribute__((visibility("default")))

#define PRELOADS "LD_PRELOAD="
#define PUT_IN "FFM_PUT_IN=yes" /* says that LD_PRELOAD and the variables below are not the program's own */

/* Variables of the runner's: the socket, and the libraries that are to be preloaded. */
static const char *const names[] = {"FFM_GATE", "FFM_PRELOAD"};
enum { SOCKET, LIBRARIES, VARIABLES };
enum { ADDED = VARIABLES + 2 }; /* with LD_PRELOAD, and the mark */

static char kept[VARIABLES][2 * PATH_MAX]; /* NAME=VALUE, or empty */

enum { ON_STACK = 8192 }; /* bytes; the stack of a process that only executes another program can be small */

static const char *value_of(int variable)
{
    return kept[variable][0] == '\0' ? NULL : strchr(kept[variable], '=') + 1;
}

const char *ffm_gate_programs_socket(void)
{
    return value_of(SOCKET);
}

static bool is_variable(const char *entry, const char *start)
{
    return strncmp(entry, start, strlen(start)) == 0;
}

/* What follows our libraries in the value of LD_PRELOAD: empty, or a colon and the program's own. NULL if they are not
 * at its beginning. */
static const char *behind_ours(const char *value)
{
    const char *ours = value_of(LIBRARIES);
    const size_t length = strlen(ours);
    return strncmp(value, ours, length) == 0 && (value[length] == '\0' || value[length] == ':') ? value + length : NULL;
}

/* If programs cannot see our libraries, as in another root folder, the dynamic linker would complain. */
static bool are_there(void)
{
    char first[PATH_MAX];
    const char *ours = value_of(LIBRARIES);
    const size_t length = strcspn(ours, ":");
    if (length >= sizeof first)
        return false;
    memcpy(first, ours, length);
    first[length] = '\0';
    return access(first, R_OK) == 0;
}

typedef struct {
    size_t entries, preloads_bytes; /* of the program's own LD_PRELOAD, with its name */
    bool leads;                     /* it leads to the gate as it is */
} given;

static given look_at(char *const *environment)
{
    given found = {0, 0, false};
    bool to_socket = false, to_libraries = false;
    for (; environment != NULL && environment[found.entries] != NULL; found.entries++) {
        const char *entry = environment[found.entries];
        to_socket |= strcmp(entry, kept[SOCKET]) == 0;
        if (is_variable(entry, PRELOADS)) {
            found.preloads_bytes = strlen(entry);
            to_libraries = behind_ours(entry + strlen(PRELOADS)) != NULL;
        }
    }
    found.leads = to_socket && to_libraries;
    return found;
}

static size_t bytes_needed(const given *found)
{
    return (found->entries + ADDED + 1) * sizeof(char *) + found->preloads_bytes + sizeof kept[LIBRARIES] +
           sizeof PRELOADS;
}

static bool is_runners(const char *entry)
{
    for (int variable = 0; variable < VARIABLES; variable++)
        if (is_variable(entry, names[variable]) && entry[strlen(names[variable])] == '=')
            return true;
    return false;
}

/* Composes in `room` the environment with what leads to the gate, in the given order. */
static char **lead(char *const *environment, const given *found, void *room)
{
    char **led = room, **next = led;
    char *preloads = (char *)(led + found->entries + ADDED + 1);
    const char *own = "";
    bool placed = false;
    for (size_t i = 0; i < found->entries; i++) {
        if (is_variable(environment[i], PRELOADS)) {
            own = environment[i] + strlen(PRELOADS);
            if (!placed)
                *next++ = preloads;
            placed = true;
        } else if (!is_runners(environment[i]))
            *next++ = environment[i];
    }
    if (!placed)
        *next++ = preloads;
    for (int variable = 0; variable < VARIABLES; variable++)
        *next++ = kept[variable];
    *next++ = (char *)PUT_IN;
    *next = NULL;
    preloads = stpcpy(stpcpy(preloads, PRELOADS), value_of(LIBRARIES));
    if (behind_ours(own) != NULL)
        stpcpy(preloads, behind_ours(own));
    else if (placed)
        stpcpy(stpcpy(preloads, ":"), own);
    return led;
}

typedef struct {
    int folder; /* AT_FDCWD with `flags` 0: execve, which a program may be allowed where it is not allowed execveat */
    const char *path;
    char *const *words;
    int flags;
} program;

static int start(const program *what, char *const *environment)
{
    if (what->folder == AT_FDCWD && what->flags == 0)
        return (int)syscall(SYS_execve, what->path, what->words, environment);
    return (int)syscall(SYS_execveat, what->folder, what->path, what->words, environment, what->flags);
}

/* Returns only if the program cannot be executed: with errno as the system call leaves it. */
static int execute(const program *what, char *const *environment)
{
    if (ffm_gate_programs_socket() == NULL)
        return start(what, environment);
    const int error = errno;
    const given found = look_at(environment);
    const bool put_in = !found.leads && are_there();
    errno = error;
    if (!put_in)
        return start(what, environment);
    const size_t bytes = bytes_needed(&found);
    char near[bytes > ON_STACK ? 1 : bytes] __attribute__((aligned(sizeof(char *))));
    void *room = near;
    if (bytes >
        ON_STACK) /* after vfork it stays with the parent for good, like everything else that a child leaves there */
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return -1; /* ENOMEM is an answer of execve too */
    const int status = start(what, lead(environment, &found, room));
    const int why = errno;
    if (room != near)
        munmap(room, bytes);
    errno = why;
    return status;
}

static int led_execve(const char *path, char *const *words, char *const *environment)
{
    return execute(&(program){AT_FDCWD, path, words, 0}, environment);
}

/* These do not go through the C library's execve as the others do. */
EXPORT int execveat(int folder, const char *path, char *const *words, char *const *environment, int flags)
{
    return execute(&(program){folder, path, words, flags}, environment);
}

EXPORT int fexecve(int file, char *const *words, char *const *environment)
{
    return execute(&(program){file, "", words, AT_EMPTY_PATH}, environment);
}

/* Takes out of this process's environment what its parent put in. */
static void take_out(void)
{
    char *preloads = getenv("LD_PRELOAD");
    const char *own = preloads == NULL ? NULL : behind_ours(preloads);
    if (own != NULL && *own == ':')
        memmove(preloads, own + 1, strlen(own + 1) + 1);
    else
        unsetenv("LD_PRELOAD");
    for (int variable = 0; variable < VARIABLES; variable++)
        unsetenv(names[variable]);
    unsetenv("FFM_PUT_IN");
}

/* All functions that execute or spawn a program call the C library's execve, but not by its name. So its code is
 * changed, which is nothing but the system call. */
static void follow_execve(void)
{
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    uint8_t *execve_code = library == NULL ? NULL : dlsym(library, "execve");
    const uint8_t *ours = (const uint8_t *)(uintptr_t)led_execve;
    if (execve_code == NULL || !ffm_jump_reaches(execve_code, ours) || !ffm_gate_jump_writable(execve_code, true))
        return;
    ffm_gate_jump(execve_code, ours);
    ffm_gate_jump_writable(execve_code, false);
}

void ffm_gate_programs_lead(void)
{
    for (int variable = 0; variable < VARIABLES; variable++) {
        const char *value = getenv(names[variable]);
        const size_t room = sizeof kept[variable];
        if (value == NULL || snprintf(kept[variable], room, "%s=%s", names[variable], value) >= (int)room) {
            kept[SOCKET][0] = '\0'; /* not the runner's environment */
            return;
        }
    }
    if (getenv("FFM_PUT_IN") != NULL)
        take_out();
    follow_execve();
}

/* Records the ranges that a program marks with NVTX, as iterations for `ffm check`, and tells the collector of them if
 * it measures only some.
 *
 * NVTX loads this library when the program first calls it, because NVTX_INJECTION64_PATH names it. Each process writes
 * FOLDER/ranges-PID, whose lines ffm/marks.py describes: thread, begin, end (CLOCK_MONOTONIC, nanoseconds) and name.
 * The file is written through a mapping, so that a process that is killed loses nothing; space is reserved before, so
 * that a full disk does not kill it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "nvtx.h"

enum { CHUNK = 64 << 10, MOST_CHUNKS = 1024, LINE = 160, NAME = 80, NESTED = 64, STARTED = 1024 };

typedef struct {
    uint64_t begin;
    const void *domain;
    char name[NAME]; /* empty: it is not recorded */
} range;

static struct {
    pthread_mutex_t lock;
    char *chunk; /* NULL before the first one, and after the last */
    size_t used;
    unsigned chunks;
} file = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    struct {
        range range;
        uint64_t identity; /* 0 if it is free */
        int thread;
    } slots[STARTED];
    uint64_t last;
} started = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
    range ranges[NESTED];
    int depth; /* those above NESTED are counted only */
    int thread;
} nested;

/* ffm_collector_mark; NULL if what is measured does not depend on ranges. */
static void (*mark)(const char *name, bool begins);

static void find_mark(void)
{
    const char *path = getenv("FFM_COLLECTOR");
    void *collector = path == NULL ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (collector != NULL)
        mark = (void (*)(const char *, bool))(uintptr_t)dlsym(collector, "ffm_collector_mark");
}

static void tell(const char *name, bool begins)
{
    if (mark != NULL && name != NULL && name[0] != '\0')
        mark(name, begins);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int this_thread(void)
{
    if (nested.thread == 0)
        nested.thread = (int)gettid();
    return nested.thread;
}

/* Map the next part of the file; on failure nothing more is recorded. */
static void next_chunk(void)
{
    if (file.chunk != NULL)
        munmap(file.chunk, CHUNK);
    file.chunk = NULL;
    file.used = 0;
    const char *folder = getenv("FFM_ITERATIONS");
    const off_t offset = (off_t)file.chunks * CHUNK;
    struct rlimit limit; /* a larger file would raise SIGXFSZ */
    if (folder == NULL || file.chunks == MOST_CHUNKS || getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
        limit.rlim_cur < (rlim_t)offset + CHUNK)
        return;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/ranges-%d", folder, (int)getpid()) >= (int)sizeof path)
        return;
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    const int descriptor = open(path, file.chunks == 0 ? flags | O_CREAT | O_TRUNC : flags, 0600);
    if (descriptor < 0)
        return;
    if (posix_fallocate(descriptor, offset, CHUNK) == 0) {
        char *mapped = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
        if (mapped != MAP_FAILED) {
            file.chunk = mapped;
            file.chunks++;
        }
    }
    close(descriptor);
}

static void record(const range *of, int thread)
{
    tell(of->name, false);
    char line[LINE];
    if (of->name[0] == '\0')
        return;
    const int bytes = snprintf(line, sizeof line, "%d %llu %llu %s\n", thread, (unsigned long long)of->begin,
                               (unsigned long long)now(), of->name);
    pthread_mutex_lock(&file.lock);
    if (file.chunks == 0 || (file.chunk != NULL && file.used + (size_t)bytes > CHUNK))
        next_chunk();
    if (file.chunk != NULL) {
        memcpy(file.chunk + file.used, line, (size_t)bytes);
        file.used += (size_t)bytes;
    }
    pthread_mutex_unlock(&file.lock);
}

/* In a forked child: the file is the parent's, and its other threads hold no lock here. */
static void forked(void)
{
    if (file.chunk != NULL)
        munmap(file.chunk, CHUNK);
    file.chunk = NULL;
    file.chunks = 0;
    nested.thread = 0;
    pthread_mutex_init(&file.lock, NULL);
    pthread_mutex_init(&started.lock, NULL);
}

static void follow_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void take_narrow(char *name, const char *text)
{
    size_t place = 0;
    for (; text != NULL && place < NAME - 1 && text[place] != '\0'; place++)
        name[place] = (unsigned char)text[place] < ' ' ? ' ' : text[place];
    name[place] = '\0';
}

static void take_wide(char *name, const wchar_t *text)
{
    size_t place = 0;
    for (; text != NULL && place < NAME - 1 && text[place] != L'\0'; place++)
        name[place] = text[place] < L' ' ? ' ' : text[place] > L'~' ? '?' : (char)text[place];
    name[place] = '\0';
}

/* Handles of registered strings are copies of these, which live as long as the program may use the handle. */
static const char *register_narrow(const void *domain, const char *text)
{
    (void)domain;
    char *copy = malloc(NAME);
    if (copy != NULL)
        take_narrow(copy, text);
    return copy;
}

static const char *register_wide(const void *domain, const wchar_t *text)
{
    (void)domain;
    char *copy = malloc(NAME);
    if (copy != NULL)
        take_wide(copy, text);
    return copy;
}

static void take(char *name, const ffm_nvtx_attributes *attributes)
{
    name[0] = '\0';
    if (attributes == NULL || attributes->size < sizeof *attributes)
        return;
    if (attributes->message_type == FFM_NVTX_UNICODE)
        take_wide(name, attributes->message);
    else if (attributes->message_type == FFM_NVTX_ASCII || attributes->message_type == FFM_NVTX_REGISTERED)
        take_narrow(name, attributes->message);
}

/* Returns where to put the range's name, and NULL where nesting is too deep. */
static char *push(const void *domain)
{
    const int depth = nested.depth++;
    if (depth >= NESTED)
        return NULL;
    nested.ranges[depth].domain = domain;
    nested.ranges[depth].begin = now();
    return nested.ranges[depth].name;
}

static int domain_push(const void *domain, const ffm_nvtx_attributes *attributes)
{
    char *name = push(domain);
    if (name != NULL)
        take(name, attributes);
    tell(name, true);
    return nested.depth - 1;
}

static int push_attributes(const ffm_nvtx_attributes *attributes)
{
    return domain_push(NULL, attributes);
}

static int push_narrow(const char *text)
{
    char *name = push(NULL);
    if (name != NULL)
        take_narrow(name, text);
    tell(name, true);
    return nested.depth - 1;
}

static int push_wide(const wchar_t *text)
{
    char *name = push(NULL);
    if (name != NULL)
        take_wide(name, text);
    tell(name, true);
    return nested.depth - 1;
}

/* Each domain has its own nesting. */
static int domain_pop(const void *domain)
{
    if (nested.depth > NESTED) {
        nested.depth--;
        return nested.depth;
    }
    for (int i = nested.depth; i > 0; i--) {
        range *innermost = &nested.ranges[i - 1];
        if (innermost->domain != domain)
            continue;
        record(innermost, this_thread());
        memmove(innermost, innermost + 1, (size_t)(nested.depth - i) * sizeof *innermost);
        nested.depth--;
        return nested.depth;
    }
    return -1; /* NVTX: nothing was pushed */
}

static int pop(void)
{
    return domain_pop(NULL);
}

static uint64_t start(const range *wanted)
{
    uint64_t identity = 0;
    pthread_mutex_lock(&started.lock);
    for (unsigned i = 1; i <= STARTED && identity == 0; i++) {
        const uint64_t next = started.last + i;
        if (started.slots[next % STARTED].identity != 0)
            continue;
        identity = started.last = next;
        started.slots[next % STARTED].identity = next;
        started.slots[next % STARTED].thread = this_thread();
        started.slots[next % STARTED].range = *wanted;
    }
    pthread_mutex_unlock(&started.lock);
    if (identity != 0)
        tell(wanted->name, true);
    return identity;
}

static uint64_t domain_start(const void *domain, const ffm_nvtx_attributes *attributes)
{
    range wanted = {.begin = now(), .domain = domain};
    take(wanted.name, attributes);
    return start(&wanted);
}

static uint64_t start_attributes(const ffm_nvtx_attributes *attributes)
{
    return domain_start(NULL, attributes);
}

static uint64_t start_narrow(const char *text)
{
    range wanted = {.begin = now()};
    take_narrow(wanted.name, text);
    return start(&wanted);
}

static uint64_t start_wide(const wchar_t *text)
{
    range wanted = {.begin = now()};
    take_wide(wanted.name, text);
    return start(&wanted);
}

/* The range counts as the starting thread's, whichever ends it. */
static void end(uint64_t identity)
{
    range found = {.name = ""};
    int thread = 0;
    pthread_mutex_lock(&started.lock);
    if (identity != 0 && started.slots[identity % STARTED].identity == identity) {
        found = started.slots[identity % STARTED].range;
        thread = started.slots[identity % STARTED].thread;
        started.slots[identity % STARTED].identity = 0;
    }
    pthread_mutex_unlock(&started.lock);
    record(&found, thread);
}

static void domain_end(const void *domain, uint64_t identity)
{
    (void)domain;
    end(identity);
}

typedef struct {
    int module, function;
    ffm_nvtx_function ours;
} answer;

#define ANSWER(module, function, ours) {module, function, (ffm_nvtx_function)(uintptr_t)(ours)}

static const answer answers[] = {
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_START_EX, start_attributes),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_START_A, start_narrow),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_START_W, start_wide),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_END, end),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_PUSH_EX, push_attributes),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_PUSH_A, push_narrow),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_PUSH_W, push_wide),
    ANSWER(FFM_NVTX_CORE, FFM_NVTX_POP, pop),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_DOMAIN_START_EX, domain_start),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_DOMAIN_END, domain_end),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_DOMAIN_PUSH_EX, domain_push),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_DOMAIN_POP, domain_pop),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_REGISTER_A, register_narrow),
    ANSWER(FFM_NVTX_DOMAINS, FFM_NVTX_REGISTER_W, register_wide),
};

/* NVTX calls this once for each library of the program that has NVTX compiled in. Returns 0 if it cannot be served. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const ffm_nvtx_callbacks *callbacks = export_table(FFM_NVTX_CALLBACKS);
    if (callbacks == NULL || callbacks->bytes < sizeof *callbacks)
        return 0;
    pthread_once(&once, follow_forks);
    find_mark();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        ffm_nvtx_function **table = NULL;
        unsigned size = 0;
        if (callbacks->function_table(answers[i].module, &table, &size) != 0 && table != NULL &&
            (unsigned)answers[i].function < size && table[answers[i].function] != NULL)
            *table[answers[i].function] = answers[i].ours;
    }
    return 1;
}

#include "mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernel.h"

enum { KNOWN = 64, LINE = 512 };
enum { SOME = 1024, MORE = 4096 }; /* bytes; the kernel gives no more than a page at once */

/* Private stretches of memory without gaps that were found. */
static struct {
    pthread_mutex_t lock;
    uint64_t generation; /* incremented when mappings change */
    uint64_t read;       /* generation of `known` */
    uint32_t count;
    struct {
        uint64_t start, end;
    } known[KNOWN];
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_mappings_changed(void)
{
    __atomic_add_fetch(&mappings.generation, 1, __ATOMIC_RELAXED);
}

static bool inherited; /* by a child, or from a parent */

void ffm_mappings_inherited(void)
{
    __atomic_store_n(&inherited, true, __ATOMIC_RELAXED);
    ffm_mappings_changed();
}

/* A line of /proc/self/maps: start-end permissions offset device inode path. Returns whether the memory is private to
 * this process. So is anonymous shared memory before the first fork: a child that is forked later relies on what the
 * process had waited for by then. */
static bool parse(const char *line, uint64_t *from, uint64_t *to)
{
    char permissions[5], path[32] = "";
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %31s", from, to, permissions, path) < 3)
        return false;
    return permissions[3] == 'p' || (strcmp(path, "/dev/zero") == 0 && !__atomic_load_n(&inherited, __ATOMIC_RELAXED));
}

/* /proc/self/maps, line by line. Not by the C library, whose buffer would be on the heap, on a page that may be closed.
 */
typedef struct {
    int64_t file, length, at; /* of the text */
    char text[SOME], line[LINE];
} lines;

static const char path_of_maps[] = "/proc/self/maps";

static int64_t open_maps(void)
{
    return ffm_kernel(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)path_of_maps, O_RDONLY | O_CLOEXEC, 0);
}

/* False at the end. What is too long for a line is left out. */
static bool next_line(lines *of)
{
    for (size_t used = 0;;) {
        if (of->at == of->length) {
            of->length = ffm_kernel(SYS_read, (uint64_t)of->file, (uint64_t)of->text, sizeof of->text, 0);
            of->at = 0;
        }
        if (of->length <= 0)
            return false;
        const char letter = of->text[of->at++];
        of->line[used] = letter == '\n' ? 0 : letter;
        if (letter == '\n')
            return true;
        used += used < sizeof of->line - 1;
    }
}

/* How far private memory extends around `address`; false if the address is shared or unmapped. */
static bool private_around(uint64_t address, uint64_t *start, uint64_t *end)
{
    lines maps = {.file = open_maps()};
    uint64_t from, to;
    bool found = false;
    *start = *end = 0;
    while (maps.file >= 0 && next_line(&maps)) {
        bool alone = parse(maps.line, &from, &to);
        if (!alone || from != *end) {
            if (found)
                break;
            *start = from;
        }
        *end = alone ? to : 0;
        found = found || (alone && address >= *start && address < to);
    }
    if (maps.file >= 0)
        ffm_kernel(SYS_close, (uint64_t)maps.file, 0, 0, 0);
    return found;
}

bool ffm_mappings_shared(uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&mappings.lock);
    uint64_t now = __atomic_load_n(&mappings.generation, __ATOMIC_RELAXED);
    if (mappings.read != now)
        mappings.count = 0;
    mappings.read = now;
    bool alone = false;
    for (uint32_t i = 0; i < mappings.count && !alone; i++)
        alone = mappings.known[i].start <= start && end <= mappings.known[i].end;
    uint64_t from, to;
    if (!alone && private_around(start, &from, &to)) {
        alone = end <= to;
        if (mappings.count == KNOWN)
            mappings.count = 0;
        mappings.known[mappings.count].start = from;
        mappings.known[mappings.count++].end = to;
    }
    pthread_mutex_unlock(&mappings.lock);
    return !alone;
}

typedef enum { START, END, PERMISSIONS, OFFSET, DEVICE, FILE_NUMBER, PATH } column;

/* Reads the start of each line, whichever part of the file `text` is. Of the line that is found, reads everything if
 * `whole`. */
typedef struct {
    uint64_t address, start, end;
    column at;
    uint32_t letter; /* of the permissions */
    bool whole, found, over;
    bool readable, writable, is_private, numbered;
    char last;
    ffm_mapped *all; /* gets each mapping; NULL if only the one at the address is wanted */
} search;

static void note(ffm_mapped *all, uint64_t start, uint64_t end)
{
    if (all->count > 0 && all->stretches[all->count - 1].end == start) {
        all->stretches[all->count - 1].end = end;
    } else if (all->count < FFM_MAPPED_STRETCHES) {
        all->stretches[all->count].start = start;
        all->stretches[all->count++].end = end;
    } else {
        all->unknown = true;
    }
}

static uint64_t digit(char letter)
{
    return (uint64_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

/* Permissions are four letters: rwxp, or s for shared memory. */
static void look_at_permission(search *wanted, char letter)
{
    switch (wanted->letter++) {
    case 0:
        wanted->readable = letter == 'r';
        wanted->found = wanted->start <= wanted->address && wanted->address < wanted->end;
        wanted->over = wanted->found && !wanted->whole;
        if (wanted->all != NULL)
            note(wanted->all, wanted->start, wanted->end);
        break;
    case 1:
        wanted->writable = letter == 'w';
        break;
    case 3:
        wanted->is_private = letter == 'p';
        break;
    default:
        break;
    }
}

static void look_at_letter(search *wanted, char letter)
{
    switch (wanted->at) {
    case START:
        wanted->start = wanted->start << 4 | digit(letter);
        break;
    case END:
        wanted->end = wanted->end << 4 | digit(letter);
        break;
    case PERMISSIONS:
        look_at_permission(wanted, letter);
        break;
    case FILE_NUMBER:
        wanted->numbered = wanted->numbered || letter != '0';
        break;
    default:
        break;
    }
}

static void look(search *wanted, const char *text, int64_t length)
{
    for (int64_t i = 0; i < length && !wanted->over; i++) {
        const bool separates = wanted->at == START ? text[i] == '-' : text[i] == ' ' && wanted->at != PATH;
        if (text[i] == '\n' && wanted->found) {
            wanted->over = true;
        } else if (text[i] == '\n') {
            wanted->at = START;
            wanted->start = wanted->end = wanted->letter = 0;
            wanted->numbered = false;
        } else if (separates) {
            wanted->at++;
        } else {
            look_at_letter(wanted, text[i]);
            wanted->last = text[i];
        }
    }
}

/* Returns whether the file could be read up to what was wanted, in pieces of `text`. */
static bool read_until_found(search *wanted, char *text, size_t bytes)
{
    int64_t length;
    const int64_t file = open_maps();
    if (file < 0)
        return false;
    do {
        length = ffm_kernel(SYS_read, (uint64_t)file, (uint64_t)text, bytes, 0);
        look(wanted, text, length);
    } while (length > 0 && !wanted->over);
    ffm_kernel(SYS_close, (uint64_t)file, 0, 0, 0);
    return length >= 0;
}

static search mapping_of(uint64_t address)
{
    char text[SOME];
    search wanted = {.address = address};
    read_until_found(&wanted, text, sizeof text);
    return wanted;
}

ffm_mapping ffm_mappings_at(uint64_t address)
{
    char text[SOME];
    search wanted = {.address = address, .whole = true};
    if (!read_until_found(&wanted, text, sizeof text) || !wanted.found)
        return (ffm_mapping){0};
    return (ffm_mapping){.start = wanted.start,
                         .end = wanted.end,
                         .writable = wanted.writable,
                         .is_private = wanted.is_private,
                         .of_file = wanted.numbered && wanted.last != ')'};
}

void ffm_mappings_all(ffm_mapped *mapped)
{
    char text[MORE];
    search nothing = {.address = UINT64_MAX, .all = mapped};
    mapped->count = 0;
    mapped->unknown = false;
    if (!read_until_found(&nothing, text, sizeof text))
        mapped->unknown = true;
}

bool ffm_mapped_may_hold(const ffm_mapped *mapped, uint64_t address)
{
    uint32_t first = 0, behind = mapped->count;
    while (first < behind) {
        const uint32_t middle = first + (behind - first) / 2;
        if (mapped->stretches[middle].end <= address)
            first = middle + 1;
        else
            behind = middle;
    }
    return mapped->unknown || (first < mapped->count && mapped->stretches[first].start <= address);
}

bool ffm_mappings_around(uint64_t address, uint64_t *start, uint64_t *end)
{
    const search found = mapping_of(address);
    *start = found.start;
    *end = found.end;
    return found.found;
}

bool ffm_mappings_readable(uint64_t start, uint64_t end)
{
    while (start < end) {
        const search found = mapping_of(start);
        if (!found.found || !found.readable)
            return false;
        start = found.end;
    }
    return true;
}

void ffm_mappings_after_fork(void)
{
    pthread_mutex_init(&mappings.lock, NULL);
    ffm_mappings_changed();
}

#include "device_writes.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "address_halves.h"
#include "clock.h"
#include "given_lists.h"
#include "graphs.h"
#include "intervals.h"
#include "launches.h"
#include "loaded_code.h"
#include "new_pages.h"
#include "sink.h"

enum { CAPACITY = 1 << 15 };

/* Allocations that lead to each other form a group. Those that any kernel may find, because their addresses are in
 * unknown memory, form the group ANYONES. */
enum { ANYONES = 0 };

static struct {
    pthread_mutex_t lock;
    ffm_intervals tree;
    uint32_t *group;   /* of the allocation with a number */
    uint64_t *written; /* when a kernel that leads to a group was last launched; 0 if none was */
    uint32_t *members; /* of a group */
    uint32_t *unused;  /* numbers that were returned */
    uint32_t returned, highest;
    uint64_t low, high; /* all allocations are in between */
    uint64_t launched;  /* the last kernel */
    bool unknown;       /* any kernel may have written everything */
    bool shared;        /* other processes may write at any time */
    bool kept;          /* a kernel may keep addresses in variables, where any kernel may find them */
    bool asked;         /* the program knows addresses of variables, which kernels may then be given */
    uint64_t added;     /* how many allocations */
    ffm_stream records;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER, .low = UINT64_MAX};

/* Numbers start at 1; there is a group for each, and ANYONES. */
static bool open(void)
{
    const size_t numbers = CAPACITY + 1,
                 bytes = numbers * (sizeof *device.tree.nodes + sizeof *device.written + 3 * sizeof(uint32_t));
    if (device.group != NULL)
        return true;
    char *pages = ffm_new_pages(bytes);
    if (pages == NULL)
        return false;
    device.written = (uint64_t *)pages;
    device.tree.nodes = (ffm_interval *)(device.written + numbers);
    device.group = (uint32_t *)(device.tree.nodes + numbers);
    device.members = device.group + numbers;
    device.unused = device.members + numbers;
    return true;
}

static uint32_t free_group(void)
{
    uint32_t group = 1;
    while (device.members[group] != 0)
        group++;
    return group;
}

static void remove_number(uint32_t number)
{
    ffm_intervals_remove(&device.tree, number);
    device.members[device.group[number]]--;
    device.group[number] = ANYONES;
    device.unused[device.returned++] = number;
}

/* What is still known there was freed unseen, as when a context ends. */
static void remove_overlapping(uint64_t start, uint64_t end)
{
    uint32_t number;
    while ((number = ffm_intervals_around(&device.tree, start)) != 0)
        remove_number(number);
    while ((number = ffm_intervals_from(&device.tree, start)) != 0 && device.tree.nodes[number].start < end)
        remove_number(number);
}

static void add(uint64_t start, uint64_t bytes)
{
    if (!open() || (device.returned == 0 && device.highest == CAPACITY)) {
        device.unknown = true;
        return;
    }
    remove_overlapping(start, start + bytes);
    const uint32_t number = device.returned > 0 ? device.unused[--device.returned] : ++device.highest;
    const uint32_t group = free_group();
    ffm_intervals_add(&device.tree, number, start, start + bytes);
    device.group[number] = group;
    device.members[group] = 1;
    device.written[group] = 0;
    __atomic_store_n(&device.added, device.added + 1, __ATOMIC_RELEASE);
    const uint64_t before = bytes > FFM_LARGEST_ELEMENT ? bytes : FFM_LARGEST_ELEMENT;
    if (start - before < device.low)
        device.low = start - before;
    if (start + bytes > device.high)
        device.high = start + bytes;
}

/* The allocation that contains an address; 0 if none is known. */
static uint32_t find(uint64_t address)
{
    return device.group == NULL ? 0 : ffm_intervals_around(&device.tree, address);
}

static void join(uint32_t to, uint32_t from)
{
    if (to == from)
        return;
    for (uint32_t number = 1; number <= device.highest && device.members[from] > 0; number++) {
        if (device.group[number] != from)
            continue;
        device.group[number] = to;
        device.members[from]--;
        device.members[to]++;
    }
    if (device.written[from] > device.written[to])
        device.written[to] = device.written[from];
}

static void record(uint32_t one, uint32_t other)
{
    ffm_joined *out = ffm_sink_reserve(&device.records, FFM_CHUNK_JOINED, 0, sizeof *out);
    if (out == NULL)
        return;
    *out = (ffm_joined){one == 0 ? 0 : device.tree.nodes[one].start, other == 0 ? 0 : device.tree.nodes[other].start};
    ffm_sink_commit(&device.records, sizeof *out);
}

/* What one of them leads to, the other may lead to. */
static void join_numbers(uint32_t one, uint32_t other)
{
    const uint32_t first = one == 0 ? ANYONES : device.group[one], second = other == 0 ? ANYONES : device.group[other];
    if (first != second)
        record(one, other);
    if (first == ANYONES)
        join(first, second);
    else
        join(second, first);
}

/* The allocation that an address is in, or at the end of, where no other begins; 0 if there is none. */
static uint32_t reached(uint64_t address)
{
    const uint32_t found = find(address);
    return found != 0 ? found : find(address - 1);
}

/* The allocation that an address lies before: by one element, or by rows if it is in no other allocation, as in an
 * array whose rows count from one; 0 if there is none. */
static uint32_t ahead(uint64_t address)
{
    uint32_t found = reached(address + FFM_LARGEST_ELEMENT);
    if (found != 0 || device.group == NULL || reached(address) != 0)
        return found;
    found = ffm_intervals_from(&device.tree, address);
    const ffm_interval *next = &device.tree.nodes[found];
    return found != 0 && next->start - address <= next->end - next->start ? found : 0;
}

static void join_found(uint32_t found, uint32_t known)
{
    if (found != 0)
        join_numbers(known, found);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* What is found in the parameters of a kernel. */
typedef struct {
    bool any;
    uint32_t number;
    uint64_t start;
    ffm_given_words given;
} led;

/* It is not known which of two allocations a word means: then no list says what the kernel is given. */
static void give(ffm_given_words *given, ffm_given_word word)
{
    const bool either =
        given->count > 0 && given->count <= FFM_MOST_GIVEN && given->words[given->count - 1].offset == word.offset;
    if (given->count < FFM_MOST_GIVEN && !either)
        given->words[given->count] = word;
    given->count = either ? FFM_MOST_GIVEN + 1 : given->count + 1;
}

static void lead(led *to, uint32_t found, uint64_t offset)
{
    if (to->any)
        join_numbers(to->number, found);
    to->any = true;
    to->number = found;
    to->start = device.tree.nodes[found].start;
    give(&to->given, (ffm_given_word){offset, to->start});
}

static void parameter(uint64_t word, uint64_t offset, void *opaque)
{
    led *to = opaque;
    pthread_mutex_lock(&device.lock);
    const uint32_t found = reached(word), counted = ahead(word);
    if (found != 0)
        lead(to, found, offset);
    if (counted != 0 && counted != found)
        lead(to, counted, offset);
    pthread_mutex_unlock(&device.lock);
}

/* Whether it uses host memory, which may contain any address; or it is not known what it uses. */
static bool beyond(ffm_kernel_reach *reach)
{
    ffm_block block;
    const bool found = reach->all || reach->pageable || ffm_kernel_next(reach, &block);
    reach->next = 0;
    return found;
}

/* A kernel may store the addresses of the host memory that it uses in all other memory that it uses, where any kernel
 * may find them. */
static void hand_over(ffm_kernel_reach *reach, bool uses_device)
{
    ffm_block block;
    uint32_t first = 0;
    for (uint32_t count = 1; ffm_kernel_next(reach, &block); count++) {
        if (count == 1)
            first = reach->next - 1;
        if (count == 2)
            ffm_blocks_hand(first);
        if (count >= 2 || uses_device)
            ffm_blocks_hand(reach->next - 1);
    }
}

/* Record in a launch what its parameters lead to, and what they are. */
static void launch(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    led to = {0};
    ffm_kernel_reach reach = {.each = parameter, .context = &to};
    const bool graph = ffm_graphs_launched(function);
    const bool without =
        function->effect == FFM_EFFECT_LAUNCH_KERNEL && ffm_loaded_code_lacks_variables(arguments[function->handle]);
    ffm_launch_scan(&reach, function, arguments);
    const bool known = !graph && !beyond(&reach),
               everything = !known || __atomic_load_n(&device.unknown, __ATOMIC_RELAXED);
    const uint64_t now = ffm_now();
    pthread_mutex_lock(&device.lock);
    const bool keeps = device.kept && (device.asked || !without);
    device.launched = now;
    if (everything)
        device.unknown = true;
    if (device.group != NULL) {
        if (to.any && (device.members[ANYONES] > 0 || keeps))
            join_numbers(0, to.number);
        device.written[ANYONES] = now;
        if (to.any)
            device.written[device.group[to.number]] = now;
    }
    const bool uses_device = graph || to.any || keeps;
    pthread_mutex_unlock(&device.lock);
    if (!known)
        hand_over(&reach, uses_device);
    operation->destination = everything ? 0 : to.any ? to.start : FFM_LEADS_NOWHERE;
    operation->source = known ? ffm_given_list(&to.given) : 0;
    operation->bytes = without ? FFM_CODE_WITHOUT_VARIABLES : 0;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static void copy_on_device(const ffm_copy *copy)
{
    pthread_mutex_lock(&device.lock);
    const uint32_t from = find(copy->source.address), to = find(copy->destination.address);
    if (from != 0 || to != 0)
        join_numbers(from, to);
    pthread_mutex_unlock(&device.lock);
}

static void receive(uint64_t destination, uint64_t word)
{
    if (word - device.low > device.high - device.low)
        return;
    pthread_mutex_lock(&device.lock);
    const uint32_t into = find(destination);
    join_found(reached(word), into);
    join_found(ahead(word), into);
    pthread_mutex_unlock(&device.lock);
}

/* Addresses are aligned on the device, or made of two halves that are. */
void ffm_device_writes_upload(uint64_t destination, const void *words, uint64_t count)
{
    const char *bytes = words;
    if (device.group == NULL || __atomic_load_n(&device.unknown, __ATOMIC_RELAXED))
        return;
    const ffm_halves halves = ffm_halves_between(device.low, device.high);
    for (uint64_t upper = -destination % sizeof(uint32_t) + sizeof(uint32_t); upper + sizeof(uint32_t) <= count;) {
        if (upper + FFM_HALVES_AT_ONCE <= count && !ffm_halves_any(bytes + upper, halves)) {
            upper += FFM_HALVES_AT_ONCE;
            continue;
        }
        const uint64_t end = upper + FFM_HALVES_AT_ONCE;
        for (; upper < end && upper + sizeof(uint32_t) <= count; upper += sizeof(uint32_t)) {
            uint64_t word;
            memcpy(&word, bytes + upper - sizeof(uint32_t), sizeof word);
            receive(destination, word);
        }
    }
}

uint64_t ffm_device_writes_added(void)
{
    return __atomic_load_n(&device.added, __ATOMIC_ACQUIRE);
}

void ffm_device_writes_kept(void)
{
    pthread_mutex_lock(&device.lock);
    device.kept = true;
    pthread_mutex_unlock(&device.lock);
}

void ffm_device_writes_unknown(void)
{
    __atomic_store_n(&device.unknown, true, __ATOMIC_RELAXED);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void ffm_device_writes_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    ffm_copy copy;
    if (function->kind == FFM_KIND_LAUNCH)
        launch(function, arguments, operation);
    else if (function->kind == FFM_KIND_TRANSFER)
        for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++)
            if (!copy.source.host && !copy.destination.host)
                copy_on_device(&copy);
}

/* Memory that may have two addresses. */
static bool mapped(const ffm_function *function)
{
    return function->kind == FFM_KIND_ALLOCATION && function->memory == FFM_MEMORY_MAPPED;
}

static bool shared(const ffm_function *function)
{
    return function->kind == FFM_KIND_SHARING ||
           (function->kind == FFM_KIND_ALLOCATION && function->memory == FFM_MEMORY_IMPORTED);
}

static bool on_device(const ffm_function *function)
{
    return function->memory == FFM_MEMORY_DEVICE || function->memory == FFM_MEMORY_ASYNCHRONOUS;
}

/* Any kernel may write there. */
static void view(uint64_t address)
{
    pthread_mutex_lock(&device.lock);
    const uint32_t number = find(address);
    if (number != 0)
        join(ANYONES, device.group[number]);
    pthread_mutex_unlock(&device.lock);
}

static void find_variable(void)
{
    pthread_mutex_lock(&device.lock);
    device.asked = true;
    pthread_mutex_unlock(&device.lock);
}

void ffm_device_writes_after(const ffm_function *function, const ffm_operation *operation)
{
    if (mapped(function))
        ffm_device_writes_unknown();
    if (shared(function) && operation->result == 0)
        __atomic_store_n(&device.shared, true, __ATOMIC_RELAXED);
    if (operation->result == 0 && function->effect == FFM_EFFECT_VIEW_FOR_WRITING)
        view(operation->source);
    if (operation->result == 0 && function->effect == FFM_EFFECT_FIND_VARIABLE)
        find_variable();
    if (operation->result != 0 || operation->destination == 0 || !on_device(function))
        return;
    pthread_mutex_lock(&device.lock);
    if (function->kind == FFM_KIND_ALLOCATION && operation->bytes != 0) {
        add(operation->destination, operation->bytes);
    } else if (function->kind == FFM_KIND_FREE) {
        const uint32_t number = find(operation->destination);
        if (number != 0 && device.tree.nodes[number].start == operation->destination)
            remove_number(number);
    }
    pthread_mutex_unlock(&device.lock);
}

uint64_t ffm_device_writes_last(const ffm_box *box)
{
    if (__atomic_load_n(&device.shared, __ATOMIC_RELAXED))
        return ffm_now();
    pthread_mutex_lock(&device.lock);
    const uint32_t number = find(box->address);
    uint64_t last = FFM_WRITES_UNKNOWN;
    if (number != 0 && ffm_box_end(box) <= device.tree.nodes[number].end)
        last = device.unknown ? device.launched : device.written[device.group[number]];
    pthread_mutex_unlock(&device.lock);
    return last;
}

void ffm_device_writes_after_fork(void)
{
    pthread_mutex_init(&device.lock, NULL);
    ffm_sink_release(&device.records);
    device.records = (ffm_stream){0};
    ffm_given_lists_after_fork();
}

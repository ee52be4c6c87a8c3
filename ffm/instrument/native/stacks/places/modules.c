#include "modules.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "notes.h"
#include "sink.h"
#include "unwinding.h"

enum { MODULES = 4096 };

/* A module's load base is its lowest mapped address, as in /proc/PID/maps; its code is found by its segments. */
typedef struct {
    ffm_module_place place;
    uint64_t low;
    uint64_t high;
} known_module;

static struct {
    pthread_mutex_t lock;
    ffm_stream stream;
    uint32_t generation;
    uint32_t count;    /* known now */
    uint32_t recorded; /* numbers assigned */
    known_module known[MODULES];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct {
    uint64_t address;
    bool found;
    known_module module;
    uint32_t build_id_bytes;
    char path[1024];
} search;

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    search *wanted = data;
    uint64_t low = UINT64_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        if (start < low)
            low = start;
        if (start + segment->p_memsz > high)
            high = start + segment->p_memsz;
    }
    if (wanted->address < low || wanted->address >= high)
        return 0;
    low &= ~(uint64_t)4095;
    wanted->found = true;
    wanted->module = (known_module){.place = {.base = low}, .low = low, .high = high};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE && wanted->build_id_bytes == 0)
            wanted->build_id_bytes = ffm_notes_build_id((const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                                        info->dlpi_phdr[i].p_memsz, wanted->module.place.build_id);
    if (info->dlpi_name[0] != '\0') {
        snprintf(wanted->path, sizeof wanted->path, "%s", info->dlpi_name);
    } else {
        ssize_t length = readlink("/proc/self/exe", wanted->path, sizeof wanted->path - 1);
        wanted->path[length < 0 ? 0 : length] = '\0';
    }
    return 1;
}

static void record(const search *found, uint32_t number)
{
    size_t length = strlen(found->path);
    size_t padded = (length + 7) & ~(size_t)7;
    ffm_module *out = ffm_sink_reserve(&modules.stream, FFM_CHUNK_MODULES, 0, sizeof *out + padded);
    if (out == NULL)
        return;
    *out = (ffm_module){.number = number,
                        .path_bytes = (uint32_t)length,
                        .base = found->module.place.base,
                        .build_id_bytes = found->build_id_bytes};
    memcpy(out->build_id, found->module.place.build_id, FFM_BUILD_ID_BYTES);
    memcpy(out + 1, found->path, length);
    ffm_sink_commit(&modules.stream, sizeof *out + padded);
}

ffm_module_place ffm_module_of(uint64_t address)
{
    ffm_module_place place = {.number = FFM_NO_MODULE};
    pthread_mutex_lock(&modules.lock);
    for (uint32_t i = 0; i < modules.count; i++) {
        if (address >= modules.known[i].low && address < modules.known[i].high) {
            place = modules.known[i].place;
            pthread_mutex_unlock(&modules.lock);
            return place;
        }
    }
    search wanted = {.address = address};
    ffm_unwinding_begin();
    dl_iterate_phdr(visit, &wanted);
    ffm_unwinding_end();
    if (wanted.found && modules.count < MODULES) {
        wanted.module.place.number = modules.recorded++;
        modules.known[modules.count++] = wanted.module;
        record(&wanted, wanted.module.place.number);
        place = wanted.module.place;
    }
    pthread_mutex_unlock(&modules.lock);
    return place;
}

void ffm_modules_forget(void)
{
    pthread_mutex_lock(&modules.lock);
    modules.count = 0;
    __atomic_add_fetch(&modules.generation, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&modules.lock);
}

uint32_t ffm_modules_generation(void)
{
    return __atomic_load_n(&modules.generation, __ATOMIC_RELAXED);
}

void ffm_modules_after_fork(void)
{
    pthread_mutex_init(&modules.lock, NULL);
    ffm_sink_release(&modules.stream);
    modules.stream = (ffm_stream){0};
    modules.count = 0;
    modules.recorded = 0;
}

#include "counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static ffm_remedy_counters nowhere;
static ffm_remedy_tally lost[1];
static ffm_remedy_trial untold[1];
static char folder_name[2048];
static uint32_t site_count;

ffm_remedy_counters *ffm_counters = &nowhere;
ffm_remedy_tally *ffm_tallies = lost;
ffm_remedy_trial *ffm_trials = untold;

static size_t file_bytes(void)
{
    return sizeof *ffm_counters + site_count * (sizeof *ffm_tallies + sizeof *ffm_trials);
}

static void divide(void *pages)
{
    ffm_counters = pages;
    ffm_tallies = (ffm_remedy_tally *)(ffm_counters + 1);
    ffm_trials = (ffm_remedy_trial *)(ffm_tallies + site_count);
}

bool ffm_counters_open(const char *folder, uint32_t sites)
{
    if (folder != folder_name)
        snprintf(folder_name, sizeof folder_name, "%s", folder);
    site_count = sites;
    char path[2200];
    size_t bytes = file_bytes();
    /* A process that replaces itself by exec keeps its number, so the name may be taken. */
    int file = -1;
    for (int attempt = 0; file < 0 && attempt < 1000; attempt++) {
        snprintf(path, sizeof path, "%s/remedy-%d-%d.ffm", folder_name, (int)getpid(), attempt);
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (file < 0)
        return false;
    void *pages = MAP_FAILED;
    /* Reserve the space now, so that a full disk is an error here and not a SIGBUS in the program. */
    if (posix_fallocate(file, 0, (off_t)bytes) == 0)
        pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (pages == MAP_FAILED)
        return false;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    divide(pages);
    ffm_counters->version = FFM_REMEDY_VERSION;
    ffm_counters->process_id = (uint32_t)getpid();
    ffm_counters->sites = sites;
    ffm_counters->started = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    memcpy(ffm_counters->magic, "FFMREMED", sizeof ffm_counters->magic);
    return true;
}

void ffm_counters_after_fork(void)
{
    munmap(ffm_counters, file_bytes());
    ffm_counters = &nowhere;
    ffm_tallies = NULL;
    ffm_trials = NULL;
    if (!ffm_counters_open(folder_name, site_count)) {
        void *pages = mmap(NULL, file_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            _exit(1); /* not a single page is left: the child could not run either */
        divide(pages);
    }
}

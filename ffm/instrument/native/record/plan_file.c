#include "plan_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_whole(const ffm_plan_header *header, size_t bytes, const ffm_plan_kind *kind)
{
    return memcmp(header->magic, kind->magic, sizeof header->magic) == 0 && header->version == kind->version &&
           (bytes - kind->header_bytes) % kind->record_bytes == 0 &&
           (bytes - kind->header_bytes) / kind->record_bytes == header->count;
}

const ffm_plan_header *ffm_plan_file_map(const char *path, const ffm_plan_kind *kind)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold the program up */
    struct stat status;
    if (file < 0)
        return NULL;
    const bool sound =
        fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size >= kind->header_bytes;
    const size_t bytes = sound ? (size_t)status.st_size : 0;
    void *pages = sound ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (pages == MAP_FAILED)
        return NULL;
    if (is_whole(pages, bytes, kind))
        return pages;
    munmap(pages, bytes);
    return NULL;
}

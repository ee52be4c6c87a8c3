#include "code_image.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "containers.h"
#include "kernel.h"
#include "machine_code.h"
#include "machine_instruction.h"
#include "new_pages.h"
#include "parameter_flow.h"

enum { LARGEST = 1 << 30, HEADER = 64, WORD = 8 };

/* A kernel, followed by its code, and by a bit for each byte of its parameters that it reads. */
typedef struct {
    XXH128_hash_t name;
    uint64_t text_bytes;
    uint32_t bytes, architecture;
    bool asserts, variables; /* as ffm_kernel_code */
    uint64_t size;           /* of all */
} known_kernel;

typedef int (*attribute_function)(int *, uint32_t, int);

static attribute_function device_attribute;

void ffm_code_image_ask(void *function)
{
    device_attribute = (attribute_function)(uintptr_t)function;
}

/* By the kernel, which refuses what is not mapped. */
static bool copy(void *to, uint64_t from, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    const uint64_t arguments[6] = {(uint64_t)getpid(), (uint64_t)&here, 1, (uint64_t)&there, 1, 0};
    return ffm_kernel_call(SYS_process_vm_readv, arguments) == (int64_t)bytes;
}

/* In pages of its own; NULL if that is not possible. */
static uint8_t *copy_of(uint64_t address, size_t bytes)
{
    uint8_t *code = bytes == 0 || bytes > LARGEST ? NULL : ffm_new_pages(bytes);
    if (code == NULL || copy(code, address, bytes))
        return code;
    munmap(code, bytes);
    return NULL;
}

static void keep(const ffm_kernel_code *code, void *context)
{
    ffm_code_image *image = context;
    const size_t bits = (code->bytes + 7) / 8, align = sizeof(uint64_t);
    const size_t size = (sizeof(known_kernel) + code->text_bytes + bits + align - 1) / align * align;
    if (size > image->room - image->used)
        return;
    const known_kernel kernel = {XXH3_128bits(code->name, strlen(code->name)),
                                 code->text_bytes,
                                 code->bytes,
                                 code->architecture,
                                 code->asserts,
                                 code->variables,
                                 size};
    char *place = image->kernels + image->used;
    memcpy(place, &kernel, sizeof kernel);
    memcpy(place + sizeof kernel, code->text, code->text_bytes);
    memcpy(place + sizeof kernel + code->text_bytes, code->read, bits);
    image->used += size;
}

/* The kernels take less room than the code, which has a section header for each and for its parameters. */
static void make_room(ffm_code_image *image, size_t bytes)
{
    image->kernels = bytes > LARGEST ? NULL : ffm_new_pages(bytes);
    image->room = image->kernels == NULL ? 0 : bytes;
}

/* A GPU runs machine code of its own generation that is not for a later one. */
static bool runs_here(uint32_t architecture)
{
    int major, minor;
    for (int device = 0;
         device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == CUDA_SUCCESS &&
         device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) == CUDA_SUCCESS;
         device++)
        if (architecture / 10 == (uint32_t)major && architecture % 10 <= (uint32_t)minor)
            return true;
    return false;
}

static bool next(const uint8_t *container, size_t bytes, size_t *place, ffm_contained_code *code)
{
    while (ffm_container_next(container, bytes, place, code))
        if (runs_here(code->architecture))
            return true;
    return false;
}

static bool read_packed(const ffm_contained_code *code, ffm_code_image *image)
{
    uint8_t *plain = ffm_new_pages(code->plain);
    const bool whole = plain != NULL && ffm_container_unpack(code, plain);
    if (whole)
        ffm_machine_code_kernels(plain, code->plain, keep, image);
    if (plain != NULL)
        munmap(plain, code->plain);
    return whole;
}

/* If a GPU can run several, the driver chooses one. With CUDA_FORCE_PTX_JIT it compiles PTX instead. */
static void read_container(const uint8_t *container, size_t bytes, ffm_code_image *image)
{
    ffm_contained_code code;
    size_t all = 0;
    if (device_attribute == NULL || getenv("CUDA_FORCE_PTX_JIT") != NULL)
        return;
    for (size_t place = 0; next(container, bytes, &place, &code); image->codes++)
        all += code.plain;
    make_room(image, all);
    for (size_t place = 0; image->room != 0 && next(container, bytes, &place, &code);)
        if (!read_packed(&code, image))
            ffm_code_image_free(image);
}

static void read_machine_code(const uint8_t *code, size_t bytes, ffm_code_image *image)
{
    image->codes = 1;
    make_room(image, bytes);
    if (image->room != 0)
        ffm_machine_code_kernels(code, bytes, keep, image);
}

static void give_back_the_rest(ffm_code_image *image)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = (image->used + page - 1) / page * page;
    const size_t whole = (image->room + page - 1) / page * page;
    if (kept < whole)
        munmap(image->kernels + kept, whole - kept);
    image->room = kept;
}

ffm_code_image ffm_code_image_read(uint64_t address)
{
    ffm_code_image image = {.codes = 0};
    uint8_t begin[HEADER];
    if (!copy(begin, address, sizeof begin))
        return image;
    address = ffm_container_within(begin, address);
    if (!copy(begin, address, sizeof begin))
        return image;
    const size_t contained = ffm_container_bytes(begin);
    const size_t bytes = contained != 0 ? contained : ffm_machine_code_bytes(begin, sizeof begin);
    uint8_t *code = copy_of(address, bytes);
    if (code == NULL)
        return image;
    if (contained != 0)
        read_container(code, bytes, &image);
    else
        read_machine_code(code, bytes, &image);
    munmap(code, bytes);
    give_back_the_rest(&image);
    return image;
}

/* It never reads some byte of the address, or does not use the upper half as that of an address. */
static bool ignores(const char *place, const known_kernel *kernel, uint64_t offset, uint64_t word)
{
    const uint8_t *text = (const uint8_t *)place + sizeof *kernel, *read = text + kernel->text_bytes;
    for (uint64_t byte = offset; byte < offset + FFM_ADDRESS_BYTES && byte < kernel->bytes; byte++)
        if ((read[byte / 8] & 1 << byte % 8) == 0)
            return true;
    return word >> 32 != 0 && offset + WORD <= kernel->bytes &&
           !ffm_may_be_address(kernel->architecture, text, kernel->text_bytes,
                               ffm_parameters_begin(kernel->architecture) + (uint32_t)offset + WORD / 2,
                               kernel->asserts);
}

/* What is asked about a kernel: whether it ignores a word, whether it uses no variables, or nothing. */
typedef struct {
    bool word_ignored, no_variables;
    uint64_t offset, word;
} asked;

static bool is_so(const char *place, const known_kernel *kernel, const asked *about)
{
    if (about->no_variables)
        return !kernel->variables;
    return !about->word_ignored || ignores(place, kernel, about->offset, about->word);
}

/* Whether the kernel is known in all of the machine code, and what is asked is so there. */
static bool holds_everywhere(const ffm_code_image *image, const char *kernel, const asked about)
{
    const XXH128_hash_t name = XXH3_128bits(kernel, strlen(kernel));
    known_kernel one;
    uint32_t found = 0;
    for (size_t place = 0; place < image->used; place += one.size) {
        memcpy(&one, image->kernels + place, sizeof one);
        if (XXH128_isEqual(one.name, name)) {
            if (!is_so(image->kernels + place, &one, &about))
                return false;
            found++;
        }
    }
    return found != 0 && found == image->codes;
}

bool ffm_code_image_ignores(const ffm_code_image *image, const char *kernel, uint64_t offset, uint64_t word)
{
    return holds_everywhere(image, kernel, (asked){.word_ignored = true, .offset = offset, .word = word});
}

bool ffm_code_image_reads(const ffm_code_image *image, const char *kernel, const ffm_given_values *given,
                          ffm_values_read *result)
{
    const XXH128_hash_t name = XXH3_128bits(kernel, strlen(kernel));
    known_kernel one;
    uint32_t found = 0;
    memset(result, 0, sizeof *result);
    for (size_t place = 0; place < image->used; place += one.size) {
        memcpy(&one, image->kernels + place, sizeof one);
        if (!XXH128_isEqual(one.name, name))
            continue;
        const uint8_t *text = (const uint8_t *)image->kernels + place + sizeof one;
        ffm_values_read own;
        if (!ffm_parameter_values(one.architecture, text, one.text_bytes, given, &own))
            return false;
        for (size_t i = 0; i < sizeof own.read; i++)
            result->read[i] |= own.read[i];
        for (size_t i = 0; i < sizeof own.matters; i++)
            result->matters[i] |= own.matters[i];
        found++;
    }
    return found != 0 && found == image->codes;
}

bool ffm_code_image_knows(const ffm_code_image *image, const char *kernel)
{
    return holds_everywhere(image, kernel, (asked){.word_ignored = false});
}

bool ffm_code_image_lacks_variables(const ffm_code_image *image, const char *kernel)
{
    return holds_everywhere(image, kernel, (asked){.no_variables = true});
}

void ffm_code_image_free(ffm_code_image *image)
{
    if (image->room != 0)
        munmap(image->kernels, image->room);
    *image = (ffm_code_image){.codes = 0};
}

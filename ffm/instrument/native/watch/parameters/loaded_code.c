#include "loaded_code.h"

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "code_image.h"
#include "contexts.h"
#include "kernel_name.h"
#include "new_pages.h"
#include "unread.h"

enum { MOST_IMAGES = 1 << 16, ANSWERS = 1 << 10, LAUNCHES = 1 << 8 };

/* Code that is loaded under a handle. */
typedef struct {
    uint64_t handle;
    ffm_code_image code;
} known_image;

/* To a question that launches ask again and again. */
typedef struct {
    uint64_t kernel, offset;
    bool known, upper_half;
    bool ignored; /* the word, or variables if all of the kernel is asked about */
    bool knows;   /* the kernel's code */
    bool read;    /* by some launch */
} known_answer;

/* A way to launch a kernel: those are alike whose numbers that matter are the same. */
typedef struct {
    uint64_t kernel;
    uint32_t count, blocks[3];
    uint64_t numbers; /* a hash of those that matter */
    bool known;
    ffm_values_read read;
} known_launch;

typedef int (*owner_function)(uint64_t *, uint64_t);

static owner_function module_of, library_of;

static struct {
    pthread_mutex_t lock;
    known_image *images;
    uint32_t count;
    known_answer answers[ANSWERS]; /* directly mapped; forgotten whenever code comes or goes */
    known_launch *launches;
    uint32_t launched;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ffm_loaded_code_ask(void *module_of_function, void *library_of_kernel)
{
    module_of = (owner_function)(uintptr_t)module_of_function;
    library_of = (owner_function)(uintptr_t)library_of_kernel;
}

/* Locked. */
static void forget_answers(void)
{
    memset(loaded.answers, 0, sizeof loaded.answers);
    loaded.launched = 0;
}

/* Locked. */
static void forget(uint64_t handle)
{
    forget_answers();
    for (uint32_t i = loaded.count; i > 0; i--) {
        known_image *image = &loaded.images[i - 1];
        if (image->handle != handle)
            continue;
        ffm_code_image_free(&image->code);
        *image = loaded.images[--loaded.count];
    }
}

void ffm_loaded_code_before(const ffm_function *function, const uint64_t *arguments)
{
    const bool unloads = function->effect == FFM_EFFECT_UNLOAD_CODE, ends = ffm_context_ends(function);
    if (!unloads && !ends)
        return;
    pthread_mutex_lock(&loaded.lock);
    if (unloads)
        forget(arguments[function->handle]);
    else
        forget_answers();
    while (ends && loaded.count != 0) /* with a context, its code is gone */
        forget(loaded.images[0].handle);
    pthread_mutex_unlock(&loaded.lock);
}

void ffm_loaded_code_after(const ffm_function *function, const uint64_t *arguments, uint32_t result)
{
    if (function->effect != FFM_EFFECT_LOAD_CODE || result != CUDA_SUCCESS)
        return;
    known_image image = {.handle = 0};
    memcpy(&image.handle, (const void *)arguments[function->result], sizeof image.handle);
    if (function->source >= 0)
        image.code = ffm_code_image_read(arguments[function->source]);
    pthread_mutex_lock(&loaded.lock);
    forget(image.handle); /* which code had that was unloaded unseen */
    if (loaded.images == NULL)
        loaded.images = ffm_new_pages(MOST_IMAGES * sizeof *loaded.images);
    const bool fits = loaded.images != NULL && loaded.count < MOST_IMAGES;
    if (fits && image.code.used != 0)
        loaded.images[loaded.count++] = image;
    pthread_mutex_unlock(&loaded.lock);
    if (!fits)
        ffm_code_image_free(&image.code);
}

/* Locked. The code that a kernel is from, by one of two queries; NULL if that is not known. */
static const ffm_code_image *code_of(uint64_t kernel, int way)
{
    const owner_function ask[2] = {module_of, library_of};
    uint64_t owner = 0;
    if (ask[way] == NULL || ask[way](&owner, kernel) != CUDA_SUCCESS)
        return NULL;
    for (uint32_t i = 0; i < loaded.count; i++)
        if (loaded.images[i].handle == owner)
            return &loaded.images[i].code;
    return NULL;
}

/* Locked. */
static void find_out(known_answer *answer, uint64_t word)
{
    const char *called = ffm_name_of_kernel(answer->kernel);
    if (called == NULL)
        return;
    answer->ignored = ffm_unread_holds(called, answer->offset);
    for (int way = 0; way < 2 && !answer->ignored; way++) {
        const ffm_code_image *code = code_of(answer->kernel, way);
        if (code == NULL)
            continue;
        answer->knows |= ffm_code_image_knows(code, called);
        answer->ignored = ffm_code_image_ignores(code, called, answer->offset, word);
    }
}

/* Locked. Where the answer for a word is, or comes. */
static known_answer *answer_of(uint64_t kernel, uint64_t offset)
{
    return &loaded.answers[(kernel / 16 + offset / 8) % ANSWERS];
}

static bool is_for(const known_answer *answer, uint64_t kernel, uint64_t offset)
{
    return answer->known && answer->kernel == kernel && answer->offset == offset;
}

bool ffm_loaded_code_ignores(uint64_t kernel, uint64_t offset, uint64_t word)
{
    const bool upper_half = word >> 32 != 0;
    pthread_mutex_lock(&loaded.lock);
    known_answer *answer = answer_of(kernel, offset);
    if (!is_for(answer, kernel, offset) || answer->upper_half != upper_half) {
        *answer = (known_answer){.kernel = kernel, .offset = offset, .known = true, .upper_half = upper_half};
        find_out(answer, word);
    }
    const bool ignored = answer->ignored;
    pthread_mutex_unlock(&loaded.lock);
    return ignored;
}

bool ffm_loaded_code_reads(uint64_t kernel, uint64_t offset)
{
    pthread_mutex_lock(&loaded.lock);
    const known_answer *answer = answer_of(kernel, offset);
    const bool reads = is_for(answer, kernel, offset) && (!answer->knows || answer->read);
    pthread_mutex_unlock(&loaded.lock);
    return reads;
}

/* Which numbers matter depends on those that come before, and so on the launch that is compared with. */
static uint64_t numbers_of(const ffm_given_values *given, const ffm_values_read *read)
{
    uint64_t hash = 0;
    for (uint32_t word = 0; 4 * word + 4 <= given->count; word++)
        if ((read->matters[word / 8] & 1 << word % 8) != 0) {
            const uint32_t number[2] = {word, ffm_followed_number(given, 4 * word)};
            hash = XXH3_64bits_withSeed(number, sizeof number, hash);
        }
    return hash;
}

/* Locked. */
static const known_launch *launch_like(uint64_t kernel, const ffm_given_values *given)
{
    for (uint32_t i = 0; i < loaded.launched; i++) {
        const known_launch *one = &loaded.launches[i];
        if (one->kernel == kernel && one->count == given->count &&
            memcmp(one->blocks, given->blocks, sizeof one->blocks) == 0 &&
            numbers_of(given, &one->read) == one->numbers)
            return one;
    }
    return NULL;
}

/* Locked. */
static const known_launch *new_launch(uint64_t kernel, const ffm_given_values *given)
{
    if (loaded.launches == NULL)
        loaded.launches = ffm_new_pages(LAUNCHES * sizeof *loaded.launches);
    if (loaded.launches == NULL || loaded.launched == LAUNCHES)
        return NULL;
    known_launch *one = &loaded.launches[loaded.launched++];
    *one = (known_launch){.kernel = kernel, .count = given->count};
    memcpy(one->blocks, given->blocks, sizeof one->blocks);
    const char *called = ffm_name_of_kernel(kernel);
    for (int way = 0; way < 2 && called != NULL && !one->known; way++) {
        const ffm_code_image *code = code_of(kernel, way);
        one->known = code != NULL && ffm_code_image_reads(code, called, given, &one->read);
    }
    one->numbers = numbers_of(given, &one->read);
    return one;
}

bool ffm_loaded_code_leaves(uint64_t kernel, uint64_t offset, const ffm_given_values *given)
{
    bool left = false;
    if (__atomic_load_n(&loaded.count, __ATOMIC_RELAXED) == 0)
        return false;
    pthread_mutex_lock(&loaded.lock);
    const known_launch *like = launch_like(kernel, given);
    const known_launch *one = like != NULL ? like : new_launch(kernel, given);
    for (uint64_t byte = offset; one != NULL && one->known && byte < offset + FFM_ADDRESS_BYTES && byte < given->count;
         byte++)
        left |= (one->read.read[byte / 8] & 1 << byte % 8) == 0;
    known_answer *answer = answer_of(kernel, offset);
    if (is_for(answer, kernel, offset))
        answer->read |= !left;
    pthread_mutex_unlock(&loaded.lock);
    return left;
}

bool ffm_loaded_code_lacks_variables(uint64_t kernel)
{
    const uint64_t all = UINT64_MAX; /* no offset: the answer is about the kernel */
    pthread_mutex_lock(&loaded.lock);
    known_answer *answer = answer_of(kernel, all);
    if (!is_for(answer, kernel, all)) {
        const char *called = ffm_name_of_kernel(kernel);
        *answer = (known_answer){.kernel = kernel, .offset = all, .known = true};
        for (int way = 0; way < 2 && called != NULL && !answer->ignored; way++) {
            const ffm_code_image *code = code_of(kernel, way);
            answer->ignored = code != NULL && ffm_code_image_lacks_variables(code, called);
        }
    }
    const bool lacks = answer->ignored;
    pthread_mutex_unlock(&loaded.lock);
    return lacks;
}

bool ffm_loaded_code_knows(uint64_t kernel)
{
    const char *called = ffm_name_of_kernel(kernel);
    bool known = false;
    pthread_mutex_lock(&loaded.lock);
    for (int way = 0; way < 2 && called != NULL && !known; way++) {
        const ffm_code_image *code = code_of(kernel, way);
        known = code != NULL && ffm_code_image_knows(code, called);
    }
    pthread_mutex_unlock(&loaded.lock);
    return known;
}

void ffm_loaded_code_after_fork(void)
{
    pthread_mutex_init(&loaded.lock, NULL);
}

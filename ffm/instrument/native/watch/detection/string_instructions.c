#include "string_instructions.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "accesses.h"
#include "kernel.h"
#include "questions.h"

enum { BACKWARDS = 0x400, PAGE = 4096 };

typedef struct {
    uint64_t element; /* bytes */
    uint32_t length;  /* of the instruction */
    bool copies;      /* MOVS, otherwise STOS */
} string;

/* Reads no further than the instruction itself. */
static bool decode(const uint8_t *code, string *found)
{
    const uint8_t *at = code;
    bool repeated = false, halved = false, wide = false;
    while (*at == 0xF3 || *at == 0x66) {
        repeated = repeated || *at == 0xF3;
        halved = halved || *at == 0x66;
        at++;
    }
    if ((*at & 0xF0) == 0x40)
        wide = *at++ & 8;
    const uint8_t opcode = *at++;
    found->copies = (opcode & 0xFE) == 0xA4;
    found->element = (opcode & 1) == 0 ? 1 : wide ? 8 : halved ? 2 : 4;
    found->length = (uint32_t)(at - code);
    return repeated && (found->copies || (opcode & 0xFE) == 0xAA);
}

/* How many elements from `start` lie wholly on the page. */
static uint64_t count_on(const ffm_page *page, uint64_t start, uint64_t element)
{
    if (start < page->start || start >= page->start + page->bytes)
        return 0;
    return (page->start + page->bytes - start) / element;
}

static uint64_t count_unwatched(uint64_t start, uint64_t element, uint64_t count, bool writing)
{
    while (count > 0 && ffm_access_forbidden(start, start + count * element, writing))
        count /= 2;
    return count;
}

static bool beside_watched(uint64_t start, uint64_t bytes)
{
    return ffm_ranges_overlap(start & ~(uint64_t)(PAGE - 1), ((start + bytes - 1) | (PAGE - 1)) + 1);
}

/* By the kernel, which does not fault but stops where a page cannot be accessed. */
static uint64_t copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    const struct iovec local = {(void *)to, bytes}, other = {(void *)from, bytes};
    const uint64_t arguments[6] = {
        (uint64_t)ffm_kernel(SYS_getpid, 0, 0, 0, 0), (uint64_t)&local, 1, (uint64_t)&other, 1, 0};
    const int64_t copied = ffm_kernel_call(SYS_process_vm_readv, arguments);
    return copied > 0 ? (uint64_t)copied : 0;
}

static void fill(uint64_t to, uint64_t element, uint64_t count, uint64_t value)
{
    if (element == 1)
        memset((void *)to, (uint8_t)value, count);
    for (uint64_t i = 0; element != 1 && i < count; i++)
        memcpy((void *)(to + i * element), &value, element);
}

bool ffm_string_executed(const ffm_page *page, ucontext_t *context)
{
    greg_t *general = context->uc_mcontext.gregs;
    const uint64_t to = (uint64_t)general[REG_RDI], from = (uint64_t)general[REG_RSI];
    uint64_t count = (uint64_t)general[REG_RCX];
    string found;
    if (!decode((const uint8_t *)general[REG_RIP], &found) || general[REG_EFL] & BACKWARDS || count == 0)
        return false;
    const uint64_t element = found.element;
    const uint64_t into = count_on(page, to, element), out_of = found.copies ? count_on(page, from, element) : 0;
    const uint64_t most = into > out_of ? into : out_of; /* one of them may lie elsewhere */
    if (count > most)
        count = most;
    if (into != 0 && count > into)
        count = into;
    if (out_of != 0 && count > out_of)
        count = out_of;
    count = count_unwatched(to, element, count, true);
    if (found.copies)
        count = count_unwatched(from, element, count, false);
    const uint64_t bytes = count * element;
    if (count == 0 || (into == 0 && beside_watched(to, bytes)))
        return false;
    if (!found.copies) {
        fill(to, element, count, (uint64_t)general[REG_RAX]);
    } else {
        const bool overlaps = to < from + bytes && from < to + bytes;
        if (overlaps || (out_of == 0 && beside_watched(from, bytes)))
            return false;
        count = copy(to, from, bytes) / element;
    }
    general[REG_RDI] += (greg_t)(count * element);
    general[REG_RSI] += found.copies ? (greg_t)(count * element) : 0;
    general[REG_RCX] -= (greg_t)count;
    if (general[REG_RCX] == 0)
        general[REG_RIP] += found.length;
    return count != 0;
}

#include "printing.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accesses.h"
#include "clock.h"
#include "imports.h"
#include "ranges.h"
#include "records.h"

/* How often the driver has written to the program's output, and how much of that is recorded. */
static uint64_t written, told;

static uint64_t loaded_at; /* a driver that is not changed yet; 0 for none */

static __thread uint64_t looked __attribute__((tls_model("initial-exec"))); /* when `written` was last looked at */

static void note_descriptor(int descriptor)
{
    if (descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO)
        __atomic_fetch_add(&written, 1, __ATOMIC_RELEASE);
}

/* The driver writes files, too, as those of compiled kernels. */
static void note(FILE *stream)
{
    note_descriptor(stream == stdout || stream == stderr ? STDOUT_FILENO : fileno(stream));
}

/* In place of the C library's functions, for the driver alone. */
static ssize_t driver_write(int descriptor, const void *bytes, size_t count)
{
    note_descriptor(descriptor);
    return write(descriptor, bytes, count);
}

static size_t driver_fwrite(const void *items, size_t size, size_t count, FILE *stream)
{
    note(stream);
    return fwrite(items, size, count, stream);
}

static int driver_fputs(const char *text, FILE *stream)
{
    note(stream);
    return fputs(text, stream);
}

static int driver_fputc(int character, FILE *stream)
{
    note(stream);
    return fputc(character, stream);
}

static int driver_puts(const char *text)
{
    note(stdout);
    return puts(text);
}

static int driver_putchar(int character)
{
    note(stdout);
    return putchar(character);
}

__attribute__((format(printf, 2, 0))) static int driver_vfprintf(FILE *stream, const char *format, va_list arguments)
{
    note(stream);
    return vfprintf(stream, format, arguments);
}

__attribute__((format(printf, 1, 0))) static int driver_vprintf(const char *format, va_list arguments)
{
    return driver_vfprintf(stdout, format, arguments);
}

__attribute__((format(printf, 2, 3))) static int driver_fprintf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int count = driver_vfprintf(stream, format, arguments);
    va_end(arguments);
    return count;
}

__attribute__((format(printf, 1, 2))) static int driver_printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int count = driver_vfprintf(stdout, format, arguments);
    va_end(arguments);
    return count;
}

/* What six builds of NVIDIA's driver, from 418 to 555, import of this kind, and their siblings. */
static const struct {
    const char *name;
    void *function;
} writers[] = {
    {"write", (void *)driver_write},       {"fwrite", (void *)driver_fwrite},   {"fputs", (void *)driver_fputs},
    {"fputc", (void *)driver_fputc},       {"putc", (void *)driver_fputc},      {"_IO_putc", (void *)driver_fputc},
    {"puts", (void *)driver_puts},         {"putchar", (void *)driver_putchar}, {"vprintf", (void *)driver_vprintf},
    {"vfprintf", (void *)driver_vfprintf}, {"printf", (void *)driver_printf},   {"fprintf", (void *)driver_fprintf},
};

static void record(const ffm_thread *thread, uint64_t number, uint64_t since, uint64_t until)
{
    const ffm_range nothing = {.operation = number, .thread = thread->number};
    ffm_ranges_lock();
    ffm_access_record(&nothing, FFM_ACCESS_PRINTED, 0, since, until, 0);
    ffm_ranges_unlock();
}

static void *writer_named(const char *name)
{
    for (uint32_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (strcmp(writers[i].name, name) == 0)
            return writers[i].function;
    return NULL;
}

void ffm_printing_driver(uint64_t start)
{
    __atomic_store_n(&loaded_at, start, __ATOMIC_RELEASE);
}

void ffm_printing_look(const ffm_thread *thread)
{
    if (__atomic_load_n(&loaded_at, __ATOMIC_ACQUIRE) != 0) {
        const uint64_t start = __atomic_exchange_n(&loaded_at, 0, __ATOMIC_ACQ_REL);
        if (start != 0 && !ffm_imports_lead(start, writer_named))
            record(thread, thread->operations.stream.written, 0, UINT64_MAX); /* any kernel may print, unseen */
    }
    if (looked == 0)
        ffm_printing_note(thread, thread->operations.stream.written, ffm_now());
}

void ffm_printing_note(const ffm_thread *thread, uint64_t number, uint64_t time)
{
    const uint64_t now = __atomic_load_n(&written, __ATOMIC_ACQUIRE);
    uint64_t known = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    if (now > known) {
        while (known < now &&
               !__atomic_compare_exchange_n(&told, &known, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
        record(thread, number, looked, ffm_now());
    }
    looked = time; /* a time from before `written` was read: later output is not included */
}

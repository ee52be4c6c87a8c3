#include "python_frames.h"

#include <pthread.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "guarded.h"
#include "modules.h"
#include "python_layout.h"
#include "python_location.h"
#include "sink.h"

enum { CODES = 1 << 16, LONGEST_FILE = 1024, LONGEST_NAME = 512, LONGEST_TABLE = 1 << 20 };

bool ffm_python_readable;

static struct {
    ffm_python_layout at;
    const char *(*thread_state)(void);
    const char *code_type; /* the type of code objects, once one was seen */
    bool dedicated;
} python;

/* Identifies a function by its code object. The lock is taken in the handler of a sample as well, which interrupts
 * nobody who holds it: they block all signals, or are such a handler. */
static struct {
    pthread_mutex_t lock;
    ffm_stream stream;
    uint32_t count;
    struct {
        uint64_t words[2];
        uint64_t hash; /* of file, name and first line: the same in every run */
        uint32_t number;
        bool used;
    } slots[CODES]; /* open addressing */
} codes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline uint64_t word_at(const char *address, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, address + offset, sizeof word);
    return word;
}

static inline const char *pointer_at(const char *address, uint32_t offset)
{
    return (const char *)word_at(address, offset); // NOLINT(performance-no-int-to-ptr)
}

static inline uint32_t number_at(const char *address, uint32_t offset)
{
    uint32_t number;
    memcpy(&number, address + offset, sizeof number);
    return number;
}

void ffm_python_found(const ffm_python *found)
{
    if (ffm_python_is_readable())
        return;
    bool known = ffm_python_layout_of(found->version, found->runtime, &python.at);
    ffm_sink_note_python(found->version, known);
    if (!known)
        return;
    memcpy(&python.thread_state, &found->thread_state, sizeof python.thread_state);
    python.dedicated = found->dedicated;
    __atomic_store_n(&ffm_python_readable, true, __ATOMIC_RELEASE);
}

/* An interpreter has one type of code. Once it is known, no other object is looked into. */
static bool is_code(const char *object)
{
    const char *type = pointer_at(object, python.at.object - 8);
    const char *known = __atomic_load_n(&python.code_type, __ATOMIC_RELAXED); /* threads unwind at once */
    if (known != NULL)
        return type == known;
    if (strcmp(pointer_at(type, python.at.object + 8), "code") != 0)
        return false;
    __atomic_store_n(&python.code_type, type, __ATOMIC_RELAXED);
    return true;
}

/* Whether the interpreter created the frame for itself, to handle what `__init__` returns: then the names of file and
 * function are one string, and there is no line. */
static inline bool is_aid(const char *code)
{
    return pointer_at(code, python.at.file) == pointer_at(code, python.at.name) &&
           number_at(code, python.at.first_line) == 0;
}

/* A code object is freed with its function, and another one can take its place with the same instruction addresses. The
 * addresses of its parts are not sufficient, because they are freed together. So the name's text, by the hash that
 * Python keeps in a string, and the start of the line table are read too. */
static inline uint64_t identity_of(const char *code)
{
    const char *name = pointer_at(code, python.at.name), *table = pointer_at(code, python.at.line_table);
    uint64_t mixed = word_at(code, python.at.object) ^ (uint64_t)number_at(code, python.at.first_line) << 32;
    const uint64_t parts[] = {(uint64_t)pointer_at(code, python.at.file),
                              (uint64_t)name,
                              word_at(name, python.at.object + 8),
                              (uint64_t)table,
                              word_at(table, python.at.object),
                              word_at(table, python.at.object) < 8 ? 0 : word_at(table, python.at.object + 16)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        mixed = (mixed ^ parts[i]) * 0x9E3779B97F4A7C15u;
        mixed ^= mixed >> 29;
    }
    return mixed;
}

/* The words of an entry into the interpreter that has no function yet, or no longer. */
static const uint64_t bare_entry[FFM_PYTHON_WORDS] = {0, FFM_PYTHON_ENTRY, 0};

/* Pages that the kernel could read when this sample asked. The frames and their code lie on few pages. */
enum { PAGE = 4096, KNOWN_PAGES = 64 };
static uint64_t readable_pages[KNOWN_PAGES];

/* Whether a sample can read what is there. It can interrupt the interpreter between two writes. The innermost frame is
 * then whatever was left on the stack, or a frame is being left, and its code is freed. */
static bool can_read(const char *from, uint64_t bytes)
{
    const uint64_t last = (uint64_t)from + bytes - 1;
    for (uint64_t page = (uint64_t)from / PAGE; bytes != 0 && page <= last / PAGE; page++) {
        uint64_t *known = &readable_pages[page % KNOWN_PAGES];
        if (*known == page)
            continue;
        if (!ffm_guarded_readable(page * PAGE, page * PAGE + 1))
            return false;
        *known = page;
    }
    return bytes == 0 || last >= (uint64_t)from;
}

static const char *text_of(const char *string, uint64_t *length, uint32_t *width)
{
    const uint32_t state = number_at(string, python.at.object + 16);
    *length = word_at(string, python.at.object);
    *width = state >> 2 & 7;
    return string + (state & 0x40 ? python.at.ascii : python.at.compact);
}

static bool can_read_text(const char *string, uint64_t longest)
{
    uint64_t length;
    uint32_t width;
    if (!can_read(string, python.at.object + 20))
        return false;
    const char *text = text_of(string, &length, &width);
    return width <= sizeof(uint32_t) && can_read(text, (length < longest ? length : longest) * width);
}

static bool can_read_table(const char *table)
{
    const uint64_t header = python.at.object + 16;
    if (!can_read(table, header))
        return false;
    const uint64_t length = word_at(table, python.at.object);
    return length <= LONGEST_TABLE && can_read(table + header, length + 1); /* a zero ends it */
}

static bool can_read_code(const char *code)
{
    return __atomic_load_n(&python.code_type, __ATOMIC_RELAXED) != NULL && can_read(code, python.at.instructions) &&
           is_code(code) && can_read_text(pointer_at(code, python.at.file), LONGEST_FILE) &&
           can_read_text(pointer_at(code, python.at.name), LONGEST_NAME) &&
           can_read_table(pointer_at(code, python.at.line_table));
}

static bool can_read_frame(const char *frame)
{
    const ffm_python_layout *at = &python.at;
    const uint32_t words[] = {at->code, at->previous, at->instruction};
    uint32_t bytes = (at->owner > at->is_entry ? at->owner : at->is_entry) + 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        bytes = words[i] + 8 > bytes ? words[i] + 8 : bytes;
    return can_read(frame, bytes);
}

/* Write a frame's words at `out`, if it has any, and return their end. `first` says that no frame lies inside. */
static inline uint64_t *put_frame(uint64_t *out, bool first, const char *frame, const char *code)
{
    const ffm_python_layout *at = &python.at;
    uint8_t owner = (uint8_t)frame[at->owner];
    if (owner < at->shim) {
        if (code == NULL || !is_code(code) || is_aid(code))
            return out;
        bool entry = at->is_entry != 0 && frame[at->is_entry];
        out[0] = (uint64_t)code;
        out[1] = word_at(frame, at->instruction) | (entry ? FFM_PYTHON_ENTRY : 0); /* two bytes an instruction */
        out[2] = identity_of(code);
        return out + FFM_PYTHON_WORDS;
    }
    if (owner > at->shim)
        return out;
    if (!first && !(out[1 - FFM_PYTHON_WORDS] & FFM_PYTHON_ENTRY)) {
        out[1 - FFM_PYTHON_WORDS] |= FFM_PYTHON_ENTRY;
        return out;
    }
    memcpy(out, bare_entry, sizeof bare_entry);
    return out + FFM_PYTHON_WORDS;
}

static inline const char *code_of(const char *frame)
{
    return (const char *)(word_at(frame, python.at.code) & ~python.at.tag); // NOLINT
}

static inline const char *innermost_frame(void)
{
    const char *state = python.thread_state();
    if (state == NULL)
        return NULL;
    const char *frame = pointer_at(state, python.at.current_frame);
    return python.at.through_cframe ? pointer_at(frame, python.at.cframe_frame) : frame;
}

uint32_t ffm_python_walk(uint64_t *words, bool *truncated)
{
    uint64_t *out = words;
    for (const char *frame = innermost_frame(); frame != NULL; frame = pointer_at(frame, python.at.previous)) {
        if (out == words + (size_t)FFM_MAX_PYTHON_FRAMES * FFM_PYTHON_WORDS) {
            *truncated = true;
            break;
        }
        out = put_frame(out, out == words, frame, code_of(frame));
    }
    return (uint32_t)(out - words);
}

uint32_t ffm_python_walk_interrupted(uint64_t *words, uint32_t most)
{
    uint64_t *out = words;
    memset(readable_pages, 0xff, sizeof readable_pages); /* no such page */
    const char *frame = innermost_frame();
    for (uint32_t steps = 0; steps < FFM_MAX_PYTHON_FRAMES && frame != NULL; steps++) {
        if (out == words + (size_t)most * FFM_PYTHON_WORDS || !can_read_frame(frame))
            break;
        const char *code = code_of(frame);
        if ((uint8_t)frame[python.at.owner] < python.at.shim && code != NULL && !can_read_code(code))
            break;
        out = put_frame(out, out == words, frame, code);
        frame = pointer_at(frame, python.at.previous);
    }
    return (uint32_t)(out - words);
}

static size_t put_utf8(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)((0xF0u << (3 - more)) | point);
    return more + 1;
}

/* A string as UTF-8, at most `room` bytes. Its state is a word of bits: 2 for interning, 3 for the bytes per character,
 * then "compact" (all but those of subclasses) and "ASCII" (Include/cpython/unicodeobject.h). */
static size_t copy_text(const char *string, char *out, size_t room)
{
    uint64_t length;
    uint32_t width;
    const char *text = text_of(string, &length, &width);
    if (!(number_at(string, python.at.object + 16) & 0x20))
        return 0;
    size_t used = 0;
    for (uint64_t i = 0; i < length && used + 4 <= room; i++) {
        uint32_t point = 0;
        memcpy(&point, text + i * width, width);
        used += put_utf8(point, out + used);
    }
    return used;
}

/* Locked. Even if nothing is recorded, as in a corrected program, functions have hashes and numbers. */
static uint32_t record(const char *code, uint64_t *hash)
{
    static char text[LONGEST_FILE + LONGEST_NAME];
    size_t file = copy_text(pointer_at(code, python.at.file), text, LONGEST_FILE);
    size_t name = copy_text(pointer_at(code, python.at.name), text + file, LONGEST_NAME);
    uint32_t first_line = number_at(code, python.at.first_line);
    *hash = XXH3_64bits_withSeed(text, file + name, (uint64_t)first_line << 32 | file);
    size_t padded = (file + name + 7) & ~(size_t)7;
    ffm_python_code *out = ffm_sink_reserve(&codes.stream, FFM_CHUNK_PYTHON_CODES, 0, sizeof *out + padded);
    if (out != NULL) {
        *out = (ffm_python_code){.number = codes.count,
                                 .first_line = first_line,
                                 .file_bytes = (uint32_t)file,
                                 .name_bytes = (uint32_t)name};
        memcpy(out + 1, text, file + name);
        ffm_sink_commit(&codes.stream, sizeof *out + padded);
    }
    return codes.count++;
}

/* Locked. */
static uint32_t code_number(const uint64_t *words, uint64_t *hash)
{
    uint32_t slot = (uint32_t)words[2] & (CODES - 1);
    for (; codes.slots[slot].used; slot = (slot + 1) & (CODES - 1)) {
        if (codes.slots[slot].words[0] == words[0] && codes.slots[slot].words[1] == words[2]) {
            *hash = codes.slots[slot].hash;
            return codes.slots[slot].number;
        }
    }
    uint32_t number = record((const char *)words[0], hash); // NOLINT(performance-no-int-to-ptr)
    /* A table that is three quarters full stays unchanged: later functions are recorded each time they occur. */
    if (codes.count < CODES / 4 * 3) {
        codes.slots[slot].words[0] = words[0];
        codes.slots[slot].words[1] = words[2];
        codes.slots[slot].hash = *hash;
        codes.slots[slot].number = number;
        codes.slots[slot].used = true;
    }
    return number;
}

/* The place of an instruction, which lies at an address. */
static ffm_python_location locate(const char *code, uint64_t instruction)
{
    const uint64_t first = (uint64_t)code + python.at.instructions;
    const uint32_t first_line = number_at(code, python.at.first_line);
    if (instruction < first) /* not started yet */
        return (ffm_python_location){.line = first_line};
    const char *table = pointer_at(code, python.at.line_table);
    const uint8_t *begin = (const uint8_t *)table + python.at.object + 16;
    const uint64_t bytes = word_at(table, python.at.object);
    return ffm_python_location_of((instruction - first) / 2, first_line, begin, begin + bytes);
}

ffm_python_place ffm_python_place_of(const uint64_t *words)
{
    uint32_t entry = (uint32_t)words[1] & FFM_PYTHON_ENTRY;
    ffm_python_place place = {.frame = {.code = FFM_NO_CODE, .flags = entry}};
    if (words[0] == 0)
        return place;
    const char *code = (const char *)words[0]; // NOLINT(performance-no-int-to-ptr)
    pthread_mutex_lock(&codes.lock);
    place.frame.code = code_number(words, &place.identity[0]);
    pthread_mutex_unlock(&codes.lock);
    const ffm_python_location found = locate(code, words[1] & ~(uint64_t)FFM_PYTHON_ENTRY);
    place.frame.line = found.line;
    place.frame.column = found.column;
    place.identity[1] = (uint64_t)place.frame.line << 32 | place.frame.column;
    return place;
}

bool ffm_python_is_interpreter(uint64_t module_base)
{
    uint64_t address;
    memcpy(&address, &python.thread_state, sizeof address);
    return python.dedicated && ffm_module_of(address).base == module_base;
}

void ffm_python_after_fork(void)
{
    pthread_mutex_init(&codes.lock, NULL); /* a thread that no longer exists may have held it */
    if (codes.count == 0)
        return;
    ffm_sink_release(&codes.stream);
    codes.stream = (ffm_stream){0};
    codes.count = 0;
    memset(codes.slots, 0, sizeof codes.slots);
}

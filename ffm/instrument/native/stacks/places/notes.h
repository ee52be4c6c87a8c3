/* The notes of a loaded file (ELF-64 Object File Format, "Note Section"). */
#ifndef FFM_NOTES_H
#define FFM_NOTES_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "records.h"

/* Copy the build-id, at most FFM_BUILD_ID_BYTES of it, out of `bytes` bytes of notes. Returns how many bytes were
 * copied; 0 if there is no build-id. A file may contain any notes: nothing beyond these bytes is read. */
static inline uint32_t ffm_notes_build_id(const void *notes, size_t bytes, uint8_t *build_id)
{
    const char *at = notes;
    ElfW(Nhdr) note;
    while (bytes >= sizeof note) {
        memcpy(&note, at, sizeof note); /* notes may lie at any address */
        at += sizeof note;
        bytes -= sizeof note;
        const size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3,
                     content = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > bytes || note.n_descsz > bytes - name)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            const uint32_t length = note.n_descsz < FFM_BUILD_ID_BYTES ? note.n_descsz : FFM_BUILD_ID_BYTES;
            memcpy(build_id, at + name, length);
            return length;
        }
        if (content > bytes - name)
            return 0; /* the last one may end without its padding */
        at += name + content;
        bytes -= name + content;
    }
    return 0;
}

#endif

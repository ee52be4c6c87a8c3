/* The active Python functions of a thread, read from the interpreter's own frames.
 *
 * The thread itself reads them: inside a call, where they cannot change meanwhile, or in the handler of a sample, where
 * the innermost one may be changing. Nothing here calls the interpreter, except for its function that finds the
 * thread's state and needs no lock; nothing allocates. */
#ifndef FFM_PYTHON_FRAMES_H
#define FFM_PYTHON_FRAMES_H

#include <stdbool.h>

#include "records.h"

enum {
    FFM_PYTHON_WORDS = 3 /* for each frame: code object, instruction, and what tells a later code object at the same
                            address apart; two frames with equal words are at one place of one function */
};

/* The layout of an interpreter, from the addresses of its functions and data. `version` is its PY_VERSION_HEX,
 * `runtime` its `_PyRuntime`, `thread_state` its `PyGILState_GetThisThreadState`. If `dedicated`, frames of its module
 * belong to the interpreter alone: the module is libpython or python itself, not a program with Python linked in. */
typedef struct {
    const void *thread_state;
    const void *runtime;
    uint32_t version;
    bool dedicated;
} ffm_python;

/* Read frames from now on, if the layout of that version is known. The recording says whether it is. */
void ffm_python_found(const ffm_python *python);

/* Whether there is an interpreter whose frames can be read. */
extern bool ffm_python_readable;

/* The same, for threads other than the one that found it: they must see what was written before it, too. */
static inline bool ffm_python_is_readable(void)
{
    return __atomic_load_n(&ffm_python_readable, __ATOMIC_ACQUIRE);
}

/* Frames of the calling thread, innermost first: FFM_PYTHON_WORDS words each, for at most FFM_MAX_PYTHON_FRAMES.
 * Returns the number of words. Sets `truncated` if there are more frames, otherwise leaves it alone. */
uint32_t ffm_python_walk(uint64_t *words, bool *truncated);

/* The same in the handler of a signal, which can have interrupted the interpreter anywhere, for the `most` innermost
 * frames: stops at the first thing that is no frame. Takes a few microseconds; one thread at a time. */
uint32_t ffm_python_walk_interrupted(uint64_t *words, uint32_t most);

/* A frame's place as it is recorded, and in words that mean the same in every run. */
typedef struct {
    ffm_python_frame frame;
    uint64_t identity[2];
} ffm_python_place;

/* Describe a frame that ffm_python_walk just read in this thread; a new function is recorded. Not for the hot path.
 * Only handlers of our own signals may interrupt it. */
ffm_python_place ffm_python_place_of(const uint64_t *words);

/* Whether the native code at a module's base is the interpreter and nothing else. Takes the loader's lock. */
bool ffm_python_is_interpreter(uint64_t module_base);

/* In a forked child: record functions again as they occur. */
void ffm_python_after_fork(void);

#endif

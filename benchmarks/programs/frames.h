/* Functions of different frames between `main` and a call, so that the call's stack is deep.
 *
 * frame_1 calls frame_2, and so on to the one that a program defines itself before it includes this file: its number is
 * INNERMOST_FRAME, 11 or 12. Each takes a pointer to `work`, which the program defines, too, and returns an int. */

/* A frame of its own size around the next one; the write after the call keeps it from becoming a jump. */
#define FRAME(number, next)                                                                                            \
    __attribute__((noinline)) static int frame_##number(const work *todo)                                              \
    {                                                                                                                  \
        volatile int room[8 * (number)];                                                                               \
        room[0] = frame_##next(todo);                                                                                  \
        return room[0];                                                                                                \
    }
#if INNERMOST_FRAME == 12
FRAME(11, 12)
#endif
FRAME(10, 11)
FRAME(9, 10)
FRAME(8, 9)
FRAME(7, 8)
FRAME(6, 7)
FRAME(5, 6)
FRAME(4, 5)
FRAME(3, 4)
FRAME(2, 3)
FRAME(1, 2)

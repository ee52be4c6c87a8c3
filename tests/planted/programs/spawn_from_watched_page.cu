// A program is started whose name and arguments are on a page with a download; the kernel reads them in the child,
// before that has its own memory. Afterwards the download is read, or is not. With thousands of arguments more, the
// page is open for so long that another thread might have used it.
// variants: spawn_read, spawn_never, spawn_long, vfork_read, vfork_never
#include "planted.h"

#include <spawn.h>
#include <sys/wait.h>
#include <vector>

constexpr int count = 16;
constexpr size_t bytes = count * sizeof(int);

static char *copy_of(const char *text, char *place)
{
    return std::strcpy(place, text);
}

static pid_t start(char **words, bool by_vfork)
{
    pid_t child = -1;
    if (!by_vfork)
        return posix_spawn(&child, words[0], nullptr, nullptr, words, environ) == 0 ? child : -1;
    child = vfork();
    if (child == 0) {
        execv(words[0], words);
        _exit(127);
    }
    return child;
}

void program()
{
    int *device = device_integers(count);
    char *page = static_cast<char *>(std::aligned_alloc(4096, 4096));
    int *host = reinterpret_cast<int *>(page);
    char **words = reinterpret_cast<char **>(page + 1024);
    words[0] = copy_of("/bin/sh", page + 2048);
    words[1] = copy_of("-c", page + 2064);
    words[2] = copy_of("exit 5", page + 2080);
    words[3] = nullptr;
    static char empty[] = "";
    std::vector<char *> many(words, words + 3);
    if (variant("spawn_long")) {
        many.resize(100000, empty);
        many.push_back(nullptr);
        words = many.data();
    }
    fill(device, count, 7);
    // sync: spawn_read, vfork_read required, spawn_long required (undecidable), spawn_never, vfork_never unnecessary
    DOWNLOAD(copy, host, device, bytes);
    const bool by_vfork = variant("vfork_read") || variant("vfork_never");
    pid_t child = start(words, by_vfork);
    int status = -1;
    waitpid(child, &status, 0);
    expect("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 5);
    if (variant("spawn_read") || variant("spawn_long") || variant("vfork_read"))
        expect("sum", sum(host, count), 7 * count);
}

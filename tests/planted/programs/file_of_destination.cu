// A download arrives in memory that is a file's: others read the file, and never touch the memory by its address. Or
// the file is written while an upload still reads the memory. Or nobody looks at it.
// variants: pread, sendfile, child, program, pwrite, never
#include "planted.h"

#include <fcntl.h>
#include <string>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int file;
static int ends[2];

static long long sum_of(int descriptor)
{
    std::vector<int> found(count);
    if (variant("pread"))
        expect("read", pread(descriptor, found.data(), bytes, 0), bytes);
    else
        expect("received", read(ends[0], found.data(), bytes), bytes);
    return sum(found.data(), count);
}

/* Forked before the download; told by a byte, it says by its status whether the file has what it should. */
static void read_as_child(const std::string &path)
{
    std::vector<int> found(count);
    char letter = 0;
    const int own = open(path.c_str(), O_RDONLY);
    if (read(ends[0], &letter, 1) != 1 || read(own, found.data(), bytes) != ssize_t(bytes))
        _exit(2);
    _exit(sum(found.data(), count) == 7 * count ? 0 : 1);
}

void program()
{
    const std::string path = "/dev/shm/planted-" + std::to_string(getpid());
    file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    expect("size", ftruncate(file, bytes), 0);
    expect("pipe", pipe(ends), 0);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pid_t child = 0;
    if (variant("child") && (child = fork()) == 0)
        read_as_child(path);
    int *host = static_cast<int *>(memory), *device = device_integers(count), *back = pinned_integers(count);
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    if (variant("pwrite")) {
        const std::vector<int> other(count, 3);
        for (int place = 0; place < count; ++place)
            host[place] = 5;
        UPLOAD_ASYNC(device, host, bytes);
        // sync: pwrite required, pread, sendfile, child, program, never absent
        WAIT(sent, cudaStreamSynchronize(nullptr));
        expect("written", pwrite(file, other.data(), bytes, 0), bytes);
        DOWNLOAD_ASYNC(back, device, bytes);
        // sync: pwrite required, pread, sendfile, child, program, never absent
        WAIT(fetched, cudaStreamSynchronize(nullptr));
        expect("sum", sum(back, count), 5 * count);
        unlink(path.c_str());
        return;
    }
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: pread, sendfile, child, program required, never required (undecidable), pwrite absent
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("child")) {
        int status = -1;
        expect("told", write(ends[1], "", 1), 1);
        waitpid(child, &status, 0);
        expect("status", status, 0);
    } else if (variant("program")) {
        const std::string look = "test $(tr -d '\\000' < " + path + " | wc -c) = 1024"; // one byte in four
        expect("status", std::system(look.c_str()), 0);
    } else if (!variant("never")) {
        if (variant("sendfile")) {
            off_t from = 0;
            expect("sent", sendfile(ends[1], file, &from, bytes), bytes);
        }
        expect("sum", sum_of(file), 7 * count);
    }
    unlink(path.c_str());
}

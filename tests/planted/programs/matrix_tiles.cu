// A tile of AMX is loaded from rows that lie far apart, or stored to such rows. Of some tiles, the first row alone lies
// outside of the download. A single row begins on the download's page, before it, and reaches into it or not. Which
// rows lie on a page is not read from a tile's instruction: all of the page counts. Without tiles, the same is done row
// by row. The trace refuses programs that use tiles.
// variants: tiles, rows
#include "planted.h"

#include <immintrin.h>
#include <sys/syscall.h>

constexpr int rows = 16, integers_of_row = 16, rows_apart = 1024, count = rows * rows_apart;
constexpr size_t bytes = count * sizeof(int), row_bytes = integers_of_row * sizeof(int);
constexpr size_t apart = rows_apart * sizeof(int);

struct Configuration {
    uint8_t palette = 1, first_row = 0, reserved[14] = {};
    uint16_t bytes_of_row[16] = {row_bytes};
    uint8_t rows_of[16];

    explicit Configuration(int rows) : rows_of{static_cast<uint8_t>(rows)} {}
};

#if __has_include(<amxtileintrin.h>)
/* The kernel allows the tiles to a program that asks for them, where the processor has them. */
static bool has_tiles()
{
    constexpr int request = 0x1023, tile_data = 18;
    return variant("tiles") && syscall(SYS_arch_prctl, request, tile_data) == 0;
}

__attribute__((target("amx-tile"), noinline)) static void copy_tile(int *to, size_t to_apart, const int *from,
                                                                    size_t from_apart, int rows)
{
    const Configuration configuration(rows);
    _tile_loadconfig(&configuration);
    _tile_loadd(0, from, from_apart);
    _tile_stored(0, to, to_apart);
    _tile_release();
}
#else
static bool has_tiles()
{
    return false;
}

static void copy_tile(int *, size_t, const int *, size_t, int) {}
#endif

static bool tiles;

static void copy_rows(int *to, size_t to_apart, const int *from, size_t from_apart, int rows)
{
    if (tiles) {
        copy_tile(to, to_apart, from, from_apart, rows);
        return;
    }
    for (int row = 0; row < rows; row++)
        std::memcpy(reinterpret_cast<char *>(to) + row * to_apart,
                    reinterpret_cast<const char *>(from) + row * from_apart, row_bytes);
}

void program()
{
    tiles = has_tiles();
    int *device = device_integers(count), *host[6];
    for (int *&one : host)
        one = behind_zeros(count);
    int tile[rows * integers_of_row];

    fill(device, count, 7);
    DOWNLOAD_ASYNC(host[0], device, bytes);
    WAIT(loaded, cudaStreamSynchronize(nullptr)); // sync: required
    copy_rows(tile, row_bytes, host[0] - rows_apart, apart, rows);
    expect("loaded", sum(tile, rows * integers_of_row), (rows - 1) * integers_of_row * 7);

    fill(device, count, 8);
    DOWNLOAD_ASYNC(host[1], device, bytes);
    WAIT(not_loaded, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    copy_rows(tile, row_bytes, host[1] - count, apart, rows);
    expect("not loaded", sum(tile, rows * integers_of_row), 0);

    for (int &one : tile)
        one = 5;
    fill(device, count, 9);
    DOWNLOAD_ASYNC(host[2], device, bytes);
    WAIT(stored, cudaStreamSynchronize(nullptr)); // sync: required
    copy_rows(host[2] - rows_apart, apart, tile, row_bytes, rows);
    settle();
    expect("stored", sum(host[2] + (rows - 2) * rows_apart, integers_of_row), integers_of_row * 5);

    fill(device, count, 10);
    DOWNLOAD_ASYNC(host[3], device, bytes);
    WAIT(not_stored, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    copy_rows(host[3] - count, apart, tile, row_bytes, rows);
    expect("not stored", sum(host[3] - count, integers_of_row), integers_of_row * 5);

    fill(device, count, 11);
    DOWNLOAD_ASYNC(host[4] + 64, device, bytes / 2);
    WAIT(end_loaded, cudaStreamSynchronize(nullptr)); // sync: required
    copy_rows(tile, row_bytes, host[4] + 64 - 12, apart, 1);
    expect("end", sum(tile, integers_of_row), 4 * 11);

    fill(device, count, 12);
    DOWNLOAD_ASYNC(host[5] + 64, device, bytes / 2);
    // sync: tiles unnecessary or required (undecidable), rows unnecessary
    WAIT(neighbour_loaded, cudaStreamSynchronize(nullptr));
    copy_rows(tile, row_bytes, host[5] + 64 - 16, apart, 1);
    expect("neighbour", sum(tile, integers_of_row), 0);
}

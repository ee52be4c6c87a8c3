#include "copy.h"

#include <algorithm>
#include <cstring>

#include "contexts/wait.h"
#include "foundation/configuration.h"
#include "staging.h"

namespace vgpu
{

namespace
{

/* A run of bytes that is contiguous on both sides. */
struct Piece {
    std::size_t destination;
    std::size_t source;
    std::size_t bytes;
};

RunTimeEstimate &copy_estimate()
{
    static RunTimeEstimate *instance = new RunTimeEstimate;
    return *instance;
}

bool on_device(const CopySide &side)
{
    return side.range.kind == MemoryKind::device || side.range.kind == MemoryKind::managed;
}

/* Whether the copy goes from one device's own memory to another's. */
bool between_devices(const CopySide &destination, const CopySide &source)
{
    return destination.range.kind == MemoryKind::device && source.range.kind == MemoryKind::device &&
           destination.range.device != source.range.device;
}

bool pageable(const CopySide &side)
{
    return side.range.kind == MemoryKind::pageable;
}

/* The distance from a side's first byte to the one after its last. */
std::size_t extent(const CopySide &side, const CopyShape &shape)
{
    return (shape.depth - 1) * side.slice_pitch + (shape.height - 1) * side.row_pitch + shape.width;
}

bool fits(const CopySide &side, const CopyShape &shape)
{
    return (shape.height == 1 || side.row_pitch >= shape.width) && extent(side, shape) <= side.range.size;
}

/* Cuts the box into pieces of at most `largest` bytes. */
std::vector<Piece> pieces_of(const CopySide &destination, const CopySide &source, const CopyShape &shape,
                             std::size_t largest)
{
    std::vector<Piece> pieces;
    for (std::size_t slice = 0; slice < shape.depth; ++slice) {
        for (std::size_t row = 0; row < shape.height; ++row) {
            std::size_t to = slice * destination.slice_pitch + row * destination.row_pitch;
            std::size_t from = slice * source.slice_pitch + row * source.row_pitch;
            for (std::size_t done = 0; done < shape.width; done += largest)
                pieces.push_back({to + done, from + done, std::min(largest, shape.width - done)});
        }
    }
    return pieces;
}

OperationReference make_copy(Engine engine, std::size_t bytes, double bandwidth)
{
    auto operation = std::make_shared<Operation>();
    operation->engine = engine;
    operation->duration =
        microseconds(configuration().copy_latency) + transfer_time(static_cast<double>(bytes), bandwidth);
    operation->occupancy = operation->least_room = 0.1;
    operation->size = bytes;
    operation->moves_bytes = true;
    operation->estimate = bytes >= worth_estimating ? &copy_estimate() : nullptr;
    return operation;
}

/* The copy runs on a copy engine of the stream's device. It goes directly if that device can access both memories,
 * and through host memory otherwise. */
OperationReference make_peer_copy(Context &context, const CopySide &destination, const CopySide &source,
                                  std::size_t bytes)
{
    const Configuration &settings = configuration();
    if (context.reaches(destination.range.device) && context.reaches(source.range.device))
        return make_copy(Engine::device_to_host, bytes, settings.peer);
    OperationReference operation = make_copy(Engine::device_to_host, bytes, settings.device_to_host_pinned);
    operation->duration +=
        microseconds(settings.copy_latency) + transfer_time(static_cast<double>(bytes), settings.host_to_device_pinned);
    return operation;
}

/* True for the driver's own buffers, and for pageable memory, which transfer() checks. */
bool can_be_used(const GpuRange &range, std::size_t size)
{
    return range.program_address == 0 || range.kind == MemoryKind::pageable || still_allocated(range, size);
}

/* Moves the pieces, on a GPU thread. Sets the context's error if the memory has been freed, or the program has
 * unmapped its pages. */
void move_pieces(Context *context, const GpuRange &destination, const GpuRange &source,
                 const std::vector<Piece> &pieces)
{
    if (pieces.empty())
        return;
    const Piece &last = pieces.back();
    if (!can_be_used(destination, last.destination + last.bytes) || !can_be_used(source, last.source + last.bytes)) {
        context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
        return;
    }
    for (const Piece &piece : pieces) {
        if (!transfer(destination, piece.destination, source, piece.source, piece.bytes)) {
            context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
            return;
        }
    }
}

GpuRange staging_range(const StagingBuffer &buffer)
{
    GpuRange range;
    range.kind = MemoryKind::pinned;
    range.gpu_view = buffer.get();
    range.size = SIZE_MAX;
    return range;
}

/* Consecutive pieces that fit into one staging buffer. */
struct Batch {
    std::vector<Piece> pieces;
    std::size_t bytes = 0;
};

std::vector<Batch> batches_of(const CopySide &destination, const CopySide &source, const CopyShape &shape)
{
    std::vector<Batch> batches;
    for (const Piece &piece : pieces_of(destination, source, shape, staging_chunk())) {
        if (batches.empty() || batches.back().bytes + piece.bytes > staging_chunk())
            batches.emplace_back();
        batches.back().pieces.push_back(piece);
        batches.back().bytes += piece.bytes;
    }
    return batches;
}

/* The GPU fills staging buffers, one batch ahead of the calling thread. The calling thread waits for each and copies
 * it to the program's memory. */
void download_pageable(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape)
{
    char *program = reinterpret_cast<char *>(destination.range.program_address);
    std::vector<Batch> batches = batches_of(destination, source, shape);
    std::vector<StagingBuffer> buffers(batches.size());
    std::vector<OperationReference> operations(batches.size());
    auto start = [&](std::size_t index) {
        buffers[index] = staging_buffer(batches[index].bytes);
        std::vector<Piece> pieces = batches[index].pieces;
        std::size_t packed = 0;
        for (Piece &piece : pieces) {
            piece.destination = packed;
            packed += piece.bytes;
        }
        operations[index] = make_copy(Engine::device_to_host, packed, configuration().device_to_host_pinned);
        operations[index]->work = [context = stream.context, buffer = buffers[index], from = source.range,
                                   pieces = std::move(pieces)] {
            move_pieces(context, staging_range(buffer), from, pieces);
        };
        staging_buffer_used_by(operations[index]);
        submit(stream, operations[index]);
    };
    for (std::size_t index = 0; index < batches.size(); ++index) {
        if (index == 0)
            start(index);
        if (index + 1 < batches.size())
            start(index + 1);
        CallCost::spend();
        wait_for_gpu({operations[index]});
        if (stream.context->error != CUDA_SUCCESS)
            return;
        CallCost cost(transfer_time(static_cast<double>(batches[index].bytes), configuration().device_to_host_staged));
        std::size_t packed = 0;
        for (const Piece &piece : batches[index].pieces) {
            std::memcpy(program + piece.destination, buffers[index].get() + packed, piece.bytes);
            packed += piece.bytes;
        }
        buffers[index].reset();
    }
}

/* Copies between host ranges wait for the stream, and the calling thread copies. */
void copy_on_host(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape)
{
    wait_for_stream(stream);
    for (const Piece &piece : pieces_of(destination, source, shape, SIZE_MAX))
        std::memmove(reinterpret_cast<char *>(destination.range.program_address) + piece.destination,
                     reinterpret_cast<const char *>(source.range.program_address) + piece.source, piece.bytes);
}

} // namespace

std::size_t bytes_of(const CopyShape &shape)
{
    return shape.width * shape.height * shape.depth;
}

CUresult check_copy(const CopySide &destination, const CopySide &source, const CopyShape &shape)
{
    return fits(destination, shape) && fits(source, shape) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

OperationReference copy_operation(Context *context, const CopySide &destination, const CopySide &source,
                                  const CopyShape &shape)
{
    const Configuration &settings = configuration();
    bool staged = pageable(destination) || pageable(source);
    OperationReference operation;
    if (between_devices(destination, source))
        operation = make_peer_copy(*context, destination, source, bytes_of(shape));
    else if (on_device(destination) && on_device(source))
        operation = make_copy(Engine::compute, bytes_of(shape), settings.device_to_device);
    else if (on_device(destination))
        operation = make_copy(Engine::host_to_device, bytes_of(shape),
                              staged ? settings.host_to_device_staged : settings.host_to_device_pinned);
    else
        operation = make_copy(Engine::device_to_host, bytes_of(shape),
                              staged ? settings.device_to_host_staged : settings.device_to_host_pinned);
    operation->work = [context, to = destination.range, from = source.range,
                       pieces = pieces_of(destination, source, shape, SIZE_MAX)] {
        move_pieces(context, to, from, pieces);
    };
    return operation;
}

/* The calling thread copies into staging buffers. It returns while the GPU still reads them. */
void upload_staged(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape)
{
    const char *program = reinterpret_cast<const char *>(source.range.program_address);
    for (Batch &batch : batches_of(destination, source, shape)) {
        StagingBuffer buffer = staging_buffer(batch.bytes);
        {
            CallCost cost(transfer_time(static_cast<double>(batch.bytes), configuration().host_to_device_staged));
            std::size_t packed = 0;
            for (Piece &piece : batch.pieces) {
                std::memcpy(buffer.get() + packed, program + piece.source, piece.bytes);
                piece.source = packed;
                packed += piece.bytes;
            }
        }
        auto operation = make_copy(Engine::host_to_device, batch.bytes, configuration().host_to_device_pinned);
        operation->work = [context = stream.context, to = destination.range, buffer, pieces = std::move(batch.pieces)] {
            move_pieces(context, to, staging_range(buffer), pieces);
        };
        staging_buffer_used_by(operation);
        submit(stream, operation);
    }
}

bool is_read_back(const CopySide &destination, const CopySide &source, bool synchronous)
{
    return !on_device(destination) && on_device(source) && (synchronous || pageable(destination));
}

void enqueue_copy(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape,
                  bool synchronous)
{
    if (!on_device(destination) && !on_device(source)) {
        copy_on_host(stream, destination, source, shape);
    } else if (pageable(source)) {
        if (synchronous)
            wait_for_stream(stream);
        upload_staged(stream, destination, source, shape);
    } else if (pageable(destination)) {
        download_pageable(stream, destination, source, shape);
    } else {
        OperationReference operation = copy_operation(stream.context, destination, source, shape);
        submit(stream, operation);
        if (synchronous && !(on_device(destination) && on_device(source))) {
            CallCost::spend();
            wait_for_gpu({operation});
        }
    }
}

CUresult device_side(CUdeviceptr address, CopySide &side)
{
    side.range = gpu_range(address);
    return pageable(side) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CopySide host_side(const void *pointer)
{
    CopySide side;
    side.range = gpu_range(reinterpret_cast<std::uintptr_t>(pointer));
    return side;
}

OperationReference fetch(Stream &stream, const GpuRange &source, char *destination, std::size_t bytes)
{
    auto operation = make_copy(Engine::device_to_host, bytes, configuration().device_to_host_pinned);
    operation->work = [context = stream.context, source, destination, bytes] {
        GpuRange target;
        target.gpu_view = destination;
        move_pieces(context, target, source, {{0, 0, bytes}});
    };
    submit(stream, operation);
    return operation;
}

} // namespace vgpu

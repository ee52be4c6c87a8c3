/* Arrays in device memory, in the layers of a template library: allocator, storage, array. */
#pragma once

#include <cstddef>
#include <vector>

#include "check.h"
#include "temporary_memory.h"

namespace sparse
{

/* Where an algorithm runs and its memory comes from; the only one here. */
struct cuda_system {};

/* Allocates what lives as long as its owner. */
template <typename Value> struct device_allocator {
    static Value *allocate(std::size_t count)
    {
        void *block = nullptr;
        check(cudaMalloc((void **)&block, count * sizeof(Value)));
        return static_cast<Value *>(block);
    }
    static void deallocate(Value *block, std::size_t)
    {
        // once: teardown
        check(cudaFree(block));
    }
};

/* Allocates what an algorithm needs while it runs. */
template <typename Value, typename System> struct temporary_allocator {
    static Value *allocate(std::size_t count)
    {
        return static_cast<Value *>(allocate_temporary(count * sizeof(Value)));
    }
    static void deallocate(Value *block, std::size_t count)
    {
        free_temporary(block, count * sizeof(Value));
    }
};

namespace detail
{

template <typename Allocator> struct allocator_traits {
    template <typename Value> static void deallocate(Value *block, std::size_t count)
    {
        Allocator::deallocate(block, count);
    }
};

/* Owns `count` values; their contents are undefined at first. */
template <typename Value, typename Allocator> class contiguous_storage
{
  public:
    explicit contiguous_storage(std::size_t count) : data_(Allocator::allocate(count)), size_(count) {}
    ~contiguous_storage()
    {
        deallocate();
    }
    contiguous_storage(const contiguous_storage &) = delete;
    contiguous_storage &operator=(const contiguous_storage &) = delete;

    Value *data() const
    {
        return data_;
    }
    int size() const
    {
        return static_cast<int>(size_);
    }

  private:
    void deallocate()
    {
        if (size_ > 0)
            allocator_traits<Allocator>::deallocate(data_, size_);
    }

    Value *data_;
    std::size_t size_;
};

/* A contiguous_storage that lives for one call of an algorithm. */
template <typename Value, typename System>
class temporary_array : public contiguous_storage<Value, temporary_allocator<Value, System>>
{
  public:
    temporary_array(System, std::size_t count) : contiguous_storage<Value, temporary_allocator<Value, System>>(count) {}
};

} // namespace detail

template <typename Value> class device_vector : public detail::contiguous_storage<Value, device_allocator<Value>>
{
  public:
    explicit device_vector(std::size_t count) : detail::contiguous_storage<Value, device_allocator<Value>>(count) {}
    explicit device_vector(const std::vector<Value> &values) : device_vector(values.size())
    {
        // once: upload
        check(cudaMemcpy(this->data(), values.data(), values.size() * sizeof(Value), cudaMemcpyHostToDevice));
    }
};

/* A sparse matrix in coordinate format, its entries in the order of their rows. */
template <typename Value> struct coo_matrix {
    coo_matrix(int row_count, const std::vector<int> &entry_rows, const std::vector<int> &entry_columns,
               const std::vector<Value> &entry_values)
        : rows(row_count), row_indices(entry_rows), column_indices(entry_columns), values(entry_values)
    {
    }

    int rows;
    device_vector<int> row_indices;
    device_vector<int> column_indices;
    device_vector<Value> values;
};

} // namespace sparse

/* Machine code in memory, from an object file that `compiler.h` made. */
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace vgpu::ptx
{

/* Executable memory that is given back with the object. */
class Object
{
  public:
    /* Throws Error for a file that it cannot load. */
    explicit Object(const std::string &file);
    ~Object();
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;

    /* Null where there is no such function. */
    void *find(const std::string &name) const;

  private:
    char *memory_ = nullptr;
    std::size_t size_ = 0;
    std::map<std::string, void *> functions_;
};

/* The driver's function that translated code calls by this name; null: there is none. */
void *runtime_function(const std::string &name);

} // namespace vgpu::ptx

/* Translates one function of PTX into LLVM's assembly language. Registers become stack slots, which LLVM promotes. */
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../analysis/liveness.h"
#include "../analysis/local_places.h"
#include "unit.h"

namespace vgpu::ptx
{

constexpr std::size_t least_local_alignment = 16; /* of variables in local memory, bytes */

/* A name as LLVM's assembly language takes it, whatever characters it has. */
inline std::string quoted(const std::string &name)
{
    return "\"" + name + "\"";
}

/* The direction of rounding: 0 nearest even, 1 towards zero, 2 down, 3 up; `i` marks rounding to an integer. */
int rounding_direction(const Instruction &instruction);

/* How many values the instruction works on: of `.v2`, `.v4`, `.v8`; else 1. */
int vector_length(const Instruction &instruction);

class Emitter
{
  public:
    Emitter(const Unit &unit, const Function &function);

    /* The function's definition; throws Error. `declared` collects LLVM's intrinsics that it uses. */
    std::string emit(std::set<std::string> &declared);

    /* Of a kernel that is made of regions, once it is emitted. */
    const std::vector<WaitPoint> &points() const
    {
        return points_;
    }
    std::size_t frame_size() const
    {
        return frame_size_;
    }

  private:
    using Handler = void (Emitter::*)(const Instruction &);
    using Values = std::vector<std::string>;

    /* Families of instructions, a file each: they fill the table of handlers. */
    static void add_integer(std::map<std::string, Handler> &handlers);
    static void add_bits(std::map<std::string, Handler> &handlers);
    static void add_real(std::map<std::string, Handler> &handlers);
    static void add_conversions(std::map<std::string, Handler> &handlers);
    static void add_video(std::map<std::string, Handler> &handlers);
    static void add_comparisons(std::map<std::string, Handler> &handlers);
    static void add_memory(std::map<std::string, Handler> &handlers);
    static void add_atomics(std::map<std::string, Handler> &handlers);
    static void add_barrier_objects(std::map<std::string, Handler> &handlers);
    static void add_textures(std::map<std::string, Handler> &handlers);
    static void add_control(std::map<std::string, Handler> &handlers);
    static void add_warp(std::map<std::string, Handler> &handlers);
    static const std::map<std::string, Handler> &handlers();

    /* emitter.cpp: lines and values. */
    void line(const std::string &text);
    std::string operation(const std::string &text); /* yields the value's name */
    std::string call(const std::string &type, const std::string &name, const std::string &arguments);
    std::string intrinsic(const std::string &name, const std::string &type, const Values &arguments);
    std::string fresh_label();
    void begin(const std::string &label); /* falls through into it */
    void jump(const std::string &label);  /* and nothing follows */
    void branch(const std::string &condition, const std::string &yes, const std::string &no);
    std::string cast(const std::string &value, const std::string &from, const std::string &to);
    std::string extend(const std::string &value, int from, int to, bool sign);
    std::string constant(const Operand &operand, Type type);
    std::string address_of(const std::string &name); /* an i64 */
    std::string read(const Operand &operand, Type type);
    void write(const Operand &operand, Type type, const std::string &value);
    void write_predicate(const std::string &name, const std::string &value);
    std::string negate_predicate(const std::string &value);
    std::string field(int member, int element, const std::string &type);         /* of the block */
    std::string special(const std::string &name);                                /* an i64 */
    std::string lane_register(const std::string &name, const std::string &lane); /* an i32 */
    const Operand &operand(const Instruction &instruction, std::size_t index) const;
    Type type(const Instruction &instruction, std::size_t from_end = 0) const;
    [[noreturn]] void unsupported(const Instruction &instruction, const std::string &detail = "") const;
    std::string lanes(Type type, const std::vector<std::string> &values,
                      const std::function<std::string(Type, const Values &)> &scalar);

    void emit_body();
    void emit(const Instruction &instruction);
    void emit_slots();
    bool is_coroutine() const;
    void emit_coroutine_begin();
    void emit_coroutine_end();
    void wait(const std::string &name, const std::string &arguments); /* in one of the driver's functions */
    std::string waited_for(const std::string &type);                  /* the result */
    bool is_region() const;
    void lay_out_frame();
    void find_constants();
    void emit_region_begin();
    void emit_region_end();
    void wait_in_region(const std::string &name, const std::string &arguments);
    void emit_region_kept(const std::vector<std::string> &registers, bool saves);
    std::string lane_place(const std::string &member); /* of the warp's record */

    /* exchanges.cpp */
    static constexpr std::size_t first_loop = 10; /* the number of the first loop's metadata */
    bool has_only_registers(const Operand &operand) const;
    bool is_whole_exchange(std::size_t place) const;
    void find_exchanges();
    void emit_exchange_slots();
    void count_exchange();
    void emit_exchanges();
    void emit_permutation(std::size_t place);
    void emit_between(std::size_t place, std::size_t next);
    void emit_last_exchange(std::size_t place);
    std::string loop_facts() const;

    void stride();
    void spin_in_region();
    std::string signature() const;
    bool is_backward(const std::string &label) const;

    /* integer.cpp */
    void add(const Instruction &);
    void multiply(const Instruction &);
    void divide(const Instruction &);
    void extremum(const Instruction &);
    void one_operand(const Instruction &);
    void carry(const Instruction &);
    void multiply_carry(const Instruction &);
    void multiply_24(const Instruction &);
    void difference(const Instruction &);
    void dot_product(const Instruction &);
    std::string product(const Instruction &, Type type, Type &result);

    /* bits.cpp */
    void logic(const Instruction &);
    void lookup(const Instruction &);
    void shift(const Instruction &);
    void funnel_shift(const Instruction &);
    void permute(const Instruction &);
    void count(const Instruction &);
    void find(const Instruction &);
    void field_extract(const Instruction &);
    void field_insert(const Instruction &);
    void mask(const Instruction &);
    void nth_bit(const Instruction &);
    void move(const Instruction &);
    std::string shifted(const std::string &op, Type type, const std::string &value, const std::string &amount);

    /* real.cpp */
    void real_arithmetic(const Instruction &);
    void real_one_operand(const Instruction &);
    void approximate(const Instruction &);
    void copy_sign(const Instruction &);
    std::string real_operation(const Instruction &, const std::string &name, Type type, const Values &values);
    std::string narrow_operation(const Instruction &, const std::string &name, Type type, const Values &values);
    std::string directed(const std::string &name, int direction, const Values &values);
    std::string real_extremum(const Instruction &, const std::string &name, Type type, const Values &values);
    std::string finish_real(const Instruction &, Type type, const std::string &value);
    std::string flushed(const Instruction &, Type type, const std::string &value);
    std::string flushed_half(const Instruction &, Type type, const std::string &value);
    std::string saturated(Type type, const std::string &value);
    std::string gross(const Instruction &, Type type, const std::string &value);

    /* conversion.cpp */
    void convert(const Instruction &);
    void convert_address(const Instruction &);
    void pack(const Instruction &);
    std::string real_to_integer(const Instruction &, Type to, Type from, const std::string &value);
    std::string integer_to_real(const Instruction &, Type to, Type from, const std::string &value);
    std::string real_to_real(const Instruction &, Type to, Type from, const std::string &value);
    std::string integer_to_integer(const Instruction &, Type to, Type from, const std::string &value);
    std::string widened(Type from, const std::string &value);
    void convert_to_8(const Instruction &);
    void convert_from_8(const Instruction &);

    /* video.cpp */
    void video_scalar(const Instruction &);
    void video_multiply(const Instruction &);
    void video_lanes(const Instruction &);
    std::string video_result(const Instruction &, const std::string &a, const std::string &b);
    std::string video_part(const Operand &operand, Type type);
    std::string video_clamped(const std::string &value, bool sign, int bits);
    void video_finish(const Instruction &, Type type, const std::string &value, std::size_t third);
    std::string video_lane(const Operand &a, const Operand &b, int source, int width, Type type);

    /* comparison.cpp */
    void set_predicate(const Instruction &);
    void set_value(const Instruction &);
    void select(const Instruction &);
    void select_by_sign(const Instruction &);
    void test_property(const Instruction &);
    void is_space(const Instruction &);
    std::string compare(const Instruction &, const std::string &how, Type type, const Values &values);
    std::string combined(const Instruction &, std::size_t how, std::string compared, bool &negatable);

    /* memory.cpp */
    void load(const Instruction &);
    void store(const Instruction &);
    void nothing(const Instruction &);
    void copy_async(const Instruction &);
    void copy_bulk(const Instruction &);
    Space space(const Instruction &) const;
    std::string pointer(const Operand &operand, Space space, int bytes); /* checked */
    std::string checked(const std::string &address, Space space, int bytes);
    static Space space_of(const std::string &word);
    std::string parameter_pointer(const Operand &operand);
    std::string local_pointer(const Operand &operand, int bytes);
    std::string unchecked_address(const Operand &operand);

    /* atomic.cpp */
    void atomic(const Instruction &);
    void fence(const Instruction &);
    std::string exchange(const Instruction &, Type type, const std::string &pointer, const Operand &operand);
    std::string swap_if_equal(const Instruction &, Type type, const std::string &pointer);
    std::string compare_loop(Type type, const std::string &pointer,
                             const std::function<std::string(const std::string &)> &next);
    std::string replace_alone(Type type, const std::string &pointer,
                              const std::function<std::string(const std::string &)> &next);
    std::string combined(const std::string &name, Type type, const std::string &before, const std::string &given);

    /* mbarrier.cpp */
    void barrier_object(const Instruction &);
    void wait_at_object(const Instruction &);
    void arrive_after_copies(const Instruction &);
    void settle(const std::string &object, const std::string &counted);
    void count_bytes(const std::string &object, const std::string &bytes, bool fewer);
    std::string arrive_at(const std::string &object, const std::string &arrivals, bool drops);
    std::string phase_is_over(const std::string &object, const std::string &given, bool by_parity);

    /* texture.cpp */
    void fetch_texture(const Instruction &);
    void access_surface(const Instruction &);
    std::string image_arguments(const Instruction &, const Operand &image, Type coordinate);

    /* control.cpp */
    void branch_to(const Instruction &);
    void branch_by_index(const Instruction &);
    void call_function(const Instruction &);
    void call_unknown(const Instruction &);
    bool call_system(const Instruction &, const std::string &name, const Operand *results, const Operand *arguments);
    void leave(const Instruction &);
    void exit_thread(const Instruction &);
    void trap(const Instruction &);
    void barrier(const Instruction &);
    void sleep(const Instruction &);
    void allocate_local(const Instruction &);
    void save_stack(const Instruction &);
    void restore_stack(const Instruction &);
    void poll();
    void spin();

    /* warp.cpp */
    void shuffle(const Instruction &);
    void vote(const Instruction &);
    void match(const Instruction &);
    void reduce(const Instruction &);
    void active(const Instruction &);
    void elect(const Instruction &);

    const Unit &unit_;
    const Function &function_;
    std::string text_;
    std::set<std::string> *declared_ = nullptr;
    std::map<std::string, const Variable *> variables_;
    std::map<std::string, std::size_t> labels_; /* the instruction's place in the body */
    std::size_t place_ = 0;                     /* of the instruction that is translated */
    int next_ = 0;
    const std::map<std::string, LocalPlace> local_places_;
    std::map<std::string, Operand> constants_;    /* registers that are written once, with a number */
    std::map<std::size_t, Kept> kept_;            /* of regions, by place in the body */
    std::map<std::string, std::size_t> in_frame_; /* where registers and local variables lie in a warp's frame, bytes */
    std::size_t frame_size_ = 0;
    std::size_t local_stride_ = 0; /* bytes of a lane's local variables */
    std::vector<WaitPoint> points_;
    std::string lane_index_ = "%lane.index";
    std::map<std::size_t, std::size_t> next_exchange_; /* of places between which lanes do the same, side by side */
    std::set<std::size_t> first_exchanges_;            /* those of them that no other leads to */
    std::map<std::size_t, std::size_t> point_at_;      /* of an exchange's place in the body */
    std::set<std::size_t> loops_;                      /* over all lanes, by the places where they begin */
    bool open_ = true;                                 /* the current block of LLVM's takes instructions */
};

} // namespace vgpu::ptx

/* Special registers (PTX ISA, "Special Registers"). */
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

/* The member of Block that holds the register's three parts; -1 for other registers. */
int block_member(const std::string &stem)
{
    if (stem == "%ntid")
        return 8;
    if (stem == "%nctaid" || stem == "%nclusterid")
        return 9;
    return stem == "%ctaid" || stem == "%clusterid" ? 10 : -1;
}

} // namespace

/* As an i32: the number of a thread in its warp, or the mask of the lanes that compare with it as the name says. */
std::string Emitter::lane_register(const std::string &name, const std::string &lane)
{
    if (name == "%laneid")
        return lane;
    std::string own = operation("shl i32 1, " + lane), below = operation("sub i32 " + own + ", 1");
    std::string up_to = operation("or i32 " + own + ", " + below);
    std::string how = name.substr(10);
    if (how == "ge" || how == "gt")
        return operation("xor i32 " + (how == "ge" ? below : up_to) + ", -1");
    return how == "eq" ? own : how == "lt" ? below : up_to;
}

/* The register's value as an i64, whatever its width. */
std::string Emitter::special(const std::string &name)
{
    auto wide = [this](const std::string &value) { return operation("zext i32 " + value + " to i64"); };
    auto thread = [this](int member, const std::string &rest) {
        std::string place =
            operation("getelementptr %Thread, ptr %thread, i32 0, i32 " + std::to_string(member) + rest);
        return operation("load i32, ptr " + place);
    };
    std::size_t dot = name.find('.');
    if (dot != std::string::npos) {
        std::string stem = name.substr(0, dot);
        int part = name[dot + 1] - 'x';
        if (part < 0 || part > 2)
            return "0";
        if (stem == "%tid")
            return wide(thread(0, ", i32 " + std::to_string(part)));
        if (stem == "%cluster_ctaid")
            return "0";
        if (stem == "%cluster_nctaid")
            return "1";
        if (block_member(stem) >= 0)
            return wide(field(block_member(stem), part, "i32"));
    }
    if (name == "%laneid" || name.rfind("%lanemask", 0) == 0)
        return wide(lane_register(name, operation("and i32 " + thread(1, "") + ", 31")));
    if (name == "%warpid")
        return wide(operation("lshr i32 " + thread(1, "") + ", 5"));
    if (name == "%nwarpid")
        return "64";
    if (name == "%smid")
        return wide(operation("urem i32 " + field(10, 0, "i32") + ", 132"));
    if (name == "%nsmid")
        return "132";
    if (name == "%gridid")
        return wide(field(13, -1, "i32"));
    if (name == "%envreg1" || name == "%envreg2") { /* the halves of a cooperative grid's workspace address */
        std::string address = field(14, -1, "i64");
        return name == "%envreg1" ? operation("lshr i64 " + address + ", 32")
                                  : operation("and i64 " + address + ", 4294967295");
    }
    if (name == "%dynamic_smem_size")
        return wide(field(11, -1, "i32"));
    if (name == "%total_smem_size" || name == "%aggr_smem_size")
        return field(4, -1, "i64");
    if (name == "%clock" || name == "%clock64" || name == "%clock_hi") {
        std::string now = call("i64", "vgpu_clock", "");
        return name == "%clock_hi" ? operation("lshr i64 " + now + ", 32") : now;
    }
    if (name.rfind("%globaltimer", 0) == 0) {
        std::string now = call("i64", "vgpu_nanoseconds", "");
        return name == "%globaltimer_hi" ? operation("lshr i64 " + now + ", 32") : now;
    }
    if (name == "WARP_SZ")
        return "32";
    if (name == "%cluster_ctarank" || name == "%is_explicit_cluster" || name.rfind("%envreg", 0) == 0)
        return "0";
    if (name == "%cluster_nctarank")
        return "1";
    throw Error("the special register '" + name + "' is not implemented");
}

} // namespace vgpu::ptx

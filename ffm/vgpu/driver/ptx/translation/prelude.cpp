/* The inline parts of translated code, and declarations of the driver's functions that it calls. */
#include "unit.h"

namespace vgpu::ptx
{

const char *prelude()
{
    return R"IR(
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; as block.h
%Block = type { i64, i64, ptr, ptr, i64, ptr, ptr, ptr, [3 x i32], [3 x i32], [3 x i32], i32, i32, i32, i64, ptr }
%Thread = type { [3 x i32], i32, i64, i64, i64, ptr, i64, i32 }
%Warp = type { [32 x i64], [5 x [32 x i64]], [32 x i32] }

declare i64 @vgpu_reach(ptr, ptr, i64, i64) cold nounwind
declare i64 @vgpu_reach_shared(ptr, ptr, i64, i64) cold nounwind
declare void @vgpu_stopped(ptr, ptr) cold noreturn nounwind
declare void @vgpu_fault(ptr, ptr, i32) cold noreturn nounwind
declare void @vgpu_exit(ptr, ptr) noreturn nounwind

; what threads wait in; not 0 tells a coroutine to suspend itself
declare i32 @vgpu_turn(ptr, ptr) nounwind
declare i32 @vgpu_stride(ptr, ptr) nounwind
declare i32 @vgpu_sleep(ptr, ptr, i32) nounwind
declare i32 @vgpu_barrier(ptr, ptr, i32, i32, i32, i32) nounwind
declare i32 @vgpu_warp_barrier(ptr, ptr, i32) nounwind
declare i32 @vgpu_shuffle(ptr, ptr, i32, i32, i32, i32, i32) nounwind
declare i32 @vgpu_vote(ptr, ptr, i32, i32, i32) nounwind
declare i32 @vgpu_match(ptr, ptr, i32, i64, i32) nounwind
declare i32 @vgpu_reduce(ptr, ptr, i32, i32, i32) nounwind
declare i32 @vgpu_active(ptr, ptr, i32) nounwind

declare void @vgpu_no_function(ptr, ptr, i64) cold noreturn nounwind
declare i32 @vgpu_print(ptr, ptr, i64, i64) nounwind
declare void @vgpu_assert(ptr, ptr, i64, i64, i32, i64) nounwind
declare i64 @vgpu_allocate(ptr, ptr, i64) nounwind
declare void @vgpu_free(ptr, ptr, i64) nounwind
declare void @vgpu_fetch_texture(ptr, ptr, i64, i32, i32, i32, i32, i32, i32, ptr) nounwind
declare ptr @vgpu_surface_texel(ptr, ptr, i64, i32, i32, i32, i32, i32, i32, i32, ptr) nounwind
declare i64 @vgpu_clock() nounwind
declare i64 @vgpu_nanoseconds() nounwind
declare void @vgpu_swap_128(ptr, ptr, ptr) nounwind
declare float @vgpu_round_f32(i32, i32, float, float, float) nounwind memory(none)
declare double @vgpu_round_f64(i32, i32, double, double, double) nounwind memory(none)
declare i16 @vgpu_narrow_f64(i32, i32, double) nounwind memory(none)
declare float @vgpu_narrow_f32(i32, double) nounwind memory(none)
declare i32 @vgpu_narrow_8(i32, float) nounwind memory(none)
declare float @vgpu_widen_8(i32, i32) nounwind memory(none)
declare i16 @vgpu_fma_16(i32, i16, i16, i16) nounwind memory(none)
declare float @vgpu_integer_f32(i32, i64, i32) nounwind memory(none)
declare double @vgpu_integer_f64(i32, i64, i32) nounwind memory(none)
declare float @vgpu_approximate(i32, float) nounwind memory(none)
declare i32 @vgpu_nth_bit(i32, i32, i32) nounwind memory(none)

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i1 @llvm.expect.i1(i1, i1)
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.end(ptr, i1, token)

; where the GPU finds `a`, an address of `w` bytes, of which `k` is the logarithm
define internal i64 @at(ptr %block, ptr %thread, i64 %a, i64 %k, i64 %w, i1 %generic) alwaysinline nounwind {
  %first = load i64, ptr %block, !invariant.load !0
  %sizep = getelementptr %Block, ptr %block, i32 0, i32 1
  %size = load i64, ptr %sizep, !invariant.load !0
  %off = sub i64 %a, %first
  %turned = call i64 @llvm.fshr.i64(i64 %off, i64 %off, i64 %k)
  %limit = lshr i64 %size, %k
  %in = icmp ult i64 %turned, %limit
  br i1 %in, label %memory, label %other, !prof !1
memory:
  %tablep = getelementptr %Block, ptr %block, i32 0, i32 2
  %table = load ptr, ptr %tablep, !invariant.load !0
  %log = sub i64 21, %k
  %unit = lshr i64 %turned, %log
  %place = getelementptr i8, ptr %table, i64 %unit
  %there = load i8, ptr %place, !invariant.load !0
  %ok = icmp ne i8 %there, 0
  br i1 %ok, label %done, label %slow, !prof !1
other:
  br i1 %generic, label %shared, label %slow
shared:
  %sharedp = getelementptr %Block, ptr %block, i32 0, i32 3
  %base = load i64, ptr %sharedp, !invariant.load !0
  %ssizep = getelementptr %Block, ptr %block, i32 0, i32 4
  %ssize = load i64, ptr %ssizep, !invariant.load !0
  %soff = sub i64 %a, %base
  %sturned = call i64 @llvm.fshr.i64(i64 %soff, i64 %soff, i64 %k)
  %slimit = lshr i64 %ssize, %k
  %sin = icmp ult i64 %sturned, %slimit
  br i1 %sin, label %done, label %slow, !prof !1
slow:
  %moved = call i64 @vgpu_reach(ptr %block, ptr %thread, i64 %a, i64 %w)
  br label %done
done:
  %result = phi i64 [ %a, %memory ], [ %a, %shared ], [ %moved, %slow ]
  ret i64 %result
}

define internal i64 @at_shared(ptr %block, ptr %thread, i64 %a, i64 %k, i64 %w) alwaysinline nounwind {
  %sizep = getelementptr %Block, ptr %block, i32 0, i32 4
  %size = load i64, ptr %sizep, !invariant.load !0
  %turned = call i64 @llvm.fshr.i64(i64 %a, i64 %a, i64 %k)
  %limit = lshr i64 %size, %k
  %in = icmp ult i64 %turned, %limit
  %sharedp = getelementptr %Block, ptr %block, i32 0, i32 3
  %base = load i64, ptr %sharedp, !invariant.load !0
  br i1 %in, label %done, label %slow, !prof !1
slow:
  %never = call i64 @vgpu_reach_shared(ptr %block, ptr %thread, i64 %a, i64 %w)
  unreachable
done:
  %sum = add i64 %base, %a
  ret i64 %sum
}

define internal i64 @at_local(ptr %block, ptr %thread, i64 %a, i64 %k, i64 %w) alwaysinline nounwind {
  %firstp = getelementptr %Thread, ptr %thread, i32 0, i32 2
  %first = load i64, ptr %firstp
  %sizep = getelementptr %Thread, ptr %thread, i32 0, i32 3
  %size = load i64, ptr %sizep
  %off = sub i64 %a, %first
  %turned = call i64 @llvm.fshr.i64(i64 %off, i64 %off, i64 %k)
  %limit = lshr i64 %size, %k
  %in = icmp ult i64 %turned, %limit
  br i1 %in, label %done, label %slow, !prof !1
slow:
  %moved = call i64 @vgpu_reach(ptr %block, ptr %thread, i64 %a, i64 %w)
  br label %done
done:
  %result = phi i64 [ %a, %0 ], [ %moved, %slow ]
  ret i64 %result
}

; in every loop: another block may have failed, the time may be over
define internal void @poll(ptr %block, ptr %thread) alwaysinline nounwind {
  %stopp = getelementptr %Block, ptr %block, i32 0, i32 7
  %stop = load ptr, ptr %stopp, !invariant.load !0
  %set = load volatile i32, ptr %stop
  %go = icmp eq i32 %set, 0
  br i1 %go, label %done, label %ends, !prof !1
ends:
  call void @vgpu_stopped(ptr %block, ptr %thread)
  unreachable
done:
  ret void
}

; what may be part of a loop that waits for another thread gives that a turn now and then
define internal i32 @spin(ptr %block, ptr %thread) alwaysinline nounwind {
  %place = getelementptr %Block, ptr %block, i32 0, i32 12
  %before = load i32, ptr %place
  %left = sub i32 %before, 1
  store i32 %left, ptr %place
  %go = icmp sgt i32 %left, 0
  br i1 %go, label %done, label %turn, !prof !1
turn:
  %waits = call i32 @vgpu_turn(ptr %block, ptr %thread)
  br label %done
done:
  %suspends = phi i32 [ 0, %0 ], [ %waits, %turn ]
  ret i32 %suspends
}

; in a loop whose accesses lie far apart: lets the block's other threads use the lines of the cache that this one fetched
define internal i32 @stride(ptr %block, ptr %thread, ptr %turns) alwaysinline nounwind {
  %before = load i32, ptr %turns
  %left = sub i32 %before, 1
  %go = icmp sgt i32 %left, 0
  %next = select i1 %go, i32 %left, i32 8
  store i32 %next, ptr %turns
  br i1 %go, label %done, label %turn
turn:
  %waits = call i32 @vgpu_stride(ptr %block, ptr %thread)
  br label %done
done:
  %suspends = phi i32 [ 0, %0 ], [ %waits, %turn ]
  ret i32 %suspends
}

; a call needs room on the thread's stack
define internal void @enter(ptr %block, ptr %thread) alwaysinline nounwind {
  call void @enter_with(ptr %block, ptr %thread, i64 0)
  ret void
}

; the same with so many bytes besides
define internal void @enter_with(ptr %block, ptr %thread, i64 %more) alwaysinline nounwind {
  %here = call ptr @llvm.stacksave.p0()
  %address = ptrtoint ptr %here to i64
  %firstp = getelementptr %Thread, ptr %thread, i32 0, i32 2
  %first = load i64, ptr %firstp
  %limit = add i64 %first, 65536
  %left = call i64 @llvm.usub.sat.i64(i64 %address, i64 %limit)
  %room = icmp ugt i64 %left, %more
  br i1 %room, label %done, label %full, !prof !1
full:
  call void @vgpu_fault(ptr %block, ptr %thread, i32 5)
  unreachable
done:
  ret void
}

; x * y + z in one of the directions that mathematics.cpp numbers; the operation that this stands for, on a, b and c,
; serves where the result is zero or not finite. The product is exact in double precision, and the sum with its error
; (Knuth's two-sum) as well: so is the sign of what rounding to the nearest left over.
define internal float @directed_f32(i32 %operation, i32 %direction, float %a, float %b, float %c, float %x, float %y, float %z) alwaysinline nounwind {
  %nearest = call float @llvm.fma.f32(float %x, float %y, float %z)
  %bits = bitcast float %nearest to i32
  %size = and i32 %bits, 2147483647
  %below = sub i32 %size, 1
  %plain = icmp ult i32 %below, 2139095039
  br i1 %plain, label %step, label %special, !prof !1
special:
  %slow = call float @vgpu_round_f32(i32 %operation, i32 %direction, float %a, float %b, float %c)
  br label %done
step:
  %wx = fpext float %x to double
  %wy = fpext float %y to double
  %wz = fpext float %z to double
  %product = fmul double %wx, %wy
  %sum = fadd double %product, %wz
  %part = fsub double %sum, %product
  %other = fsub double %sum, %part
  %lost1 = fsub double %product, %other
  %lost2 = fsub double %wz, %part
  %error = fadd double %lost1, %lost2
  %wide = fpext float %nearest to double
  %left = fsub double %sum, %wide
  %rest = fadd double %left, %error
  %positive = icmp sgt i32 %bits, -1
  %over = fcmp olt double %rest, 0.0
  %under = fcmp ogt double %rest, 0.0
  %inward = select i1 %positive, i1 %over, i1 %under
  %outward = select i1 %positive, i1 %under, i1 %over
  %zeroward = icmp eq i32 %direction, 1
  %downward = icmp eq i32 %direction, 2
  %away = xor i1 %positive, %downward
  %grows = select i1 %zeroward, i1 false, i1 %away
  %near = xor i1 %grows, true
  %grown = and i1 %grows, %outward
  %shrunk = and i1 %near, %inward
  %plus = zext i1 %grown to i32
  %minus = zext i1 %shrunk to i32
  %added = add i32 %bits, %plus
  %moved = sub i32 %added, %minus
  %stepped = bitcast i32 %moved to float
  br label %done
done:
  %result = phi float [ %slow, %special ], [ %stepped, %step ]
  ret float %result
}

define internal float @flush_f32(float %x) alwaysinline nounwind {
  %size = call float @llvm.fabs.f32(float %x)
  %small = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %x)
  %result = select i1 %small, float %zero, float %x
  ret float %result
}
define internal float @saturate_f32(float %x) alwaysinline nounwind {
  %low = fcmp ogt float %x, 0.0
  %positive = select i1 %low, float %x, float 0.0
  %high = fcmp olt float %positive, 1.0
  %result = select i1 %high, float %positive, float 1.0
  ret float %result
}
define internal double @saturate_f64(double %x) alwaysinline nounwind {
  %low = fcmp ogt double %x, 0.0
  %positive = select i1 %low, double %x, double 0.0
  %high = fcmp olt double %positive, 1.0
  %result = select i1 %high, double %positive, double 1.0
  ret double %result
}
define internal float @widen_bf16(i16 %x) alwaysinline nounwind {
  %wide = zext i16 %x to i32
  %bits = shl i32 %wide, 16
  %result = bitcast i32 %bits to float
  ret float %result
}
define internal i16 @narrow_bf16(float %x) alwaysinline nounwind {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %bits, %bias
  %rounded = lshr i32 %sum, 16
  %nan = fcmp uno float %x, %x
  %chosen = select i1 %nan, i32 32767, i32 %rounded
  %result = trunc i32 %chosen to i16
  ret i16 %result
}
declare i64 @llvm.fshr.i64(i64, i64, i64)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)

!0 = !{}
!1 = !{!"branch_weights", i32 1000000, i32 1}
)IR";
}

} // namespace vgpu::ptx

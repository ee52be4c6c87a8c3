// Replaces functions that other threads may be calling.
//
// Interceptor writes a jump piece by piece, and Frida's own threads call functions of the C library whenever they have
// handed us a message. A thread that meets half a jump crashes the program. So here a single store writes the whole
// jump while those threads sleep, so that none is executing the code it replaces. The program itself waits at the gate.

const JUMP = 5; // bytes
const JUMP_CODE = 0xe9;
const NEAR = 0x7f000000; // bytes that such a jump can certainly span
const LANDING_PAD = 0xfa1e0ff3; // endbr64, which stays in place
const SLOT = 128; // bytes for a jump to the replacement, followed by the way to the original
const BEHIND = 16; // offset of the latter
const RETURN_ADDRESS = 96; // offset in it
const SLOTS = 64;
const PATIENCE = 2000; // milliseconds until other threads sleep; it takes a few on a busy machine

let relocator = null;
const rooms = []; // memory near replaced functions, divided into slots
const gate = {
  othersSleep: new NativeFunction(Module.getGlobalExportByName("ffm_gate_others_sleep"), "bool", []),
  jump: new NativeFunction(Module.getGlobalExportByName("ffm_gate_jump"), "void", ["pointer", "pointer"]),
};

// Calls `bind` with code that runs the function without the replacement, then installs the replacement. Throws if the
// function is too short, or must not be written.
function detour(address, replacement, bind) {
  const start = behindLandingPad(address);
  if (start.readU8() === JUMP_CODE) {
    throw new Error("it is already replaced, for example under another name");
  }
  if (start.and(15).toInt32() + JUMP > 16) {
    throw new Error("a store of 16 bytes cannot cover the whole jump");
  }
  const slot = slotNear(address);
  Memory.patchCode(slot, SLOT, (code) => {
    const forth = new X86Writer(code, { pc: slot });
    forth.putJmpAddress(replacement);
    forth.flush();
    moveBegin(start, JUMP, code.add(BEHIND), slot.add(BEHIND));
  });
  const { base, size } = writableAround(start);
  if (!Memory.protect(base, size, "rwx")) {
    throw new Error("its code cannot be written");
  }
  bind(slot.add(BEHIND));
  for (const end = Date.now() + PATIENCE; !gate.othersSleep() && Date.now() < end; ) {
    Thread.sleep(0.0005);
  }
  gate.jump(start, slot);
  Memory.protect(base, size, "r-x");
}

function behindLandingPad(address) {
  return address.readU32() === LANDING_PAD ? address.add(4) : address;
}

// What to make writable around code: its page, or all of the kernel's code, whose mapping cannot be split.
function writableAround(start) {
  const kernel = Process.findModuleByName("linux-vdso.so.1");
  const range = kernel === null ? null : Process.findRangeByAddress(kernel.base);
  if (range !== null && start.compare(range.base) >= 0 && start.compare(range.base.add(range.size)) < 0) {
    return range;
  }
  return { base: start.and(ptr(Process.pageSize - 1).not()), size: Process.pageSize };
}

// Writes the instructions that a jump of `size` bytes will replace to `code`, to run at `pc`, then a jump to the ones
// after them.
function moveBegin(start, size, code, pc) {
  const writer = new X86Writer(code, { pc });
  readFrom(start, writer);
  let taken = 0;
  let called = null;
  while (taken < size) {
    const read = relocator.readOne();
    if (read === 0) {
      throw new Error("it is too short");
    }
    taken = read;
    called = calledBy(relocator.input);
    if (called === null) {
      relocator.writeOne();
    }
  }
  if (called !== null) {
    // It returns to the original, which unwinders know: `sem_wait` begins with the call that ends a cancelled thread.
    code.add(RETURN_ADDRESS).writePointer(start.add(taken));
    writer.putPushNearPtr(pc.add(RETURN_ADDRESS));
    writer.putJmpAddress(called);
  } else if (!relocator.eoi) {
    writer.putJmpAddress(start.add(taken));
  }
  writer.flush();
}

// Makes the relocator read from `start`. There is only one, because making one takes a sixth of a millisecond.
function readFrom(start, writer) {
  if (relocator === null) {
    relocator = new X86Relocator(start, writer);
  } else {
    relocator.reset(start, writer);
  }
}

// The function that an instruction calls, if it names one.
function calledBy({ mnemonic, operands }) {
  return mnemonic === "call" && operands[0].type === "imm" ? ptr(operands[0].value.toString()) : null;
}

function slotNear(address) {
  const isNear = (base) => [base.sub(address), address.sub(base)].some((distance) => distance.compare(ptr(NEAR)) < 0);
  let room = rooms.find(({ base, used }) => used < SLOTS && isNear(base));
  if (room === undefined) {
    room = { base: Memory.alloc(SLOT * SLOTS, { near: address, maxDistance: NEAR - SLOT * SLOTS }), used: 0 };
    rooms.push(room);
  }
  return room.base.add(SLOT * room.used++);
}

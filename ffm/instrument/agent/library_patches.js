// Functions of the C library that are replaced before the program runs.

const kept = []; // what native code uses as long as the program runs

// Frida writes a jump in several pieces, and its own threads call functions of the C library, as when they have handed
// us a message: one that meets half a jump ends the program. The program itself waits at the gate.
const SLEEP_PATIENCE = 2000; // milliseconds; a few on a busy machine

function awaitOthersAsleep() {
  const end = Date.now() + SLEEP_PATIENCE;
  while (!collector.othersSleep() && Date.now() < end) {
    Thread.sleep(0.0005);
  }
}

function patchLibrary() {
  awaitOthersAsleep();
  Interceptor.flush();
}

// Functions of the C library, replaced before the program runs. One that cannot be is left as it is: the library asks
// for those that it needs.
function guardLibrary() {
  if (configuration.guarded.length === 0) {
    return;
  }
  const library = Process.findModuleByName("libc.so.6");
  if (library === null) {
    return;
  }
  for (const [index, name, whole] of configuration.guarded) {
    const address = library.findExportByName(name);
    if (address === null || collector.isBound(address)) {
      continue; // a forked child keeps its parent's hooks
    }
    const wrapper = collector.wrapper(index);
    try {
      collector.bind(index, address, Interceptor.replaceFast(address, wrapper));
    } catch (error) {
      if (whole && isBareSystemCall(address)) {
        overwrite(address, wrapper);
        collector.bind(index, address, wrapper); // its original is not needed
      }
    }
  }
  patchLibrary();
}

// The allocators that the program calls: its own, where it brings some. One that cannot be replaced stays as it is: of
// what it allocates the origin is then not known.
function hookAllocators() {
  for (let place = 0; ; place++) {
    const name = collector.allocatorName(place);
    if (name.isNull()) {
      break;
    }
    const address = Module.findGlobalExportByName(name.readUtf8String());
    if (address === null || collector.allocatorIsBound(place)) {
      continue;
    }
    try {
      collector.allocatorBind(place, Interceptor.replaceFast(address, collector.allocatorWrapper(place)));
    } catch (error) {
      // Too short.
    }
  }
  patchLibrary();
}

// glibc's shortest functions: `mov eax, number; syscall; ...`, and read, which first looks whether there are threads.
function isBareSystemCall(address) {
  const bytes = new Uint8Array(address.readByteArray(24));
  const start = bytes[0] === 0xf3 && bytes[1] === 0x0f && bytes[2] === 0x1e && bytes[3] === 0xfa ? 4 : 0; // endbr64
  const head = bytes.subarray(start);
  const plain = head[0] === 0xb8 && head[5] === 0x0f && head[6] === 0x05;
  const cancellable = head[0] === 0x80 && head[1] === 0x3d && head[7] === 0x74 && head[11] === 0x0f && head[12] === 0x05;
  return plain || cancellable;
}

const NEAR = 0x7f000000; // bytes that a jump of five bytes reaches

// A jump to a jump: a thread that sleeps in the function's system call comes back behind the first five bytes.
function overwrite(address, target) {
  const stub = Memory.alloc(Process.pageSize, { near: address, maxDistance: NEAR });
  kept.push(stub);
  Memory.patchCode(stub, 14, (code) => {
    code.writeByteArray([0xff, 0x25, 0, 0, 0, 0]).add(6).writePointer(target); // jmp [rip], and the address behind it
  });
  awaitOthersAsleep();
  Memory.patchCode(address, 5, (code) => {
    code.writeU8(0xe9).add(1).writeS32(stub.sub(address.add(5)).toInt32());
  });
}

// A function that the library lacks has no caller either.
function hookClocks() {
  const library = Process.getModuleByName("libc.so.6");
  for (let place = 0; ; place++) {
    const name = collector.clockName(place);
    if (name.isNull()) {
      break;
    }
    const address = library.findExportByName(name.readUtf8String());
    const wrapper = collector.clockWrapper(place);
    if (address !== null && !wrapper.isNull()) {
      collector.clockBind(place, Interceptor.replaceFast(address, wrapper));
    }
  }
  patchLibrary();
}

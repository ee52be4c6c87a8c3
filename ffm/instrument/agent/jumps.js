// Replaces functions of a driver that is being loaded: no thread executes them yet, so jumps may be written in pieces.
//
// Interceptor.replaceFast could do this. It makes three disassemblers for each function, which takes a fifth of a
// millisecond: for the hundreds of functions of a driver longer than some programs run.
//
// If ffm is killed, Frida unloads this script and frees its memory. Then the functions are put back as they were, while
// the program calls them. The ways to originals stay, because a thread may be about to take one.

const FAR_JUMP = [0xff, 0x25, 0, 0, 0, 0]; // jmp [rip]; the address follows
const FAR_JUMP_SIZE = FAR_JUMP.length + 8;
const SHORT_JUMP = 2; // bytes
const SHORT_JUMP_CODE = 0xeb;
const TO_ITSELF = 0xfeeb; // a short jump, as one store writes it
const ENTERING = new Set(["call", "syscall", "sysenter", "int"]); // these return to the instruction after them
const READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22; // of mmap(2)
const WAY = 256; // bytes for what a jump covers, and the way to what comes after it
const SEARCHED = 1024; // bytes of a function
const PAGE_START = ptr(Process.pageSize - 1).not();

const jumps = []; // those not written yet: where, and the replacement
const written = []; // of each driver: where, what leads away, and the bytes that were there
const replaced = new Set(); // the addresses of functions, as text
const wayPages = []; // memory, divided into ways to originals, which is never freed
let onlyRead = null; // a writer for a relocator that writes nothing

// What is executed when code at `address` is: it may begin with a jump.
function behindJumps(address) {
  for (let at = address; ; ) {
    const code = at.readU8();
    if (code === JUMP_CODE) {
      at = at.add(JUMP + at.add(1).readS32());
    } else if (code === SHORT_JUMP_CODE) {
      at = at.add(SHORT_JUMP + at.add(1).readS8());
    } else {
      return at;
    }
  }
}

// Replaces a function as soon as `writeJumps` is called, and calls `bind` with code that runs the original. Returns
// whether there is room for a jump.
function replaceUnused(address, replacement, bind) {
  const start = behindLandingPad(address);
  if (!hasRoom(start)) {
    return false;
  }
  const way = nextWay();
  Memory.patchCode(way, WAY, (code) => moveBegin(start, FAR_JUMP_SIZE, code, way));
  bind(way);
  jumps.push([start, replacement]);
  replaced.add(address.toString());
  return true;
}

// Whether a jump covers whole instructions, of which only the last one may return to the one after it.
function hasRoom(start) {
  onlyRead ??= new X86Writer(Memory.alloc(Process.pageSize));
  readFrom(start, onlyRead);
  for (let taken = 0; taken < FAR_JUMP_SIZE; ) {
    const read = relocator.readOne();
    if (read === 0 || (read < FAR_JUMP_SIZE && ENTERING.has(relocator.input.mnemonic))) {
      return false;
    }
    taken = read;
  }
  return true;
}

// Whether code of a function leads to between its first instructions, as a loop does. What is behind its end counts, too.
function isEntered(address) {
  const start = behindLandingPad(address);
  const end = start.add(FAR_JUMP_SIZE);
  for (let at = start; at.compare(start.add(SEARCHED)) < 0; ) {
    let instruction;
    try {
      instruction = Instruction.parse(at);
    } catch {
      return false; // no code, or none that this function could reach
    }
    const { mnemonic, operands, next } = instruction;
    if (mnemonic.startsWith("j") && operands[0].type === "imm") {
      const target = ptr(operands[0].value.toString());
      if (target.compare(start) > 0 && target.compare(end) < 0) {
        return true;
      }
    }
    at = next;
  }
  return false;
}

function nextWay() {
  const waysOfPage = Process.pageSize / WAY;
  const place = replaced.size % waysOfPage;
  if (place === 0) {
    wayPages.push(lastingPage());
  }
  return wayPages[wayPages.length - 1].add(WAY * place);
}

function lastingPage() {
  const map = new NativeFunction(
    Module.getGlobalExportByName("mmap"), "pointer", ["pointer", "size_t", "int", "int", "int", "long"]);
  const page = map(NULL, Process.pageSize, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
  if (page.equals(ptr(-1))) {
    throw new Error("there is no memory for the way to an original");
  }
  return page;
}

function writeJumps() {
  if (jumps.length === 0) {
    return;
  }
  if (written.length === 0) {
    Script.bindWeak(written, takeBackJumps);
  }
  const places = jumps.splice(0).map(([start, replacement]) => [start, replacement, start.readByteArray(FAR_JUMP_SIZE)]);
  const done = withWritable(places, () => {
    for (const [start, replacement] of places) {
      start.writeByteArray(FAR_JUMP);
      start.add(FAR_JUMP.length).writePointer(replacement);
    }
  });
  if (!done) {
    throw new Error("the driver's code cannot be written");
  }
  written.push(places);
}

// A thread that comes meanwhile waits at the first two bytes, which one store writes. A driver may have been unloaded,
// and its place be free, or that of something else.
function takeBackJumps() {
  for (const places of written.splice(0)) {
    withWritable(places, () => {
      for (const [start, replacement, bytes] of places) {
        if (!start.add(FAR_JUMP.length).readPointer().equals(replacement)) {
          continue;
        }
        start.writeU16(TO_ITSELF);
        start.add(SHORT_JUMP).writeByteArray(bytes.slice(SHORT_JUMP));
        start.writeU16(new DataView(bytes).getUint16(0, true));
      }
    });
  }
}

// Returns whether all of the code could be made writable, and was written.
function withWritable(places, write) {
  const starts = places.map(([start]) => start);
  const first = starts.reduce((least, start) => (start.compare(least) < 0 ? start : least)).and(PAGE_START);
  const end = starts.reduce((most, start) => (start.compare(most) > 0 ? start : most)).add(FAR_JUMP_SIZE);
  const size = end.sub(first).toUInt32();
  if (!Memory.protect(first, size, "rwx")) {
    return false;
  }
  write();
  Memory.protect(first, size, "r-x");
  return true;
}

// Programs that read the processor's own counter (RDTSC, RDTSCP): finds these instructions in the program's own code, for
// the page watch. Where a function starts is in the tables for exceptions, which stripped files have too.

const OTHERS = /^\/(usr|lib|lib64|opt)\/|\/(site|dist)-packages\/|vdso|\[/;
const COUNTERS = { rdtsc: "0f 31", rdtscp: "0f 01 f9" };
const FRAME_TABLE = 0x6474e550; // PT_GNU_EH_FRAME
const SORTED_TABLE = 0x3b; // DW_EH_PE_datarel | DW_EH_PE_sdata4
const LONGEST = 1 << 20; // bytes of a function

function isProgramsOwn(module) {
  if (INSTRUMENTS.test(module.name) || DRIVER.test(module.name) || RUNTIME.test(module.name)) {
    return false;
  }
  return module.path === Process.mainModule.path ? !PYTHON.test(module.name) : !OTHERS.test(module.path);
}

// With the page watch, in the stage that records reads of clocks.
function watchesCounters() {
  return collector.counter !== null && (configuration.mode & WATCH) !== 0 && configuration.translator === null &&
    configuration.plan === null;
}

function watchCounters(module) {
  if (!isProgramsOwn(module)) {
    return;
  }
  for (const range of module.enumerateRanges("r-x")) {
    for (const [mnemonic, pattern] of Object.entries(COUNTERS)) {
      for (const { address, size } of Memory.scanSync(range.base, range.size, pattern)) {
        if (isInstruction(module, address, mnemonic)) {
          collector.counter(address, size);
        }
      }
    }
  }
}

// Whether these bytes are an instruction, and not a part of others.
function isInstruction(module, address, mnemonic) {
  const start = functionOf(module, address);
  if (start === null) {
    return false;
  }
  let at = start;
  while (at.compare(address) < 0) {
    try {
      at = Instruction.parse(at).next;
    } catch (error) {
      return false;
    }
  }
  return at.equals(address) && Instruction.parse(at).mnemonic === mnemonic;
}

// The start of the function around an address; null if it is unknown.
function functionOf(module, address) {
  const table = frameTable(module);
  if (table === null || table.add(1).readU8() === 0xff || table.add(3).readU8() !== SORTED_TABLE) {
    return null;
  }
  const rows = table.add(12);
  let low = 0;
  let high = table.add(8).readU32();
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (table.add(rows.add(8 * middle).readS32()).compare(address) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low === 0) {
    return null;
  }
  const start = table.add(rows.add(8 * (low - 1)).readS32());
  return address.sub(start).compare(LONGEST) < 0 ? start : null;
}

function frameTable(module) {
  const [first, size, count] = [0x20, 0x36, 0x38].map((offset, place) =>
    place === 0 ? module.base.add(offset).readU64().toNumber() : module.base.add(offset).readU16(),
  );
  const headers = Array.from({ length: count }, (_, number) => module.base.add(first + size * number));
  const loaded = headers.filter((header) => header.readU32() === 1); // PT_LOAD
  const table = headers.find((header) => header.readU32() === FRAME_TABLE);
  if (table === undefined || loaded.length === 0) {
    return null;
  }
  const addressOf = (header) => header.add(0x10).readU64();
  return module.base.add(addressOf(table).sub(addressOf(loaded[0]).and(uint64(Process.pageSize - 1).not())));
}

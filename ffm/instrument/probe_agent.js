// Runs inside the probe: looks at the stack of a blocked thread, and counts how often functions are entered and left.
// The probe is no measured program, so JavaScript callbacks are fast enough here.

const STACK_BYTES = 65536;
const counts = new Map();

function modulePart(address, base, end) {
  return address.compare(base) >= 0 && address.compare(end) < 0 ? [address.sub(base).toUInt32()] : [];
}

// Every word of the stack that points into the module, innermost first: what an unwinder would find, and left-overs.
function scan(stackPointer, base, end) {
  const range = Process.findRangeByAddress(stackPointer);
  if (range === null) return [];
  const left = range.base.add(range.size).sub(stackPointer).toUInt32();
  const buffer = stackPointer.readByteArray(Math.min(left - (left % 8), STACK_BYTES));
  const first = BigInt(base.toString());
  const last = BigInt(end.toString());
  return Array.from(new BigUint64Array(buffer))
    .filter((word) => word >= first && word < last)
    .map((word) => Number(word - first));
}

rpc.exports = {
  sample(thread, baseText, size) {
    const base = ptr(baseText);
    const end = base.add(size);
    const found = Process.enumerateThreads().find((candidate) => candidate.id === thread);
    if (found === undefined) return null;
    const frames = Thread.backtrace(found.context, Backtracer.ACCURATE);
    return {
      unwound: modulePart(found.context.pc, base, end).concat(
        frames.flatMap((frame) => modulePart(frame, base, end)),
      ),
      scanned: scan(found.context.sp, base, end),
    };
  },

  // Returns, for each offset, null or why it cannot be hooked.
  hook(baseText, offsets) {
    const base = ptr(baseText);
    return offsets.map((offset) => {
      try {
        Interceptor.attach(base.add(offset), {
          onEnter() {
            const key = `${this.threadId}:${offset}`;
            const entry = counts.get(key) || { entered: 0, left: 0 };
            entry.entered += 1;
            entry.depth = this.depth;
            entry.order = ++order;
            counts.set(key, entry);
          },
          onLeave() {
            counts.get(`${this.threadId}:${offset}`).left += 1;
          },
        });
        return null;
      } catch (error) {
        return error.message;
      }
    });
  },

  // Returns [entered, left, order of the last entry] of each offset in one thread.
  counts(thread, offsets) {
    return offsets.map((offset) => {
      const entry = counts.get(`${thread}:${offset}`);
      return entry === undefined ? [0, 0, 0] : [entry.entered, entry.left, entry.order];
    });
  },
};

let order = 0;

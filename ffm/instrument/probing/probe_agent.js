// Runs inside the probe: counts how often functions are entered and left. The probe is no measured program, so
// JavaScript callbacks are fast enough here.

const counts = new Map(); // by thread and function
let entries = 0;

rpc.exports = {
  // Returns, for each offset, null or why it cannot be hooked.
  hook(baseText, offsets) {
    const base = ptr(baseText);
    return offsets.map((offset) => {
      try {
        Interceptor.attach(base.add(offset), {
          onEnter() {
            const key = `${this.threadId}:${offset}`;
            const entry = counts.get(key) || { entered: 0, left: 0, order: 0 };
            entry.entered += 1;
            entry.order = ++entries;
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

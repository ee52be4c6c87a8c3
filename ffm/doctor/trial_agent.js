// Tries on each address whether it can be hooked, and takes the hook away again. Nothing calls these functions meanwhile.

rpc.exports = {
  // Returns [how, reason] for each offset; `how` is one of replace-fast, replace, attach, failed.
  tryAll(baseText, offsets) {
    const base = ptr(baseText);
    const substitute = new NativeCallback(() => 0, "int", []);
    return offsets.map((offset) => attempt(base.add(offset), substitute));
  },
};

function attempt(address, substitute) {
  const reasons = [];
  for (const [how, hook] of [
    ["replace-fast", () => Interceptor.replaceFast(address, substitute)],
    ["attach", () => Interceptor.attach(address, { onEnter() {} })],
  ]) {
    try {
      const listener = hook();
      Interceptor.flush();
      if (how === "attach") {
        listener.detach();
      } else {
        Interceptor.revert(address);
      }
      Interceptor.flush();
      return [how, reasons.join("; ")];
    } catch (error) {
      reasons.push(error.message);
    }
  }
  return ["failed", reasons.join("; ")];
}

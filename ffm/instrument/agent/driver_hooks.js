// Hooks in the driver. The module observer runs inside the program's dlopen, before the driver is relocated: its code
// can then be patched but not called, and nothing else can be loaded.

let recording = false; // only processes that load a driver leave a recording
const PLAN_UNREADABLE = -2; // as ffm_collector_open says it
const CODE_FORBIDDEN = -5; // what it would not notice
const GET_MDWE = 66; // PR_GET_MDWE of linux/prctl.h
let waitFunctions = 0; // that have a wrapper

// Ask what to hook in this driver: the runner knows the driver's build, and searches for its wait function if
// necessary.
function askForPlan(module) {
  const cutOff = Module.findGlobalExportByName("ffm_gate_cut_off");
  if (cutOff !== null && new NativeFunction(cutOff, "bool", [])()) {
    return { refused: "the program has closed the descriptors of the instruments" };
  }
  return ask({ type: "driver", path: module.path }, "plan") ?? { refused: "the runner has left the program" };
}

// Where to hook an export; null if it does not exist. An export that only jumps through a slot is hooked at its target,
// because the slot itself is not filled yet.
function entryOf(module, plan, name) {
  return name in plan.entries ? module.base.add(plan.entries[name]) : module.findExportByName(name);
}

// Tell the collector which bytes of their parameters kernels never read. Returns whether it could read that.
function tellUnread() {
  return configuration.unread === null || collector.unread(Memory.allocUtf8String(configuration.unread));
}

// Whether the program has forbidden that its memory becomes executable: then no function can be hooked.
function forbidsCode() {
  const words = ["int", "ulong", "ulong", "ulong", "ulong"];
  return new NativeFunction(Module.getGlobalExportByName("prctl"), "int", words)(GET_MDWE, 0, 0, 0, 0) > 0;
}

function openRecording() {
  if (forbidsCode()) {
    return CODE_FORBIDDEN;
  }
  const folder = Memory.allocUtf8String(configuration.folder);
  const keys = configuration.plan === null ? NULL : Memory.allocUtf8String(configuration.plan);
  return tellUnread() ? collector.open(folder, configuration.mode, keys) : PLAN_UNREADABLE;
}

function hookDriver(module) {
  const began = Date.now(); // from here on, the program waits
  const plan = askForPlan(module);
  if (plan.refused !== null) {
    return;
  }
  if (!recording) {
    const status = openRecording();
    if (status !== 0) {
      tell({ type: "failed", status });
      return;
    }
    recording = true;
    if (watchesCounters()) {
      Process.enumerateModules().forEach(watchCounters);
    }
  }
  tellCollector(module);
  const outcomes = [];
  const owners = new Map(); // address of hooked code -> name of the function
  for (const [index, name] of configuration.functions) {
    const address = entryOf(module, plan, name);
    if (address !== null) {
      outcomes.push([name, ...hookFunction(index, name, address, owners, replaceUnused)]);
    }
  }
  // A forked child keeps its parent's hooks there, too.
  if (!outcomes.some(([, how]) => how === "inherited")) {
    plan.waitOffsets.forEach((offset) => hookWaitFunction(module.base.add(offset)));
  }
  writeJumps();
  hookEntryPoints(module, plan, owners);
  Interceptor.flush();
  tell({ type: "hooks", outcomes, seconds: (Date.now() - began) / 1000 });
}

// A wait function that is exported, too, has a hook already.
function hookWaitFunction(address) {
  if (collector.isBound(address)) {
    return;
  }
  const wrapper = collector.waitWrapper(waitFunctions);
  const bind = (original) => collector.waitBind(waitFunctions, address, original);
  if (!wrapper.isNull() && !isEntered(address) && replaceUnused(address, wrapper, bind)) {
    waitFunctions++;
  } else {
    Interceptor.attach(address, collector.waitCallbacks);
  }
}

// Tell the collector where the driver is, and which of its functions it may query; the remedies' library needs only the
// first.
function tellCollector(module) {
  collector.foreign(module.base, module.size, 1);
  if (collector.ask === null) {
    return;
  }
  const orNull = (name) => module.findExportByName(name) ?? NULL;
  collector.ask(...configuration.asked.map(orNull));
  collector.askGraphs(...configuration.askedOfGraphs.map(orNull));
}

// Returns the outcome as [how, reason]. `replace` is asked first; it returns false if it cannot.
function hookFunction(index, name, entry, owners, replace) {
  const address = behindJumps(entry);
  const key = address.toString();
  if (owners.has(key)) {
    return ["shared", owners.get(key)];
  }
  owners.set(key, name);
  if (collector.isBound(address)) {
    return ["inherited", ""]; // a forked child keeps its parent's hooks
  }
  const wrapper = collector.wrapper(index);
  const bind = (original) => collector.bind(index, address, original);
  try {
    if (!replace(address, wrapper, bind)) {
      bind(Interceptor.replaceFast(address, wrapper));
    }
    return ["replace-fast", ""];
  } catch (error) {
    // Too short for a jump, or starts with one: attach needs less room. (Interceptor.replace would also work, but no
    // unwinder finds the way out of its replacement; from an attached callback, given the registers, one does.)
    try {
      collector.bind(index, address, address); // called with the hook active, which then does nothing
      Interceptor.attach(address, collector.callCallbacks);
      return ["attach", error.message];
    } catch (second) {
      return ["failed", `${error.message}; ${second.message}`];
    }
  }
}

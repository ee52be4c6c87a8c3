// Hooks in the driver. The module observer runs inside the program's dlopen, before the driver is relocated: its code
// can be patched then, but not called, and nothing else can be loaded.

let recording = false; // only processes that load a driver leave a recording

// What to hook in this driver: the runner knows the driver's build, and finds its wait function if it must.
function askForPlan(module) {
  send({ type: "driver", path: module.path });
  let plan = null;
  recv("plan", (message) => {
    plan = message;
  }).wait();
  return plan;
}

// Where to hook an export; null where there is none. One that only jumps through a slot is hooked where it leads: the
// slot itself is not filled yet.
function entryOf(module, plan, name) {
  return name in plan.entries ? module.base.add(plan.entries[name]) : module.findExportByName(name);
}

function hookDriver(module) {
  const plan = askForPlan(module);
  const began = Date.now();
  if (plan.refused !== null) {
    return;
  }
  if (!recording) {
    const folder = Memory.allocUtf8String(configuration.folder);
    const keys = configuration.plan === null ? NULL : Memory.allocUtf8String(configuration.plan);
    const status = collector.open(folder, configuration.mode, keys);
    if (status !== 0) {
      send({ type: "failed", status });
      return;
    }
    recording = true;
  }
  tellCollector(module);
  const outcomes = [];
  const owners = new Map(); // address of hooked code -> name of the function
  for (const [index, name] of configuration.functions) {
    const address = entryOf(module, plan, name);
    if (address !== null) {
      outcomes.push([name, ...hookFunction(index, name, address, owners)]);
    }
  }
  for (const offset of plan.waitOffsets) {
    const address = module.base.add(offset);
    if (!collector.isBound(address)) {
      Interceptor.attach(address, collector.waitCallbacks);
    }
  }
  hookEntryPoints(module, plan, owners);
  Interceptor.flush();
  send({ type: "hooks", outcomes, seconds: (Date.now() - began) / 1000 });
}

// Where the driver is, and which of its functions the collector may ask; the remedies' library wants neither.
function tellCollector(module) {
  if (collector.foreign === null) {
    return;
  }
  const orNull = (name) => module.findExportByName(name) ?? NULL;
  collector.foreign(module.base, module.size, 1);
  collector.ask(
    orNull("cuPointerGetAttribute"),
    orNull("cuDeviceGetAttribute"),
    orNull("cuFuncGetParamInfo"),
    orNull("cuKernelGetParamInfo"),
    orNull("cuCtxGetCurrent"),
  );
  collector.askGraphs(
    orNull("cuStreamIsCapturing"),
    orNull("cuGraphGetNodes"),
    orNull("cuGraphNodeGetType"),
    orNull("cuGraphMemcpyNodeGetParams"),
    orNull("cuGraphMemsetNodeGetParams"),
    orNull("cuGraphKernelNodeGetParams_v2"),
    orNull("cuGraphKernelNodeGetParams"),
    orNull("cuGraphChildGraphNodeGetGraph"),
    orNull("cuGraphKernelNodeGetAttribute"),
  );
}

// The outcome as [how, reason].
function hookFunction(index, name, address, owners) {
  const key = address.toString();
  if (owners.has(key)) {
    return ["shared", owners.get(key)];
  }
  owners.set(key, name);
  if (collector.isBound(address)) {
    return ["inherited", ""]; // a forked child keeps its parent's hooks
  }
  const wrapper = collector.wrapper(index);
  try {
    collector.bind(index, address, Interceptor.replaceFast(address, wrapper));
    return ["replace-fast", ""];
  } catch (error) {
    // Too short for a jump, or starts with one: attach needs less room. (Interceptor.replace would do too, but from its
    // replacement no unwinder finds the way out; from an attached callback one does, given the registers.)
    try {
      collector.bind(index, address, address); // called with the hook on, which then stands back
      Interceptor.attach(address, collector.callCallbacks);
      return ["attach", error.message];
    } catch (second) {
      return ["failed", `${error.message}; ${second.message}`];
    }
  }
}

// Runs inside the measured program: loads the collector and puts its wrappers in place. Nothing here is on the hot path.

const DRIVER = /^libcuda\.so(\.|$)/;
const PYTHON = /^(lib)?python\d/; // the interpreter itself, not a program that has one linked in

const INSTRUMENTS = /frida|libffm_(collector|remedy)/;
const INSTRUMENT_FILES = /frida-agent|libffm_(collector|pages)/; // the gate's gettimeofday stands for the program
const RUNTIME = /^libcudart\.so/;

// Where CPython waits for locks, up to 3.12 and since.
const INTERPRETER_LOCKS = ["PyThread_acquire_lock_timed", "_PyMutex_LockTimed", "_PySemaphore_Wait"];

const WATCH = 2; // FFM_MODE_WATCH of collector.h
const HOST = 8; // FFM_MODE_HOST

const kept = []; // what native code uses as long as the program runs

let collector = null;
let configuration = null;
let pythonFound = false;
let recording = false; // only processes that load a driver leave a recording

rpc.exports = {
  start(given) {
    configuration = given;
    loadCollector();
    if (collector.instrument !== null) {
      for (const [, start, end] of instruments()) {
        collector.instrument(start, end.sub(start).toUInt32());
      }
    }
    if (configuration.translator !== null) {
      startTrace(configuration.translator);
    }
    guardLibrary();
    if ((configuration.mode & WATCH) !== 0) {
      collector.arrive();
      hookClocks();
    }
    if ((configuration.mode & HOST) !== 0) {
      hookAllocators();
    }
    Process.attachModuleObserver({
      onAdded(module) {
        findPython(module);
        if (collector.foreign !== null && (INSTRUMENTS.test(module.name) || RUNTIME.test(module.name))) {
          collector.foreign(module.base, module.size, 0);
        }
        if (DRIVER.test(module.name)) {
          hookDriver(module);
        }
      },
      onRemoved() {
        collector.modulesChanged();
      },
    });
  },
};

function loadCollector() {
  const module = Module.load(configuration.collector);
  const exported = (name) => module.getExportByName(`${configuration.prefix}_${name}`);
  const bound = (name, result, parameters) => new NativeFunction(exported(name), result, parameters);
  // The remedies' library has only some of the functions, and needs no others.
  const optional = (name, result, parameters) =>
    module.findExportByName(`${configuration.prefix}_${name}`) === null ? null : bound(name, result, parameters);
  collector = {
    open: bound("open", "int", ["pointer", "uint", "pointer"]),
    wrapper: bound("wrapper", "pointer", ["uint"]),
    bind: bound("bind", "void", ["uint", "pointer", "pointer"]),
    isBound: bound("is_bound", "bool", ["pointer"]),
    othersSleep: new NativeFunction(Module.getGlobalExportByName("ffm_gate_others_sleep"), "bool", []),
    modulesChanged: bound("modules_changed", "void", []),
    instrument: optional("instrument", "void", ["pointer", "uint64"]),
    arrive: optional("arrive", "void", []),
    clockName: optional("clock_name", "pointer", ["uint"]),
    clockWrapper: optional("clock_wrapper", "pointer", ["uint"]),
    clockBind: optional("clock_bind", "void", ["uint", "pointer"]),
    allocatorName: optional("allocator_name", "pointer", ["uint"]),
    allocatorWrapper: optional("allocator_wrapper", "pointer", ["uint"]),
    allocatorBind: optional("allocator_bind", "void", ["uint", "pointer"]),
    allocatorIsBound: optional("allocator_is_bound", "bool", ["uint"]),
    interpreterLock: optional("interpreter_lock", "void", ["pointer"]),
    foreign: optional("foreign", "void", ["pointer", "uint64", "bool"]),
    ask: optional("ask", "void", new Array(5).fill("pointer")),
    askGraphs: optional("ask_graphs", "void", new Array(9).fill("pointer")),
    entryPoints: optional("entry_points", "void", ["pointer", "uint", "pointer"]),
    python: optional("python", "void", ["pointer", "pointer", "uint", "uint"]),
    entryCallbacks: {
      onEnter: module.findExportByName(`${configuration.prefix}_entry_enter`),
      onLeave: module.findExportByName(`${configuration.prefix}_entry_leave`),
    },
    waitCallbacks: {
      onEnter: exported("wait_enter"),
      onLeave: exported("wait_leave"),
    },
    callCallbacks: {
      onEnter: exported("call_enter"),
      onLeave: exported("call_leave"),
    },
  };
}

// Where code of ours lies: [file, start, end]. The agent hides itself from Frida's own lists of modules.
function instruments() {
  const found = [];
  for (const line of File.readAllText("/proc/self/maps").split("\n")) {
    const [range, , , , , file] = line.split(/\s+/);
    if (file === undefined || !INSTRUMENT_FILES.test(file)) {
      continue;
    }
    const [start, end] = range.split("-").map((word) => ptr(`0x${word}`));
    const last = found[found.length - 1];
    if (last !== undefined && last[0] === file && last[2].equals(start)) {
      last[2] = end;
    } else {
      found.push([file, start, end]);
    }
  }
  return found;
}

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

// Programs in Python: the collector reads the interpreter's frames, given where its functions and data are.
function findPython(module) {
  if (pythonFound || collector.python === null) {
    return;
  }
  const isMain = module.path === Process.mainModule.path; // its exports are found in the global scope only
  const exported = (name) => module.findExportByName(name) ?? (isMain ? Module.findGlobalExportByName(name) : null);
  const threadState = exported("PyGILState_GetThisThreadState");
  const version = threadState === null ? null : exported("Py_Version"); // since 3.11
  if (version === null) {
    return;
  }
  pythonFound = true;
  const home = Process.findModuleByAddress(threadState);
  const alone = home !== null && PYTHON.test(home.name);
  if (collector.interpreterLock !== null) {
    for (const name of INTERPRETER_LOCKS) {
      collector.interpreterLock(exported(name) ?? NULL);
    }
  }
  collector.python(threadState, exported("_PyRuntime") ?? NULL, version.readU32(), alone ? 1 : 0);
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

// The observer runs inside the program's dlopen, before the driver is relocated: its code can be patched then, but not
// called, and nothing else can be loaded.

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

const QUESTIONS = ["cuGetProcAddress", "cuGetProcAddress_v2"];
const PER_THREAD_STREAM = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM of cuda.h

// A newer driver may answer addresses that it does not export. They are hooked when the program first gets them.
function hookEntryPoints(module, plan, owners) {
  if (collector.entryPoints === null) {
    return;
  }
  const exported = plan.exports;
  const known = Memory.alloc(Math.max(1, exported.length) * Process.pointerSize);
  exported.forEach((offset, place) => known.add(place * Process.pointerSize).writePointer(module.base.add(offset)));
  const found = new NativeCallback(
    (name, address, version, flags) => {
      if (!owners.has(address.toString())) {
        hookAnswer(module, owners, name.readUtf8String(), address, version, Number(flags));
      }
    },
    "void",
    ["pointer", "pointer", "int", "uint64"],
  );
  kept.push(known, found);
  collector.entryPoints(known, exported.length, found);
  for (const name of QUESTIONS) {
    const address = entryOf(module, plan, name);
    if (address !== null) {
      try {
        Interceptor.attach(address, collector.entryCallbacks);
      } catch (error) {
        // It is replaced itself, or too short: what it answers beside the exports is then not seen.
      }
    }
  }
}

function hookAnswer(module, owners, base, address, version, flags) {
  const newest = configuration.newest;
  if (version > newest) {
    // The form is known only if the newest version that is known has the same.
    const ask = new NativeFunction(module.getExportByName("cuGetProcAddress"), "int", [
      "pointer",
      "pointer",
      "int",
      "uint64",
    ]);
    const answer = Memory.alloc(Process.pointerSize);
    if (ask(Memory.allocUtf8String(base), answer, newest, flags) !== 0 || !answer.readPointer().equals(address)) {
      return;
    }
  }
  const form = formOf(base, version, (flags & PER_THREAD_STREAM) !== 0);
  if (form === null) {
    return;
  }
  const outcome = module.findExportByName(form.name) === null
    ? hookFunction(form.index, form.name, address, owners)
    : ["failed", "cuGetProcAddress answers another address than the export"];
  Interceptor.flush();
  send({ type: "hooks", outcomes: [[form.name, ...outcome]], seconds: 0 });
}

// The newest form that the version has, in the flavour of the default stream that was asked for where that exists.
function formOf(base, version, perThread) {
  let best = null;
  for (const form of configuration.forms[base] ?? []) {
    const fits = form.since <= version && (perThread || !form.perThread);
    if (fits && (best === null || form.perThread > best.perThread ||
                 (form.perThread === best.perThread && form.since > best.since))) {
      best = form;
    }
  }
  return best;
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

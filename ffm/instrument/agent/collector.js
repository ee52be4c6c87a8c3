// The compiled library that the agent loads into the program: the collector, or the remedies' library.

// The gate's gettimeofday stands for the program. libunwind, which the program may share, maps memory under its lock.
const INSTRUMENT_FILES = /frida-agent|libffm_(collector|remedy|pages)|libunwind\.so/;

let collector = null;
let configuration = null;

function loadCollector() {
  const module = Module.load(configuration.collector);
  const exported = (name) => module.getExportByName(`${configuration.prefix}_${name}`);
  const bound = (name, result, parameters) => new NativeFunction(exported(name), result, parameters);
  // The remedies' library has only some of the functions, and needs only those.
  const optional = (name, result, parameters) =>
    module.findExportByName(`${configuration.prefix}_${name}`) === null ? null : bound(name, result, parameters);
  collector = {
    open: bound("open", "int", ["pointer", "uint", "pointer"]),
    wrapper: bound("wrapper", "pointer", ["uint"]),
    bind: bound("bind", "void", ["uint", "pointer", "pointer"]),
    isBound: bound("is_bound", "bool", ["pointer"]),
    modulesChanged: bound("modules_changed", "void", []),
    counter: optional("counter", "void", ["pointer", "uint"]),
    instrument: bound("instrument", "void", ["pointer", "uint64"]),
    limit: optional("limit", "void", ["uint", "uint64", "uint64", "uint64", "pointer"]),
    keep: optional("keep", "void", ["uint64"]),
    unread: optional("unread", "bool", ["pointer"]),
    arrive: optional("arrive", "void", []),
    detach: optional("detach", "void", []),
    followedName: bound("followed_name", "pointer", ["uint", "uint"]),
    followedWrapper: bound("followed_wrapper", "pointer", ["uint", "uint"]),
    followedBind: bound("followed_bind", "void", ["uint", "uint", "pointer"]),
    allocatorName: optional("allocator_name", "pointer", ["uint"]),
    allocatorWrapper: optional("allocator_wrapper", "pointer", ["uint"]),
    allocatorBind: optional("allocator_bind", "void", ["uint", "pointer"]),
    allocatorIsBound: optional("allocator_is_bound", "bool", ["uint"]),
    interpreterClock: optional("interpreter_clock", "void", ["pointer"]),
    interpreterCode: optional("interpreter_code", "void", ["pointer", "uint64", "bool"]),
    foreign: bound("foreign", "void", ["pointer", "uint64", "bool"]),
    ask: optional("ask", "void", new Array(11).fill("pointer")),
    askGraphs: optional("ask_graphs", "void", new Array(9).fill("pointer")),
    entryPoints: optional("entry_points", "void", ["pointer", "uint", "pointer"]),
    python: optional("python", "void", ["pointer", "pointer", "uint", "uint"]),
    entryCallbacks: {
      onEnter: module.findExportByName(`${configuration.prefix}_entry_enter`),
      onLeave: module.findExportByName(`${configuration.prefix}_entry_leave`),
    },
    waitWrapper: optional("wait_wrapper", "pointer", ["uint"]),
    waitBind: optional("wait_bind", "void", ["uint", "pointer", "pointer"]),
    waitCallbacks: {
      onEnter: module.findExportByName(`${configuration.prefix}_wait_enter`),
      onLeave: module.findExportByName(`${configuration.prefix}_wait_leave`),
    },
    callCallbacks: {
      onEnter: exported("call_enter"),
      onLeave: exported("call_leave"),
    },
  };
}

// Where our code is: [file, start, end]. The agent hides itself from Frida's own lists of modules.
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

// The trace watch: makes Stalker run a translation of the program's code.

let translator = null; // kept alive: what is garbage-collected stops
let follow = null;
let unfollow = null;
let refusals = null;
let forbidding = null;

function startTrace(source) {
  const module = Process.getModuleByName("libffm_collector.so");
  const symbol = (name) => module.getExportByName(name);
  for (const [file, start, end] of instruments()) {
    if (/frida/.test(file)) {
      // Called untranslated. Code called from the translation sees its return addresses, which must not be in stacks.
      collector.foreign(start, end.sub(start).toUInt32(), 0); // its clocks are not the program's
      Stalker.exclude({ base: start, size: end.sub(start).toUInt32() });
    }
  }
  const symbols = {};
  const watching = ["access", "lanes", "system_call", "counter", "pages", "skips", "masks"];
  for (const name of [...watching, "replaced", "seen", "changes", "anew"]) {
    symbols[`ffm_collector_trace_${name}`] = symbol(`ffm_collector_trace_${name}`);
  }
  refusals = {
    refuse_wide: new NativeCallback(refuseWide, "void", ["uint64"]),
    refuse_unknown: new NativeCallback(refuseUnknown, "void", ["uint64"]),
  };
  Object.assign(symbols, refusals);
  translator = new CModule(source, symbols);
  follow = new NativeCallback(followHere, "void", []);
  unfollow = new NativeCallback(() => Stalker.unfollow(), "void", []);
  const open = new NativeFunction(symbol("ffm_collector_trace_open"), "void", ["pointer", "pointer", "pointer"]);
  open(follow, unfollow, NULL);
  forbidding = new NativeCallback(refuseForbidden, "void", ["uint64"]);
  new NativeFunction(symbol("ffm_collector_trace_when_forbidden"), "void", ["pointer"])(forbidding);
  const create = new NativeFunction(symbol("ffm_collector_trace_create"), "pointer", [])();
  if (!create.isNull()) {
    detour(libraryCreate(), create, (original) => open(follow, unfollow, original));
  }
  const end = new NativeFunction(symbol("ffm_collector_trace_end"), "pointer", [])();
  const bindEnd = new NativeFunction(symbol("ffm_collector_trace_bind_end"), "void", ["pointer"]);
  const variables = Process.getModuleByName("libc.so.6").findExportByName("__call_tls_dtors");
  if (!end.isNull() && variables !== null) {
    detour(variables, end, bindEnd);
  }
}

// The C library's pthread_create, not the gate's, which not every call passes. Before glibc 2.34 it is in libpthread.
function libraryCreate() {
  const own = Process.getModuleByName("libc.so.6").findExportByName("pthread_create");
  return own ?? Process.getModuleByName("libpthread.so.0").getExportByName("pthread_create");
}

function followHere() {
  // Blocks compare themselves what they were made from. Stalker would write a new one over the code of others.
  Stalker.trustThreshold = 0;
  Stalker.garbageCollect(); // translations of threads that have ended
  Stalker.follow({ transform: translator.translate });
}

// Stops the program before it runs code that Stalker would make compute with wrong values. The runner ends it.
function refuseWide(instruction) {
  refuse("wide", ptr(instruction.toString()));
}

// Stops it before an instruction that Stalker does not know. The address is 0 if a block begins with one; a block that
// is merely long ends before a known one.
function refuseUnknown(instruction) {
  const address = ptr(instruction.toString());
  if (address.isNull() || !isKnown(address)) {
    refuse("unknown", address);
  }
}

// Stops it before a system call after which no more code can be translated.
function refuseForbidden(instruction) {
  refuse("forbidden", ptr(instruction.toString()));
}

function isKnown(address) {
  try {
    Instruction.parse(address);
    return true;
  } catch {
    return false;
  }
}

function refuse(why, address) {
  const module = Process.findModuleByAddress(address);
  send({ type: "untranslatable", why, module: module === null ? "code made while the program ran" : module.path });
  recv("never", () => {}).wait();
}

// Answers of cuGetProcAddress: a newer driver may return addresses that it does not export. They are hooked when the
// program first receives them.

const kept = []; // what native code uses while the program runs
const QUESTIONS = ["cuGetProcAddress", "cuGetProcAddress_v2"];
const PER_THREAD_STREAM = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM of cuda.h

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
    if (address !== null && !replaced.has(behindJumps(address).toString())) {
      try {
        Interceptor.attach(address, collector.entryCallbacks);
      } catch (error) {
        // It is too short: then its answers that are not exports are not seen.
      }
    }
  }
}

function hookAnswer(module, owners, base, address, version, flags) {
  const newest = configuration.newest;
  if (version > newest) {
    // The form is known only if it is the same in the newest known version.
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
    ? hookFunction(form.index, form.name, address, owners, () => false) // other threads may execute it
    : ["failed", "cuGetProcAddress answers another address than the export"];
  Interceptor.flush();
  tell({ type: "hooks", outcomes: [[form.name, ...outcome]], seconds: 0 });
}

// The newest form that the version has, in the requested default-stream variant if that exists.
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

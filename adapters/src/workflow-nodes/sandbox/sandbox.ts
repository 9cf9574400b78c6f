import variant from "@jitl/quickjs-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from "quickjs-emscripten-core";

export interface SandboxLimits {
  /** Of the processor's time, for one call. */
  readonly cpuMs: number;
  /** In all, the engine's own included. */
  readonly memoryBytes: number;
  /** Of the text that a call gives, in UTF-8. */
  readonly outputBytes: number;
}

/** What became of a call. After `late`, `out-of-memory`, `too-large` and `too-deep` nothing of the thread is to be relied upon. */
export type SandboxOutcome =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "failed"; readonly message: string; readonly stack: string }
  /** It waits for what never comes: nothing inside can be waited for but what it computes itself. */
  | { readonly kind: "pending" }
  | { readonly kind: "too-large" }
  | { readonly kind: "too-deep" }
  | { readonly kind: "late" }
  | { readonly kind: "out-of-memory" };

/** What a thread tells: after what is spoilt, another one is begun. */
export interface SandboxAnswer {
  readonly outcome: SandboxOutcome;
  readonly isSpoilt: boolean;
}

const STACK_BYTES = 512 * 1024;
/** How many steps of promises are taken before the time is looked at. */
const STEPS = 1_000;
const LONGEST_MESSAGE = 1_000;

// Its types are those of its CommonJS build, which has one more `default`.
const sync = variant as unknown as QuickJSSyncVariant;
/** What the module would print of its own failures is nobody's to read. */
const quiet = { printErr: () => {}, print: () => {} };
const PAGE_BYTES = 64 * 1024;
const INITIAL_PAGES = 256;

export interface SandboxEngine {
  readonly module: QuickJSWASMModule;
  isFull(): boolean;
}

/** It grows in steps, the last of which may be too large. */
const FULL = 0.8;

/** What sandboxes are made with. All that stand at a time share its memory. */
export async function loadSandboxEngine({ memoryBytes }: SandboxLimits): Promise<SandboxEngine> {
  // QuickJS's own limit counts blocks in this build, not their sizes: WebAssembly itself keeps it.
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: Math.floor(memoryBytes / PAGE_BYTES) });
  const module = await newQuickJSWASMModuleFromVariant(newVariant(sync, { wasmMemory, emscriptenModule: quiet as object }));
  return { module, isFull: () => wasmMemory.buffer.byteLength > memoryBytes * FULL };
}

/**
 * JavaScript without a host: QuickJS in WebAssembly, with a memory and a stack of its own. There is nothing inside but the language: no
 * files, no network, no timers, no modules.
 */
export class Sandbox {
  readonly #engine: SandboxEngine;
  readonly #limits: SandboxLimits;
  readonly #runtime: QuickJSRuntime;
  readonly #context: QuickJSContext;
  #deadline = Number.POSITIVE_INFINITY;
  #isLate = false;

  /** With `loadSandboxEngine`'s engine, for the same limits. */
  constructor(engine: SandboxEngine, limits: SandboxLimits) {
    this.#limits = limits;
    this.#engine = engine;
    this.#runtime = engine.module.newRuntime({ maxStackSizeBytes: STACK_BYTES });
    this.#runtime.setInterruptHandler(() => (this.#isLate ||= cpuMs() > this.#deadline));
    this.#context = this.#runtime.newContext();
  }

  /** Evaluate a script of ours that must succeed. The caller disposes of what it gives. */
  define(script: string, name: string): QuickJSHandle {
    return this.#context.unwrapResult(this.#context.evalCode(script, name));
  }

  /**
   * Call `wrapper` with what `script` gives, where there is one, and with texts; it gives a text or the promise of one. Throws where WebAssembly
   * itself gave up.
   */
  call(
    wrapper: QuickJSHandle,
    texts: readonly (string | undefined)[],
    script?: { readonly text: string; readonly name: string },
  ): SandboxOutcome {
    this.#deadline = cpuMs() + this.#limits.cpuMs;
    this.#isLate = false;
    const context = this.#context;
    const opened: QuickJSHandle[] = [];
    const keep = (handle: QuickJSHandle): QuickJSHandle => {
      opened.push(handle);
      return handle;
    };
    try {
      const given = texts.map((text) => (text === undefined ? context.undefined : keep(context.newString(text))));
      if (script) {
        const result = context.evalCode(script.text, script.name);
        if (result.error) return this.#failure(keep(result.error));
        given.unshift(keep(result.value));
      }
      const called = context.callFunction(wrapper, context.undefined, ...given);
      if (called.error) return this.#failure(keep(called.error));
      return this.#settle(keep(called.value), keep);
    } catch (error) {
      // This thread's own stack, which a parser of deeply nested text fills before QuickJS counts its own.
      if (error instanceof RangeError) return { kind: "too-deep" };
      throw error;
    } finally {
      for (const handle of opened) if (handle.alive) handle.dispose();
    }
  }

  /** False where something is left that cannot be put away. */
  dispose(): boolean {
    try {
      this.#context.dispose();
      this.#runtime.dispose();
      return true;
    } catch {
      return false;
    }
  }

  #settle(promise: QuickJSHandle, keep: (handle: QuickJSHandle) => QuickJSHandle): SandboxOutcome {
    for (let state = this.#context.getPromiseState(promise); ; state = this.#context.getPromiseState(promise)) {
      if (state.type === "rejected") return this.#failure(keep(state.error));
      if (state.type === "fulfilled") return this.#text(state.notAPromise ? promise : keep(state.value));
      if (this.#isLate || cpuMs() > this.#deadline) return { kind: "late" };
      const steps = this.#runtime.executePendingJobs(STEPS);
      if (steps.error) return this.#failure(keep(steps.error));
      if (steps.value === 0) return { kind: "pending" };
    }
  }

  #text(handle: QuickJSHandle): SandboxOutcome {
    const length = this.#context.getProp(handle, "length").consume((value) => this.#context.getNumber(value));
    const { outputBytes } = this.#limits;
    // It is not brought out before it is known to be short enough.
    if (length > outputBytes) return { kind: "too-large" };
    const text = this.#context.getString(handle);
    return Buffer.byteLength(text) > outputBytes ? { kind: "too-large" } : { kind: "text", text };
  }

  #failure(error: QuickJSHandle): SandboxOutcome {
    if (this.#isLate) return { kind: "late" };
    const { name, message, stack } = this.#describe(error);
    if (this.#isLate) return { kind: "late" };
    if (name === "InternalError" && message === "out of memory") return { kind: "out-of-memory" };
    // Where no memory was left for words, there are none.
    if (message === "" && this.#engine.isFull()) return { kind: "out-of-memory" };
    return { kind: "failed", message: message || "It threw something without words", stack };
  }

  /** What was thrown may be anything, and answer anything when it is asked. */
  #describe(error: QuickJSHandle): { readonly name: string; readonly message: string; readonly stack: string } {
    const context = this.#context;
    const type = context.typeof(error);
    if (type === "string") return { name: "", message: shortened(context, error), stack: "" };
    if (type === "undefined" || context.eq(error, context.null)) return { name: "", message: "", stack: "" };
    if (type !== "object") return { name: "", message: String(context.dump(error)), stack: "" };
    const part = (name: string): string =>
      context.getProp(error, name).consume((value) => (context.typeof(value) === "string" ? shortened(context, value) : ""));
    return { name: part("name"), message: part("message") || part("name"), stack: part("stack") };
  }
}

function shortened(context: QuickJSContext, value: QuickJSHandle): string {
  const length = context.getProp(value, "length").consume((each) => context.getNumber(each));
  return length > 64 * LONGEST_MESSAGE ? "" : context.getString(value).slice(0, LONGEST_MESSAGE);
}

/** Whether what follows could feel what happened. */
export function isSpoiltBy({ kind }: SandboxOutcome): boolean {
  return kind !== "text" && kind !== "failed" && kind !== "pending";
}

/** What this thread has worked so far. Other threads, and waiting for a processor, do not count where that can be told. */
function cpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => { readonly user: number; readonly system: number } };
  if (!threadCpuUsage) return performance.now();
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1_000;
}

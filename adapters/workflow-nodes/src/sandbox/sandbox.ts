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
  /** Processor time of one call. */
  readonly cpuMs: number;
  /** Total memory, including the engine's own. */
  readonly memoryBytes: number;
  /** Maximum size of a call's result in UTF-8. */
  readonly outputBytes: number;
}

/** The result of a call. After `late`, `out-of-memory`, `too-large` and `too-deep` the thread must not be used again. */
export type SandboxOutcome =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "failed"; readonly message: string; readonly stack: string }
  /** It waits forever: inside, only computed promises can be awaited. */
  | { readonly kind: "pending" }
  | { readonly kind: "too-large" }
  | { readonly kind: "too-deep" }
  | { readonly kind: "late" }
  | { readonly kind: "out-of-memory" };

/** The answer of a thread. After a spoilt one, a new thread is started. */
export interface SandboxAnswer {
  readonly outcome: SandboxOutcome;
  readonly isSpoilt: boolean;
}

const STACK_BYTES = 512 * 1024;
/** Promise steps between two checks of the time. */
const STEPS = 1_000;
const LONGEST_MESSAGE = 1_000;

// Its types are those of its CommonJS build, which has an additional `default`.
const sync = variant as unknown as QuickJSSyncVariant;
/** Output of the module about its own failures is discarded. */
const quiet = { printErr: () => {}, print: () => {} };
const PAGE_BYTES = 64 * 1024;
const INITIAL_PAGES = 256;

export interface SandboxEngine {
  readonly module: QuickJSWASMModule;
  isFull(): boolean;
}

/** Memory grows in steps, and the last step may be too large. */
const FULL = 0.8;

/** The engine of sandboxes. All open sandboxes share its memory. */
export async function loadSandboxEngine({ memoryBytes }: SandboxLimits): Promise<SandboxEngine> {
  // In this build, QuickJS's own limit counts blocks and not their sizes, so the limit is that of the WebAssembly memory.
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: Math.floor(memoryBytes / PAGE_BYTES) });
  const module = await newQuickJSWASMModuleFromVariant(newVariant(sync, { wasmMemory, emscriptenModule: quiet as object }));
  return { module, isFull: () => wasmMemory.buffer.byteLength > memoryBytes * FULL };
}

/**
 * JavaScript without a host: QuickJS in WebAssembly, with its own memory and stack. It offers only the language: no files, no
 * network, no timers, no modules.
 */
export class Sandbox {
  readonly #engine: SandboxEngine;
  readonly #limits: SandboxLimits;
  readonly #runtime: QuickJSRuntime;
  readonly #context: QuickJSContext;
  #deadline = Number.POSITIVE_INFINITY;
  #isLate = false;

  /** Uses the engine of `loadSandboxEngine` with the same limits. */
  constructor(engine: SandboxEngine, limits: SandboxLimits) {
    this.#limits = limits;
    this.#engine = engine;
    this.#runtime = engine.module.newRuntime({ maxStackSizeBytes: STACK_BYTES });
    this.#runtime.setInterruptHandler(() => (this.#isLate ||= cpuMs() > this.#deadline));
    this.#context = this.#runtime.newContext();
  }

  /** Evaluate a script of ours that must succeed. The caller disposes of the result. */
  define(script: string, name: string): QuickJSHandle {
    return this.#context.unwrapResult(this.#context.evalCode(script, name));
  }

  /**
   * Call `wrapper` with the result of `script`, if there is one, and with texts. It returns a text or a promise of one. Throws if
   * WebAssembly itself failed.
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
      // This thread's own stack. A parser of deeply nested text fills it before QuickJS reaches its own limit.
      if (error instanceof RangeError) return { kind: "too-deep" };
      throw error;
    } finally {
      for (const handle of opened) if (handle.alive) handle.dispose();
    }
  }

  /** False if some objects cannot be disposed of. */
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
    // Its length is checked before it is copied out.
    if (length > outputBytes) return { kind: "too-large" };
    const text = this.#context.getString(handle);
    return Buffer.byteLength(text) > outputBytes ? { kind: "too-large" } : { kind: "text", text };
  }

  #failure(error: QuickJSHandle): SandboxOutcome {
    if (this.#isLate) return { kind: "late" };
    const { name, message, stack } = this.#describe(error);
    if (this.#isLate) return { kind: "late" };
    if (name === "InternalError" && message === "out of memory") return { kind: "out-of-memory" };
    // Without free memory there is no message.
    if (message === "" && this.#engine.isFull()) return { kind: "out-of-memory" };
    return { kind: "failed", message: message || "It threw something without words", stack };
  }

  /** The thrown value is untrusted, and so are its properties. */
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

/** Whether a later job could notice the effects. */
export function isSpoiltBy({ kind }: SandboxOutcome): boolean {
  return kind !== "text" && kind !== "failed" && kind !== "pending";
}

/** Processor time of this thread so far. Other threads, and waiting for a processor, do not count if the platform can tell. */
function cpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => { readonly user: number; readonly system: number } };
  if (!threadCpuUsage) return performance.now();
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1_000;
}

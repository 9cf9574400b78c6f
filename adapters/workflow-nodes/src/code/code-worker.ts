import { workerData } from "node:worker_threads";
import { listenForJobs } from "@portico/core/kit";
import { isSpoiltBy, loadSandboxEngine, Sandbox, type SandboxAnswer, type SandboxLimits } from "../sandbox/sandbox.ts";
import { type CodeJob, scriptOf } from "./script.ts";

/** The globals of a script besides the language, and its caller. Console output is dropped. */
const CALLER = `(() => {
  const ignore = () => {};
  globalThis.console = { log: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };
  const { parse, stringify } = JSON;
  return async (script, input) => stringify(await script(input === undefined ? undefined : parse(input))) ?? "null";
})()`;

const limits = workerData as SandboxLimits;
const engine = await loadSandboxEngine(limits);

listenForJobs(run);

/** In its own sandbox: a script cannot see data of another. */
function run({ source, input }: CodeJob): SandboxAnswer {
  const sandbox = new Sandbox(engine, limits);
  const caller = sandbox.define(CALLER, "caller");
  const outcome = sandbox.call(caller, [input], { text: scriptOf(source), name: "script" });
  if (isSpoiltBy(outcome)) return { outcome, isSpoilt: true };
  caller.dispose();
  return { outcome, isSpoilt: !sandbox.dispose() };
}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { workerData } from "node:worker_threads";
import { listenForJobs } from "@portico/core/kit";
import { isSpoiltBy, loadSandboxEngine, Sandbox, type SandboxLimits } from "../sandbox/sandbox.ts";
import { EVALUATOR } from "./evaluator.ts";
import type { TransformJob } from "./transform-limits.ts";

// JSONata's own limits do not cover all of its functions, and a thread that runs out of V8's memory ends the process. Therefore
// it runs in a sandbox. The sandbox is kept, because reading JSONata takes longer than most expressions.
const source = readFileSync(createRequire(import.meta.url).resolve("jsonata/jsonata.min.js"), "utf8");
const limits = workerData as SandboxLimits;
const sandbox = new Sandbox(await loadSandboxEngine(limits), limits);
sandbox.define(source, "jsonata").dispose();
const evaluate = sandbox.define(EVALUATOR, "evaluator");

listenForJobs(({ jsonata, input }: TransformJob) => {
  const outcome = sandbox.call(evaluate, [jsonata, input]);
  return { outcome, isSpoilt: isSpoiltBy(outcome) };
});

import { createApp, createSystemClock, ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import type { AgentCase } from "@portico/presets/platform/agent-tests/case-file";
import { createJudge, type Judge } from "@portico/presets/platform/agent-tests/judge";
import { runAgentCase } from "@portico/presets/platform/agent-tests/run-agent-case";
import { pricesOf } from "@portico/presets/platform/prices-of";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { printableJson } from "../terminal.ts";
import { type OpenCases, openCases } from "./case-inputs.ts";
import { type ChosenModel, chooseModel, chooseModels } from "./chosen-models.ts";
import { type Attempt, evaluationLines, summaryOf } from "./eval-lines.ts";

export interface EvalOptions {
  readonly files: readonly string[];
  readonly models: string;
  readonly judge: string | undefined;
  readonly repeat: string | undefined;
  readonly parallel: string | undefined;
  /** Percent. */
  readonly "pass-rate": string | undefined;
  readonly json: boolean | undefined;
}

const PARALLEL = 4;
const MOST_PARALLEL = 32;
const MOST_REPEATS = 100;
const ATTEMPTS = 10_000;
/** Time of one case, in milliseconds. Models may think for long. */
const CASE_MS = 10 * 60_000;

interface Job {
  readonly opened: OpenCases;
  readonly test: AgentCase;
  readonly model: ChosenModel;
  readonly attempt: number;
}

/**
 * Runs the cases of these files with each model, and prints the results. Ctrl-C stops the calls in progress, and prints what has ended. Returns the
 * exit code: 0 if enough attempts passed with each model, 1 if not, 130 if it was stopped. Throws CommandFailed (1, 64, 66).
 */
export async function evalAgents(flags: SettingsFlags, options: EvalOptions): Promise<number> {
  const repeat = readCount("repeat", options.repeat, { least: 1, most: MOST_REPEATS }) ?? 1;
  const parallel = readCount("parallel", options.parallel, { least: 1, most: MOST_PARALLEL }) ?? PARALLEL;
  const least = readCount("pass-rate", options["pass-rate"], { least: 0, most: 100 }) ?? 100;
  const { settings } = await readSettings(flags);
  const models = await chooseModels(settings, options.models);
  const judging = options.judge === undefined ? undefined : await openJudge(settings, options.judge);
  const checks = new SchemaChecks(createSystemClock());
  const opened: OpenCases[] = [];
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once("SIGINT", leave);
  try {
    for (const file of options.files) opened.push(await openCases(file, { settings, checks }));
    if (!judging && opened.some(({ cases }) => cases.some(hasCriteria)))
      console.error("The criteria of `judge` are not checked: name a model with --judge.");
    const jobs = jobsOf(opened, models, repeat);
    const attempts = await runJobs(jobs, { parallel, judge: judging?.judge, signal: leaving.signal });
    const summary = summaryOf(attempts, models, { currency: pricesOf(settings)?.currency });
    const isStopped = leaving.signal.aborted;
    const judge = judging && { model: options.judge, ...judging.judge.used };
    if (options.json) console.log(printableJson({ isComplete: !isStopped, models: summary, judge, attempts }, 2));
    else console.log(evaluationLines(summary, attempts, judge));
    if (isStopped) {
      console.error(`Stopped: ${attempts.length} of ${jobs.length} attempts have ended.`);
      return EXIT.stopped;
    }
    return summary.every(({ passed, attempts: all }) => passed * 100 >= least * all) ? EXIT.ok : EXIT.failed;
  } finally {
    process.off("SIGINT", leave);
    await Promise.all([checks.close(), judging?.close(), ...opened.map(({ close }) => close())]);
  }
}

function hasCriteria({ messages, expect }: AgentCase): boolean {
  const expected = [expect, ...messages.flatMap((message) => (typeof message === "string" ? [] : (message.expect ?? [])))];
  return expected.some(({ judge }) => judge !== undefined);
}

function jobsOf(opened: readonly OpenCases[], models: readonly ChosenModel[], repeat: number): readonly Job[] {
  const count = opened.reduce((sum, { cases }) => sum + cases.length, 0) * models.length * repeat;
  if (count > ATTEMPTS) throw new CommandFailed(`There are ${count} attempts, and ${ATTEMPTS} are allowed`, EXIT.usage);
  return opened.flatMap((each) =>
    each.cases.flatMap((test) =>
      models.flatMap((model) => Array.from({ length: repeat }, (_, at) => ({ opened: each, test, model, attempt: at + 1 }))),
    ),
  );
}

interface Running {
  readonly judge: Judge | undefined;
  readonly signal: AbortSignal;
}

/** The attempts that have ended, in the order of the jobs. After an abort, those that had ended before. */
async function runJobs(
  jobs: readonly Job[],
  { parallel, ...running }: Running & { readonly parallel: number },
): Promise<readonly Attempt[]> {
  const { signal } = running;
  const ended = new Map<number, Attempt>();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < jobs.length && !signal.aborted) {
      const number = next++;
      const attempt = await runJob(jobs[number]!, running);
      if (attempt) ended.set(number, attempt);
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, jobs.length) }, work));
  return [...ended].sort(([one], [other]) => one - other).map(([, attempt]) => attempt);
}

/** Undefined if it was stopped. */
async function runJob({ opened, test, model, attempt }: Job, { judge, signal }: Running): Promise<Attempt | undefined> {
  try {
    const result = await runAgentCase(test, { ...opened.given, played: model.played, judge, limitMs: CASE_MS, signal });
    return { model: model.name, file: opened.file, attempt, ...result };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** A judge until `close` is called. Throws CommandFailed (64) for an unknown model. */
async function openJudge(settings: PlatformSettings, name: string): Promise<{ readonly judge: Judge; close(): Promise<void> }> {
  const { adapter, provider, model } = await chooseModel(settings, name);
  const app = await createApp({ name: "agent-judge", adapters: [adapter] });
  const found = app.port(ports.models).find(({ id }) => id === provider);
  if (!found) throw new TypeError("The judge's adapter is not its provider");
  return { judge: createJudge(found, model), close: () => app.close() };
}

function readCount(
  name: string,
  written: string | undefined,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined {
  if (written === undefined) return undefined;
  const count = /^\d{1,5}$/.test(written) ? Number(written) : Number.NaN;
  if (count >= least && count <= most) return count;
  throw new CommandFailed(`Option --${name} must be a whole number from ${least} to ${most}`, EXIT.usage);
}

import type { TestedAgentCase } from "@portico/presets/platform/agent-tests/run-agent-case";
import prettyMilliseconds from "pretty-ms";
import { printable, table } from "../terminal.ts";
import type { ChosenModel } from "./chosen-models.ts";

/** One case that was run once with one model. */
export interface Attempt extends TestedAgentCase {
  readonly model: string;
  readonly file: string;
  /** Counts from 1. */
  readonly attempt: number;
}

/** The results of one model. Sums are of the attempts in which a turn ended. */
export interface ModelSummary {
  readonly model: string;
  readonly attempts: number;
  readonly passed: number;
  /** From 0 to 1. Absent without an attempt. */
  readonly passRate?: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
  /** Absent if unknown. */
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cost?: number | undefined;
  readonly currency?: string | undefined;
  /** Duration of all turns of an attempt, in milliseconds. */
  readonly medianMs?: number | undefined;
  readonly p95Ms?: number | undefined;
}

/** The results of each model, in the order of the models. */
export function summaryOf(
  attempts: readonly Attempt[],
  models: readonly ChosenModel[],
  { currency }: { readonly currency: string | undefined },
): readonly ModelSummary[] {
  return models.map(({ name }) => {
    const all = attempts.filter(({ model }) => model === name);
    const found = all.flatMap((each) => each.found ?? []);
    const passed = all.filter(({ isOk }) => isOk).length;
    const durations = found.map(({ durationMs }) => durationMs).sort((one, other) => one - other);
    const cost = sumOf(found.map((each) => each.cost));
    return {
      model: name,
      attempts: all.length,
      passed,
      ...(all.length > 0 && { passRate: passed / all.length }),
      modelCalls: sumOf(found.map(({ modelCalls }) => modelCalls)) ?? 0,
      toolCalls: sumOf(found.map(({ calls }) => calls.length)) ?? 0,
      inputTokens: sumOf(found.map(({ inputTokens }) => inputTokens)),
      outputTokens: sumOf(found.map(({ outputTokens }) => outputTokens)),
      cost,
      ...(cost !== undefined && { currency }),
      medianMs: quantile(durations, 0.5),
      p95Ms: quantile(durations, 0.95),
    };
  });
}

/** The model that judged answers, and what its calls used. */
export interface JudgeSummary {
  readonly model: string | undefined;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A table of the models, and the failed attempts with the differences of the first one. */
export function evaluationLines(
  summary: readonly ModelSummary[],
  attempts: readonly Attempt[],
  judge: JudgeSummary | undefined,
): string {
  const rows = summary.map((each) => [
    each.model,
    `${each.passed}/${each.attempts}${each.passRate === undefined ? "" : ` (${Math.floor(each.passRate * 100)} %)`}`,
    String(each.modelCalls),
    String(each.toolCalls),
    shown(each.inputTokens),
    shown(each.outputTokens),
    each.cost === undefined ? "-" : [Number(each.cost.toPrecision(4)), each.currency].join(" "),
    each.medianMs === undefined ? "-" : prettyMilliseconds(each.medianMs),
    each.p95Ms === undefined ? "-" : prettyMilliseconds(each.p95Ms),
  ]);
  const head = ["MODEL", "PASSED", "MODEL CALLS", "TOOL CALLS", "INPUT TOKENS", "OUTPUT TOKENS", "COST", "MEDIAN", "95 % WITHIN"];
  const judged =
    judge && `Judge ${judge.model}: ${judge.calls} calls, ${judge.inputTokens} input tokens, ${judge.outputTokens} output tokens`;
  return [table(head, rows), ...(judged === undefined ? [] : [printable(judged)]), ...failedLines(attempts)].join("\n");
}

function failedLines(attempts: readonly Attempt[]): readonly string[] {
  const ofCase = Map.groupBy(attempts, ({ file, name, model }) => JSON.stringify([file, name, model]));
  return [...ofCase.values()].flatMap((all) => {
    const failed = all.filter(({ isOk }) => !isOk);
    const [first] = failed;
    if (!first) return [];
    const often = all.length > 1 ? ` (${failed.length} of ${all.length})` : "";
    const lines = [
      `FAILED  ${first.model}: ${first.file}: ${first.name}${often}`,
      ...first.differences.map((each) => `        ${each}`),
    ];
    return lines.map(printable);
  });
}

function shown(count: number | undefined): string {
  return count === undefined ? "-" : String(count);
}

/** Undefined if nothing is known. */
function sumOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];
}

import { isRecord } from "@portico/core/contract";
import { faultText, type SchemaChecks } from "@portico/core/kit";
import { jsonDifference } from "../cases/json-difference.ts";
import type { FoundCall, FoundTurn } from "./found-turn.ts";
import type { Judge, SaidTurn } from "./judge.ts";
import { type CallCheck, type Expectation, schemaOfPattern, type TextCheck } from "./case-file.ts";

/** What checks a turn. */
export interface TurnChecks {
  readonly checks: SchemaChecks;
  /** Default: criteria in words are not checked. */
  readonly judge?: Judge | undefined;
  /** The conversation up to the answer, for the judge. */
  readonly said: readonly SaidTurn[];
  readonly signal: AbortSignal;
}

/** One line for each place in which a turn differs from what is expected of it. */
export async function turnDifferences(expected: Expectation, found: FoundTurn, given: TurnChecks): Promise<readonly string[]> {
  const { status, end, error, output, calls, includes, excludes = [], atMost } = expected;
  const { checks } = given;
  const checker = new Checker(checks);
  const isOtherEnd = status !== found.status && found.error !== undefined;
  return [
    ...jsonDifference("status", status, found.status),
    ...(isOtherEnd ? [`error: ${found.error!.code}: ${found.error!.message}`] : []),
    ...(end === undefined ? [] : jsonDifference("end", end, found.end)),
    ...(error?.code === undefined ? [] : jsonDifference("error.code", error.code, found.error?.code)),
    ...(error?.message === undefined ? [] : await checker.text("error.message", error.message, found.error?.message ?? "")),
    ...(output === undefined ? [] : await checker.text("output", output, found.output)),
    ...(calls === undefined ? [] : await checker.inOrder(calls, found.calls)),
    ...(includes === undefined ? [] : await checker.included(includes, found.calls)),
    ...excludes.filter((id) => found.calls.some(({ tool }) => tool === id)).map((id) => `excludes: ${id} was called`),
    ...limitDifferences(atMost, found),
    ...(await judgeDifferences(expected, found, given)),
  ];
}

/** A turn that did not complete has no answer to judge. */
async function judgeDifferences(
  { judge: criteria }: Expectation,
  { status, calls }: FoundTurn,
  { judge, said: turns, signal }: TurnChecks,
): Promise<readonly string[]> {
  if (!judge || status !== "completed") return [];
  const differences: string[] = [];
  for (const criterion of all(criteria)) {
    const fault = await judge.fault({ criterion, turns, calls }, signal);
    if (fault !== undefined) differences.push(`judge: ${criterion}: ${fault}`);
  }
  return differences;
}

class Checker {
  readonly #checks: SchemaChecks;

  constructor(checks: SchemaChecks) {
    this.#checks = checks;
  }

  async text(path: string, check: TextCheck, found: string): Promise<readonly string[]> {
    if (typeof check === "string") return jsonDifference(path, check, found);
    const { contains, excludes, matches, schema } = check;
    const got = `got ${JSON.stringify(found)}`;
    return [
      ...all(contains)
        .filter((part) => !found.includes(part))
        .map((part) => `${path}: expected a text that contains ${JSON.stringify(part)}, ${got}`),
      ...all(excludes)
        .filter((part) => found.includes(part))
        .map((part) => `${path}: expected a text without ${JSON.stringify(part)}, ${got}`),
      ...(matches === undefined || (await this.#fault(schemaOfPattern(matches), found, path)) === undefined
        ? []
        : [`${path}: expected a text that matches ${matches}, ${got}`]),
      ...(schema === undefined ? [] : await this.#json(path, schema, found)),
    ];
  }

  async inOrder(expected: readonly CallCheck[], found: readonly FoundCall[]): Promise<readonly string[]> {
    const tools = found.map(({ tool }) => tool);
    const wanted = expected.map(toolOf);
    if (tools.length !== wanted.length || tools.some((tool, at) => tool !== wanted[at]))
      return [`calls: expected ${listed(wanted)}, got ${listed(tools)}`];
    const differences = await Promise.all(expected.map((check, at) => this.#call(`calls[${at}]`, check, found[at]!)));
    return differences.flat();
  }

  /** Each expected call needs a call of its own. */
  async included(expected: readonly CallCheck[], found: readonly FoundCall[]): Promise<readonly string[]> {
    const left = [...found];
    const missing: string[] = [];
    for (const [at, check] of expected.entries()) {
      const path = `includes[${at}]`;
      const same = left.filter(({ tool }) => tool === toolOf(check));
      const tried = await Promise.all(same.map((call) => this.#call(path, check, call)));
      const fits = tried.findIndex((differences) => differences.length === 0);
      if (fits >= 0) left.splice(left.indexOf(same[fits]!), 1);
      else if (tried[0]) missing.push(...tried[0]);
      else missing.push(`${path}: expected a call of ${toolOf(check)}, got ${listed(found.map(({ tool }) => tool))}`);
    }
    return missing;
  }

  async #call(path: string, check: CallCheck, found: FoundCall): Promise<readonly string[]> {
    if (typeof check === "string") return [];
    const { arguments: args, contain, schema, isError } = check;
    const fault = schema && (await this.#fault(schema, found.arguments, "arguments"));
    return [
      ...(args === undefined ? [] : jsonDifference(`${path}.arguments`, args, found.arguments)),
      ...(contain === undefined ? [] : missingIn(`${path}.arguments`, contain, found.arguments)),
      ...(fault === undefined ? [] : [`${path}.arguments: ${fault}`]),
      ...(isError === undefined ? [] : jsonDifference(`${path}.isError`, isError, found.isError)),
    ];
  }

  async #json(path: string, schema: Readonly<Record<string, unknown>>, found: string): Promise<readonly string[]> {
    let value: unknown;
    try {
      value = JSON.parse(found);
    } catch {
      return [`${path}: expected JSON, got ${JSON.stringify(found)}`];
    }
    const fault = await this.#fault(schema, value, "the value");
    return fault === undefined ? [] : [`${path}: ${fault}`];
  }

  async #fault(schema: Readonly<Record<string, unknown>>, value: unknown, whole: string): Promise<string | undefined> {
    const checked = await this.#checks.check(schema, value, { allFaults: true });
    if ("unusable" in checked) return checked.unusable;
    return "faults" in checked ? faultText(checked.faults, whole) : undefined;
  }
}

/** Members of objects that differ from the expected ones. Other members are allowed. */
function missingIn(path: string, expected: Readonly<Record<string, unknown>>, found: unknown): readonly string[] {
  if (!isRecord(found)) return jsonDifference(path, expected, found);
  return Object.entries(expected).flatMap(([key, value]) => {
    const each = Object.hasOwn(found, key) ? found[key] : undefined;
    return isRecord(value) ? missingIn(`${path}.${key}`, value, each) : jsonDifference(`${path}.${key}`, value, each);
  });
}

function limitDifferences(atMost: Expectation["atMost"], found: FoundTurn): readonly string[] {
  const { inputTokens, outputTokens, calls, modelCalls, cost } = found;
  const tokens = inputTokens === undefined && outputTokens === undefined ? undefined : (inputTokens ?? 0) + (outputTokens ?? 0);
  const used = { modelCalls, toolCalls: calls.length, inputTokens, outputTokens, tokens, cost };
  return Object.entries(atMost).flatMap(([key, most]) => {
    const value = used[key as keyof typeof used];
    if (value === undefined) return [`atMost.${key}: expected at most ${most}, got nothing: ${UNKNOWN[key] ?? UNKNOWN_TOKENS}`];
    return value <= most! ? [] : [`atMost.${key}: expected at most ${most}, got ${value}`];
  });
}

const UNKNOWN_TOKENS = "no answer of the model says its usage";
const UNKNOWN: Readonly<Record<string, string>> = { cost: "the usage or the price of the model is unknown" };

function toolOf(check: CallCheck): string {
  return typeof check === "string" ? check : check.tool;
}

function all(given: string | readonly string[] | undefined): readonly string[] {
  return given === undefined || typeof given === "string" ? [given ?? []].flat() : given;
}

function listed(tools: readonly string[]): string {
  return tools.length === 0 ? "no call" : tools.join(", ");
}

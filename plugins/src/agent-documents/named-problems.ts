import { isRecord } from "@portico/core/contract";
import { withoutByteOrderMark } from "@portico/core/kit";
import { hasMoreLevels, type ports, withoutEnd } from "@portico/core";
import { AGENT_TEXT_BYTES } from "./limits.ts";

const LEVELS = 100;

/** A problem of what a text names. */
export interface NamedProblem extends ports.AgentTextProblem {
  /** The tool, the skill or the key that it is about. */
  readonly name: string;
}

/** The tools and skills that a text names, and that turns would not get now: warnings. Empty for a text that is not an object. */
export async function namedProblems(
  turns: Pick<ports.BackgroundTurns, "problems"> | undefined,
  id: string,
  text: string,
  signal: AbortSignal,
): Promise<readonly NamedProblem[]> {
  const written = parsed(text);
  if (!turns?.problems || !written) return [];
  const outputSchema = isRecord(written["outputSchema"]) ? written["outputSchema"] : undefined;
  const scheduled = list(written["schedules"]).map((schedule) => (isRecord(schedule) ? list(schedule["tools"]) : []));
  const tools = texts([...list(written["tools"]), ...scheduled.flat()]);
  const skills = texts(list(written["skills"]));
  const problems = await turns.problems({ id, definition: { tools, skills, outputSchema } }, signal);
  return problems.map(({ at, name, message }) => {
    // The name of a skill is its path without a slash at its end.
    const index = list(written[at]).findIndex(
      (each) => typeof each === "string" && (each === name || withoutEnd(each, "/") === name),
    );
    const schedule = at === "tools" && index < 0 ? scheduled.findIndex((ids) => ids.includes(name)) : -1;
    const place = schedule < 0 ? [at, index] : ["schedules", schedule, "tools", scheduled[schedule]!.indexOf(name)];
    return {
      name,
      severity: "warning",
      path: place.at(-1) === -1 ? [at] : place,
      message: at === "outputSchema" ? message : `${name}: ${message}`,
    };
  });
}

function parsed(text: string): Record<string, unknown> | undefined {
  if (Buffer.byteLength(text) > AGENT_TEXT_BYTES) return undefined;
  try {
    const value = JSON.parse(withoutByteOrderMark(text)) as unknown;
    return isRecord(value) && !hasMoreLevels(value, LEVELS) ? value : undefined;
  } catch {
    return undefined;
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function texts(values: readonly unknown[]): readonly string[] {
  return values.filter((each) => typeof each === "string");
}

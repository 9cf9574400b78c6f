import { canonicalJson } from "../../api/canonical-json.ts";
import type { Step } from "./trace.ts";

export type Difference = "status" | "input" | "output";

/** A part of two turns. */
export interface ComparedStep {
  /** Its title, and its number if the turn has several such parts. */
  readonly key: string;
  /** Undefined if that turn has no such part. */
  readonly one: Step | undefined;
  readonly other: Step | undefined;
  readonly differences: readonly Difference[];
}

/** The parts of two turns, in the order of the first turn. Times, tokens and costs are shown, and are no difference. */
export function compareTurns(one: readonly Step[], other: readonly Step[]): readonly ComparedStep[] {
  const [left, right] = [byKey(one), byKey(other)];
  return [...new Set([...left.keys(), ...right.keys()])].map((key) => {
    const [first, second] = [left.get(key), right.get(key)];
    const isSame = (part: (step: Step) => unknown) =>
      canonicalJson(first && part(first)) === canonicalJson(second && part(second));
    const isInBoth = first !== undefined && second !== undefined;
    const status = (step: Step) => step.entry.error ?? step.failure?.code ?? null;
    const differences = [
      ...(isInBoth && isSame(status) ? [] : ["status" as const]),
      ...(isSame(({ input }) => input) ? [] : ["input" as const]),
      ...(isSame(({ output }) => output) ? [] : ["output" as const]),
    ];
    return { key, one: first, other: second, differences };
  });
}

function byKey(steps: readonly Step[]): ReadonlyMap<string, Step> {
  const seen = new Map<string, number>();
  return new Map(
    steps.map((step) => {
      const number = (seen.get(step.title) ?? 0) + 1;
      seen.set(step.title, number);
      return [number === 1 ? step.title : `${step.title} ${number}`, step];
    }),
  );
}

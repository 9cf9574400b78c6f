import * as v from "valibot";

/** A limit of the instance, and where it is set. */
export interface Limit {
  /** Unique: the setting, or a name in the same style. */
  readonly id: string;
  /** The plugin that enforces it. Limits of plugins that the app does not have are left out. */
  readonly area: string;
  readonly group: (typeof LIMIT_GROUPS)[number];
  /** What it limits, in a sentence for people. */
  readonly about: string;
  /** What it counts for: each of them has this limit. */
  readonly appliesTo: (typeof LIMIT_SUBJECTS)[number];
  /** Undefined: there is no limit. */
  readonly value: number | undefined;
  readonly unit: (typeof LIMIT_UNITS)[number];
  /** The key of the configuration that sets it. Undefined: it cannot be set. */
  readonly setting?: string | undefined;
  /** The environment variable that sets it. */
  readonly env?: string | undefined;
  /** What set the present value. Undefined: not known. */
  readonly source?: (typeof LIMIT_SOURCES)[number] | undefined;
  /** The key of an `agent.json` that sets it for one agent. */
  readonly agentKey?: string | undefined;
}

/** All limits, and the currency of limits on money. */
export interface Limits {
  readonly limits: readonly Limit[];
  readonly currency?: string | undefined;
}

export const LIMIT_GROUPS = ["usage", "turns", "uploads", "requests", "workflows"] as const;
export const LIMIT_SUBJECTS = ["instance", "process", "user", "agent", "turn", "request", "file", "run"] as const;
export const LIMIT_UNITS = [
  "tokens",
  "money",
  "turns",
  "calls",
  "attempts",
  "files",
  "characters",
  "bytes",
  "milliseconds",
] as const;
/** `fixed`: no setting changes it. */
export const LIMIT_SOURCES = ["fixed", "default", "file", "environment", "flag", "options"] as const;

/** Options of the page of limits. */
export const limitsConfig = v.strictObject({
  /** The limits of the host's settings. Called for each request. */
  limits: v.custom<() => Limits>((value) => typeof value === "function", "a function"),
});

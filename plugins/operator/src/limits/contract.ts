import { accessErrors, defineContract, pageEnvelope, readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";

const LIMIT_GROUPS = ["usage", "turns", "uploads", "requests", "workflows"] as const;
const LIMIT_SUBJECTS = ["instance", "process", "user", "agent", "turn", "request", "file", "run"] as const;
const LIMIT_UNITS = ["tokens", "money", "turns", "calls", "attempts", "files", "characters", "bytes", "milliseconds"] as const;
/** `fixed`: no setting changes it. */
const LIMIT_SOURCES = ["fixed", "default", "file", "environment", "flag", "options"] as const;

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

const text = v.string();

const limit = v.object({
  id: text,
  group: v.picklist(LIMIT_GROUPS),
  /** What it limits, in a sentence. */
  about: text,
  /** What it counts for: each of them has this limit. */
  appliesTo: v.picklist(LIMIT_SUBJECTS),
  /** `null`: there is no limit. */
  value: v.nullable(v.number()),
  unit: v.picklist(LIMIT_UNITS),
  /** The key of the configuration that sets it. */
  setting: v.optional(text),
  /** The environment variable that sets it. */
  env: v.optional(text),
  /** What set the present value. `fixed`: no setting changes it. */
  source: v.optional(v.picklist(LIMIT_SOURCES)),
  /** The key of an `agent.json` that sets it for one agent. */
  agentKey: v.optional(text),
});

/** The limits of an instance, for all its callers: an extension of the specification. */
export const limitsContract = defineContract(
  { surface: "agent", auth: "instance", envelope: pageEnvelope },
  {
    limits: {
      method: "GET",
      path: "/api/limits",
      summary: "List the limits of this instance, and where they are set",
      query: readParameters({}),
      success: reply.json(
        v.object({
          /** The currency of limits on money. */
          currency: v.optional(text),
          limits: v.array(limit),
        }),
      ),
      errors: accessErrors,
    },
  },
);

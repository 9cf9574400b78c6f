import { jsonObject, maxCharacters, objectOnly } from "@portico/core/contract";
import * as v from "valibot";
import { CONCURRENCY_LIMIT, DEBOUNCE_DELAYS, duration, RETRY_ATTEMPTS, SEARCH_FIELDS } from "./definition-limits.ts";
import { writtenSensitive } from "../secrecy/sensitive-paths.ts";
import { writtenSchedules } from "./written-schedules.ts";

const ID = "1-64 letters, digits, `_` and `-`";

const definitionId = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, `An id is ${ID}`));
export const nodeId = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, `A node's id is ${ID}, beginning with a letter or \`_\``),
);
export const caseName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, `The name of a case is ${ID}`));

const text = (longest: number) => v.pipe(v.string(), maxCharacters(longest, `This text has at most ${longest} characters`));

/** JSON Schema 2020-12, as a document writes it. */
export const jsonSchema = v.pipe(jsonObject, v.description("JSON Schema 2020-12."));

const retry = v.strictObject(
  {
    attempts: v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "There is at least 1 attempt"),
      v.maxValue(RETRY_ATTEMPTS, `There are at most ${RETRY_ATTEMPTS} attempts`),
      v.description("Total number of attempts."),
    ),
    delay: v.optional(duration("Delay before the second attempt; default `1s`.")),
    factor: v.optional(
      v.pipe(
        v.number(),
        v.minValue(1, "A factor is 1 to 100"),
        v.maxValue(100, "A factor is 1 to 100"),
        v.description("Each delay is the previous delay multiplied by this factor; default 2."),
      ),
    ),
    maxDelay: v.optional(duration("Maximum delay; default `1h`.")),
    if: v.optional(
      v.pipe(
        v.string(),
        v.description(
          "A CEL expression over `error`, such as `error.code == 'timeout'`. Without it, every error is retried that can be.",
        ),
      ),
    ),
  },
  "Write how often: `retry: { attempts: 3 }`",
);

const startKey = (says: string) =>
  v.optional(v.pipe(v.string(), v.nonEmpty("A key has at least 1 character"), v.description(says)));

const debounce = v.strictObject(
  {
    delay: duration("The run begins if no trigger came for this time."),
    key: startKey("A text with expressions over `parameters`. Triggers with the same key share a run; default: all triggers."),
    maxWait: v.optional(
      duration(
        `The run begins at the latest at this time after its first trigger: 1 to ${DEBOUNCE_DELAYS.most} delays; default ${DEBOUNCE_DELAYS.usual} delays.`,
      ),
    ),
  },
  "Write the delay: `debounce: { delay: 10s }`",
);

const concurrency = v.strictObject(
  {
    limit: v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "There is at least 1 run"),
      v.maxValue(CONCURRENCY_LIMIT, `There are at most ${CONCURRENCY_LIMIT} runs`),
      v.description("Maximum runs that go on at the same time."),
    ),
    key: startKey(
      "A text with expressions over `parameters`. The limit applies to runs with the same key; default: to all runs.",
    ),
    overflow: v.optional(
      v.pipe(
        v.picklist(["queue", "refuse", "replace"]),
        v.description(
          "What happens to a start beyond the limit: its run waits; it is refused; or its run replaces the oldest run, which is cancelled. Default: `queue`.",
        ),
      ),
    ),
  },
  "Write the limit: `concurrency: { limit: 1 }`",
);

const searchFields = (of: string) =>
  v.optional(
    v.pipe(
      v.array(
        v.pipe(
          v.string(),
          v.regex(
            /^[A-Za-z_][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64}){0,4}$/,
            "A field is 1-5 keys with dots between them, such as `customer.id`; a key is 1-64 letters, digits, `_` and `-`",
          ),
        ),
      ),
      v.maxLength(SEARCH_FIELDS, `There are at most ${SEARCH_FIELDS} fields`),
      v.check((fields) => new Set(fields).size === fields.length, "Each field is named once"),
      v.description(`Fields of the ${of}, such as \`customer.id\`.`),
    ),
  );

/** A node as it is written, without the rules of its type for `with`. */
export const writtenNode = v.strictObject({
  type: v.pipe(v.string(), v.description("The kind of node.")),
  name: v.optional(v.pipe(text(200), v.description("Display name."))),
  needs: v.optional(
    v.pipe(
      v.array(
        v.pipe(
          v.string(),
          v.regex(
            /^[A-Za-z_][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64})?$/,
            "A need is the id of a node, or `ID.case` for one of its cases",
          ),
        ),
      ),
      v.description("Nodes that are completed before it: their ids, or `ID.case` for one of a node's cases."),
    ),
  ),
  if: v.optional(
    v.pipe(
      v.union([v.string(), v.boolean()]),
      v.description(
        "A CEL expression. The node is skipped if it is false. Or `always`: the node runs when its needs have ended, whatever their end.",
      ),
    ),
  ),
  with: v.optional(v.pipe(jsonObject, v.description("The inputs of the node, which depend on its type."))),
  retry: v.optional(v.pipe(retry, v.description("How failed attempts are retried; default: no retry."))),
  timeout: v.optional(duration("Time limit of one attempt.")),
  onError: v.optional(
    v.pipe(v.picklist(["fail", "continue"]), v.description("Whether the run fails with the node (default), or continues.")),
  ),
  idempotent: v.optional(
    v.pipe(v.boolean(), v.description("Whether the node may be repeated after a crash; default: depends on its type.")),
  ),
  sensitive: v.optional(
    v.pipe(
      writtenSensitive,
      v.description(
        "Whether its output is a secret: the whole output, or the values at these paths, such as `body.token`. `*` matches every key.",
      ),
    ),
  ),
});
export type WrittenNode = v.InferOutput<typeof writtenNode>;

/** Nodes by id. Each node is checked separately, so that the problems of one node do not hide those of others. */
export const writtenGraph = v.pipe(jsonObject, v.description("Nodes by id."));

/** The document without its nodes. */
export const writtenDocument = v.strictObject({
  id: v.optional(v.pipe(definitionId, v.description("Default: the file's name without its extension."))),
  name: v.optional(v.pipe(text(200), v.description("Display name; default: the id."))),
  description: v.optional(v.pipe(text(10_000), v.description("What the workflow does, for its readers."))),
  creator: v.optional(v.pipe(text(200), v.description("The person or team that answers for the workflow."))),
  mcp: v.optional(
    v.pipe(
      v.boolean(),
      v.description("Whether the workflow is a tool of the instance's MCP server, if the instance has one; default: no."),
    ),
  ),
  parameters: v.optional(
    v.pipe(
      jsonSchema,
      v.description("JSON Schema 2020-12 of the trigger's body, which must be an object. Defaults are applied."),
    ),
  ),
  settings: v.optional(
    v.pipe(
      objectOnly(
        v.strictObject({
          timeout: v.optional(duration("Time limit of a whole run, without the time of waiting for a person; default `24h`.")),
        }),
      ),
      v.description("Settings of every run."),
    ),
  ),
  concurrency: v.optional(v.pipe(concurrency, v.description("How many runs go on at the same time; default: any number."))),
  debounce: v.optional(v.pipe(debounce, v.description("Which triggers share a run; default: each trigger starts its own."))),
  schedules: v.optional(writtenSchedules),
  nodes: writtenGraph,
  onFailure: v.optional(
    v.pipe(
      jsonObject,
      v.description(
        "A node that is executed once when a run has failed or timed out. Its expressions can name `failure` and all nodes. It has no `needs` and no `onError`.",
      ),
    ),
  ),
  outputs: v.optional(v.pipe(jsonObject, v.description("The outputs of the run, by name: any JSON with expressions."))),
  search: v.optional(
    v.pipe(
      objectOnly(v.strictObject({ parameters: searchFields("parameters"), outputs: searchFields("outputs") })),
      v.description("Fields by whose values runs can be found. Secret fields are refused."),
    ),
  ),
});

export type WrittenDocument = v.InferOutput<typeof writtenDocument>;

export function isDefinitionId(text: string): boolean {
  return v.is(definitionId, text);
}

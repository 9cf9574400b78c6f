import * as v from "valibot";
import { RETRY_ATTEMPTS } from "./definition-limits.ts";
import { duration } from "./parse-duration.ts";

const ID = "1-64 letters, digits, `_` and `-`";

const definitionId = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, `An id is ${ID}`));
export const nodeId = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, `A node's id is ${ID}, beginning with a letter or \`_\``),
);
export const caseName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, `The name of a case is ${ID}`));

const text = (longest: number) => v.pipe(v.string(), v.maxLength(longest, `This text has at most ${longest} characters`));

/** Any object of JSON. */
export const anyObject = v.record(v.string(), v.unknown());

/** JSON Schema 2020-12, as a document writes it. */
export const jsonSchema = v.pipe(anyObject, v.description("JSON Schema 2020-12."));

const retry = v.strictObject({
  attempts: v.pipe(
    v.number(),
    v.integer("This is a whole number"),
    v.minValue(1, "There is at least 1 attempt"),
    v.maxValue(RETRY_ATTEMPTS, `There are at most ${RETRY_ATTEMPTS} attempts`),
    v.description("How often it is tried in all."),
  ),
  delay: v.optional(duration("Before the second attempt; default `1s`.")),
  factor: v.optional(
    v.pipe(
      v.number(),
      v.minValue(1, "A factor is 1 to 100"),
      v.maxValue(100, "A factor is 1 to 100"),
      v.description("Each delay is this many times the one before; default 2."),
    ),
  ),
  maxDelay: v.optional(duration("No delay is longer; default `1h`.")),
});

/** A node as it is written, but for what its type says of `with`. */
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
    v.pipe(v.union([v.string(), v.boolean()]), v.description("A CEL expression: the node is skipped where it is false.")),
  ),
  with: v.optional(v.pipe(anyObject, v.description("What the node is given, by its type."))),
  retry: v.optional(v.pipe(retry, v.description("What happens after an attempt that failed; default: no retry."))),
  timeout: v.optional(duration("Of one attempt.")),
  onError: v.optional(
    v.pipe(v.picklist(["fail", "continue"]), v.description("Whether the run fails with the node (default), or goes on.")),
  ),
  idempotent: v.optional(
    v.pipe(v.boolean(), v.description("Whether it may be repeated after a crash; default: as its type says.")),
  ),
});
export type WrittenNode = v.InferOutput<typeof writtenNode>;

/** Nodes by id; each is checked apart, so that one that is wrong does not hide the others. */
export const writtenGraph = v.pipe(anyObject, v.description("Nodes by id."));

/** The document, but for its nodes. */
export const writtenDocument = v.strictObject({
  id: v.optional(v.pipe(definitionId, v.description("Default: the file's name without its extension."))),
  name: v.optional(v.pipe(text(200), v.description("Display name; default: the id."))),
  description: v.optional(text(10_000)),
  creator: v.optional(text(200)),
  parameters: v.optional(
    v.pipe(jsonSchema, v.description("JSON Schema 2020-12 of the trigger's body, an object's; defaults are applied.")),
  ),
  settings: v.optional(
    v.strictObject({
      timeout: v.optional(duration("Of a whole run, waiting for a person not counted; default `24h`.")),
    }),
  ),
  nodes: writtenGraph,
  outputs: v.optional(v.pipe(anyObject, v.description("What the run comes to: any JSON with expressions, by name."))),
});

export function isDefinitionId(text: string): boolean {
  return v.is(definitionId, text);
}

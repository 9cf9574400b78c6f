import { hasAtMost, hasMoreLevels, jsonObject, maxCharacters, objectOnly, type ports } from "@portico/core";
import { withoutByteOrderMark } from "@portico/core/kit";
import * as v from "valibot";
import { toolPolicySchema } from "./tool-policy-schema.ts";

/** An agent without its git state. */
export type AgentText = Pick<ports.Agent, "definition" | "metadataError" | "fault" | "unknownKeys">;

/** Bounds of an `agent.json`. A file beyond them is not used: it would hold up the list of all agents. */
const TEXT_CHARACTERS = 1024 * 1024;
const LEVELS = 64;

const text = v.pipe(v.string(), v.nonEmpty());
/** A name, an ID or a path. */
const short = v.pipe(text, maxCharacters(1_000));
/** Names of tools, paths of skills. */
const list = v.pipe(v.array(short), v.maxLength(1_000));

/** Of the keys without a meaning, how many are told, and how many characters of each. */
const TOLD_KEYS = 20;
const KEY_CHARACTERS = 64;

/** Keys whose content others read. */
const FREE_KEYS = ["ui", "avatar", "webhooks", "$schema"];

const described = <S extends v.GenericSchema>(schema: S, words: string) => v.pipe(schema, v.description(words));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** A turn at planned times. `cron` and `everyMs` exclude each other. */
const schedule = v.pipe(
  v.strictObject({
    name: v.pipe(
      v.string(),
      v.regex(/^[A-Za-z0-9_-]{1,64}$/),
      v.check((name) => name !== "heartbeat", "a name other than heartbeat"),
    ),
    cron: v.optional(described(short, "Minute, hour, day of the month, month, day of the week.")),
    timeZone: v.optional(described(short, "Name in the IANA time zone database. Default: `UTC`.")),
    everyMs: v.optional(described(v.pipe(count, v.minValue(1000)), "Milliseconds between planned times, instead of `cron`.")),
    prompt: described(text, "What the agent is told."),
    enabled: v.optional(v.boolean(), true),
    tools: v.optional(described(list, "The tools that its turns may use. Default: those of the agent.")),
    maxTurns: v.optional(v.pipe(count, v.maxValue(100))),
    jitterMs: v.optional(
      described(v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(3_600_000)), "Longest delay of a start."),
    ),
    catchUp: v.optional(
      described(
        v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(1000)),
        "Missed times that are started late. Default: 1.",
      ),
    ),
    overlap: v.optional(
      described(
        v.picklist(["queue", "allow", "skip", "cancel"]),
        "What happens at a planned time while the turn before it goes on: the new turn waits; it starts, too; it is left out; or the earlier turn is stopped. Default: `queue`.",
      ),
    ),
  }),
  v.check(({ cron, everyMs }) => (cron === undefined) !== (everyMs === undefined), "either cron or everyMs"),
  v.check(({ timeZone, cron }) => timeZone === undefined || cron !== undefined, "a time zone only with cron"),
);

const memoryOptions = objectOnly(
  v.strictObject({
    maxDocuments: v.optional(described(v.pipe(count, v.maxValue(100)), "Most documents of each user. Default: 50.")),
    maxCharacters: v.optional(
      described(
        v.pipe(v.number(), v.safeInteger(), v.minValue(100), v.maxValue(10_000)),
        "Most characters of each document. Default: 4000.",
      ),
    ),
    inPrompt: v.optional(
      described(
        v.picklist(["index", "documents", "nothing"]),
        "What the model gets of it with its instructions: names and first lines, whole documents up to 20,000 characters, or nothing. Default: `index`.",
      ),
    ),
  }),
);

/** The fields that are read. Other fields of the file are allowed, because people and other programs store more in it. */
const fields = {
  name: described(v.pipe(v.string(), v.trim(), v.nonEmpty(), maxCharacters(1_000)), "The agent's name for people."),
  description: v.optional(described(v.string(), "What it is for.")),
  engine: v.optional(described(short, "The agent engine that runs it. Default: `loop`.")),
  provider: v.optional(described(short, "ID of a provider. Default: the first one.")),
  model: v.optional(described(short, "Name of a model. Default: the provider's first one.")),
  instructions: v.optional(described(v.string(), "What the model is told before the conversation.")),
  onMaxTokens: v.optional(
    described(
      v.picklist(["stop", "continue"]),
      "What happens when an answer reaches its token limit: the turn ends, or the model continues. Default: `stop`.",
    ),
  ),
  temperature: v.optional(described(v.pipe(v.number(), v.minValue(0), v.maxValue(2)), "Sampling temperature.")),
  maxOutputTokens: v.optional(described(count, "Most tokens of an answer. Default: the model's own limit.")),
  effort: v.optional(
    described(
      v.picklist(["none", "low", "medium", "high", "xhigh", "max"]),
      "How much the model thinks. `none` switches thinking off. Default: the model's own.",
    ),
  ),
  stop: v.optional(described(v.pipe(v.array(short), v.maxLength(4)), "Texts at which an answer ends.")),
  maxTurns: v.optional(
    described(v.pipe(count, v.maxValue(100)), "Most model calls of a turn whose caller gives no number. Default: 20."),
  ),
  outputSchema: v.optional(described(jsonObject, "JSON Schema of the final answer, which then is JSON that fits.")),
  context: v.optional(
    described(
      objectOnly(
        v.strictObject({
          tokens: v.optional(
            described(v.pipe(v.number(), v.safeInteger(), v.minValue(1000)), "Most tokens of a request to the model."),
          ),
          summarize: v.optional(described(v.boolean(), "Whether the model summarizes the oldest turns when they no longer fit.")),
          promptCache: v.optional(described(v.boolean(), "Whether requests contain marks for the provider's prompt cache.")),
        }),
      ),
      "What of a conversation the model gets.",
    ),
  ),
  limits: v.optional(
    described(
      objectOnly(
        v.strictObject({
          tokensPerDay: v.optional(described(v.pipe(v.number(), v.minValue(0)), "Most tokens of its model calls per day.")),
          moneyPerDay: v.optional(described(v.pipe(v.number(), v.minValue(0)), "Most costs of its model calls per day.")),
          turnsAtOnce: v.optional(described(count, "Most turns at the same time in one process.")),
          turnSeconds: v.optional(described(v.pipe(v.number(), v.minValue(1)), "Most seconds of a turn.")),
        }),
      ),
      "Limits of its turns, which can only lower those of the instance.",
    ),
  ),
  tools: v.optional(described(list, "IDs of the tools that its turns may use.")),
  toolPolicy: v.optional(described(toolPolicySchema, "Which of its tools need a person's approval.")),
  skills: v.optional(described(list, "Paths below the agent's folder.")),
  memory: v.optional(
    described(
      v.union(
        [v.boolean(), memoryOptions],
        "true, false, or an object with maxDocuments (1-100), maxCharacters (100-10,000) and inPrompt (index, documents or nothing)",
      ),
      "Whether it remembers documents of each user across conversations. Default: no.",
    ),
  ),
  resources: v.optional(
    described(
      v.pipe(v.array(short), v.maxLength(64)),
      "Resources of MCP servers that its turns may read: `server/URI`, also with the template of a URI.",
    ),
  ),
  prompts: v.optional(
    described(
      v.pipe(v.array(short), v.maxLength(200)),
      "Prompts of MCP servers that its users may choose: `server/prompt`, or `server/*` for all of a server.",
    ),
  ),
  schedules: v.optional(
    described(
      v.pipe(
        v.array(schedule),
        v.maxLength(100),
        v.check((all) => new Set(all.map(({ name }) => name)).size === all.length, "another name for each schedule"),
      ),
      "Background turns at planned times.",
    ),
  ),
  heartbeat: v.optional(
    described(v.object({ enabled: v.boolean(), everyMs: count, prompt: v.string() }), "Turns that it takes by itself."),
  ),
  mcp: v.optional(
    described(v.boolean(), "Whether it is a tool of the instance's MCP server, if the instance has one. Default: no."),
  ),
  core: v.optional(described(v.boolean(), "Whether it belongs to the instance.")),
} satisfies Record<string, v.GenericSchema>;

/** `agent.json` as it may be written, for editors and documentation. */
export const agentFileSchema = v.looseObject({
  $schema: v.optional(v.string()),
  ...fields,
  ui: v.optional(described(v.unknown(), "Free for clients.")),
  avatar: v.optional(described(v.unknown(), "Free for clients.")),
  webhooks: v.optional(described(v.unknown(), "The agent's webhook: its events and their prompts.")),
});

/** An agent whose file cannot be read. `fault`: what is wrong with the file itself, as the end of a sentence. */
export function unreadAgent(id: string, metadataError: NonNullable<AgentText["metadataError"]>, fault?: string): AgentText {
  return { definition: { name: id, engine: "loop", tools: [], skills: [], core: false }, metadataError, fault };
}

/** The object of an `agent.json`, or why the whole file cannot be used. */
export function parseAgentText(
  json: string,
): { readonly given: object } | { readonly metadataError: "invalid_json" | "invalid_shape"; readonly message: string } {
  const unusable = (message: string) => ({ metadataError: "invalid_shape" as const, message });
  if (!hasAtMost(TEXT_CHARACTERS, json)) return unusable(`Expected at most ${TEXT_CHARACTERS} characters`);
  let given: unknown;
  try {
    given = JSON.parse(withoutByteOrderMark(json));
  } catch {
    return { metadataError: "invalid_json", message: "The text is not JSON" };
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) return unusable("Expected an object");
  return hasMoreLevels(given, LEVELS) ? unusable(`Expected at most ${LEVELS} levels of lists and objects`) : { given };
}

/** Parses an `agent.json`. An invalid field counts as absent, and `metadataError` says so. The other fields are still used. */
export function readAgentText(id: string, json: string): AgentText {
  const parsedText = parseAgentText(json);
  if ("metadataError" in parsedText) return unreadAgent(id, parsedText.metadataError);
  const { given } = parsedText;
  const found: Record<string, unknown> = {};
  let isWhole = true;
  for (const [field, schema] of Object.entries(fields)) {
    const parsed = v.safeParse(schema, (given as Record<string, unknown>)[field]);
    if (!parsed.success) isWhole = false;
    else if (parsed.output !== undefined) found[field] = parsed.output;
  }
  const { ui, avatar, webhooks } = given as Record<string, unknown>;
  const known = found as { readonly [K in keyof typeof fields]?: v.InferOutput<(typeof fields)[K]> };
  const { schedules, memory, ...plain } = known;
  const definition: ports.AgentDefinition = {
    ...plain,
    ...(schedules && { schedules: schedules.map(toSchedule) }),
    ...(memory && { memory: memory === true ? {} : memory }),
    name: known.name ?? id,
    engine: known.engine ?? "loop",
    tools: known.tools ?? [],
    skills: known.skills ?? [],
    core: known.core ?? false,
    ...(ui !== undefined && { ui }),
    ...(avatar !== undefined && { avatar }),
    ...(webhooks !== undefined && { webhooks }),
  };
  const unknownKeys = Object.keys(given)
    .filter((key) => !Object.hasOwn(fields, key) && !FREE_KEYS.includes(key))
    .slice(0, TOLD_KEYS)
    .map((key) => key.slice(0, KEY_CHARACTERS).toWellFormed());
  return {
    definition,
    ...(!isWhole && { metadataError: "invalid_shape" }),
    ...(unknownKeys.length > 0 && { unknownKeys }),
  };
}

function toSchedule({ cron, timeZone, everyMs, tools, ...rest }: v.InferOutput<typeof schedule>): ports.AgentSchedule {
  const timing = cron !== undefined ? { cron, ...(timeZone !== undefined && { timeZone }) } : { everyMs: everyMs! };
  return { ...rest, timing, ...(tools && { toolIds: tools }) };
}

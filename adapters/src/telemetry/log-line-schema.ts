/** A JSON Schema, as far as the schema of log lines needs it. */
export interface LogSchemaPart {
  readonly [keyword: string]: unknown;
}

/** Texts of lines are cut at 200 characters and then end with `…`. */
const TEXT_CHARACTERS = 201;

const text = (description: string): LogSchemaPart => ({ type: "string", maxLength: TEXT_CHARACTERS, description });
const count = (description: string): LogSchemaPart => ({ type: "integer", minimum: 0, description });
const milliseconds = (description: string): LogSchemaPart => ({ type: "number", minimum: 0, description });
const flag = (description: string): LogSchemaPart => ({ type: "boolean", description });
const hex = (digits: number, description: string): LogSchemaPart => ({
  type: "string",
  pattern: `^[0-9a-f]{${digits}}$`,
  description,
});

const everyLine = {
  level: { enum: ["debug", "info", "warn", "error"], description: "How urgent the line is." },
  time: {
    type: "string",
    pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
    description: "When the line was written, in UTC with milliseconds.",
  },
  msg: { type: "string", description: "What happened. `request` for the line of a request." },
  traceId: hex(32, "The trace that the line belongs to: of its span, or else of the request's `traceparent`."),
  spanId: hex(16, "The span that the line belongs to, if traces are exported."),
  proxyProcess: count("Which of the processes that serve the model proxy wrote the line, from 1 on. Absent with one process."),
} satisfies Record<string, LogSchemaPart>;

const requestLine = {
  request: text("Id of the request, unique: the answer's `x-portico-request-id`."),
  callerRequestId: {
    type: "string",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
    description: "The caller's `x-request-id`, if it was accepted. It may not be unique.",
  },
  area: text("The plugin that answered, or the surface if no route matched."),
  route: text(
    "The contract's name of the route. `unmatched` without a route; `host` if the app that embeds the service answered. Never the path.",
  ),
  method: text("The request's method."),
  status: {
    type: "integer",
    minimum: 100,
    maximum: 599,
    description: "The sent status. 499 if the caller left before an answer.",
  },
  ms: { type: "number", minimum: 0, description: "Milliseconds from the request's arrival to the end of its answer." },
  provider: text("Id of the model provider."),
  model: text("Name of the model, if the provider serves it."),
  converted: flag("Whether the call was converted between protocols."),
  streamed: flag("Whether the caller requested a stream."),
  inputTokens: count("Tokens of the question, as reported by the provider."),
  outputTokens: count("Tokens of the answer, as reported by the provider."),
  firstByteMs: milliseconds("Milliseconds until the provider began to answer."),
  error: text("Code of the failure. Also set if an answer broke after its status was sent; `caller_left` if its reader left."),
} satisfies Record<string, LogSchemaPart>;

/** The fields of lines that are not about the end of a request. */
const otherLines = {
  request: requestLine.request,
  area: text("The plugin or the adapter that wrote the line. Lines of the app itself have none."),
  cause: { $ref: "#/$defs/cause", description: "The error that is the reason: its name, code and stack, never its message." },
  provider: requestLine.provider,
  surface: text("A surface: `proxy`, `workflow`, `agent` or `probes`."),
  path: text("The declared path of a realtime channel."),
  socket: text("Id of a realtime connection."),
  event: text("Name of an event: of a webhook, or a declared realtime event."),
  kind: text("Kind of work of the engine."),
  id: text("Id of a work of the engine."),
  work: text("Id of a work of the engine."),
  chore: text("Name of a periodic task."),
  turn: text("Id of a turn."),
  run: text("Id of an agent's run."),
  outcome: text("How a turn or a workflow run ended: its status."),
  executedMs: milliseconds("Milliseconds for which the turn executed: since it began, or since it went on after a wait."),
  agent: text("Id of an agent. In `Started`: the address of the agent service."),
  code: text("Code of the failure."),
  attempt: count("The attempt that is planned, from 2 on."),
  delayMs: milliseconds("Milliseconds until the planned attempt."),
  key: count("Which of a provider's `keys` it is, counted from 1. Never its value."),
  keys: text("Names of keys of an `agent.json` that have no effect."),
  skill: text("Path of a skill in its agent's folder."),
  plannedAt: text("The planned time of a schedule that started nothing, ISO 8601."),
  schedule: text("A schedule, with its source and agent."),
  aheadMs: {
    type: "number",
    description: "Milliseconds by which the clock of this machine is ahead of the database's; negative if it is behind.",
  },
  source: text("A source of tools or schedules, or where a provider was found."),
  tool: text("Id of a tool."),
  server: text("Id of an MCP server."),
  count: count("How many."),
  runId: text("Id of a workflow run."),
  nodeId: text("Id of a node within its run."),
  definition: text("Name of a workflow definition."),
  problems: count("Number of problems of a definition."),
  first: text("The first of these problems."),
  longerThanMs: milliseconds("The time that was exceeded."),
  reason: text("Reason: a code or a sentence."),
  fix: text("What to do about it: a sentence."),
  use: text("What Redis is used for: `bus`, `engine` or `presence`."),
  from: { type: ["integer", "string"], description: "The first missing version of the store." },
  to: { type: ["integer", "string"], description: "The last missing version of the store." },
  earlier: count("The port of earlier starts."),
  port: count("The port of this start."),
  origin: text("Origin of a provider's address."),
  preset: text("The preset that was started."),
  pid: count("Id of the process."),
  proxy: text("In `Started`: the address of the model proxy."),
  workflow: text("Id of a workflow. In `Started`: the address of the workflow service."),
  probes: text("In `Started`: the address of the probes."),
  action: text("An action of the audit."),
  trigger: text("Why secrets were read again."),
  changed: text("Names of the settings whose secrets changed, never their values."),
  signal: text("What could not be exported first: `traces`, `metrics` or `logs`. Of a process that ended: the signal."),
  number: count("Which process of the model proxy the line is about, from 2 on."),
  exitCode: count("Exit code of a process that ended."),
  processes: count("In `Started`: how many processes serve the model proxy, if there are several."),
  requests: count("Number of requests."),
  graceMs: milliseconds("The time that requests had to end."),
} satisfies Record<string, LogSchemaPart>;

const required = ["level", "time", "msg"];

/**
 * JSON Schema (2020-12) of a log line in the format `json`. A line is either the end of one request, or a message. Fields of
 * messages that plugins outside of this repository write are allowed if they are plain values.
 */
export const logLineSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Portico log line",
  description:
    "One line of the log in the format `json`. It never contains a secret, a prompt, a body, or a message of an error.",
  type: "object",
  if: { properties: { msg: { const: "request" } }, required: ["msg", "route"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { $ref: "#/$defs/request" },
  else: { $ref: "#/$defs/message" },
  $defs: {
    request: {
      description: "The end of one request.",
      type: "object",
      properties: { ...everyLine, ...requestLine },
      required: [...required, "request", "area", "route", "method", "status", "ms"],
      additionalProperties: false,
    },
    message: {
      description: "A message. All fields but `level`, `time` and `msg` depend on the message.",
      type: "object",
      properties: { ...everyLine, ...otherLines },
      required,
      additionalProperties: { type: ["string", "number", "boolean"], maxLength: TEXT_CHARACTERS },
    },
    cause: {
      description: "An error without its message, because messages quote addresses, tokens and input of callers.",
      type: "object",
      properties: {
        name: {
          type: "string",
          pattern: String.raw`^[\w.$-]{1,64}$`,
          description: "Class of the error, or type of the thrown value.",
        },
        code: { type: ["string", "number"], description: "Its code, such as `ECONNREFUSED`." },
        at: {
          type: "array",
          items: { type: "string" },
          maxItems: 12,
          description: "Stack frames, the innermost first.",
        },
        cause: { $ref: "#/$defs/cause" },
      },
      required: ["name"],
      additionalProperties: false,
    },
  },
} as const satisfies LogSchemaPart;

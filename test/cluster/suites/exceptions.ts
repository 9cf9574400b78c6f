/** A test of the suites that does not hold for a cluster of three members. */
export interface Exception {
  /** In `test/spec`. */
  readonly file: string;
  /** The titles of the test and its groups, joined by ` > `. Left out: every test of the file. */
  readonly title?: string;
  readonly reason: string;
  /** The test of the same rule for a cluster, if there is one: a file in `test`. */
  readonly twin?: string;
  /** Whether it holds depends on the process to which a client comes: it is not run. */
  readonly isByChance?: true;
}

const LOOP = "The trail of a call names processes, so that a call may come back once to each process before it is refused.";
const NOT_CONNECTED = "A process that a client was not connected to knows what the client has only if the client says it.";

/** Each of them is run, and must fail, except for those that hold by chance. */
export const exceptions: readonly Exception[] = [
  ...["messages", "chat-completions"].map((caller) => ({
    file: "model-proxy/responses.test.ts",
    title: `a provider of the Responses API > for callers of ${caller} > a part that a model refused is left out of its next requests from the beginning`,
    reason: "Each process remembers by itself what a model refused.",
    isByChance: true as const,
  })),
  ...["several-keys", "queued-calls", "command-credentials"].map((name) => ({
    file: `model-proxy/${name}.test.ts`,
    reason: "Each process has its own limits of a provider, and its own turn of keys and token of a command.",
    isByChance: true as const,
  })),
  {
    file: "mcp/agents.test.ts",
    title: "a call is refused while an agent answers 100 callers",
    reason: "Each process counts the callers of its agents by itself.",
    isByChance: true,
  },
  {
    file: "mcp/calls-at-once.test.ts",
    reason: "Each process counts the calls that it executes by itself.",
    isByChance: true,
  },
  {
    file: "workflow-service/trigger.test.ts",
    title: "a trigger (4.2) > of a service that lost its work to another is 503 WORKFLOW_OWNER_FENCED, and nothing starts (7.2)",
    reason: "Every process of a cluster accepts work: none is refused because another process has it.",
    twin: "conformance/engine-bullmq.test.ts",
  },
  {
    file: "workflow-service/recovery.test.ts",
    title:
      "a standby process that takes the work over when the owner's lease has expired > continues the runs, and settles what the owner left between two commits",
    reason: "No process of a cluster stands by: all accept and execute work.",
    twin: "conformance/engine-bullmq.test.ts",
  },
  {
    file: "workflow-service/sensitive.test.ts",
    title: "stored values that cannot be opened > are reported if the instance key has changed",
    reason: "The instance key of a cluster is a setting, and not in a file of the data directory. Another key stops the start.",
    twin: "cluster/commands.test.ts",
  },
  {
    file: "usage/limits.test.ts",
    title: "a running turn > keeps further queries of its user away while there are as many as allowed at once",
    reason: "Another process hears of an open turn a moment later.",
    twin: "spec/usage/limits-elsewhere.test.ts",
    isByChance: true,
  },
  {
    file: "model-proxy/loops.test.ts",
    title:
      "providers that lead back to their caller (open points 2) > a call of a messages provider that comes back is refused, and never turns for ever",
    reason: LOOP,
    twin: "cluster/loops.test.ts",
  },
  {
    file: "model-proxy/loops.test.ts",
    title:
      "providers that lead back to their caller (open points 2) > a call of a chat-completions provider that comes back is refused, and never turns for ever",
    reason: LOOP,
    twin: "cluster/loops.test.ts",
  },
  {
    file: "model-proxy/loops.test.ts",
    title: "providers that lead back to their caller (open points 2) > the same through a second instance",
    reason: LOOP,
    twin: "cluster/loops.test.ts",
  },
  {
    file: "model-proxy/safe-tokens.test.ts",
    title: "what is kept of a safe token (open points 2) > is its SHA-256, and the value is nowhere in the store",
    reason: "The test reads the files of SQLite.",
    twin: "cluster/safe-tokens.test.ts",
  },
  {
    file: "model-proxy/safe-tokens.test.ts",
    title: "what is kept of a safe token (open points 2) > is seen at once by another process on the same store",
    reason:
      "A second service of one directory continues after a crash. Each service is three processes on the same store already.",
  },
  ...["websocket only", "polling only", "polling, then websocket"].map((kind) => ({
    file: "conversations-runs/cut-connections.test.ts",
    title: `a stock client whose connection breaks, ${kind}, > is told that its session is recovered`,
    reason: `${NOT_CONNECTED} It sends everything that was missed, and does not say that it is the same session.`,
    twin: "spec/conversations-runs/turns-elsewhere.test.ts",
    isByChance: true as const,
  })),
  {
    file: "conversations-runs/cut-connections.test.ts",
    title: "what a client comes back for again and again, and never gets in full, is remembered until it stays away",
    reason: "Each process remembers it for itself. Another process finds what ended in the last three minutes.",
    isByChance: true,
  },
  {
    file: "conversations-runs/realtime.test.ts",
    title:
      "a socket that comes back (same token and clientInstanceId, within two minutes) gets the events it missed, in order > once: a client that comes back again has missed no event",
    reason: `${NOT_CONNECTED} Otherwise it sends again what ended in the last two minutes.`,
    twin: "spec/conversations-runs/turns-elsewhere.test.ts",
    isByChance: true,
  },
  {
    file: "conversations-runs/restarts.test.ts",
    title:
      "what a registry can tell (3.4, open points 7 and 10) > one that was lost answers unknown, until it has covered the whole protection window",
    reason: "The test removes the files of the records. In a cluster, the secret that outlives them is in the same database.",
  },
];

/** A file of the areas' suites that opens services itself, so that `npm run test:cluster` does not run it. */
export interface OpensItself {
  /** In `test/spec`. */
  readonly file: string;
  readonly reason: string;
  /** The tests of the same rules that run on a cluster, if there are any: a file in `test`. */
  readonly twin?: string;
}

/** All files of the areas' suites that open services themselves. */
export const opensItself: readonly OpensItself[] = [
  {
    file: "conversations-runs/agent-turns.test.ts",
    reason: "It is about an app that embeds the area without users.",
  },
  {
    file: "mcp/settings.test.ts",
    reason: "It is about what a preset makes of its settings.",
  },
  {
    file: "model-proxy/guarded-routes.test.ts",
    reason: "It compares routes with their contracts, in which processes do not appear.",
    twin: "spec/model-proxy/safe-tokens.test.ts",
  },
  {
    file: "model-proxy/list-providers.test.ts",
    reason: "Each process answers from its own settings.",
  },
  {
    file: "model-proxy/own-credentials.test.ts",
    reason: "It is about what a preset makes of its settings.",
  },
  {
    file: "usage/budgets.test.ts",
    reason: "It opens an app with recorded usage and a clock of its own. Processes share usage by its records.",
    twin: "conformance/usage.test.ts",
  },
  {
    file: "usage/table.test.ts",
    reason: "It opens an app with recorded usage and a clock of its own. Processes share usage by its records.",
    twin: "conformance/usage.test.ts",
  },
  {
    file: "workflow-service/ledger.test.ts",
    reason: "It is about a module between two executions in one process, on a log that fails.",
    twin: "conformance/log-postgres.test.ts",
  },
  {
    file: "workflow-service/secrets-at-rest.test.ts",
    reason: "It searches the files of a data directory, between two restarts of one process.",
    twin: "spec/workflow-service/sensitive.test.ts",
  },
];

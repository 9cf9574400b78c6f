import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentClient, connectAgent, type Query, type QueryEnd, type QueryOptions } from "@portico/client";
import { expect } from "vitest";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "./cluster.ts";
import { writeDocuments } from "./cluster-documents.ts";
import { echoModel } from "./echo-model.ts";
import { startFakeUpstream } from "./fake-upstream.ts";
import { createGate } from "./gate.ts";
import type { PorticoProcess } from "./portico-process.ts";
import { messagesEvents } from "./stream-scripts.ts";
import { openTcpLine, type TcpLine } from "./tcp-line.ts";
import { after, events } from "./upstream-answers.ts";

/** The servers of the processes of a failing cluster, and their additional settings. */
export interface FailingClusterOptions {
  /** How many processes. Default: 2. */
  readonly count?: number;
  /** Settings as environment variables. They may name servers of the test's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** One process, with its own lines to the servers. */
export interface FailingProcess {
  readonly process: PorticoProcess;
  readonly postgres: TcpLine;
  readonly redis: TcpLine;
}

/** A turn of which the client has read the first words. */
export interface BegunTurn {
  readonly query: Query;
  /** All words, and how the turn ended. */
  readonly ended: Promise<{ readonly text: string; readonly end: QueryEnd }>;
}

/**
 * A cluster whose parts fail. Its model says its first words, and the rest at the next `release`: until then, the turns and runs that asked it
 * execute. Documents: the agent `helper`, and the workflows `asks` (the model), `slow` (waits for half a second) and `gated`.
 */
export interface FailingCluster extends AsyncDisposable {
  readonly cluster: RunningCluster;
  readonly processes: readonly FailingProcess[];
  /** How many requests the model has got. */
  readonly asked: () => number;
  /** The body of the last request to the model. */
  lastAsked(): Promise<string>;
  /** The model ends the answers that it has begun. */
  release(): void;
  /** A client of one process, or behind the balancer. `calls`: the process that gets its calls. It is closed at the end. */
  client(process?: FailingProcess, calls?: FailingProcess): AgentClient;
  /** The errors that all clients have got: `503 realtime_unavailable`. */
  readonly refusals: readonly string[];
  /** Submit a query, and wait for its first words. */
  beginTurn(client: AgentClient, prompt: string, options?: Partial<QueryOptions>): Promise<BegunTurn>;
  /** Trigger a workflow in one process, or through the balancer. */
  trigger(workflow: string, process?: FailingProcess): Promise<Response>;
  /** Trigger runs, each of which must be accepted. Answers their IDs. */
  accept(count: number, workflow: string, process?: FailingProcess): Promise<string[]>;
  /** The status of a run, or `answered with 503`. */
  statusOf(workflow: string, runId: string, process?: FailingProcess): Promise<string>;
  /** Waits until all of these runs have completed. */
  completed(workflow: string, runIds: readonly string[]): Promise<void>;
}

/** All that the model says. */
export const WHOLE_ANSWER = "These words come first, and these come last.";

const DOCUMENTS = {
  "agents/helper/agent.json": { name: "Helper", provider: "main", model: "echo-large" },
  "workflows/asks.json": {
    nodes: { ask: { type: "model", with: { provider: "main", model: "echo-large", prompt: "Go on" } } },
    outputs: { said: "${{ nodes.ask.output.text }}" },
  },
  "workflows/slow.json": {
    nodes: {
      first: { type: "transform", with: { value: 1 } },
      wait: { type: "wait", needs: ["first"], with: { for: "500ms" } },
    },
  },
  "workflows/gated.json": { nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } } },
};

/** Start the model and the processes. Throws if the servers of all tests are missing. */
export async function startFailingCluster({ count = 2, env = {} }: FailingClusterOptions = {}): Promise<FailingCluster> {
  const closing = new AsyncDisposableStack();
  const upstream = closing.use(await startFakeUpstream());
  let gate = createGate();
  upstream.answerAll(async (exchange) => {
    const { stream } = JSON.parse((await exchange.request.bytes()).toString()) as { readonly stream?: boolean };
    // Nodes of type model do not stream.
    if (!stream) return after(gate.opened, echoModel({ models: ["echo-large"] }))(exchange);
    const all = messagesEvents(WHOLE_ANSWER);
    const begun = all.findIndex((event) => event.includes("text_delta")) + 1;
    await events([...all.slice(0, begun), gate.opened, ...all.slice(begun)])(exchange);
  });
  const place = (await clusterPlace({ MAIN_KEY: "sk-test", ...env }))!;
  const main = { id: "main", type: "vendor", protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] };
  const config = { providers: [{ ...main, credential: { env: "MAIN_KEY" } }] };
  writeFileSync(join(place.folder, "portico.config.json"), JSON.stringify(config), { mode: 0o600 });
  await writeDocuments(place, DOCUMENTS);
  const cluster = closing.use(await startCluster(place, { count: 0 }));

  const lineTo = async (name: string, standardPort: number): Promise<readonly [Record<string, string>, TcpLine]> => {
    const url = new URL(place.env[name]!);
    const line = closing.use(await openTcpLine(Number(url.port || standardPort)));
    [url.hostname, url.port] = ["127.0.0.1", String(line.port)];
    return [{ [name]: url.href }, line];
  };
  const start = async (): Promise<FailingProcess> => {
    const [toPostgres, postgres] = await lineTo("PORTICO_POSTGRES_URL", 5432);
    const [toRedis, redis] = await lineTo("PORTICO_REDIS_URL", 6379);
    return { process: await cluster.add({ ...toPostgres, ...toRedis }), postgres, redis };
  };
  const processes = await Promise.all(Array.from({ length: count }, start));

  const urlOf = (surface: "workflow" | "agent", one?: FailingProcess) => one?.process.url(surface) ?? cluster.url(surface);
  const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
  const refusals: string[] = [];
  const failing: FailingCluster = {
    refusals,
    cluster,
    processes,
    asked: () => upstream.requests.length,
    lastAsked: async () => (await upstream.requests.at(-1)!.bytes()).toString(),
    release() {
      gate.open();
      gate = createGate();
    },
    client: (one, calls = one) =>
      closing.use(
        connectAgent({
          baseURL: urlOf("agent", one),
          token: CLUSTER_OWNER,
          async fetch(request) {
            const { pathname, search } = new URL(request.url);
            const answer = await fetch(new Request(urlOf("agent", calls) + pathname + search, request));
            if (!answer.ok) refusals.push(`${answer.status} ${((await answer.clone().json()) as { code?: string }).code}`);
            return answer;
          },
        }),
      ),
    async beginTurn(client, prompt, options) {
      const query = client.submit({ agentId: "helper", prompt, ...options });
      const messages = query[Symbol.asyncIterator]();
      let text = "";
      while (text === "") {
        const { done, value } = await messages.next();
        if (done) throw new Error(`The turn ended before its first words: ${JSON.stringify(await query.ended)}`);
        text += value.delta ?? "";
      }
      const rest = async () => {
        for await (const { delta } of { [Symbol.asyncIterator]: () => messages }) text += delta ?? "";
        return { text, end: await query.ended };
      };
      return { query, ended: rest() };
    },
    trigger: (workflow, one) =>
      fetch(`${urlOf("workflow", one)}/api/workflow/webhook?id=${workflow}`, { method: "POST", headers, body: "{}" }),
    async accept(times, workflow, one) {
      const answers = await Promise.all(Array.from({ length: times }, () => failing.trigger(workflow, one)));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      return Promise.all(answers.map(async (answer) => ((await answer.json()) as { runId: string }).runId));
    },
    async statusOf(workflow, runId, one) {
      const answer = await fetch(`${urlOf("workflow", one)}/api/workflow/${workflow}/runs/${runId}`, { headers });
      return answer.status === 200 ? ((await answer.json()) as { status: string }).status : `answered with ${answer.status}`;
    },
    async completed(workflow, runIds) {
      for (const runId of runIds) await expect.poll(() => failing.statusOf(workflow, runId)).toBe("completed");
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
  return failing;
}

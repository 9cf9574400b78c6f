import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { type AgentClient, connectAgent } from "@portico/client";
import { Agent } from "undici";

/** The service that gets the load. */
export interface MixedService {
  /** `portico.mjs`, and the configuration of the service: to issue a token of the proxy. */
  readonly program: string;
  readonly config: string;
  /** Tokens of the agent service and of the workflow service. */
  readonly owner: string;
  readonly flow: string;
  readonly proxy: string;
  readonly workflow: string;
  readonly agent: string;
}

export interface MixedLoad {
  /** Sends this many requests per second for this long, and waits until all are answered. Returns how many it sent. Throws if one fails. */
  run(perSecond: number, ms: number): Promise<number>;
  /** How many requests of each kind were sent. */
  counts(): string;
  close(): Promise<void>;
}

const QUESTION = "What is new? ".repeat(15).slice(0, 200);
const TICK_MS = 10;
/** If the service is slower than the rate, no more than this many requests wait. */
const WAITING = 400;

/** Opens all that the load needs: tokens, the webhook of an agent, a client. */
export async function openMixedLoad(service: MixedService): Promise<MixedLoad> {
  const args = [service.program, "token", "issue", "--config", service.config, "--provider", "main"];
  const token = execFileSync(process.execPath, args, { encoding: "utf8" }).trim();
  const dispatcher = new Agent({ connections: 64 });
  const send = async (method: string, url: string, headers: Record<string, string>, body?: object): Promise<string> => {
    const { origin, pathname, search } = new URL(url);
    const answer = await dispatcher.request({
      ...{ origin, path: pathname + search, method: method as "GET" },
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${url} answered ${answer.statusCode}: ${text.slice(0, 500)}`);
    return text;
  };
  const owner = { "x-agent-service-token": service.owner };
  const webhook = { promptTemplate: "{{text}}", toolIds: [] };
  const saved = await send("PUT", `${service.agent}/api/agents/helper/webhooks/events/news`, owner, webhook);
  const authorization = `Bearer ${(JSON.parse(saved) as { secret: string }).secret}`;
  const client: AgentClient = connectAgent({ baseURL: service.agent, token: service.owner });

  const call = { model: "quick", max_tokens: 100, messages: [{ role: "user", content: QUESTION }] };
  const proxy = (stream: boolean) => send("POST", `${service.proxy}/messages`, { "x-api-key": token }, { ...call, stream });
  const kinds = [
    { name: "calls", parts: 9, job: () => proxy(false) },
    { name: "streams", parts: 4, job: () => proxy(true) },
    {
      name: "triggers",
      parts: 4,
      job: () =>
        send(
          "POST",
          `${service.workflow}/api/workflow/webhook?id=short`,
          { "x-workflow-service-token": service.flow },
          { text: QUESTION },
        ),
    },
    {
      name: "events",
      parts: 1,
      job: () =>
        send("POST", `${service.agent}/api/webhook/helper`, { authorization }, { event: "news", payload: { text: QUESTION } }),
    },
    { name: "queries", parts: 1, job: () => ask(client) },
    { name: "lists", parts: 1, job: () => send("GET", `${service.agent}/api/agents`, owner) },
  ];
  // One kind per part, so that each is sent at an even rate.
  const order = kinds.flatMap((kind) => Array.from({ length: kind.parts }, (_, at) => ({ kind, at: (at + 0.5) / kind.parts })));
  const turns = order.toSorted((one, other) => one.at - other.at).map(({ kind }) => kind);
  const counts = new Map<string, number>();
  let next = 0;

  return {
    async run(perSecond, ms) {
      const waiting = new Set<Promise<unknown>>();
      let failed: unknown;
      let sent = 0;
      const begun = performance.now();
      for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - begun) {
        while (sent < (elapsed * perSecond) / 1000 && waiting.size < WAITING) {
          const { name, job } = turns[next++ % turns.length]!;
          counts.set(name, (counts.get(name) ?? 0) + 1);
          const answered: Promise<unknown> = job()
            .catch((error: unknown) => (failed ??= error))
            .finally(() => waiting.delete(answered));
          waiting.add(answered);
          sent++;
        }
        await sleep(TICK_MS);
      }
      await Promise.all(waiting);
      if (failed) throw failed;
      return sent;
    },
    counts: () => [...counts].map(([name, count]) => `${count} ${name}`).join(", "),
    async close() {
      client.close();
      await dispatcher.close();
    },
  };
}

async function ask(client: AgentClient): Promise<void> {
  const { status } = await client.submit({ agentId: "helper", prompt: QUESTION }).ended;
  if (status !== "completed") throw new Error(`A query ended as ${status}`);
}

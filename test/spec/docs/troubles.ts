import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { io } from "socket.io-client";
import { faults } from "../../../core/src/grammar/error.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { png } from "../../harness/media-samples.ts";
import { runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { hasRedisServer, ownRedis } from "../../harness/redis.ts";
import { postgresDatabase } from "../../harness/postgres.ts";
import { json } from "../../harness/upstream-answers.ts";
import { workflowFolder } from "../../harness/workflow-process.ts";

/**
 * By the heading of docs/troubleshooting.md: does what a user did, and gives everything that the user sees. Undefined if a program is missing.
 * A new section of the page needs an entry here.
 */
export const troubles: Readonly<Record<string, () => Promise<string | undefined>>> = {
  "Node.js is too old": async () => {
    const before = `Object.defineProperty(process.versions, "node", { value: "20.11.0" })`;
    return (await runPortico(["start"], { before })).stderr;
  },

  "A port is in use": async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { stderr } = await startWith({ proxy: { listen: { port } } });
    server.close();
    return stderr;
  },

  "The data directory is in use": () =>
    withService({}, async ({ cwd }) => (await runCommand(["start", "--json"], { cwd })).stderr),

  "A setting is unknown or wrong": async () => (await startWith({ proxi: {}, agent: { listen: { port: "many" } } })).stderr,

  "A newer version wrote the data": async () =>
    (await startWith({}, { ".portico/format.json": `{"format":99,"version":"9.0.0"}` })).stderr,

  "The instance key is missing": async () =>
    (await startWith({}, { ".portico/credentials.json": `{"$format":1,"instanceKeyId":"an-earlier-key"}` })).stderr,

  "A cluster lacks settings": async () => (await runCommand(["start", "cluster"])).stderr,

  "The schema of a cluster is missing or old": async () => {
    const database = await postgresDatabase();
    if (!database) return undefined;
    try {
      return (await runCommand(["start", "cluster"], { env: { ...CLUSTER, PORTICO_POSTGRES_URL: database.url } })).stderr;
    } finally {
      await database.drop();
    }
  },

  "Redis may evict keys": async () => {
    if (!hasRedisServer()) return undefined;
    await using redis = await ownRedis({ settings: ["--maxmemory-policy", "allkeys-lru"] });
    return (await runCommand(["doctor"], { env: { ...CLUSTER, PORTICO_REDIS_URL: redis.url } })).stdout;
  },

  "A changed secret has no effect": () =>
    withService(
      { config: { workflow: { token: { file: "token" } } }, files: { token: "workflow-token-1" }, hasOwnProcess: true },
      async (service) => {
        const isSaid = () => service.stderr().includes("could not be read again");
        rmSync(join(service.cwd, "token"));
        for (let left = 300; !isSaid() && left > 0; left--) await sleep(100);
        return service.stderr();
      },
    ),

  "A command finds no running service": async () => (await runCommand(["workflow", "runs", "greet"])).stderr,

  "The provider of a token is unknown": async () => (await runCommand(["token", "issue", "--provider", "openai"])).stderr,

  "421 host_not_allowed": () =>
    withService({}, async (service) => textOf(await callAs(service.url("agent"), "/healthz", { host: "agents.example" }))),

  "403 origin_not_allowed": () =>
    withService({}, (service) => call(service, "agent", "/api/agents", { ...owner(service), origin: "https://desk.example" })),

  "401 unauthorized": () =>
    withService({}, async (service) =>
      [
        await call(service, "agent", "/api/agents", { "x-agent-service-token": "wrong" }),
        await call(service, "proxy", "/models", { authorization: "Bearer wrong" }),
      ].join("\n"),
    ),

  "The provider answers 401, 404 or 429": () =>
    withProvider(async (service, upstream) => {
      const said = [];
      for (const [status, type] of [
        [401, "authentication_error"],
        [404, "not_found_error"],
        [429, "rate_limit_error"],
      ] as const) {
        upstream.answerNext(json(status, { type: "error", error: { type, message: "the provider's own words" } }));
        said.push(await ask(service, "echo-large"));
      }
      return said.join("\n");
    }),

  "400 model_not_served": () => withProvider((service) => ask(service, "gpt-none")),

  "502: the provider cannot be reached": () =>
    withProvider(async (service, upstream) => {
      await upstream.close();
      return ask(service, "echo-large");
    }),

  "415: the body is not JSON": () => withProvider((service) => ask(service, "echo-large", { "content-type": "text/plain" })),

  "413: the body is too large": () => withService({}, (service) => upload(service, new Uint8Array(20 * 1024 * 1024 + 1))),

  "429 attachment_limit": () =>
    withService({}, async (service) => {
      const file = new TextEncoder().encode("a");
      const answers = await Promise.all(Array.from({ length: 257 }, () => upload(service, file)));
      return answers.find((answer) => answer.startsWith("429"));
    }),

  "408 request_timeout": async () => told(faults.request_timeout),
  "503 storage_full": async () => told(faults.storage_full),
  "503 too_many_open_files": async () => told(faults.too_many_open_files),

  "401 media_signature_expired": async () => {
    using folder = workflowFolder();
    let path: string;
    {
      await using service = await startPortico({ cwd: folder.path });
      const form = new FormData();
      form.set("file", new File([new Uint8Array(png(4, 3))], "photo.png", { type: "image/png" }));
      const agent = service.url("agent");
      const sent = await fetch(`${agent}/api/media/upload`, { method: "POST", headers: owner(service), body: form });
      const { mediaId } = (await sent.json()) as { mediaId: string };
      const body = JSON.stringify({ mediaIds: [mediaId] });
      const headers = { ...owner(service), "content-type": "application/json" };
      const linked = await fetch(`${agent}/api/media/access-urls`, { method: "POST", headers, body });
      const { items } = (await linked.json()) as { items: { url: string }[] };
      path = items[0]!.url;
      await service.stop();
    }
    const before = `const now = Date.now; Date.now = () => now() + 600_000`;
    await using service = await startPortico({ cwd: folder.path, before });
    return textOf(await fetch(service.url("agent") + path));
  },

  "Event streams arrive late or all at once": async () => {
    using folder = workflowFolder();
    folder.deploy("ask.json", { name: "Ask", nodes: { ask: { type: "human_gate", with: { title: "Go on?" } } } });
    await using service = await folder.start("local");
    const url = `${service.url("workflow")}/api/workflow/events?runId=${await service.trigger("ask")}`;
    const answer = await fetch(url, { headers: { "x-workflow-service-token": service.token("workflowServiceToken") } });
    await answer.body!.cancel();
    return [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  },

  "The web socket is refused": () =>
    withService({}, async (service) => {
      await using proxy = await proxyWithoutUpgrade(service.url("agent"));
      const auth = { token: tokenOf(service), clientInstanceId: "troubles-0123456789" };
      const socket = io(proxy.url, { transports: ["websocket"], reconnection: false, auth });
      const [error] = (await once(socket as never, "connect_error")) as [Error];
      socket.close();
      return error.message;
    }),

  "An agent is listed with an error": () =>
    withService({ files: { "agents/helper/agent.json": `{ "name": "Helper", }` } }, (service) =>
      call(service, "agent", "/api/agents", owner(service)),
    ),

  "400 webhook_tool_unavailable": () =>
    withService({ files: { "agents/helper/agent.json": `{ "name": "Helper" }` } }, async (service) => {
      const answer = await fetch(`${service.url("agent")}/api/agents/helper/webhooks/events/deploy`, {
        method: "PUT",
        headers: { ...owner(service), "content-type": "application/json" },
        body: JSON.stringify({ promptTemplate: "Hello", toolIds: ["shop/opening-hours"] }),
      });
      return textOf(answer);
    }),
};

const CLUSTER = {
  PORTICO_POSTGRES_URL: "postgres://nobody@127.0.0.1:1/none",
  PORTICO_REDIS_URL: "redis://127.0.0.1:1",
  PORTICO_CLUSTER_BLOBS_DIR: "blobs",
  PORTICO_INSTANCE_KEY: Buffer.alloc(32, 7).toString("base64url"),
  PORTICO_AGENT_TOKENS: JSON.stringify([{ token: "owner-token-0123456789", userId: "owner", role: "owner" }]),
  WORKFLOW_SERVICE_TOKEN: "workflow-token-0123456789",
};

type Service = Awaited<ReturnType<typeof startPortico>>;

/** A start that fails. */
async function startWith(config: object, files: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  try {
    write(folder.path, { ...files, "portico.config.json": JSON.stringify(config) });
    return await runCommand(["start", "--json"], { cwd: folder.path });
  } finally {
    folder.remove();
  }
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text, { mode: 0o600 });
  }
}

interface Setting {
  readonly config?: object;
  readonly files?: Readonly<Record<string, string>>;
  /** For its log. */
  readonly hasOwnProcess?: boolean;
}

async function withService<T>(
  { config = {}, files = {}, hasOwnProcess = false }: Setting,
  use: (service: Service) => Promise<T>,
): Promise<T> {
  const folder = temporaryFolder();
  try {
    write(folder.path, files);
    await using service = await startPortico({ cwd: folder.path, config, hasOwnProcess });
    return await use(service);
  } finally {
    folder.remove();
  }
}

async function withProvider<T>(
  use: (service: Service, upstream: Awaited<ReturnType<typeof startFakeUpstream>>) => Promise<T>,
): Promise<T> {
  const upstream = await startFakeUpstream();
  try {
    const provider = { id: "main", protocol: "messages", baseUrl: upstream.baseUrl, credential: "a-key", models: ["echo-large"] };
    return await withService({ config: { providers: [provider] } }, (service) => use(service, upstream));
  } finally {
    await upstream.close();
  }
}

const tokenOf = (service: Service) =>
  (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken;
const owner = (service: Service) => ({ "x-agent-service-token": tokenOf(service) });

async function textOf(answer: Response): Promise<string> {
  return `${answer.status} ${await answer.text()}`;
}

async function call(service: Service, surface: string, path: string, headers: Record<string, string>): Promise<string> {
  return textOf(await fetch(service.url(surface) + path, { headers }));
}

/** `fetch` sets the header `Host` by itself. */
async function callAs(url: string, path: string, headers: Record<string, string>): Promise<Response> {
  const sent = request(url + path, { headers }).end();
  const [answer] = await once(sent, "response");
  return new Response(await answer.setEncoding("utf8").reduce((all: string, text: string) => all + text, ""), {
    status: answer.statusCode,
  });
}

async function ask(service: Service, model: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${service.url("proxy")}/messages`, {
    method: "POST",
    headers: { "x-api-key": await service.token("main"), "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, max_tokens: 10, messages: [{ role: "user", content: "Hello" }] }),
  });
  return textOf(answer);
}

async function upload(service: Service, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const form = new FormData();
  form.set("file", new File([bytes], "a.txt", { type: "text/plain" }));
  return textOf(await fetch(`${service.url("agent")}/api/attachments`, { method: "POST", headers: owner(service), body: form }));
}

/** The answer to what takes too long to provoke here; other tests provoke it. */
function told({ code, status, message }: { readonly code: string; readonly status: number; readonly message?: string }): string {
  return `${status} ${JSON.stringify({ error: code, message })}`;
}

/** A proxy that knows only requests and answers, as many proxies do by default. */
async function proxyWithoutUpgrade(target: string): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((incoming, response) => {
    const { connection: _connection, upgrade: _upgrade, ...headers } = incoming.headers;
    const forwarded = request(new URL(incoming.url ?? "/", target), { method: incoming.method ?? "GET", headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(forwarded);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

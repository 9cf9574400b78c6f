import { Agent } from "node:https";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { io } from "socket.io-client";
import { Pool } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type WorkflowFolder, workflowFolder, type WorkflowProcess } from "../../harness/workflow-process.ts";

/** A reverse proxy with TLS in front of a service. */
export interface ReverseProxy extends AsyncDisposable {
  readonly port: number;
  /** Of its certificate, to be trusted by its callers: PEM. */
  readonly certificate: string;
}

/** What a page describes: the settings of the service, and the configuration of the proxy, which names the ports of the settings. */
export interface ProxyPage {
  readonly settings: any;
  readonly configuration: string;
  /** Whether the proxy passes an answer on before it has all of the request. Default: yes. */
  readonly isDuplex?: boolean;
}

/**
 * Tests that a proxy, configured as a page says, does what clients of a service need. `start` gets the configuration with the addresses of the service that
 * the tests started.
 */
export function keepsTheRulesOfProxies(
  { settings, configuration, isDuplex = true }: ProxyPage,
  start: (placed: string) => Promise<ReverseProxy>,
): void {
  let folder: WorkflowFolder;
  let service: WorkflowProcess;
  let proxy: ReverseProxy;
  const pools: Pool[] = [];
  /** Calls of one server, by its name. */
  let call: (name: string, ...options: Parameters<Pool["request"]>) => ReturnType<Pool["request"]>;

  beforeAll(async () => {
    folder = workflowFolder();
    folder.deploy("ask.yaml", "nodes: { ask: { type: human_gate, with: { title: Well? } } }");
    // The ports that the page fixes may be taken here.
    const anyPort = { listen: { port: 0 } };
    const audit = { trustedProxies: ["127.0.0.1"] };
    const free = { ...settings, audit, agent: { ...settings.agent, ...anyPort }, workflow: { ...settings.workflow, ...anyPort } };
    service = await folder.start("local", { config: free });
    const placed = configuration
      .replaceAll(`127.0.0.1:${settings.agent.listen.port}`, new URL(service.url("agent")).host)
      .replaceAll(`127.0.0.1:${settings.workflow.listen.port}`, new URL(service.url("workflow")).host);
    proxy = await start(placed);
    call = (name, options) => {
      const pool = new Pool(`https://127.0.0.1:${proxy.port}`, { connect: { ca: proxy.certificate, servername: name } });
      pools.push(pool);
      return pool.request({ ...options, headers: { ...options.headers, host: `${name}:${proxy.port}` } });
    };
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.destroy()));
    await proxy?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });

  const agentHeaders = () => ({ "x-agent-service-token": service.token("agentServiceToken") });

  it("allows calls of pages of the service's own origin, and of no other origin", async () => {
    const handshake = async (origin: string) =>
      (await call("agents.example", { path: "/api/handshake", method: "GET", headers: { ...agentHeaders(), origin } }))
        .statusCode;
    expect(await handshake(`https://agents.example:${proxy.port}`)).toBe(200);
    expect(await handshake("https://stranger.example")).toBe(403);
  });

  it("signs in with a link at publicUrl to all areas, on the service's own page alone", async () => {
    const { stdout } = await service.run("console");
    const [, code] = /^https:\/\/agents\.example\/#\/sign-in\/(signin_[\w-]{43})\n$/.exec(stdout)!;
    const exchange = (origin: string) => {
      const headers = { origin, "sec-fetch-site": "same-origin", "content-type": "application/json" };
      return call("agents.example", { path: "/api/sign-in", method: "POST", headers, body: JSON.stringify({ code }) });
    };
    expect((await exchange("https://stranger.example")).statusCode).toBe(403);
    const exchanged = await exchange(`https://agents.example:${proxy.port}`);
    expect(exchanged.statusCode).toBe(200);
    const session = (await exchanged.body.json()) as { token: string };
    const headers = { "x-agent-service-token": session.token };
    const issued = await call("agents.example", { path: "/api/service-tokens", method: "POST", headers });
    const shortLived = (await issued.body.json()) as { token: string };
    const listing = { "x-workflow-service-token": shortLived.token };
    expect((await call("workflows.example", { path: "/api/workflows", method: "GET", headers: listing })).statusCode).toBe(200);
  });

  it("lets the audit record the address of a caller, and none that the caller invents", async () => {
    const connect = { ca: proxy.certificate, servername: "agents.example" };
    const pool = new Pool(`https://127.0.0.1:${proxy.port}`, { connect, localAddress: "127.0.0.2" });
    pools.push(pool);
    const headers = { ...agentHeaders(), host: `agents.example:${proxy.port}`, "x-forwarded-for": "203.0.113.9" };
    expect((await pool.request({ path: "/api/sign-in-links", method: "POST", headers })).statusCode).toBe(201);
    const read = await pool.request({ path: "/api/audit?action=sign-in-link.issue&limit=1", method: "GET", headers });
    const { items } = (await read.body.json()) as { items: readonly { readonly who: { readonly address?: string } }[] };
    expect(items[0]?.who.address).toBe("127.0.0.2");
  });

  it("answers no call for host names other than those of publicUrl", async () => {
    // The name in the certificate is not what this is about.
    const connect = { ca: proxy.certificate, checkServerIdentity: () => undefined };
    const pool = new Pool(`https://127.0.0.1:${proxy.port}`, { connect });
    pools.push(pool);
    const answer = await pool
      .request({ path: "/healthz", method: "GET", headers: { host: "stranger.example" } })
      .then(({ body }) => body.text())
      // Some proxies refuse the connection.
      .catch(() => "");
    expect(answer).not.toContain("alive");
    const agent = await call("agents.example", { path: "/healthz", method: "GET" });
    expect(agent.headers["strict-transport-security"]).toBe("max-age=31536000");
    expect(await agent.body.text()).toContain("alive");
  });

  it("does not expose workflows at the agent service's address, and nothing else at that of the workflow service", async () => {
    for (const path of ["/api/workflow", "/api/workflow/events", "/api/workflow/webhook?id=ask"]) {
      const { statusCode, headers } = await call("agents.example", { path, method: "GET" });
      // The service marks its answers.
      expect([path, statusCode, headers["x-portico-request-id"]]).toEqual([path, 404, undefined]);
    }
    const { statusCode, headers } = await call("workflows.example", { path: "/healthz", method: "GET" });
    expect([statusCode, headers["x-portico-request-id"]]).toEqual([404, undefined]);
  });

  it("lets people open approval links at the workflow service's address, and only there", async () => {
    for (const method of ["GET", "POST"] as const) {
      const headers = { "content-type": "application/x-www-form-urlencoded", origin: "null" };
      const sent = method === "POST" ? { headers, body: "decision=approve" } : {};
      const page = await call("workflows.example", { path: "/approve/wrong", method, ...sent });
      expect(page.headers["strict-transport-security"]).toBe("max-age=31536000");
      expect([page.statusCode, await page.body.text()]).toEqual([404, expect.stringContaining("This link is not valid")]);
    }
    const elsewhere = await call("agents.example", { path: "/approve/wrong", method: "GET" });
    expect([elsewhere.statusCode, await elsewhere.body.text()]).toEqual([404, expect.not.stringContaining("This link")]);
  });

  it("lets services send events to callbacks at the workflow service's address, and only there", async () => {
    const sent = {
      path: "/callback/wrong",
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    } as const;
    const answer = await call("workflows.example", sent);
    expect([answer.statusCode, await answer.body.text()]).toEqual([404, expect.stringContaining("callback_not_found")]);
    const elsewhere = await call("agents.example", sent);
    expect([elsewhere.statusCode, await elsewhere.body.text()]).toEqual([404, expect.not.stringContaining("callback_not_found")]);
  });

  it.runIf(isDuplex)(
    "passes uploads on while they arrive: one that is refused hears of it before it has sent everything",
    async () => {
      const boundary = "the-boundary";
      const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.html"\r\ncontent-type: text/html\r\n\r\n`;
      // Never ends, as far as this test goes.
      const body = Readable.from(
        (async function* () {
          yield head;
          await new Promise(() => {});
        })(),
      );
      const headers = { ...agentHeaders(), "content-type": `multipart/form-data; boundary=${boundary}` };
      const { statusCode } = await call("agents.example", { path: "/api/media/upload", method: "POST", headers, body });
      expect(statusCode).toBe(415);
      body.destroy();
    },
  );

  it("passes uploads on that are larger than proxies buffer", async () => {
    const form = new FormData();
    form.append("file", new Blob([Buffer.alloc(12 * 1024 * 1024, "a text ")], { type: "text/plain" }), "a.txt");
    const upload = new Response(form);
    const headers = { ...agentHeaders(), "content-type": upload.headers.get("content-type")! };
    const body = Buffer.from(await upload.arrayBuffer());
    const { statusCode } = await call("agents.example", { path: "/api/attachments", method: "POST", headers, body });
    expect(statusCode).toBe(201);
  });

  it.each(["polling", "websocket"])("lets the realtime channel connect over %s", async (transport) => {
    // Long polling sends the host of the address, whatever other headers say.
    const lookup: LookupFunction = (_name, { all }, done) =>
      all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
    const agent = new Agent({ ca: proxy.certificate, lookup });
    const socket = io(`https://agents.example:${proxy.port}`, {
      transports: [transport],
      upgrade: false,
      forceNew: true,
      reconnection: false,
      agent: agent as never,
      auth: { token: service.token("agentServiceToken"), clientInstanceId: "behind-a-proxy-0001" },
    });
    try {
      await new Promise<void>((resolve, reject) => socket.on("connect", resolve).on("connect_error", reject));
      expect(socket.connected).toBe(true);
    } finally {
      socket.close();
      agent.destroy();
    }
  });

  it("forwards events of a run when they happen", async () => {
    const runId = await service.trigger("ask");
    const headers = { "x-workflow-service-token": service.token("workflowServiceToken") };
    const { statusCode, body } = await call("workflows.example", {
      path: `/api/workflow/events?runId=${runId}`,
      method: "GET",
      headers,
    });
    expect(statusCode).toBe(200);
    const events = (Readable.toWeb(body) as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream() as never)
      .pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<{ event?: string }>;
    const seen: (string | undefined)[] = [];
    for await (const { event } of events) if (seen.push(event) > 0 && event === "workflow:human_gate") break;
    expect(seen).toEqual(["workflow:started", "workflow:node_start", "workflow:human_gate"]);
  });
}

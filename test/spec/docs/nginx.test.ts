import { Agent } from "node:https";
import { Readable } from "node:stream";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { io } from "socket.io-client";
import { Pool } from "undici";
import { parse } from "yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasNginx, type Nginx, startNginx } from "../../harness/nginx.ts";
import { type WorkflowFolder, workflowFolder, type WorkflowProcess } from "../../harness/workflow-process.ts";
import { readPage } from "./pages.ts";

const PAGE = "docs/guides/behind-nginx.md";

describe.skipIf(!hasNginx())("the nginx of docs/guides/behind-nginx.md (skipped where there is no nginx with openssl)", () => {
  let folder: WorkflowFolder;
  let service: WorkflowProcess;
  let nginx: Nginx;
  const pools: Pool[] = [];
  /** Calls of one server, by its name. */
  let call: (name: string, ...options: Parameters<Pool["request"]>) => ReturnType<Pool["request"]>;

  beforeAll(async () => {
    const { blocks } = await readPage(PAGE);
    const config = parse(blocks.find(({ language }) => language === "yaml")!.text);
    const written = blocks.find(({ language }) => language === "nginx")!.text;
    folder = workflowFolder();
    folder.deploy("ask.yaml", "nodes: { ask: { type: human_gate, with: { title: Well? } } }");
    // The ports that the page fixes may be taken here.
    const anyPort = { listen: { port: 0 } };
    const free = { ...config, agent: { ...config.agent, ...anyPort }, workflow: { ...config.workflow, ...anyPort } };
    service = await folder.start("local", { config: free });
    const placed = written
      .replace(`http://127.0.0.1:${config.agent.listen.port}`, service.url("agent"))
      .replace(`http://127.0.0.1:${config.workflow.listen.port}`, service.url("workflow"));
    nginx = await startNginx(placed);
    call = (name, options) => {
      const pool = new Pool(`https://127.0.0.1:${nginx.port}`, { connect: { ca: nginx.certificate, servername: name } });
      pools.push(pool);
      return pool.request({ ...options, headers: { ...options.headers, host: `${name}:${nginx.port}` } });
    };
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.destroy()));
    await nginx?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });

  const agentHeaders = () => ({ "x-agent-service-token": service.token("agentServiceToken") });

  it("allows calls of pages of the service's own origin, and of no other origin", async () => {
    const handshake = async (origin: string) =>
      (await call("agents.example", { path: "/api/handshake", method: "GET", headers: { ...agentHeaders(), origin } }))
        .statusCode;
    expect(await handshake(`https://agents.example:${nginx.port}`)).toBe(200);
    expect(await handshake("https://stranger.example")).toBe(403);
  });

  it("refuses host names other than that of publicUrl", async () => {
    // nginx hands what no server is named for to its first one. Its certificate has another name, which is not what this is about.
    const connect = { ca: nginx.certificate, checkServerIdentity: () => undefined };
    const pool = new Pool(`https://127.0.0.1:${nginx.port}`, { connect });
    pools.push(pool);
    const { statusCode } = await pool.request({ path: "/healthz", method: "GET", headers: { host: "stranger.example" } });
    expect(statusCode).toBe(421);
  });

  it("does not expose workflows at the agent service's address", async () => {
    const { statusCode, headers } = await call("agents.example", { path: "/api/workflows", method: "GET" });
    expect([statusCode, headers["server"]]).toEqual([404, expect.stringContaining("nginx")]);
  });

  it("passes uploads on while they arrive: one that is refused hears of it before it has sent everything", async () => {
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
  });

  it.each(["polling", "websocket"])("lets the realtime channel connect over %s", async (transport) => {
    const agent = new Agent({ ca: nginx.certificate, servername: "agents.example" });
    const socket = io(`https://127.0.0.1:${nginx.port}`, {
      transports: [transport],
      upgrade: false,
      forceNew: true,
      reconnection: false,
      agent: agent as never,
      extraHeaders: { host: `agents.example:${nginx.port}` },
      auth: { token: service.token("agentServiceToken"), clientInstanceId: "behind-nginx-0001" },
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
});

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { documentAgents } from "@portico/adapters/agents/documents";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { sharedFolderDocuments } from "@portico/cluster/documents/shared-folder";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { randomIds } from "@portico/adapters/ids/random";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { demo } from "@portico/adapters/models/demo";
import { type SocketIoOptions, socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { createMemoryTelemetry, type MemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, type App, createApp, isOriginAllowed, type Plugin, Secret } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { requestDigest } from "../../plugins/src/conversations-runs/queries/request-digest.ts";
import { io, type Socket } from "socket.io-client";
import { type Call, httpCall, type Reply } from "./http-call.ts";
import { isClusterRun, memberTelemetry, onRealTime, openMember, openMembers, serveMembers } from "./members.ts";
import { temporaryFolder } from "./portico-process.ts";
import { createScriptedEngine, type ScriptedEngine } from "./scripted-agent.ts";

/** Tokens of the service under test. */
export const TOKENS = {
  owner: "owner-token-0123456789",
  member: "member-token-0123456789",
  other: "other-token-0123456789",
  service: "service-token-0123456789",
} as const;
export type Holder = keyof typeof TOKENS;

export const ALLOWED_ORIGIN = "https://desk.example";

export interface AgentServiceOptions {
  /** The contents of `agent.json` by agent id; default: `helper` and `second`, both played by scripts. */
  readonly agents?: ReadonlyMap<string, object | string | null>;
  /** A folder with one folder per agent, in place of `agents`. */
  readonly agentsDir?: string;
  /** Adapters of the agents, in place of `agents`. */
  readonly agentAdapters?: readonly Adapter[];
  readonly clock?: ManualClock;
  /** Default: a temporary folder, removed at the end. */
  readonly dataDir?: string;
  /** Tools, further engines. */
  readonly adapters?: readonly Adapter[];
  readonly engine?: ScriptedEngine;
  /** Of the engine that carries durable work. */
  readonly durable?: Parameters<typeof embeddedEngine>[0];
  /** In place of the one in memory, which keeps everything: `service.telemetry` then stays empty. */
  readonly telemetry?: Adapter;
  readonly runtime?: Omit<Parameters<typeof conversationsRuns>[0], "background">;
  readonly background?: Parameters<typeof conversationsRuns>[0]["background"];
  /** Of the realtime channel: its limits. */
  readonly realtime?: Omit<SocketIoOptions, "allowOrigin">;
  /** Replaces Socket.IO. The service's `connect` then reaches no channel. */
  readonly isPlainWebSocket?: boolean;
  /** Whether all turns execute in one process, also in a cluster. Default: false. */
  readonly isOneExecuting?: boolean;
  /** Replaces the service's own stores and engine: records, log, engine, secrets, and other ports that processes share. */
  readonly shared?: readonly Adapter[];
  /** Areas beside conversations and runs. */
  readonly plugins?: readonly Plugin[];
}

/** An agent service in this process: real stores in a folder, real Socket.IO, real HTTP; agents are played by scripts. */
export interface AgentService extends AsyncDisposable {
  readonly url: string;
  readonly app: App;
  /** All apps, if the service is a cluster. */
  readonly apps: readonly App[];
  readonly telemetry: MemoryTelemetry;
  readonly engine: ScriptedEngine;
  readonly dataDir: string;
  /** A call with this holder's token; a body is JSON. */
  call(holder: Holder | undefined, method: string, path: string, body?: unknown, more?: Call["headers"]): Promise<Answer>;
  /** The same, unchanged. */
  raw(call: Call): Promise<Reply>;
  /** A realtime client that is there. */
  connect(holder?: Holder, options?: ConnectOptions): Promise<AgentClient>;
  close(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: any;
}

export interface ConnectOptions {
  readonly clientInstanceId?: string;
  readonly received?: Readonly<Record<string, number>>;
  readonly transports?: readonly ("polling" | "websocket")[];
  readonly token?: string;
}

export interface AgentClient {
  readonly socket: Socket;
  readonly id: string;
  readonly holder: Holder;
  readonly clientInstanceId: string;
  /** Everything that it heard, in order. */
  readonly heard: readonly Heard[];
  /** The events that it received of one request. */
  of(clientRequestId: string): readonly Heard[];
  /** The first event of this name and, where one is given, request; also one that came before. */
  event(name: string, clientRequestId?: string): Promise<any>;
  /** Submit a query and await its 202. */
  start(prompt: string, more?: Record<string, unknown>, options?: Record<string, unknown>): Promise<Submitted>;
  followUp(sessionId: string, prompt: string): Promise<Submitted>;
  /** The end of a turn: `query:complete` or `query:error`. */
  ended(clientRequestId: string): Promise<Heard>;
  leave(): void;
}

export interface Heard {
  readonly event: string;
  readonly data: any;
}

export interface Submitted extends Answer {
  readonly clientRequestId: string;
  readonly sent: Record<string, any>;
}

export async function startAgentService(options: AgentServiceOptions = {}): Promise<AgentService> {
  const folder = options.dataDir === undefined ? temporaryFolder() : undefined;
  const dataDir = options.dataDir ?? folder!.path;
  const telemetry = createMemoryTelemetry();
  const engine = options.engine ?? createScriptedEngine();
  const open = (stores: readonly Adapter[]) =>
    createApp({
      name: "agent-service-under-test",
      adapters: [
        ...stores,
        options.clock ? manualClock({ clock: options.clock }) : systemClock(),
        randomIds(),
        options.telemetry ?? memberTelemetry(telemetry),
        tokenIdentity({
          tokens: (Object.keys(TOKENS) as Holder[]).map((holder) => ({
            token: new Secret(TOKENS[holder]),
            ...(holder !== "service" && { userId: holder }),
            role: holder === "other" ? "member" : holder,
          })),
        }),
        ...agentsOf(options),
        demo({}),
        loopAgentEngine({}),
        engine.adapter,
        (options.isPlainWebSocket ? webSocketRealtime : socketIoRealtime)({
          ...options.realtime,
          allowOrigin: (facts) => isOriginAllowed(facts, [ALLOWED_ORIGIN]),
        }),
        ...(options.adapters ?? []),
      ],
      plugins: [
        conversationsRuns({ ...options.runtime, ...(options.background && { background: options.background }) }),
        ...(options.plugins ?? []),
      ],
      surfaces: { agent: { allowedOrigins: [ALLOWED_ORIGIN] } },
    });
  const { parkAfterMs, keepEndedMs } = options.durable ?? {};
  const members = options.shared
    ? await openMember(options.shared, open)
    : await openMembers({
        dataDir,
        isOneExecuting: options.isOneExecuting ?? false,
        stores: () => [
          sqliteRecords({ path: join(dataDir, "records.sqlite") }),
          sqliteLog({}),
          embeddedEngine({ ...options.durable }),
          fileSecrets({ path: join(dataDir, "credentials.json") }),
        ],
        engine: { ...(parkAfterMs !== undefined && { parkAfterMs }), ...(keepEndedMs !== undefined && { keepEndedMs }) },
        open,
      });
  const served = await serveMembers(members, "agent", { hasRealtime: true });
  const { url } = served;
  const sockets: Socket[] = [];
  let closing: Promise<void> | undefined;

  const service: AgentService = {
    url,
    app: members.app,
    apps: members.apps,
    telemetry,
    engine,
    dataDir,
    raw: (call) => httpCall(url, call),
    async call(holder, method, path, body, more = {}) {
      const reply = await httpCall(url, {
        method,
        path,
        headers: {
          ...(holder && { "x-agent-service-token": TOKENS[holder] }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...more,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, headers: reply.headers, body: text === "" ? undefined : JSON.parse(text) };
    },
    async connect(holder = "owner", { clientInstanceId = `instance-${randomUUID()}`, received, transports, token } = {}) {
      const socket = io(url, {
        auth: { token: token ?? TOKENS[holder], clientInstanceId, ...(received && { received }) },
        reconnection: false,
        forceNew: true,
        transports: [...(transports ?? ["websocket"])],
      });
      sockets.push(socket);
      return listening(service, socket, holder, clientInstanceId);
    },
    close() {
      return (closing ??= (async () => {
        for (const socket of sockets) socket.disconnect();
        served.stop();
        await members.close();
        await served.end();
        folder?.remove();
      })());
    },
    [Symbol.asyncDispose]: () => service.close(),
  };
  return service;
}

const twoAgents = new Map([
  ["helper", { name: "Helper", engine: "scripted" }],
  ["second", { name: "Second", engine: "scripted" }],
]);

function agentsOf({ agents = twoAgents, agentsDir, agentAdapters }: AgentServiceOptions): readonly Adapter[] {
  if (agentAdapters) return agentAdapters;
  if (agentsDir === undefined) return [memoryAgents({ agents })];
  const folder = { id: "agents", dir: agentsDir, depth: 2 };
  return [
    isClusterRun ? onRealTime(sharedFolderDocuments(folder)) : unstorageDocuments(folder),
    documentAgents({ directory: agentsDir }),
  ];
}

/** A complete body of `POST /api/query/start`, with its digest. */
export function startBody(client: Pick<AgentClient, "id">, prompt: string, more: object = {}, options: object = {}) {
  return withDigest({
    prompt,
    options: { agentId: "helper", ...options },
    clientRequestId: randomUUID(),
    userMessageId: randomUUID(),
    originSocketId: client.id,
    ...more,
  });
}

export function withDigest<B extends Record<string, unknown>>(body: B): B & { requestDigest: string } {
  return { requestDigest: requestDigest(body), ...body };
}

function listening(service: AgentService, socket: Socket, holder: Holder, clientInstanceId: string): Promise<AgentClient> {
  const heard: Heard[] = [];
  const waiting = new Set<() => void>();
  socket.onAny((event: string, data: unknown) => {
    heard.push({ event, data });
    for (const look of waiting) look();
  });
  const first = (fits: (each: Heard) => boolean) =>
    new Promise<Heard>((resolve) => {
      const look = () => {
        const found = heard.find(fits);
        if (!found) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  const submit = async (path: string, sent: Record<string, any>): Promise<Submitted> => ({
    ...(await service.call(holder, "POST", path, sent)),
    clientRequestId: sent["clientRequestId"] as string,
    sent,
  });
  const client: AgentClient = {
    socket,
    holder,
    clientInstanceId,
    get id() {
      return socket.id!;
    },
    heard,
    of: (request) => heard.filter(({ data }) => data?.clientRequestId === request),
    event: async (name, request) =>
      (await first(({ event, data }) => event === name && (request === undefined || data.clientRequestId === request))).data,
    start: (prompt, more, options) => submit("/api/query/start", startBody(client, prompt, more, options)),
    followUp: (sessionId, prompt) =>
      submit(
        "/api/query/follow-up",
        withDigest({
          sessionId,
          originSocketId: client.id,
          message: { id: randomUUID(), role: "user", content: prompt, timestamp: Date.now() },
          clientRequestId: randomUUID(),
        }),
      ),
    ended: (request) =>
      first(({ event, data }) => (event === "query:complete" || event === "query:error") && data.clientRequestId === request),
    leave: () => void socket.disconnect(),
  };
  return new Promise((resolve, reject) => {
    socket.once("connect", () => resolve(client));
    socket.once("connect_error", (error) => {
      socket.disconnect();
      reject(error);
    });
  });
}

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { sharedFolderDocuments } from "@portico/cluster/documents/shared-folder";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { randomIds } from "@portico/adapters/ids/random";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { transformNode } from "@portico/workflow-nodes/transform";
import { type Adapter, type App, createApp, type Plugin, ports, Secret } from "@portico/core";
import { workflowService } from "@portico/plugins/workflow-service";
import { createGrants, type GrantOrder } from "@portico/plugins/workflow-service/grants";
import { type AgentService, type AgentServiceOptions, type Answer, startAgentService } from "./agent-app.ts";
import { type EventSubscription, subscribe } from "./event-subscription.ts";
import { type Call, httpCall } from "./http-call.ts";
import { isClusterRun, memberTelemetry, onRealTime, openMembers, serveMembers } from "./members.ts";
import { temporaryFolder } from "./portico-process.ts";
import { createScriptedNodes, type ScriptedNodes } from "./scripted-node.ts";

export const SERVICE_TOKEN = "workflow-token-0123456789";

export interface WorkflowServiceOptions {
  /** By file name: the text, or an object that is written as JSON. */
  readonly definitions?: Readonly<Record<string, string | object>>;
  readonly dataDir?: string;
  readonly clock?: ManualClock;
  /** Undefined: no token. Default: SERVICE_TOKEN. */
  readonly token?: string | undefined;
  readonly nodes?: ScriptedNodes;
  /** The instance's key to sign with. Default: the same in all tests. */
  readonly key?: string;
  readonly adapters?: readonly Adapter[];
  /** In place of files. */
  readonly blobs?: Adapter;
  /** The store of the definitions, in place of a folder. */
  readonly documents?: Adapter;
  readonly engine?: Parameters<typeof embeddedEngine>[0];
  readonly runtime?: Omit<Parameters<typeof workflowService>[0], "token">;
  /** In place of the one in memory. */
  readonly telemetry?: Adapter;
  /** Replaces the service's own stores and engine: records, log, engine, secrets, and other ports that processes share. */
  readonly shared?: readonly Adapter[];
  /** With agents, as these options say. Default: without agents. */
  readonly agents?: AgentServiceOptions;
  /** Beside the area. */
  readonly plugins?: readonly Plugin[];
}

/**
 * A workflow service in this process, with real stores in a folder, real files and real HTTP. Nodes of the test's own types do what tests
 * set.
 */
export interface WorkflowService extends AsyncDisposable {
  readonly url: string;
  readonly app: App;
  /** All apps, if the service is a cluster. */
  readonly apps: readonly App[];
  readonly nodes: ScriptedNodes;
  readonly telemetry: MemoryTelemetry;
  readonly dataDir: string;
  /** Where there are agents beside. */
  readonly agents: AgentService | undefined;
  /** A call with the service token; `""` sends no token. A body is sent as JSON, a string unchanged. */
  call(method: string, path: string, body?: unknown, more?: CallOptions): Promise<Answer>;
  /** Trigger and await the 200; answers the run's id. */
  trigger(workflowId: string, parameters?: object): Promise<string>;
  detail(workflowId: string, runId: string): Promise<any>;
  /** The detail of a run, once it has ended. */
  ended(workflowId: string, runId: string): Promise<any>;
  /** The detail, once it fulfils something. */
  until(workflowId: string, runId: string, isSo: (detail: any) => boolean): Promise<any>;
  /** Subscribe to a run's events. Throws the status if the answer is not a stream. */
  events(runId: string, lastEventId?: string): Promise<EventSubscription>;
  grant(order: GrantOrder): Promise<string>;
  /** Write a definition as editors do it, so that no reader sees half a file. */
  deploy(name: string, definition: string | object): void;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly token?: string;
  readonly headers?: Call["headers"];
}

export async function startWorkflowService(options: WorkflowServiceOptions = {}): Promise<WorkflowService> {
  const folder = options.dataDir === undefined ? temporaryFolder() : undefined;
  const dataDir = options.dataDir ?? folder!.path;
  const definitionsDir = join(dataDir, "workflows");
  const telemetry = createMemoryTelemetry();
  const nodes = options.nodes ?? createScriptedNodes();
  const token = "token" in options ? options.token : SERVICE_TOKEN;
  const deploy = (name: string, definition: string | object) => {
    const path = join(definitionsDir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(join(dataDir, "deploying"), typeof definition === "string" ? definition : JSON.stringify(definition));
    renameSync(join(dataDir, "deploying"), path);
  };
  for (const [name, definition] of Object.entries(options.definitions ?? {})) deploy(name, definition);
  const plugin = workflowService({ ...options.runtime, ...(token !== undefined && { token: new Secret(token) }) });
  const own = (): readonly Adapter[] => [
    hmacSigning({ key: new Secret(options.key ?? "a key of this test") }),
    aesGcmSealing({}),
    options.documents ??
      (isClusterRun
        ? onRealTime(sharedFolderDocuments({ id: "workflows", dir: definitionsDir }))
        : unstorageDocuments({ id: "workflows", dir: definitionsDir })),
    transformNode({}),
    // Agents with attachments bring their own.
    ...(options.agents?.adapters?.some(({ name }) => name.startsWith("blobs/"))
      ? []
      : [options.blobs ?? fileBlobs({ dir: join(dataDir, "files") })]),
    ...nodes.adapters,
    ...(options.adapters ?? []),
  ];
  const agents =
    options.agents && (await startBesideAgents({ ...options.agents, dataDir, durable: options.engine ?? {} }, own(), plugin));
  const { parkAfterMs, keepEndedMs } = options.engine ?? {};
  const members =
    agents ??
    (await openMembers({
      dataDir,
      stores: () =>
        options.shared ?? [
          sqliteRecords({ path: join(dataDir, "records.sqlite") }),
          sqliteLog({}),
          embeddedEngine({ ...options.engine }),
          fileSecrets({ path: join(dataDir, "credentials.json") }),
        ],
      engine: { ...(parkAfterMs !== undefined && { parkAfterMs }), ...(keepEndedMs !== undefined && { keepEndedMs }) },
      open: (stores) =>
        createApp({
          name: "workflow-service-under-test",
          adapters: [
            ...stores,
            options.clock ? manualClock({ clock: options.clock }) : systemClock(),
            randomIds(),
            options.telemetry ?? memberTelemetry(telemetry),
            tokenIdentity({ tokens: [{ token: new Secret("owner-token"), userId: "owner", role: "owner" }] }),
            ...own(),
          ],
          plugins: [plugin, ...(options.plugins ?? [])],
        }),
    }));
  const { app, apps } = members;
  const served = await serveMembers(members, "workflow");
  const { url } = served;
  const grants = createGrants({ signing: app.port(ports.signing), clock: app.port(ports.clock), ids: app.port(ports.ids) });
  let closing: Promise<void> | undefined;

  const service: WorkflowService = {
    ...{ url, app, apps, nodes, dataDir, deploy, agents },
    telemetry: agents?.telemetry ?? telemetry,
    async call(method, path, body, { token: own = SERVICE_TOKEN, headers } = {}) {
      const reply = await httpCall(url, {
        method,
        path,
        headers: {
          ...(own !== "" && { "x-workflow-service-token": own }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, headers: reply.headers, body: text === "" ? undefined : JSON.parse(text) };
    },
    async trigger(workflowId, parameters) {
      const answer = await service.call("POST", `/api/workflow/webhook?id=${workflowId}`, parameters ?? {});
      if (answer.status !== 200) throw new Error(`A trigger was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
      return answer.body.runId;
    },
    async detail(workflowId, runId) {
      const answer = await service.call("GET", `/api/workflow/${workflowId}/runs/${runId}`);
      if (answer.status !== 200) throw new Error(`A run was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
    async ended(workflowId, runId) {
      for (;;) {
        // The list is quicker to read than a long run.
        const { body } = await service.call("GET", `/api/workflow/${workflowId}/runs`);
        const { status } = body.runs.find((run: { runId: string }) => run.runId === runId);
        if (status !== "running" && status !== "waiting_human") return service.detail(workflowId, runId);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async until(workflowId, runId, isSo) {
      for (;;) {
        const detail = await service.detail(workflowId, runId);
        if (isSo(detail)) return detail;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    events: (runId, lastEventId) =>
      subscribe(`${url}/api/workflow/events?runId=${runId}`, { "x-workflow-service-token": SERVICE_TOKEN }, lastEventId),
    grant: async (order) => (await grants.issue(order)).executionGrantId,
    close() {
      return (closing ??= (async () => {
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

function startBesideAgents(options: AgentServiceOptions, own: readonly Adapter[], plugin: Plugin): Promise<AgentService> {
  const adapters = [...own, ...(options.adapters ?? [])];
  return startAgentService({ ...options, adapters, plugins: [plugin, ...(options.plugins ?? [])] });
}

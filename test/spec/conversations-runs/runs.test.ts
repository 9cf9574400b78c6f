import { randomUUID } from "node:crypto";
import { areaOf, definePlugin, ports } from "@portico/core";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { createRuns } from "../../../plugins/src/conversations-runs/runs/runs.ts";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, type Holder, startAgentService } from "../../harness/agent-app.ts";

let service: AgentService;
let owner: AgentClient;
let member: AgentClient;
const get = (path: string, holder: Holder = "owner") => service.call(holder, "GET", path);
/** A finished turn, and the run that it belongs to. */
async function played(
  client: AgentClient,
  prompt = "x",
  options: object = {},
): Promise<{ runId: string; conversationId: string }> {
  const { clientRequestId } = await client.start(prompt, {}, options as Record<string, unknown>);
  return (await client.ended(clientRequestId)).data;
}

beforeAll(async () => {
  service = await startAgentService();
  [owner, member] = await Promise.all([service.connect("owner"), service.connect("member")]);
});
afterAll(() => service.close());

describe("GET /api/runs (4.6)", () => {
  let ids: string[];
  beforeAll(async () => {
    ids = [];
    for (const agentId of ["helper", "second", "helper", "second", "helper"])
      ids.unshift((await played(owner, "listed", { agentId })).runId);
  });
  const listed = async (query: string, holder?: Holder) =>
    (await get(`/api/runs${query}`, holder)).body.runs.map(({ run_id }: { run_id: string }) => run_id);

  it("is ordered by started_at, newest first", async () => {
    const { body } = await get("/api/runs");
    const times = body.runs.map(({ started_at }: { started_at: string }) => started_at);
    expect(times).toEqual([...times].sort().reverse());
    expect((await listed("")).slice(0, 5).sort()).toEqual([...ids].sort());
  });

  it("shows the run's metadata with what is recorded, and nothing of how it is kept (2.11)", async () => {
    const { body } = await get("/api/runs?limit=1");
    expect(body.runs).toEqual([
      {
        run_id: expect.any(String),
        user_id: "owner",
        agent_id: expect.any(String),
        started_at: expect.stringMatching(/Z$/),
        status: "idle",
        conversation_id: expect.any(String),
        session_id: expect.any(String),
        turn_started_at: expect.stringMatching(/Z$/),
        updatedAt: expect.stringMatching(/Z$/),
        title: "listed",
        messageCount: 2,
        duration_ms: expect.any(Number),
        outcome: "completed",
        turn_ended_at: expect.stringMatching(/Z$/),
      },
    ]);
  });

  it("filters are applied to all readable records before limit", async () => {
    const second = await listed("?agent_id=second&limit=2");
    expect(second).toHaveLength(2);
    expect(second.every((id: string) => ids.includes(id))).toBe(true);
  });

  it("limit has no other cap than a safe integer, and a default of 50", async () => {
    const many = Array.from({ length: 120 }, (_, at) => ({
      run_id: `run_bulk${at}`,
      user_id: "bulk",
      agent_id: "bulk",
      status: "idle",
      started_at: new Date(Date.UTC(2020, 0, 1, 0, 0, at)).toISOString(),
    }));
    const store = createRuns(service.app.port(ports.records));
    await Promise.all(many.map((run) => store.writeAll(store.begin(run as never))));
    expect(await listed("?agent_id=bulk")).toHaveLength(50);
    expect(await listed("?agent_id=bulk&limit=119")).toHaveLength(119);
    expect(await listed(`?agent_id=bulk&limit=${Number.MAX_SAFE_INTEGER}`)).toEqual(many.map(({ run_id }) => run_id).reverse());
  });

  it.each(["", "0", "-1", "1.5", "1e3", "0x10", "%201", "1%20", "+1", "ten", "9007199254740993", "1&limit=2", "%31%00"])(
    "400 'Invalid pagination:' for limit=%s",
    async (limit) => {
      const { status, body } = await get(`/api/runs?limit=${limit}`);
      expect([status, body.error]).toEqual([400, expect.stringMatching(/^Invalid pagination: /)]);
    },
  );

  it.each(["agent_id", "delegated_by", "parent_run_id"])(
    "400 for an empty or repeated %s, which must not show everything",
    async (name) => {
      for (const query of [`${name}=`, `${name}=a&${name}=b`]) expect((await get(`/api/runs?${query}`)).status).toBe(400);
    },
  );

  it("a member sees only the runs of its own turns; a token without a user sees none (open points 10)", async () => {
    const { runId } = await played(member);
    expect(await listed("", "member")).toEqual([runId]);
    expect(await listed("", "other")).toEqual([]);
    expect(await listed("", "service")).toEqual([]);
    expect(await listed("?limit=500")).toEqual(expect.arrayContaining([runId, ...ids]));
  });

  it("cleared conversations are excluded", async () => {
    const { runId, conversationId } = await played(owner);
    await service.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    expect(await listed("?limit=500")).not.toContain(runId);
    expect((await get(`/api/runs/${runId}`)).body).toMatchObject({ status: "completed", cleared: true });
  });
});

describe("GET /api/runs/:id and /runtime-state (4.6, 2.11)", () => {
  it("detail is the metadata object directly; the runtime state exactly run_id, agent_id, status", async () => {
    const { runId } = await played(owner);
    expect((await get(`/api/runs/${runId}`)).body).toMatchObject({ run_id: runId, agent_id: "helper", status: "idle" });
    expect((await get(`/api/runs/${runId}/runtime-state`)).body).toEqual({ run_id: runId, agent_id: "helper", status: "idle" });
  });

  it.each(["run_none", "..%2Frun", "a%20b", "%00", "x".repeat(300)])("detail 404 'Run not found: …' for %s", async (id) => {
    const { status, body } = await get(`/api/runs/${id}`);
    expect([status, body.error]).toEqual([404, expect.stringMatching(/^Run not found: /)]);
  });

  it("runtime state 400 'Invalid run ID' for an unsafe ID, 404 'Run runtime state not found: …' for a missing run", async () => {
    for (const id of ["a.b", "..%2Fx", "a%20b", "ä"]) {
      const unsafe = await get(`/api/runs/${encodeURI(id)}/runtime-state`.replace("%25", "%"));
      expect([unsafe.status, unsafe.body.error]).toEqual([400, "Invalid run ID"]);
    }
    const missing = await get("/api/runs/run_none/runtime-state");
    expect([missing.status, missing.body.error]).toEqual([404, "Run runtime state not found: run_none"]);
  });

  it("others' runs are missing to a member", async () => {
    const { runId } = await played(owner);
    for (const path of ["", "/runtime-state", "/receipt"])
      expect((await get(`/api/runs/${runId}${path}`, "member")).status).toBe(404);
  });

  it("PATCH renames and archives, and takes the archive back; undeclared fields are 400, others' runs 404", async () => {
    const { runId } = await played(member);
    const patch = (body: unknown, holder: Holder = "member") => service.call(holder, "PATCH", `/api/runs/${runId}`, body);
    expect((await patch({ title: "Better", archived: true })).body).toMatchObject({
      title: "Better",
      archived_at: expect.any(String),
    });
    expect((await patch({ archived: false })).body.archived_at).toBeUndefined();
    expect((await patch({ title: "Mine" }, "owner")).body.title).toBe("Mine");
    expect((await patch({ more: 1 })).status).toBe(400);
    expect((await patch({ title: "x".repeat(513) })).status).toBe(400);
    expect((await patch({ title: "x" }, "other")).status).toBe(404);
  });
});

describe("GET /api/runs/:id/receipt (4.6, 2.12)", () => {
  let runId: string;
  beforeAll(async () => {
    const first = await played(owner, "turn 1");
    runId = first.runId;
    for (let turn = 2; turn <= 25; turn++) await played(owner, `turn ${turn}`, { conversationId: first.conversationId });
  });
  const inputs = (receipts: { input: string }[]) => receipts.map(({ input }) => Number(input.slice("turn ".length)));

  it("without offset and limit the response is { run_id, receipts } in write order", async () => {
    const { body } = await get(`/api/runs/${runId}/receipt`);
    expect(Object.keys(body)).toEqual(["run_id", "receipts"]);
    expect(inputs(body.receipts)).toEqual(Array.from({ length: 25 }, (_, at) => at + 1));
    expect(body.receipts[0]).toMatchObject({
      receipt_id: expect.any(String),
      run_id: runId,
      goal: "turn 1",
      input: "turn 1",
      output: "You said: turn 1",
      tool_calls: [],
      outcome: { status: "success", auto_completed: true },
      started_at: expect.stringMatching(/Z$/),
      completed_at: expect.stringMatching(/Z$/),
      duration_ms: expect.any(Number),
    });
    expect(new Set(body.receipts.map(({ receipt_id }: { receipt_id: string }) => receipt_id)).size).toBe(25);
  });

  it.each([
    ["limit=5", { offset: 0, limit: 5, has_more: true }, [21, 22, 23, 24, 25]],
    ["offset=5&limit=5", { offset: 5, limit: 5, has_more: true }, [16, 17, 18, 19, 20]],
    ["offset=0", { offset: 0, limit: 20, has_more: true }, Array.from({ length: 20 }, (_, at) => at + 6)],
    ["offset=20", { offset: 20, limit: 20, has_more: false }, [1, 2, 3, 4, 5]],
    ["offset=23&limit=2", { offset: 23, limit: 2, has_more: false }, [1, 2]],
    ["offset=25", { offset: 25, limit: 20, has_more: false }, []],
    ["offset=20000", { offset: 10_000, limit: 20, has_more: false }, []],
    ["limit=1000", { offset: 0, limit: 100, has_more: false }, Array.from({ length: 25 }, (_, at) => at + 1)],
  ])("offset counts backwards from the latest, a page stays in write order: %s", async (query, facts, expected) => {
    const { body } = await get(`/api/runs/${runId}/receipt?${query}`);
    expect(body).toMatchObject({ run_id: runId, total: 25, skipped: 0, ...facts });
    expect(inputs(body.receipts)).toEqual(expected);
  });

  it.each([
    "limit=0",
    "limit=",
    "limit=-1",
    "limit=1.5",
    "limit=1&limit=2",
    "limit=x1",
    "offset=",
    "offset=-1",
    "offset=0.5",
    "offset=1&offset=1",
    "offset=1a",
    "offset=9007199254740993",
  ])("400 'Invalid pagination:' for %s", async (query) => {
    const { status, body } = await get(`/api/runs/${runId}/receipt?${query}`);
    expect([status, body.error]).toEqual([400, expect.stringMatching(/^Invalid pagination: /)]);
  });

  it("400 'Invalid run ID' for an unsafe ID; 404 'Run not found: …' for a missing run and for another user's, also to an owner", async () => {
    const unsafe = await get("/api/runs/a.b/receipt");
    expect([unsafe.status, unsafe.body.error]).toEqual([400, "Invalid run ID"]);
    const missing = await get("/api/runs/run_none/receipt");
    const theirs = await played(member);
    const foreign = await get(`/api/runs/${theirs.runId}/receipt`);
    expect([missing.status, missing.body.error]).toEqual([404, "Run not found: run_none"]);
    expect([foreign.status, foreign.body.error]).toEqual([404, `Run not found: ${theirs.runId}`]);
  });

  it("401 with a message in Chinese where the user's identity cannot be resolved, before anything is revealed", async () => {
    for (const id of [runId, "run_none"]) {
      const { status, body } = await get(`/api/runs/${id}/receipt`, "service");
      expect([status, body.error]).toEqual([401, "无法解析用户身份"]);
    }
  });

  it("skipped counts damaged records, so receipts.length can be smaller than the records traversed", async () => {
    const { runId: hurt } = await played(owner, "whole");
    const log = service.app.port(ports.log);
    await log.append(`receipts/${hurt}`, { receipt_id: "broken" });
    await log.append(`receipts/${hurt}`, { anything: randomUUID() });
    const paged = await get(`/api/runs/${hurt}/receipt?limit=2`);
    expect(paged.body).toMatchObject({ total: 3, skipped: 2, receipts: [], has_more: true, offset: 0, limit: 2 });
    const next = await get(`/api/runs/${hurt}/receipt?limit=2&offset=2`);
    expect(next.body).toMatchObject({ total: 3, skipped: 0, has_more: false });
    expect(next.body.receipts).toHaveLength(1);
    expect((await get(`/api/runs/${hurt}/receipt`)).body.receipts).toHaveLength(1);
  });
});

describe("GET /api/agents (4.6, 2.10)", () => {
  it("lists summaries; an agent whose agent.json is broken has metadataError and fallback values", async () => {
    const agents = new Map<string, object | string | null>([
      [
        "a",
        {
          name: "A",
          description: "d",
          engine: "scripted",
          tools: ["t"],
          skills: ["s1", "s2"],
          core: true,
          heartbeat: { enabled: true, everyMs: 60_000, prompt: "p" },
        },
      ],
      ["b", "{"],
      ["c", null],
    ]);
    await using other = await startAgentService({ agents });
    const { status, body } = await other.call("member", "GET", "/api/agents");
    expect(status).toBe(200);
    expect(body.agents).toMatchObject([
      {
        id: "a",
        name: "A",
        description: "d",
        engine: "scripted",
        // They do nothing yet, and are not claimed.
        skillsCount: 0,
        toolsCount: 1,
        heartbeatEnabled: false,
        hasGit: false,
        isCoreAgent: true,
        status: "idle",
      },
      { id: "b", name: expect.any(String), skillsCount: 0, toolsCount: 0, metadataError: "invalid_json", status: "error" },
      { id: "c", metadataError: "missing" },
    ]);
  });

  it("an agent that plays a turn is busy", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    service.engine.on("busy", () => promise);
    const { clientRequestId } = await owner.start("busy", {}, { agentId: "second" });
    await owner.event("query:started", clientRequestId);
    const statuses = async () => (await get("/api/agents")).body.agents.map(({ id, status }: any) => [id, status]);
    expect(await statuses()).toEqual([
      ["helper", "idle"],
      ["second", "busy"],
    ]);
    resolve();
    await owner.ended(clientRequestId);
    await expect.poll(statuses).toEqual([
      ["helper", "idle"],
      ["second", "idle"],
    ]);
  });
});

describe("GET /api/handshake (open points 4)", () => {
  it("says the caller's identity and the instance's capabilities; serverInstanceId changes with a restart (9)", async () => {
    const { body } = await get("/api/handshake", "member");
    expect(body).toEqual({
      protocolVersion: 1,
      serverInstanceId: expect.any(String),
      version: "0.0.0",
      identity: { userId: "member", role: "member" },
      capabilities: { webhookManagement: false, media: false, attachments: false, realtime: true, safeTokens: false },
    });
    await using other = await startAgentService();
    const again = await other.call("service", "GET", "/api/handshake");
    expect(again.body.identity).toEqual({ role: "service" });
    expect(again.body.serverInstanceId).not.toBe(body.serverInstanceId);
  });

  it.each([
    ["agentWebhook", agentWebhook({}), ["webhookManagement"]],
    ["agentWebhook without management", agentWebhook({ management: false }), []],
    ["attachmentsMedia", attachmentsMedia({}), ["media", "attachments"]],
    ["safeTokenManagement", safeTokenManagement({}), ["safeTokens"]],
  ])("is told by each area what it declares: %s", (_name, plugin, told) => {
    expect(areaOf(plugin).capabilities).toEqual(told);
  });

  it("tells the capabilities of a third party's area, made from its options, and knows no area by its name", async () => {
    const notes = definePlugin({
      ...emptyArea,
      name: "notes",
      config: v.strictObject({ search: v.optional(v.boolean(), false) }),
      capabilities: ({ search }) => ["notes", ...(search ? ["noteSearch"] : [])],
    });
    const silent = definePlugin({ ...emptyArea, name: "agent-webhook" });
    for (const [options, told] of [
      [{}, { notes: true }],
      [{ search: true }, { notes: true, noteSearch: true }],
    ] as const) {
      await using other = await startAgentService({ plugins: [notes(options), silent({})] });
      expect((await other.call("owner", "GET", "/api/handshake")).body.capabilities).toEqual({
        ...{ webhookManagement: false, media: false, attachments: false, realtime: true, safeTokens: false },
        ...told,
      });
    }
  });
});

const emptyArea = { config: v.strictObject({}), needs: {}, contract: {}, setup: () => ({}) };

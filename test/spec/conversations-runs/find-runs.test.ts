import { connectAgent } from "@portico/client";
import { countRuns, type FindPlace, ports, RUN_COUNT, wordsOf } from "@portico/core";
import { assert, property, string } from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRuns } from "../../../plugins/src/conversations-runs/runs/runs.ts";
import { type AgentClient, type AgentService, type Holder, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
let owner: AgentClient;
let member: AgentClient;

const search = (query: Record<string, string>, holder: Holder = "owner") =>
  service.call(holder, "GET", `/api/runs/search?${new URLSearchParams(query)}`);
const titles = async (query: Record<string, string>, holder?: Holder): Promise<string[]> =>
  (await search(query, holder)).body.runs.map(({ title }: { title: string }) => title);
const played = async (client: AgentClient, prompt: string, options = {}): Promise<Record<string, string>> => {
  const { clientRequestId } = await client.start(prompt, {}, options);
  return (await client.ended(clientRequestId)).data;
};
/** All pages, and how many there were. */
async function walk(query: Record<string, string>): Promise<{ readonly ids: string[]; readonly pages: number }> {
  const ids: string[] = [];
  for (let after: string | undefined, pages = 1; ; pages++) {
    const { body } = await search({ ...query, ...(after !== undefined && { after }) });
    ids.push(...body.runs.map(({ run_id }: { run_id: string }) => run_id));
    after = body.next;
    if (after === undefined) return { ids, pages };
  }
}
/** Stored as the service stores runs: two of 700 are rare in each way. */
const bulk = Array.from({ length: 700 }, (_, at) => ({
  run_id: `run_bulk${String(at).padStart(4, "0")}`,
  user_id: "bulk",
  agent_id: at % 350 === 7 ? "rare-agent" : "bulk-agent",
  // Two begin at the same time.
  started_at: new Date(Date.UTC(2020, 0, 1, 0, at - (at % 2))).toISOString(),
  status: at % 350 === 9 ? ("failed" as const) : ("idle" as const),
  title: `Common words ${at % 350 === 11 ? "seldom" : "always"} ${at}`,
}));
const bulkIds = (wanted: (run: (typeof bulk)[number]) => boolean) =>
  bulk
    .filter(wanted)
    .map(({ run_id }) => run_id)
    .reverse();

beforeAll(async () => {
  service = await startAgentService();
  [owner, member] = await Promise.all([service.connect("owner"), service.connect("member")]);
  service.engine.on("Weather of Paris", () => {
    throw Object.assign(new Error("The quota of the galaxy is used up"), { name: "ModelRefused" });
  });
  service.engine.on("Wait for rain", async (_turn, context) => untilStopped(context));
  for (const prompt of ["Weather of Paris", "Weather of Rome", "Invoice 2030-07 for Müller"]) await played(owner, prompt);
  await played(member, "Weather of Oslo", { agentId: "second" });
  const runs = createRuns(service.app.port(ports.records));
  for (let at = 0; at < bulk.length; at += 100) await runs.writeAll(bulk.slice(at, at + 100).flatMap((run) => runs.begin(run)));
});
afterAll(() => service.close());

describe("GET /api/runs/search", () => {
  it("finds runs by words of their titles, in any order and case, newest first", async () => {
    expect(await titles({ q: "weather" })).toEqual(["Weather of Oslo", "Weather of Rome", "Weather of Paris"]);
    expect(await titles({ q: "ROME weather" })).toEqual(["Weather of Rome"]);
    expect(await titles({ q: "müller, invoice" })).toEqual(["Invoice 2030-07 for Müller"]);
    expect(await titles({ q: "weath" })).toEqual([]);
    expect((await search({ q: "weath" })).body).toEqual({ runs: [] });
    expect(await titles({ q: "weather invoice" })).toEqual([]);
  });

  it("finds failed runs by the code and the words of the error, which the run keeps until its next turn", async () => {
    expect(await titles({ q: "galaxy quota" })).toEqual(["Weather of Paris"]);
    expect(await titles({ q: "model_refused paris" })).toEqual(["Weather of Paris"]);
    const { body } = await search({ q: "galaxy" });
    expect(body.runs[0]).toMatchObject({
      status: "failed",
      failure: { code: "model_refused", message: "The quota of the galaxy is used up" },
    });
    const { clientRequestId } = await owner.followUp(body.runs[0].session_id, "Go on");
    await owner.ended(clientRequestId);
    expect(await titles({ q: "galaxy" })).toEqual([]);
    expect(await titles({ q: "paris", status: "failed" })).toEqual([]);
    expect((await search({ q: "paris" })).body.runs[0]).not.toHaveProperty("failure");
  });

  it("finds runs by their status as it is now", async () => {
    const { clientRequestId } = await owner.start("Wait for rain");
    const { sessionId } = await owner.event("query:started", clientRequestId);
    expect(await titles({ status: "running" })).toEqual(["Wait for rain"]);
    expect(await titles({ status: "running", q: "rain" })).toEqual(["Wait for rain"]);
    expect(await titles({ status: "idle", q: "rain" })).toEqual([]);
    owner.socket.emit("query:abort", { sessionId });
    await owner.ended(clientRequestId);
    expect(await titles({ status: "running" })).toEqual([]);
    expect(await titles({ status: "idle", q: "rain" })).toEqual(["Wait for rain"]);
  });

  it("finds renamed runs by their new title alone", async () => {
    const { runId } = await played(owner, "Before");
    await service.call("owner", "PATCH", `/api/runs/${runId}`, { title: "Afterwards" });
    expect(await titles({ q: "afterwards" })).toEqual(["Afterwards"]);
    expect(await titles({ q: "before" })).toEqual([]);
  });

  it("does not find runs whose conversations were cleared", async () => {
    const { conversationId } = await played(owner, "Ephemeral");
    expect(await titles({ q: "ephemeral" })).toEqual(["Ephemeral"]);
    await service.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    for (const query of [{ q: "ephemeral" }, { status: "completed" }] as Record<string, string>[])
      expect(await titles(query)).not.toContain("Ephemeral");
  });

  it("keeps the words of a run no longer than the run shows them", async () => {
    const tags = service.app
      .port(ports.records)
      .collection<{ tag: string }>({ name: "run-tags", indexes: { byTag: ["tag", "at"], byOwner: ["owner", "tag", "at"] } });
    const kept = async (tag: string) =>
      (await tags.query({ where: { tag }, order: { by: "at", direction: "descending" } })).items.length;
    const { runId, conversationId } = await played(owner, "Zebra");
    expect([await kept("w:zebra"), await kept("s:running")]).toEqual([1, 0]);
    await service.call("owner", "PATCH", `/api/runs/${runId}`, { title: "Quagga" });
    expect([await kept("w:zebra"), await kept("w:quagga")]).toEqual([0, 1]);
    await service.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    expect(await kept("w:quagga")).toBe(0);
  });

  it("takes all filters at once: agent, user, times, status and words", async () => {
    expect(await titles({ agent_id: "second", q: "weather" })).toEqual(["Weather of Oslo"]);
    expect(await titles({ user_id: "member" })).toEqual(["Weather of Oslo"]);
    const user_id = "bulk";
    expect((await walk({ user_id, agent_id: "rare-agent" })).ids).toEqual(bulkIds(({ agent_id }) => agent_id === "rare-agent"));
    expect((await walk({ user_id, status: "failed" })).ids).toEqual(bulkIds(({ status }) => status === "failed"));
    expect((await walk({ user_id, q: "seldom common" })).ids).toEqual(bulkIds(({ title }) => title.includes("seldom")));
    const times = { started_from: "2020-01-01T01:00Z", started_before: "2020-01-01T03:06:00+01:00" };
    expect((await walk({ user_id, ...times })).ids).toEqual(bulkIds((_run) => true).slice(-126, -60));
    expect((await walk({ user_id, ...times, q: "always", status: "idle", agent_id: "bulk-agent" })).ids).toHaveLength(66);
    expect((await walk({ user_id, started_before: "2020-01-01" })).ids).toEqual([]);
  });

  it("pages through everything once, also among equal times and with runs that come and go", async () => {
    for (const limit of ["1", "7", "200"]) {
      if (limit === "1")
        expect((await walk({ user_id: "bulk", q: "words", limit, started_from: "2020-01-01T11:00:00Z" })).ids).toHaveLength(40);
      else expect((await walk({ user_id: "bulk", q: "words", limit })).ids).toEqual(bulkIds(() => true));
    }
    const query = { user_id: "member", limit: "1" };
    await played(member, "First of two");
    await played(member, "Second of two");
    const { body } = await search(query);
    await played(member, "Third of two");
    expect(await titles({ ...query, after: body.next })).toEqual(["First of two"]);
  });

  it("pages back to the newest, each run once, also with runs that begin meanwhile", async () => {
    const query = { user_id: "bulk", q: "words", limit: "90", started_from: "2020-01-01T01:00Z" };
    const wanted = bulkIds(({ started_at }) => started_at >= "2020-01-01T01:00");
    const pages = [(await search(query)).body];
    expect(pages[0]).not.toHaveProperty("previous");
    while (pages.at(-1).next) pages.push((await search({ ...query, after: pages.at(-1).next })).body);
    const shown = pages.map(({ runs }) => runs.map(({ run_id }: { run_id: string }) => run_id));
    expect(shown.flat()).toEqual(wanted);
    const back = [shown.at(-1)];
    let before: string | undefined = pages.at(-1).previous;
    const added = { ...bulk[0]!, run_id: "run_bulk_later", started_at: "2020-01-02T00:00:00.000Z", title: "Later words" };
    const runs = createRuns(service.app.port(ports.records));
    await runs.writeAll(runs.begin(added));
    while (before) {
      const { body } = await search({ ...query, before });
      expect(body.next).toEqual(expect.any(String));
      back.unshift(body.runs.map(({ run_id }: { run_id: string }) => run_id));
      before = body.previous;
    }
    expect(back.flat()).toEqual([added.run_id, ...wanted]);
    const found = (await runs.find(added.run_id))!;
    await runs.writeAll(runs.remove(found));
  });

  it("finds runs by their origin, by archiving and by interruption", async () => {
    const { runId } = await played(owner, "Origin of a family");
    const runs = createRuns(service.app.port(ports.records));
    const child = {
      ...bulk[0]!,
      ...{ run_id: "run_child", user_id: "bulk-child", title: "Child", interruption_reason: "user_stop" },
      delegation: { fromAgentId: "helper", parentRunId: runId! },
    };
    const other = { ...child, run_id: "run_other", title: "Other", delegation: { fromAgentId: "second" } };
    await runs.writeAll([...runs.begin(child), ...runs.begin(other)]);
    expect(await titles({ delegated_by: "helper", user_id: "bulk-child" })).toEqual(["Child"]);
    expect(await titles({ parent_run_id: runId! })).toEqual(["Child"]);
    expect(await titles({ parent_run_id: runId!, q: "other" })).toEqual([]);
    const user_id = "bulk-child";
    expect(await titles({ user_id, interrupted: "true" })).toEqual(["Other", "Child"]);
    expect(await titles({ user_id, interrupted: "false" })).toEqual([]);
    await service.call("owner", "PATCH", "/api/runs/run_child", { archived: true });
    expect(await titles({ user_id, archived: "true" })).toEqual(["Child"]);
    expect(await titles({ user_id, archived: "false" })).toEqual(["Other"]);
    expect(await titles({ user_id })).toEqual(["Other", "Child"]);
  });

  it("finds runs by the outcome of their last turn, which each run shows, and by the reason of it", async () => {
    const outcomes = async (title: string) => (await search({ q: title })).body.runs.map((run: any) => run.outcome);
    await played(owner, "Quince jam");
    const broken = await played(owner, "Weather of Paris");
    expect([await outcomes("quince"), await outcomes("galaxy")]).toEqual([["completed"], ["failed"]]);
    expect(await titles({ outcome: "failed", user_id: "owner" })).toEqual(["Weather of Paris"]);
    expect(await titles({ reason: "model_refused" })).toEqual(["Weather of Paris"]);
    expect(await titles({ reason: "model_refused", outcome: "completed" })).toEqual([]);
    expect(await titles({ outcome: "completed", q: "quince" })).toEqual(["Quince jam"]);
    const { clientRequestId } = await owner.start("Wait for rain");
    const { sessionId } = await owner.event("query:started", clientRequestId);
    expect(await titles({ outcome: "running" })).toEqual(["Wait for rain"]);
    owner.socket.emit("query:abort", { sessionId });
    await owner.ended(clientRequestId);
    expect((await titles({ outcome: "cancelled", reason: "user_stop" }))[0]).toBe("Wait for rain");
    expect(await titles({ outcome: "running" })).toEqual([]);
    await service.call("owner", "POST", `/api/conversations/${broken.conversationId}/clear`);
  });

  it("tells apart why a turn does not go on: a person, another attempt, or a stop of the service", async () => {
    const runs = createRuns(service.app.port(ports.records));
    const one = { ...bulk[0]!, user_id: "outcomes", status: "idle" as const, turn_started_at: bulk[0]!.started_at };
    const asked = { call_id: "c", tool_id: "t", risk_level: "high", asked_at: "", expires_at: "" };
    for (const run of [
      { ...one, run_id: "run_o1", title: "Queued", turn_started_at: undefined },
      { ...one, run_id: "run_o2", title: "Asks", status: "running" as const, approvals: [asked] },
      {
        ...one,
        run_id: "run_o3",
        title: "Retries",
        retry_at: "2020-01-01T01:00:00.000Z",
        failure: { code: "model_timeout", message: "" },
      },
      { ...one, run_id: "run_o4", title: "Broke off", interruption_reason: "process_restart" },
      { ...one, run_id: "run_o5", title: "Refused", completion_reason: "refusal" },
    ])
      await runs.writeAll(runs.begin(run));
    const user_id = "outcomes";
    expect((await titles({ user_id, outcome: "waiting" })).toSorted()).toEqual(["Asks", "Queued", "Retries"]);
    expect(await titles({ user_id, outcome: "interrupted" })).toEqual(["Broke off"]);
    expect(await titles({ user_id, outcome: "completed" })).toEqual(["Refused"]);
    expect(await titles({ user_id, reason: "refusal" })).toEqual(["Refused"]);
    expect(await titles({ user_id, reason: "model_timeout" })).toEqual(["Retries"]);
  });

  it("finds runs whose last turn ended since a time, however long ago they began", async () => {
    const { runId } = await played(owner, "Ended lately");
    const { body } = await service.call("owner", "GET", `/api/runs/${runId}`);
    expect(body).toMatchObject({ outcome: "completed", turn_ended_at: expect.any(String) });
    expect(await titles({ ended_from: body.turn_ended_at, q: "lately" })).toEqual(["Ended lately"]);
    const after = new Date(Date.parse(body.turn_ended_at) + 1).toISOString();
    expect(await titles({ ended_from: after, q: "lately" })).toEqual([]);
  });

  it("looks at a bounded number of runs per call: a page may be empty and yet have a next one", async () => {
    // Each is in the lists of both words, and none has the status.
    const query = { user_id: "bulk", q: "common words", status: "completed" };
    const first = (await search(query)).body;
    expect(first.runs).toEqual([]);
    expect(first.next).toEqual(expect.any(String));
    const { ids, pages } = await walk(query);
    expect([ids, pages]).toEqual([[], 11]);
  });

  it("a member sees its own runs only, a token without a user none (open points 10)", async () => {
    expect(await titles({ q: "weather" }, "member")).toEqual(["Weather of Oslo"]);
    expect(await titles({ q: "oslo", user_id: "member" }, "member")).toEqual(["Weather of Oslo"]);
    expect(await titles({ q: "rome", user_id: "owner" }, "member")).toEqual([]);
    expect(await titles({ q: "oslo" }, "other")).toEqual([]);
    expect(await titles({ q: "oslo" }, "service")).toEqual([]);
    expect(await titles({ user_id: "owner" }, "service")).toEqual([]);
  });

  it("a cursor belongs to its search and to its caller", async () => {
    const { body } = await search({ q: "common", limit: "1" });
    expect((await search({ q: "COMMON", limit: "5", after: body.next })).status).toBe(200);
    // The oldest time moves in searches such as "the last hour".
    expect((await search({ q: "common", started_from: "2020-01-01", before: body.next })).status).toBe(200);
    for (const [query, holder] of [
      [{ q: "words", after: body.next }, "owner"],
      [{ q: "common", status: "idle", after: body.next }, "owner"],
      [{ q: "common", after: body.next }, "member"],
      [{ q: "common", after: "" }, "owner"],
      [{ q: "words", before: body.next }, "owner"],
      [{ q: "common", after: body.next, before: body.next }, "owner"],
      [{ q: "common", after: `${body.next}A` }, "owner"],
      [{ q: "common", after: Buffer.from('["a","b","c"]').toString("base64url") }, "owner"],
    ] as const)
      expect(await search(query, holder)).toMatchObject({ status: 400, body: { code: "invalid_pagination" } });
  });

  it.each<Record<string, string>>([
    { q: "" },
    { q: "…!?" },
    { q: "a b c d e f g h i" },
    { q: "x".repeat(201) },
    { status: "done" },
    { status: "toString" },
    { agent_id: "" },
    { user_id: "" },
    { started_from: "yesterday" },
    { started_before: "2020-01-01T00:00:00" },
    { started_before: "2020-13-01" },
    { started_from: "2030-02-30" },
    { archived: "yes" },
    { interrupted: "" },
    { outcome: "idle" },
    { reason: "" },
    { reason: "not a code" },
    { ended_from: "lately" },
    { delegated_by: "" },
    { parent_run_id: "" },
  ])("400 invalid_filter for %j, which must not show everything", async (query) => {
    expect(await search(query)).toMatchObject({ status: 400, body: { code: "invalid_filter" } });
  });

  it("400 for a filter that is given twice, and for a limit that is no positive integer", async () => {
    const twice = await service.call("owner", "GET", "/api/runs/search?q=a&q=b");
    expect([twice.status, twice.body.code]).toEqual([400, "invalid_filter"]);
    for (const limit of ["0", "-1", "1.5", "x"]) expect((await search({ limit })).body.code).toBe("invalid_pagination");
  });
});

describe("GET /api/runs/counts", () => {
  const counts = (query: Record<string, string> = {}, holder: Holder = "owner") =>
    service.call(holder, "GET", `/api/runs/counts?${new URLSearchParams(query)}`);

  it("counts what a search finds, by outcome, and by agent and cause with the newest run of each", async () => {
    const { conversationId, runId } = await played(owner, "Weather of Paris");
    const { body } = await counts({ user_id: "owner", outcome: "failed" });
    expect(body).toEqual({
      total: 1,
      complete: true,
      outcomes: { failed: 1 },
      groups: [
        {
          ...{ agent_id: "helper", outcome: "failed", reason: "model_refused", count: 1 },
          newest: {
            ...{ run_id: runId, title: "Weather of Paris", at: expect.any(String) },
            message: "The quota of the galaxy is used up",
          },
        },
      ],
      left_out: 0,
    });
    const after = new Date(Date.parse(body.groups[0].newest.at) + 1).toISOString();
    expect((await counts({ outcome: "failed", ended_from: after })).body).toMatchObject({ total: 0, groups: [] });
    await service.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    const bulkCounts = (await counts({ user_id: "bulk" })).body;
    expect(bulkCounts).toMatchObject({ total: 700, complete: true, outcomes: { failed: 2, waiting: 698 } });
    expect(bulkCounts.groups.map(({ agent_id, outcome, count }: any) => [agent_id, outcome, count])).toEqual([
      ["bulk-agent", "waiting", 696],
      ["bulk-agent", "failed", 2],
      ["rare-agent", "waiting", 2],
    ]);
  });

  it("counts for a member the member's own runs, and none for a token without a user", async () => {
    const { body } = await counts({}, "member");
    expect(new Set(body.groups.map(({ agent_id }: any) => agent_id))).not.toContain("bulk-agent");
    expect((await counts({ user_id: "bulk" }, "member")).body.total).toBe(0);
    expect((await counts({ user_id: "bulk" }, "service")).body).toMatchObject({ total: 0, groups: [] });
    expect((await service.call("owner", "GET", "/api/runs/counts?outcome=odd")).body.code).toBe("invalid_filter");
  });
});

describe("countRuns", () => {
  const page = (items: readonly number[], next?: FindPlace) => ({ items, next, previous: undefined });

  it("counts the newest runs up to its limit, and says that there are more", async () => {
    const asked: number[] = [];
    const found = await countRuns<number>(
      async ({ limit }) => {
        asked.push(limit);
        return page(
          Array.from({ length: limit }, (_, at) => at),
          { at: "", id: `${asked.length}` },
        );
      },
      () => [],
    );
    expect([found.total, found.isComplete, asked.length]).toEqual([RUN_COUNT.runs, false, 10]);
  });

  it("reads a bounded number of pages, also if few runs match, and shows a bounded number of groups", async () => {
    let pages = 0;
    const empty = await countRuns<number>(
      async () => page([], { at: "", id: `${++pages}` }),
      () => [],
    );
    expect([empty.total, empty.isComplete, pages]).toEqual([0, false, RUN_COUNT.pages]);
    const many = await countRuns<number>(
      async () => page(Array.from({ length: 150 }, (_, at) => at)),
      (run) => [`${Math.max(run, 20)}`],
    );
    expect([many.groups.length, many.leftOut, many.groups[0]]).toEqual([100, 30, { count: 21, newest: 0 }]);
  });
});

describe("client.findRuns", () => {
  it("reads page after page, as far as it is iterated", async () => {
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.owner });
    const found: string[] = [];
    for await (const run of client.findRuns({ userId: "bulk", words: "common", from: new Date(Date.UTC(2020, 0, 1, 1)) })) {
      found.push(run.run_id);
      if (found.length === 120) break;
    }
    expect(found).toEqual(bulkIds(() => true).slice(0, 120));
    const failed = client.findRuns({ userId: "bulk", outcome: "failed" });
    expect((await Array.fromAsync(failed)).map(({ run_id }) => run_id)).toEqual(bulkIds(({ status }) => status === "failed"));
    const none = client.findRuns({ userId: "bulk", words: "common words", status: "completed" });
    expect(await none[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });

  it("has a brother that counts the runs of the same search", async () => {
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.owner });
    const { total, outcomes } = await client.countRuns({ userId: "bulk", words: "common", outcome: "failed" });
    expect(total).toBe(bulkIds(({ status }) => status === "failed").length);
    expect(outcomes).toEqual({ failed: total });
    const signal = AbortSignal.abort(new Error("left"));
    await expect(client.countRuns({ signal })).rejects.toThrow("left");
  });

  it("separates background runs from others", async () => {
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.owner });
    const of = async (background: boolean) => {
      const found = await client.findRuns({ userId: "bulk", background })[Symbol.asyncIterator]().next();
      return found.done !== true;
    };
    expect([await of(true), await of(false)]).toEqual([false, true]);
  });
});

describe("words of a text", () => {
  it("are letters and digits in lower case; scripts without spaces give pairs of characters", () => {
    expect(wordsOf("Ünïcode, ＦＵＬＬ-width don't x1 x1", 9)).toEqual(["ünïcode", "full", "width", "don", "t", "x1"]);
    expect(wordsOf("東京都 in 2030年", 9)).toEqual(["東京", "京都", "in", "2030", "年"]);
    expect(wordsOf("a b c", 2)).toEqual(["a", "b"]);
  });

  it("are the same of themselves, whatever the text", () => {
    assert(
      property(string({ unit: "binary", maxLength: 300 }), (text) => {
        for (const word of wordsOf(text, 20)) {
          expect(word.isWellFormed() && word.length <= 40 && !word.includes(" ")).toBe(true);
          expect(wordsOf(word, 20)).toEqual([word]);
        }
      }),
    );
  });

  it("of ASCII are the same beside other characters", () => {
    assert(
      property(string({ unit: "binary-ascii", maxLength: 300 }), (text) => {
        expect(wordsOf(`${text} \u00e9`, 300)).toEqual([...new Set([...wordsOf(text, 300), "\u00e9"])]);
      }),
    );
  });
});

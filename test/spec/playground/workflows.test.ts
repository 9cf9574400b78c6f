import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { createManualClock } from "@portico/adapters/clock/manual";
import { demo } from "@portico/adapters/models/demo";
import { functionTools } from "@portico/adapters/tools/functions";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { codeNode } from "@portico/workflow-nodes/code";
import { httpNode } from "@portico/workflow-nodes/http";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { Secret } from "@portico/core";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { describe, expect, it, onTestFinished } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";
import { root } from "../../rooms/repository.ts";

const FOLDER = resolve(root, "playground/workflows");
const SECRETS = { TRACKER: new Secret("tracker-secret"), SHOP: new Secret("shop-secret"), MAIL: new Secret("mail-secret") };

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: any;
}

/** All the services that the definitions call, in one: answers `status`, and JSON or bytes. A body that is sent is read as a form or as JSON; of a file, its length. */
async function startServices(answer: (asked: Asked) => readonly [number, object]) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then(async (bytes) => {
      const call = {
        ...{ method: request.method!, path: request.url!, headers: request.headers },
        body: await readBody(bytes, request.headers["content-type"] ?? ""),
      };
      asked.push(call);
      const [status, reply] = answer(call);
      if (Buffer.isBuffer(reply)) response.writeHead(status, { "content-type": "application/pdf" }).end(reply);
      else response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ host, asked },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function readBody(bytes: Buffer, type: string): Promise<unknown> {
  if (bytes.length === 0) return undefined;
  if (/pdf/.test(type)) return bytes.length;
  const body = new Response(new Uint8Array(bytes), { headers: { "content-type": type } });
  return /form/.test(type) ? body.formData() : body.json();
}

const tools = functionTools({
  tools: [
    {
      name: "FindCustomer",
      description: "Finds a customer.",
      inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      riskLevel: "low",
      requiresConfirmation: false,
      run: async (args) => JSON.stringify({ name: `Customer ${(args as { id: string }).id}`, plan: "large" }),
    },
    {
      name: "SearchManual",
      description: "Searches the manual.",
      inputSchema: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
      riskLevel: "low",
      requiresConfirmation: false,
      run: async () => "Hold the red button for five seconds.",
    },
  ],
});
const agents = new Map([["support", { name: "Support", engine: "loop", tools: ["FindCustomer", "SearchManual"] }]]);

/** Every definition of the folder, deployed as it is; only the addresses that it calls are the test's. */
function startPlayground(host = "127.0.0.1:9", more: WorkflowServiceOptions = {}): Promise<WorkflowService> {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".yaml"));
  const definitions = Object.fromEntries(
    files.map((file) => [
      file,
      readFileSync(resolve(FOLDER, file), "utf8").replaceAll(/https:\/\/\w+\.example/g, `http://${host}`),
    ]),
  );
  const adapters = [modelNode(), toolNode(), httpNode({ allow: [host] }), codeNode({}), tools];
  return startWorkflowService({
    definitions,
    adapters,
    agents: { agents },
    runtime: { secrets: SECRETS, publicUrl: "https://workflows.example" },
    ...more,
  });
}

async function decide(service: WorkflowService, runId: string, body: object, workflowId = "triage") {
  await service.until(workflowId, runId, ({ status }) => status === "waiting_human");
  const headers = { "x-execution-grant": await service.grant({ workflowId }) };
  return service.call("POST", `/api/workflow/${workflowId}/runs/${runId}/gate`, body, { headers });
}

async function found(service: WorkflowService, query: Record<string, string>): Promise<string[]> {
  const { body } = await service.call("GET", `/api/workflow/runs/search?${new URLSearchParams(query)}`);
  return body.runs.map(({ runId }: { runId: string }) => runId);
}

describe("playground/workflows", () => {
  it("are all usable as they are", async () => {
    await using service = await startPlayground();
    const { workflows } = (await service.call("GET", "/api/workflows")).body;
    expect(workflows.map(({ id }: { id: string }) => id)).toEqual([
      ...[
        "answer",
        "archive",
        "charge",
        "contact",
        "deliver",
        "digest",
        "invoice",
        "nightly",
        "price-list",
        "publish",
        "ranking",
        "refund",
        "report",
        "stocktake",
      ],
      ...["summarize", "triage", "watch"],
    ]);
  });

  it("triage: a bug is filed when a person agrees, with the severity that they give, and answered", async () => {
    await using services = await startServices(() => [201, { id: 17 }]);
    await using service = await startPlayground(services.host);
    const runId = await service.trigger("triage", { ticket: "The door does not open." });
    expect((await decide(service, runId, { decision: "approve" })).status).toBe(400);
    expect((await decide(service, runId, { decision: "approve", values: { severity: 2 } })).status).toBe(200);
    const detail = await service.ended("triage", runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { kind: "bug", issue: 17 } });
    expect(detail.finalOutputs.answer).toContain("It is filed as issue 17.");
    expect(services.asked).toMatchObject([
      {
        headers: { authorization: "Bearer tracker-secret" },
        body: { text: "The door does not open.", severity: 2 },
      },
    ]);
    expect(JSON.stringify(detail)).not.toContain("tracker-secret");
  });

  it("triage: a rejected ticket is still answered, and no issue is filed", async () => {
    await using service = await startPlayground();
    const runId = await service.trigger("triage", { ticket: "The door is ugly." });
    await decide(service, runId, { decision: "reject" });
    const detail = await service.ended("triage", runId);
    expect(detail).toMatchObject({
      status: "completed",
      finalOutputs: { issue: null },
      nodeResults: { file: { status: "skipped" } },
    });
    expect(detail.finalOutputs.answer).toContain("No issue was filed.");
  });

  it("summarize: each document by itself, and all of them together", async () => {
    await using service = await startPlayground();
    const documents = Array.from({ length: 12 }, (_, index) => ({ title: `Note ${index}`, text: `It says ${index}.` }));
    const { finalOutputs } = await service.ended("summarize", await service.trigger("summarize", { documents }));
    expect(finalOutputs.documents.map(({ title }: { title: string }) => title)).toEqual(documents.map(({ title }) => title));
    expect(finalOutputs.documents[3].summary).toContain("It says 3.");
    expect(finalOutputs.summary).toContain("Note 0: ");
    expect((await service.call("POST", "/api/workflow/webhook?id=summarize", { documents: [] })).body).toMatchObject({
      code: "invalid_parameters",
      details: { parameters: [{ path: "/documents" }] },
    });
  });

  it("deliver: retries temporary failures, and sends the order with a key", async () => {
    let reads = 0;
    await using services = await startServices(({ path }) => {
      if (path === "/shipments") return [201, { tracking: "T-1" }];
      return ++reads < 2 ? [503, {}] : [200, { items: ["lamp"] }];
    });
    await using service = await startPlayground(services.host);
    const detail = await service.ended("deliver", await service.trigger("deliver", { order: "A-1" }));
    expect(detail.finalOutputs).toEqual({ result: "shipped", tracking: "T-1" });
    expect(detail.nodeResults.read.attempts).toBe(2);
    const shipment = services.asked.find(({ path }) => path === "/shipments")!;
    expect(shipment).toMatchObject({ body: { order: "A-1", items: ["lamp"] } });
    expect(shipment.headers["idempotency-key"]).toBeTruthy();
  });

  it.each([
    ["known", 409, []],
    ["failed", 400, ["/alarms"]],
  ])("deliver: ends as %s where the warehouse says %i", async (result, status, told) => {
    await using services = await startServices(({ path }) => (path === "/shipments" ? [status, {}] : [200, { items: [] }]));
    await using service = await startPlayground(services.host);
    const { finalOutputs } = await service.ended("deliver", await service.trigger("deliver", { order: "A-1" }));
    expect(finalOutputs).toEqual({ result, tracking: null });
    expect(services.asked.map(({ path }) => path).slice(2)).toEqual(told);
  });

  it("contact: sends a form, with a list as repeated names", async () => {
    await using services = await startServices(() => [202, {}]);
    await using service = await startPlayground(services.host);
    const parameters = { email: "a@b.example", message: "Hello & bye", topics: ["door", "lamp"] };
    const { finalOutputs } = await service.ended("contact", await service.trigger("contact", parameters));
    expect(finalOutputs).toEqual({ status: 202 });
    expect([...services.asked[0]!.body]).toEqual([
      ["email", "a@b.example"],
      ["message", "Hello & bye"],
      ["topic", "door"],
      ["topic", "lamp"],
    ]);
  });

  it("report: uploads the bytes that it fetched, as a file with a name", async () => {
    const pdf = Buffer.from([37, 80, 68, 70, 0, 255, 13, 10]);
    await using services = await startServices(({ method }) => (method === "GET" ? [200, pdf] : [201, { id: 5 }]));
    await using service = await startPlayground(services.host);
    const { finalOutputs } = await service.ended("report", await service.trigger("report", { month: "2026-10" }));
    expect(finalOutputs).toEqual({ document: 5 });
    const form = services.asked[1]!.body as FormData;
    const file = form.get("document") as File;
    expect([form.get("month"), file.name, file.type]).toEqual(["2026-10", "report-2026-10.pdf", "application/pdf"]);
    expect(Buffer.from(await file.arrayBuffer())).toEqual(pdf);
  });

  it("report: uploads no text", async () => {
    await using services = await startServices(() => [200, { maintenance: true }]);
    await using service = await startPlayground(services.host);
    const { finalOutputs } = await service.ended("report", await service.trigger("report", { month: "2026-10" }));
    expect([finalOutputs, services.asked.length]).toEqual([{ document: null }, 1]);
  });

  it("archive: a file that is too large for an output is fetched, listed with the run and stored", async () => {
    const rows = Buffer.alloc(5 * 1024 * 1024, '{"row":1}\n');
    await using services = await startServices(({ method }) => (method === "GET" ? [200, rows] : [201, {}]));
    await using service = await startPlayground(services.host);
    const detail = await service.ended("archive", await service.trigger("archive", { day: "2026-11-01" }));
    expect([detail.status, detail.finalOutputs.bytes]).toEqual(["completed", rows.length]);
    expect(detail.files).toMatchObject([{ name: "export-2026-11-01.jsonl", size: rows.length }]);
    expect(services.asked[1]).toMatchObject({
      headers: { "content-length": `${rows.length}`, "x-content-sha256": detail.finalOutputs.export.sha256 },
      body: rows.length,
    });
  });

  it.each([
    ["booked", 201, {}, { booked: true, status: null }, []],
    [
      "refused",
      409,
      { why: "Booked already" },
      { booked: false, status: 409 },
      [{ text: expect.stringMatching(/^Invoice 7\/A: .* 409$/), code: "http_status", answer: '{"why":"Booked already"}' }],
    ],
  ])(
    "invoice: the attachment of a user is %s, with a token that the history hides",
    async (_how, status, reply, outputs, told) => {
      await using services = await startServices(({ method, path }) => {
        if (path === "/login") return [200, { token: "token-of-the-books" }];
        return method === "PUT" ? [status, reply] : [201, {}];
      });
      const folder = temporaryFolder();
      onTestFinished(folder.remove);
      const files = fileBlobs({ dir: join(folder.path, "files") });
      await using service = await startPlayground(services.host, {
        dataDir: folder.path,
        agents: { agents, plugins: [attachmentsMedia({})], adapters: [files] },
      });
      const form = new FormData();
      form.append("file", new Blob(["%PDF-1.7"], { type: "application/pdf" }), "invoice.pdf");
      const headers = { "x-agent-service-token": TOKENS.owner };
      const uploaded = await fetch(`${service.agents!.url}/api/attachments`, { method: "POST", headers, body: form });
      const { fileReference: attachment } = (await uploaded.json()) as { fileReference: string };
      const executionGrantId = await service.grant({ workflowId: "invoice", userId: "owner" });
      const parameters = { supplier: "Lamps & Co", number: "7/A", attachment };
      const order = { executionGrantId, idempotencyKey: "k", workflowId: "invoice", parameters };
      const { runId } = (await service.call("POST", "/api/workflow/run", order)).body;
      const detail = await service.ended("invoice", runId);
      expect([detail.error, detail.finalOutputs]).toEqual([undefined, outputs]);
      expect(JSON.stringify(detail)).not.toContain("token-of-the-books");
      const [login, book, ...alarms] = services.asked;
      expect(login!.headers.authorization).toBe(`Basic ${btoa("shop:shop-secret")}`);
      expect(book).toMatchObject({
        path: "/Lamps%20%26%20Co/7%2FA",
        headers: {
          authorization: "Bearer token-of-the-books",
          "x-invoice": createHash("sha256").update("Lamps & Co/7/A").digest("hex"),
        },
        body: 8,
      });
      expect(alarms.map(({ body }) => body)).toEqual(told);
    },
  );

  it("ranking: articles in the order of their sales, and the number of customers", async () => {
    const sale = (article: string, pieces: number, customer: string) => ({ article, pieces, customer });
    const sales = [sale("lamp", 2, "a"), sale("desk", 1, "b"), sale("chair", 4, "a"), sale("lamp", 1, "c")];
    await using services = await startServices(({ method }) => [200, method === "GET" ? { sales } : {}]);
    await using service = await startPlayground(services.host);
    const runId = await service.trigger("ranking", { screen: "main hall", hours: 2 });
    const ranking = { lines: ["chair: 4", "lamp: 3", "desk: 1"], customers: 3 };
    expect(await service.ended("ranking", runId)).toMatchObject({ status: "completed", finalOutputs: ranking });
    expect(services.asked).toMatchObject([
      { path: "/sales?hours=2&state=paid&state=sent" },
      { method: "PUT", path: "/main%20hall", body: ranking },
    ]);
  });

  it("answer: an agent answers with the tools that the node gives it", async () => {
    await using service = await startPlayground();
    const runId = await service.trigger("answer", { customer: "7", question: "It does not start. And FindCustomer?" });
    const detail = await service.ended("answer", runId);
    expect(detail.nodeResults.customer.outputs).toEqual({ name: "Customer 7", plan: "large" });
    expect(detail.finalOutputs.answer).toContain("Hold the red button for five seconds.");
    const receipt = await service.agents!.call("owner", "GET", `/api/runs/${detail.finalOutputs.run}/receipt`);
    expect(receipt.body.receipts[0].tool_calls.map(({ name }: { name: string }) => name)).toEqual(["SearchManual"]);
  });

  it("refund: small amounts are paid, a person decides about large ones, and each is found by order, customer and decision", async () => {
    await using services = await startServices(() => [201, {}]);
    await using service = await startPlayground(services.host);
    const customer = { id: "c-7", iban: "DE02120300000000202051" };
    const small = await service.trigger("refund", { order: "A-1", customer, amount: 20.5 });
    expect((await service.ended("refund", small)).finalOutputs).toEqual({ decision: "paid", amount: 20.5 });
    const [paid, refused] = [
      await service.trigger("refund", { order: "A-2", customer, amount: 900 }),
      await service.trigger("refund", { order: "A-3", customer: { id: "c-8" }, amount: 900 }),
    ];
    await decide(service, paid, { decision: "approve" }, "refund");
    await decide(service, refused, { decision: "reject" }, "refund");
    expect((await service.ended("refund", paid)).finalOutputs.decision).toBe("paid");
    expect((await service.ended("refund", refused)).finalOutputs.decision).toBe("refused");
    expect(services.asked.map(({ body }) => [body.order, body.account])).toEqual([
      ["A-1", customer.iban],
      ["A-2", customer.iban],
    ]);
    const workflowId = "refund";
    expect(await found(service, { workflowId, parameter: "customer.id=c-7" })).toEqual([paid, small]);
    expect(await found(service, { workflowId, parameter: "order=A-3", output: "decision=refused" })).toEqual([refused]);
    const { status } = await service.call("GET", "/api/workflow/runs/search?workflowId=refund&parameter=customer.iban%3Dx");
    expect(status).toBe(400);
  });

  it("price-list: sends only changes, and is found by how many there were, and by the error of an empty list", async () => {
    const price = (article: string, cents: number) => ({ article, cents });
    await using services = await startServices(({ path }) => {
      if (path === "/empty/prices") return [200, { prices: [] }];
      if (path === "/acme/prices") return [200, { prices: [price("lamp", 900), price("desk", 9900)] }];
      return [200, { prices: [price("lamp", 800), price("desk", 9900)] }];
    });
    await using service = await startPlayground(services.host);
    const run = async (parameters: object) => {
      const runId = await service.trigger("price-list", parameters);
      await service.ended("price-list", runId);
      return runId;
    };
    const sent = await run({ supplier: "acme" });
    const dry = await run({ supplier: "acme", dryRun: true });
    const empty = await run({ supplier: "empty" });
    expect(services.asked.filter(({ method }) => method === "POST").map(({ body }) => body)).toEqual([
      { prices: [price("lamp", 900)] },
    ]);
    expect(await found(service, { workflowId: "price-list", output: "changed=1" })).toEqual([dry, sent]);
    expect(await found(service, { workflowId: "price-list", output: "changed=1", parameter: "dryRun=true" })).toEqual([dry]);
    expect(await found(service, { q: "empty list", status: "failed" })).toEqual([empty]);
  });

  it("digest: runs another workflow for each section, and does without the ones that fail", async () => {
    await using service = await startPlayground();
    const documents = [{ title: "Tea", text: "It is hot." }];
    const sections = [
      { topic: "Tea", documents },
      { topic: "Nothing", documents: [] },
      { topic: "More tea", documents },
    ];
    const runId = await service.trigger("digest", { sections });
    const { finalOutputs } = await service.ended("digest", runId);
    expect(finalOutputs).toMatchObject({ missing: ["Nothing"] });
    expect(finalOutputs.page).toMatch(/^# Tea\n\n[^#]*Tea: [^#]*# More tea\n/);
    const { runs } = (await service.call("GET", "/api/workflow/summarize/runs")).body;
    expect(runs.map(({ parentRunId }: { parentRunId: string }) => parentRunId)).toEqual([runId, runId]);
  });

  it.each([
    ["the next night", {}, "2030-01-01T02:00:00.000Z"],
    ["the time that is given", { at: "2030-01-01T05:30:00+01:00" }, "2030-01-01T05:30:00+01:00"],
  ])("nightly: waits for %s, and looks until the export is ready", async (_when, parameters, began) => {
    const clock = createManualClock();
    const times: { path: string; at: number }[] = [];
    await using services = await startServices(({ method, path }) => {
      times.push({ path: `${method} ${path}`, at: clock.now() });
      if (method === "POST") return [201, { id: "e1" }];
      return [200, times.length < 4 ? { status: "running" } : { status: "ready", file: "export.csv" }];
    });
    await using service = await startPlayground(services.host, { clock, agents: undefined, ...offline(services.host) });
    const runId = await service.trigger("nightly", parameters);
    await service.until("nightly", runId, ({ nodeResults }) => nodeResults.night?.status === "running");
    const status = async () => {
      await clock.jump(10 * 60_000);
      return (await service.detail("nightly", runId)).status;
    };
    await expect.poll(status, { interval: 1, timeout: 30_000 }).toBe("completed");
    expect((await service.detail("nightly", runId)).finalOutputs).toEqual({ began, file: "export.csv" });
    expect(times.map(({ path }) => path)).toEqual(["POST /exports", ...Array.from({ length: 3 }, () => "GET /exports/e1")]);
    expect(times[0]!.at).toBeGreaterThanOrEqual(Date.parse(began));
  });

  it("nightly: a run starts in the evening, and waits for the night", async () => {
    const clock = createManualClock({ startAt: "2030-01-01T17:59:00Z" });
    await using services = await startServices(({ method }) =>
      method === "POST" ? [201, { id: "e1" }] : [200, { status: "running" }],
    );
    await using service = await startPlayground(services.host, { clock, agents: undefined, ...scheduled(services.host) });
    const runs = async (): Promise<any[]> => (await service.call("GET", "/api/workflow/nightly/runs")).body.runs;
    await expect.poll(async () => (await clock.advance(1000), (await runs()).length), { interval: 1 }).toBe(1);
    const [{ runId, schedule }] = await runs();
    expect(schedule).toEqual({ name: "evening", plannedAt: "2030-01-01T18:00:00.000Z" });
    const { nodeResults } = await service.until("nightly", runId, ({ nodeResults: nodes }) => nodes.night?.status === "running");
    expect(nodeResults.time.outputs).toBe("2030-01-02T02:00:00.000Z");
    expect(services.asked.filter(({ path }) => path.startsWith("/exports"))).toEqual([]);
  });

  it.each([
    ["few", 20, false, []],
    ["many", 21, true, [{ text: "21 orders wait" }]],
  ])("watch: at %s orders that wait, an alarm is sent only above the limit of the schedule", async (_how, count, alarm, told) => {
    // A Tuesday.
    const clock = createManualClock({ startAt: "2030-01-01T07:59:00Z" });
    await using services = await startServices(({ method }) => (method === "POST" ? [201, {}] : [200, { count }]));
    await using service = await startPlayground(services.host, { clock, agents: undefined, ...scheduled(services.host) });
    const runsOf = async (name: string): Promise<any[]> =>
      (await service.call("GET", "/api/workflow/watch/runs")).body.runs.filter((run: any) => run.schedule?.name === name);
    await expect
      .poll(
        async () => (
          await clock.advance(1000),
          [(await runsOf("office-hours")).length, (await runsOf("always")).length].map(Math.sign)
        ),
        { interval: 1, timeout: 30_000 },
      )
      .toEqual([1, 1]);
    const ends = async (name: string) => (await service.ended("watch", (await runsOf(name)).at(-1).runId)).finalOutputs;
    expect([await ends("office-hours"), await ends("always")]).toEqual([
      { waiting: count, alarm },
      { waiting: count, alarm: false },
    ]);
    expect(services.asked.filter(({ method }) => method === "POST").map(({ body }) => body)).toEqual(told);
  });
});

describe("playground/workflows: publish", () => {
  it.each([
    ["approve", { "value.audience": '"members"' }, { published: true, reason: null }],
    ["reject", { comment: "Too long" }, { published: false, reason: "Too long" }],
  ])("a mail has a link, with which a person can %s", async (decision, fields, outputs) => {
    await using services = await startServices(() => [201, {}]);
    await using service = await startPlayground(services.host);
    const runId = await service.trigger("publish", { about: "The lift works again", reviewer: "mia@house.example" });
    await expect.poll(() => services.asked.length).toBe(1);
    const [mail] = services.asked;
    expect(mail).toMatchObject({
      path: "/messages",
      headers: { authorization: "Bearer mail-secret" },
      body: { to: "mia@house.example", subject: "Publish this notice?" },
    });
    const [, path] = /https:\/\/workflows\.example(\/approve\/\S+)/.exec(mail!.body.text)!;
    expect((await fetch(service.url + path)).status).toBe(200);
    const answer = await fetch(service.url + path, { method: "POST", body: new URLSearchParams({ decision, ...fields }) });
    expect(answer.status).toBe(200);
    expect(await service.ended("publish", runId)).toMatchObject({ status: "completed", finalOutputs: outputs });
    expect(services.asked.slice(1).map(({ body }) => body.audience)).toEqual(decision === "approve" ? ["members"] : []);
  });
});

describe("playground/workflows: charge", () => {
  it.each([
    [
      { status: "paid", receipt: "r-1" },
      { shipped: true, problem: null },
    ],
    [{ status: "declined" }, { shipped: false, problem: null }],
  ])("the event %o decides whether the order is shipped", async (event, outputs) => {
    await using services = await startServices(() => [201, {}]);
    await using service = await startPlayground(services.host);
    const runId = await service.trigger("charge", { order: "o-1", cents: 500 });
    await expect.poll(() => services.asked.length).toBe(1);
    const [charge] = services.asked;
    expect(charge).toMatchObject({
      path: "/charges",
      headers: { authorization: "Bearer shop-secret", "idempotency-key": `${runId}:charge:1` },
      body: { order: "o-1", cents: 500 },
    });
    const { pathname } = new URL(charge!.body.callback as string);
    const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(event) };
    expect((await fetch(service.url + pathname, sent)).status).toBe(200);
    expect(await service.ended("charge", runId)).toMatchObject({ status: "completed", finalOutputs: outputs });
    expect(services.asked.slice(1).map(({ body }) => body)).toEqual(outputs.shipped ? [{ order: "o-1", receipt: "r-1" }] : []);
  });
});

describe("playground/workflows: stocktake", () => {
  it("unlocks the shelf after the booking, and raises no alarm", async () => {
    await using services = await startServices(({ path }) => (path === "/locks" ? [201, { id: "l1" }] : [200, { items: 7 }]));
    await using service = await startPlayground(services.host);
    const detail = await service.ended("stocktake", await service.trigger("stocktake", { shelf: "A1" }));
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { items: 7 } });
    expect(services.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
      ...["POST /locks", "GET /shelves/A1", "POST /stock", "DELETE /locks/l1"],
    ]);
  });

  it.each([
    ["/stock", "DELETE /locks/l1"],
    ["/locks", "DELETE /locks/none"],
  ])("unlocks the shelf and raises the alarm where %s fails", async (failing, unlocked) => {
    await using services = await startServices(({ method, path }) => {
      if (path === failing && method === "POST") return [400, {}];
      return path === "/locks" ? [201, { id: "l1" }] : [200, { items: 7 }];
    });
    await using service = await startPlayground(services.host);
    const runId = await service.trigger("stocktake", { shelf: "A1" });
    expect(await service.ended("stocktake", runId)).toMatchObject({ status: "failed", error: { code: "http_status" } });
    const calls = services.asked.map(({ method, path }) => `${method} ${path}`);
    expect(calls.slice(-2)).toEqual([unlocked, "POST /alarms"]);
    expect(services.asked.at(-1)!.body).toMatchObject({ text: expect.stringContaining("Shelf A1: "), run: runId });
  });
});
/** Also with schedules. */
function scheduled(host: string): Pick<WorkflowServiceOptions, "adapters"> {
  return { adapters: [...offline(host).adapters!, recordSchedules({})] };
}

/** Without agents beside: time is the test's. */
function offline(host: string): Pick<WorkflowServiceOptions, "adapters"> {
  return { adapters: [modelNode(), toolNode(), httpNode({ allow: [host] }), codeNode({}), tools, demo({})] };
}

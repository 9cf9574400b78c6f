import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { documentAgents } from "@portico/adapters/agents/documents";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { agentDocuments } from "@portico/operator/agent-documents";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

/** As a person writes it: its layout stays. */
const text = `{
  "name": "Helper",  "engine": "scripted",
  "instructions": "Be brief."
}
`;
const path = "/api/agents/helper/document";

let folder: ReturnType<typeof temporaryFolder>;
let service: AgentService;
const fileOf = (id = "helper") => join(folder.path, id, "agent.json");
const deploy = (id: string, content: string) => {
  mkdirSync(join(folder.path, id), { recursive: true });
  writeFileSync(fileOf(id), content);
};
const start = (options: AgentServiceOptions = {}) => startAgentService({ plugins: [agentDocuments({})], ...options });

it("agents of an instance with `editable: false` can be read and checked, and are not changed", async () => {
  const own = temporaryFolder();
  mkdirSync(join(own.path, "helper"));
  writeFileSync(join(own.path, "helper", "agent.json"), text);
  await using fixed = await start({ agentsDir: own.path, plugins: [agentDocuments({ editable: false })] });
  const ask = (method: string, at: string, body?: unknown, headers?: Record<string, string>) =>
    fixed.call("owner", method, at, body, headers);
  expect((await ask("GET", "/api/handshake")).body.capabilities).not.toHaveProperty("agentDocuments");
  const etag = (await fetch(fixed.url + path, { headers: { "x-agent-service-token": "owner-token-0123456789" } })).headers.get(
    "etag",
  )!;
  for (const refused of [
    await ask("PUT", path, { text: '{"name":"Other"}' }, { "if-match": etag }),
    await ask("PUT", "/api/agents/new/document", { text: '{"name":"New"}' }, { "if-none-match": "*" }),
    await ask("DELETE", path, undefined, { "if-match": etag }),
  ])
    expect([refused.status, refused.body.code]).toEqual([409, "agents_not_editable"]);
  expect([
    (await ask("POST", `${path}/check`, { text })).status,
    readFileSync(join(own.path, "helper", "agent.json"), "utf8"),
  ]).toEqual([...[200, text]]);
  expect(readdirSync(own.path)).toEqual(["helper"]);
  own.remove();
});

it("a folder named agent.json is an agent that cannot be read, and not one without the file (2.10)", async () => {
  mkdirSync(fileOf("odd"), { recursive: true });
  mkdirSync(join(folder.path, "empty"));
  const { body } = await service.call("owner", "GET", "/api/agents");
  expect(body.agents.map(({ id, metadataError }: any) => [id, metadataError])).toEqual([
    ["empty", "missing"],
    ["helper", undefined],
    ["odd", "unreadable"],
  ]);
});

beforeEach(async () => {
  folder = temporaryFolder();
  deploy("helper", text);
  service = await start({ agentsDir: folder.path });
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

const read = (headers: Record<string, string> = {}, id = "helper") =>
  fetch(`${service.url}/api/agents/${id}/document`, {
    headers: { "x-agent-service-token": "owner-token-0123456789", ...headers },
  });
const tag = async (id = "helper") => (await read({}, id)).headers.get("etag")!;
const save = (written: string, headers: Record<string, string>, id = "helper") =>
  service.call("owner", "PUT", `/api/agents/${id}/document`, { text: written }, headers);
const remove = (headers: Record<string, string>, id = "helper") =>
  service.call("owner", "DELETE", `/api/agents/${id}/document`, undefined, headers);
const namesOf = async () =>
  ((await service.call("owner", "GET", "/api/agents")).body.agents as { id: string; name: string }[]).map(({ id, name }) => [
    id,
    name,
  ]);

describe("GET /api/agents/:id/document", () => {
  it("answers the text of the file with a strong ETag, and 304 for the same text", async () => {
    const answer = await read();
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(await answer.text()).toBe(text);
    const etag = answer.headers.get("etag")!;
    expect(etag).toMatch(/^"[\w-]+"$/);
    const again = await read({ "if-none-match": etag });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    expect((await read({ "if-none-match": '"other"' })).status).toBe(200);
  });

  it("answers a text with errors too, so that it can be mended, and 404 without a text", async () => {
    deploy("broken", "{ not JSON");
    mkdirSync(join(folder.path, "empty"));
    await expect.poll(async () => (await read({}, "broken")).status).toBe(200);
    expect(await (await read({}, "broken")).text()).toBe("{ not JSON");
    for (const id of ["empty", "unknown"]) {
      const answer = await read({}, id);
      expect([answer.status, ((await answer.json()) as any).code]).toEqual([404, "agent_document_not_found"]);
    }
    expect((await read({}, "a%2F..%2Fb")).status).toBe(400);
  });
});

describe("GET /api/agents/:id/document/choices", () => {
  it("lists the engines, the tools with their risk, and the folders with a SKILL.md, also of an agent that is not written yet", async () => {
    mkdirSync(join(folder.path, "helper/skills/read-bills"), { recursive: true });
    writeFileSync(join(folder.path, "helper/skills/read-bills/SKILL.md"), "Read them.");
    const { status, body } = await service.call("owner", "GET", "/api/agents/helper/document/choices");
    expect([status, body.engines, body.skills]).toEqual([200, ["loop", "scripted"], ["skills/read-bills"]]);
    expect(body.tools).toContainEqual({
      ...{ id: "SendUserMessage", name: "SendUserMessage", description: expect.stringMatching(/\w/) },
      ...{ riskLevel: "low", requiresConfirmation: false },
    });
    expect((await service.call("owner", "GET", "/api/agents/fresh/document/choices")).body).toEqual({ ...body, skills: [] });
  });
});

describe("every call of the texts of agents", () => {
  it.each(["helper", "unknown"])("is refused for members and services in the same way, whether %s exists or not", async (id) => {
    const document = `/api/agents/${id}/document`;
    for (const holder of ["member", "service"] as const)
      for (const [method, address, body] of [
        ["GET", document, undefined],
        ["PUT", document, { text }],
        ["DELETE", document, undefined],
        ["POST", `${document}/check`, { text }],
        ["GET", "/api/agent-schema", undefined],
      ] as const) {
        const answer = await service.call(holder, method, address, body, { "if-match": "*" });
        expect([method, answer.status, answer.body.code]).toEqual([method, 403, "owner_required"]);
      }
    expect(readFileSync(fileOf(), "utf8")).toBe(text);
  });

  it("answers 409 agents_not_editable where a program defines the agents, or their store takes no writes", async () => {
    await using byProgram = await start();
    const header = { "if-match": "*" };
    for (const answer of [
      await byProgram.call("owner", "GET", path),
      await byProgram.call("owner", "PUT", path, { text }, header),
      await byProgram.call("owner", "DELETE", path, undefined, header),
    ])
      expect(answer).toMatchObject({ status: 409, body: { code: "agents_not_editable" } });

    const driver = {
      hasItem: async () => true,
      getItem: async () => text,
      getKeys: async () => ["helper:agent.json"],
    };
    await using readOnly = await start({
      agentAdapters: [unstorageDocuments({ id: "agents", driver }), documentAgents({})],
    });
    const shown = await readOnly.raw({ method: "GET", path, headers: { "x-agent-service-token": "owner-token-0123456789" } });
    expect([shown.status, await shown.text()]).toEqual([200, text]);
    for (const answer of [
      await readOnly.call("owner", "PUT", path, { text: `${text}\n` }, header),
      await readOnly.call("owner", "DELETE", path, undefined, header),
    ])
      expect(answer).toMatchObject({ status: 409, body: { code: "agents_not_editable" } });
  });
});

describe("PUT /api/agents/:id/document", () => {
  const changed = text.replace("Be brief.", "Be kind.");

  it("replaces the text as it is written, and leaves no other file", async () => {
    const answer = await save(changed, { "if-match": await tag() });
    expect(answer).toMatchObject({ status: 200, body: { agentId: "helper", created: false, warnings: [] } });
    expect(answer.body.etag).toBe(await tag());
    expect(readFileSync(fileOf(), "utf8")).toBe(changed);
    expect(readdirSync(join(folder.path, "helper"))).toEqual(["agent.json"]);
  });

  it("creates an agent with If-None-Match: *, and refuses it with 412 and the ETag where the agent exists", async () => {
    const created = await save(`{ "name": "New" }`, { "if-none-match": "*" }, "new");
    expect(created).toMatchObject({ status: 200, body: { agentId: "new", created: true } });
    await expect.poll(namesOf).toContainEqual(["new", "New"]);
    const again = await save(text, { "if-none-match": "*" }, "new");
    expect(again).toMatchObject({ status: 412, body: { code: "agent_document_changed" } });
    expect(again.headers["etag"]).toBe(await tag("new"));
    expect(readFileSync(fileOf("new"), "utf8")).toBe(`{ "name": "New" }`);
  });

  it("answers 428 without a condition, and 412 with the present ETag where the text has changed meanwhile", async () => {
    expect(await save(changed, {})).toMatchObject({ status: 428, body: { code: "precondition_required" } });
    expect(await save(changed, { "if-none-match": '"x"' })).toMatchObject({ status: 428 });
    const old = await tag();
    deploy("helper", `${text}\n`);
    const answer = await save(changed, { "if-match": old });
    expect(answer).toMatchObject({ status: 412, body: { code: "agent_document_changed" } });
    expect(answer.headers["etag"]).toBe(await tag());
    expect((await save(changed, { "if-match": '"x"' }, "unknown")).status).toBe(412);
    expect(readFileSync(fileOf(), "utf8")).toBe(`${text}\n`);
    expect(existsSync(join(folder.path, "unknown"))).toBe(false);
  });

  it("writes one of several texts that are sent at once for the same version", async () => {
    const etag = await tag();
    const texts = Array.from({ length: 8 }, (_, at) => `{ "name": "Helper ${at}" }`);
    const answers = await Promise.all(texts.map((each) => save(each, { "if-match": etag })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 412)]);
    const at = answers.findIndex(({ status }) => status === 200);
    expect(readFileSync(fileOf(), "utf8")).toBe(texts[at]);
    const made = await Promise.all(texts.map((each) => save(each, { "if-none-match": "*" }, "made")));
    expect(made.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 412)]);
  });

  it("answers 422 with the path and the place of each error, and writes nothing", async () => {
    const wrong = `{\n  "name": "Helper",\n  "temperature": 3,\n  "limits": { "perDay": 1 },\n  "schedules": [{ "name": "a", "everyMs": 5 }]\n}`;
    const answer = await save(wrong, { "if-match": await tag() });
    expect(answer).toMatchObject({ status: 422, body: { code: "agent_document_invalid" } });
    expect(answer.body.problems).toMatchObject([
      { severity: "error", line: 3, column: 3, path: "$.temperature", message: "Expected at most 2" },
      { severity: "error", line: 4, path: "$.limits.perDay", message: 'There is no key "perDay" here' },
      { severity: "error", line: 5, path: "$.schedules[0].everyMs", message: "Expected at least 1000" },
      { severity: "error", line: 5, path: "$.schedules[0].prompt", message: 'The key "prompt" is missing' },
    ]);
    for (const [each, place] of [
      ["", [1, 1]],
      ["[]", [1, 1]],
      [`{\n  "name": "x",,\n}`, [2, 15]],
      ["[".repeat(200_000), [1, 1]],
      ['{ "description": "no name" }', [1, 1]],
    ] as const) {
      const { status, body } = await save(each, { "if-match": "*" });
      expect([status, body.problems.length, [body.problems[0].line, body.problems[0].column]]).toEqual([422, 1, place]);
    }
    expect(readFileSync(fileOf(), "utf8")).toBe(text);
  });

  it("tells the keys that have no effect, and saves the text", async () => {
    const answer = await save(`{ "name": "Helper", "temprature": 1, "ui": {} }`, { "if-match": "*" });
    expect(answer.status).toBe(200);
    expect(answer.body.warnings).toEqual([
      {
        ...{ severity: "warning", line: 1, column: 21, path: "$.temprature" },
        message: 'The key "temprature" has no effect: did you mean "temperature"?',
      },
    ]);
  });

  it("refuses texts over 1 MiB with 422, and larger bodies with 413", async () => {
    const long = (length: number) => JSON.stringify({ name: "Helper", instructions: "x".repeat(length) });
    expect((await save(long(1024 * 1024), { "if-match": "*" })).status).toBe(422);
    expect((await save(long(3 * 1024 * 1024), { "if-match": "*" })).status).toBe(413);
    expect((await save(long(1000 * 1024), { "if-match": "*" })).status).toBe(200);
  });

  it("lets events of a webhook read the files of their author alone (4.3, rule 1)", async () => {
    const withFilesOf = (userId: string, more = {}) =>
      JSON.stringify({ name: "Helper", webhooks: { enabled: true, events: { deploy: { fileScope: { userId } }, ...more } } });
    const refused = await save(withFilesOf("member"), { "if-match": "*" });
    expect(refused.body.problems).toMatchObject([{ path: "$.webhooks.events.deploy.fileScope.userId" }]);
    expect((await save(withFilesOf("owner"), { "if-match": "*" })).status).toBe(200);
    deploy("helper", withFilesOf("member"));
    expect((await save(withFilesOf("member", { more: {} }), { "if-match": "*" })).status).toBe(200);
  });

  it("changes the next turn, and not the turn that has begun", async () => {
    const [reached, gate] = [createGate(), createGate()];
    const seen: (string | undefined)[] = [];
    service.engine.otherwise(async ({ agent }, { say }) => {
      reached.open();
      await gate.opened;
      seen.push(agent.instructions);
      await say({ type: "text", delta: "Done" });
    });
    const client = await service.connect();
    const first = await client.start("One");
    await reached.opened;
    expect((await save(changed, { "if-match": await tag() })).status).toBe(200);
    gate.open();
    await client.ended(first.clientRequestId);
    const second = await client.start("Two");
    await client.ended(second.clientRequestId);
    expect(seen).toEqual(["Be brief.", "Be kind."]);
  });
});

describe("DELETE /api/agents/:id/document", () => {
  it("removes the text and its empty folder: the agent is no longer listed", async () => {
    expect(await remove({ "if-match": await tag() })).toMatchObject({ status: 200, body: { agentId: "helper", removed: true } });
    expect(existsSync(join(folder.path, "helper"))).toBe(false);
    await expect.poll(namesOf).toEqual([]);
    expect((await read()).status).toBe(404);
  });

  it("leaves the other files of the folder", async () => {
    writeFileSync(join(folder.path, "helper/notes.md"), "notes");
    expect((await remove({ "if-match": await tag() })).status).toBe(200);
    expect(readdirSync(join(folder.path, "helper"))).toEqual(["notes.md"]);
  });

  it("answers 404 without a text, 428 without If-Match, and 412 for another version", async () => {
    expect((await remove({ "if-match": "*" }, "unknown")).status).toBe(404);
    expect((await remove({})).status).toBe(428);
    expect((await remove({ "if-none-match": "*" })).status).toBe(428);
    const answer = await remove({ "if-match": '"other"' });
    expect(answer).toMatchObject({ status: 412, body: { code: "agent_document_changed" } });
    expect(answer.headers["etag"]).toBe(await tag());
    expect(existsSync(fileOf())).toBe(true);
  });

  it("removes an agent once, where several callers do so at once", async () => {
    const etag = await tag();
    const answers = await Promise.all(Array.from({ length: 6 }, () => remove({ "if-match": etag })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.every(({ status }) => [200, 404, 412].includes(status))).toBe(true);
  });
});

describe("POST /api/agents/:id/document/check", () => {
  it("answers what is wrong in a text, and saves nothing", async () => {
    const check = (written: string) => service.call("owner", "POST", `${path}/check`, { text: written });
    expect(await check(text)).toMatchObject({ status: 200, body: { problems: [] } });
    const { body } = await check(`{ "nam": "Helper" }`);
    expect(body.problems).toMatchObject([
      { severity: "error", path: "$.name", message: 'The key "name" is missing' },
      { severity: "warning", path: "$.nam", message: expect.stringContaining('did you mean "name"?') },
    ]);
    expect(readFileSync(fileOf(), "utf8")).toBe(text);
  });

  it("tells 100 problems at most, and a warning takes the place of no error", async () => {
    const event = { promptTemplate: "x", toolIds: [], fileScope: { userId: "another" } };
    const events = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`event-${n}`, event]));
    const unknown = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`unknown${n}`, n]));
    const spoilt = JSON.stringify(
      { ...unknown, name: "Helper", engine: "scripted", webhooks: { enabled: true, events } },
      null,
      2,
    );
    const { body } = await service.call("owner", "POST", `${path}/check`, { text: spoilt });
    const problems = body.problems as { severity: string; line: number; column: number }[];
    expect(problems.map(({ severity }) => severity)).toEqual(Array.from({ length: 100 }, () => "error"));
    // Each event has seven lines, and names the user in the fifth.
    const [first] = problems;
    expect(spoilt.split("\n")[first!.line - 1]!.slice(first!.column - 1)).toBe('"userId": "another"');
    expect(problems.map(({ line }) => line - first!.line)).toEqual(Array.from({ length: 100 }, (_, n) => 7 * n));
  });
});

describe("GET /api/agent-schema", () => {
  it("answers a JSON Schema that fits the texts", async () => {
    const { status, body } = await service.call("owner", "GET", "/api/agent-schema");
    expect(status).toBe(200);
    const fits = new Ajv2020().compile(body);
    expect([fits(JSON.parse(text)), fits({ name: 1 })]).toEqual([true, false]);
  });
});

describe("a text beyond the bounds of agent.json", () => {
  const nested = `{"name":"Deep","ui":${"[".repeat(64)}${"]".repeat(64)}}`;
  it.each([
    ["too many levels", nested, "Expected at most 64 levels of lists and objects"],
    [
      "a path that is too long",
      JSON.stringify({ name: "Long", skills: ["/".repeat(1_001)] }),
      "Expected at most 1000 characters",
    ],
    ["too many skills", JSON.stringify({ name: "Many", skills: Array(1_001).fill("a") }), "Expected at most 1000 items"],
    ["a name that is too long", JSON.stringify({ name: "n".repeat(1_001) }), "Expected at most 1000 characters"],
    [
      "too many permissions",
      JSON.stringify({
        name: "Policy",
        toolPolicy: { tools: Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`t${at}`, "ask"])) },
      }),
      "Expected at most 1000 entries",
    ],
  ])("%s is refused, and is a metadataError of that agent alone if it is there already", async (_what, written, message) => {
    const refused = await save(written, { "if-match": await tag() });
    expect([refused.status, refused.body.problems]).toEqual([422, [expect.objectContaining({ severity: "error", message })]]);
    deploy("other", written);
    const list = await service.call("owner", "GET", "/api/agents");
    const agents = list.body.agents as { id: string; metadataError?: string }[];
    expect([list.status, agents.map(({ id, metadataError }) => [id, metadataError ?? null])]).toEqual([
      200,
      [
        ["helper", null],
        ["other", "invalid_shape"],
      ],
    ]);
  });

  it("a file of more than 1 MiB of characters is a metadataError of that agent alone", async () => {
    deploy("other", JSON.stringify({ name: "Big", ui: "x".repeat(1024 * 1024) }));
    const { status, body } = await service.call("owner", "GET", "/api/agents");
    expect([status, body.agents]).toEqual([
      200,
      [expect.objectContaining({ id: "helper" }), expect.objectContaining({ id: "other", metadataError: "invalid_shape" })],
    ]);
  });
});

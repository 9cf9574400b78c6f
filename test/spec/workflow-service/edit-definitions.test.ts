import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { httpNode } from "@portico/workflow-nodes/http";
import { defineWorkflowNode } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { definitionTestsInMemory } from "../../../presets/src/platform/workflow-tests/definition-tests.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const text = `# Says hello
parameters: { type: object, properties: { name: { type: string } } }
nodes:
  greet: { type: transform, with: { value: "Hello \${{ parameters.name }}" } }
outputs: { text: "\${{ nodes.greet.output }}" }
`;
const path = "/api/workflow/greet/definition";

let service: WorkflowService;
let isEditable = true;
beforeEach(async () => {
  isEditable = true;
  service = await start();
});
afterEach(() => service.close());

const start = (options: WorkflowServiceOptions = {}) =>
  startWorkflowService({
    definitions: { "greet.yaml": text },
    adapters: [definitionTestsInMemory(), httpNode({})],
    runtime: { editable: isEditable },
    ...options,
  });
const grant = (workflowId = "greet") => service.grant({ workflowId, edits: true });
const read = (headers: Record<string, string> = {}, id = "greet") =>
  fetch(`${service.url}/api/workflow/${id}/definition/text`, {
    headers: { "x-workflow-service-token": "workflow-token-0123456789", ...headers },
  });
const tag = async (id = "greet") => (await read({}, id)).headers.get("etag")!;
const save = async (written: string, headers: Record<string, string>, id = "greet") =>
  service.call(
    "PUT",
    `/api/workflow/${id}/definition`,
    { text: written },
    { headers: { "x-execution-grant": await grant(id), ...headers } },
  );
const post = async (what: string, body: object, headers: Record<string, string> = {}, id = "greet") =>
  service.call("POST", `/api/workflow/${id}/definition/${what}`, body, { headers });

describe("GET /api/workflow/:id/definition/text", () => {
  it("answers the text of the file with a strong ETag, and 304 for the same text", async () => {
    const answer = await read();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/yaml; charset=utf-8");
    expect(await answer.text()).toBe(text);
    const etag = answer.headers.get("etag")!;
    expect(etag).toMatch(/^"[\w-]+"$/);
    const again = await read({ "if-none-match": etag });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    expect((await read({ "if-none-match": '"other"' })).status).toBe(200);
  });

  it("answers the text of a definition with problems, so that it can be mended", async () => {
    service.deploy("wrong.yaml", "nodes: 1\n");
    await expect.poll(async () => (await read({}, "wrong")).status).toBe(200);
    expect(await (await read({}, "wrong")).text()).toBe("nodes: 1\n");
  });

  it("answers 404 for an unknown workflow, 400 for an impossible id, and 401 without the service token", async () => {
    expect((await read({}, "unknown")).status).toBe(404);
    expect((await read({}, "a%2F..%2Fb")).status).toBe(400);
    expect((await read({ "x-workflow-service-token": "" })).status).toBe(401);
  });
});

describe("GET /api/workflow/schema", () => {
  it("answers the JSON Schema of definitions, with the kinds of nodes of the service", async () => {
    const { status, body } = await service.call("GET", "/api/workflow/schema");
    expect(status).toBe(200);
    expect(body.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
    expect(body.$defs.node.properties.type.enum).toEqual(expect.arrayContaining(["http", "map", "transform"]));
    expect(body.$defs.node.properties.type.enum).not.toContain("tool");
    expect((await service.call("GET", "/api/workflow/schema", undefined, { token: "wrong" })).status).toBe(401);
  });
});

describe("PUT /api/workflow/:id/definition", () => {
  const changed = text.replace("Hello", "Good day");

  it("replaces the text, which the next run uses, and the history lists both versions", async () => {
    const before = await service.ended("greet", await service.trigger("greet", { name: "Ada" }));
    expect(before.finalOutputs).toEqual({ text: "Hello Ada" });
    const answer = await save(changed, { "if-match": await tag() });
    expect(answer).toMatchObject({ status: 200, body: { workflowId: "greet", dslPath: "greet.yaml", created: false } });
    expect(answer.body.etag).toBe(await tag());
    expect(await (await read()).text()).toBe(changed);
    // Other processes of a cluster use it soon.
    await expect
      .poll(async () => (await service.ended("greet", await service.trigger("greet", { name: "Ada" }))).finalOutputs)
      .toEqual({ text: "Good day Ada" });
    const versions = async () => (await service.call("GET", "/api/workflow/greet/versions")).body.versions;
    const isReplaced = expect.objectContaining({ version: answer.body.version, isDeployed: true });
    await expect.poll(versions).toEqual(expect.arrayContaining([isReplaced]));
    expect(await versions()).toHaveLength(2);
  });

  it("creates a definition with If-None-Match: *, and refuses it with 412 and the ETag where one exists", async () => {
    const created = await save("nodes: { a: { type: transform, with: { value: 1 } } }\n", { "if-none-match": "*" }, "new");
    expect(created).toMatchObject({ status: 200, body: { workflowId: "new", dslPath: "new.yaml", created: true } });
    await expect.poll(async () => (await service.call("GET", "/api/workflow/new/definition")).status).toBe(200);
    const again = await save(text, { "if-none-match": "*" }, "new");
    expect(again).toMatchObject({ status: 412, body: { code: "definition_changed" } });
    expect(again.headers["etag"]).toBe(await tag("new"));
  });

  it("answers 428 without a condition, and 412 with the present ETag where the text has changed meanwhile", async () => {
    expect(await save(changed, {})).toMatchObject({ status: 428, body: { code: "precondition_required" } });
    const old = await tag();
    service.deploy("greet.yaml", `${text}# By hand\n`);
    await expect.poll(() => tag()).not.toBe(old);
    const answer = await save(changed, { "if-match": old });
    expect(answer).toMatchObject({ status: 412, body: { code: "definition_changed" } });
    expect(answer.headers["etag"]).toBe(await tag());
    expect((await save(changed, { "if-match": '"x"' }, "unknown")).status).toBe(412);
    expect(await (await read()).text()).toContain("By hand");
  });

  it("writes one of several texts that are saved at once on the same version", async () => {
    const etag = await tag();
    const texts = Array.from({ length: 6 }, (_, at) => `${text}# ${at}\n`);
    const answers = await Promise.all(texts.map((each) => save(each, { "if-match": etag })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412]);
    const at = answers.findIndex(({ status }) => status === 200);
    expect(await (await read()).text()).toBe(texts[at]);
  });

  it("answers 422 with the problems of the text, and writes nothing", async () => {
    const answer = await save("nodes:\n  a: { type: nothing }\n", { "if-match": await tag() });
    expect(answer).toMatchObject({ status: 422, body: { code: "definition_invalid" } });
    expect(answer.body.details.problems).toEqual([
      { severity: "error", line: 2, column: 14, path: "$.nodes.a.type", message: expect.stringContaining("nothing") },
    ]);
    const other = await save(`id: other\n${text}`, { "if-match": await tag() });
    expect(other.body.details.problems).toMatchObject([{ path: "$.id", message: expect.stringContaining('"greet"') }]);
    expect(await (await read()).text()).toBe(text);
  });

  it("never reads or replaces another workflow whose file has this workflow's name, also with problems", async () => {
    const bar = "id: bar\nnodes: { a: { type: transform, with: { value: 1 } } }\n";
    const taken = { status: 409, body: { code: "definition_name_taken" } };
    for (const written of [bar, bar.replace("transform", "nothing"), `${bar}broken: [`]) {
      service.deploy("foo.yaml", written);
      const etag = `"${createHash("sha256").update(written).digest("base64url")}"`;
      expect((await read({}, "foo")).status).toBe(404);
      expect(await save(text, { "if-match": etag }, "foo")).toMatchObject(taken);
      expect(await save(text, { "if-none-match": "*" }, "foo")).toMatchObject(taken);
      expect(readFileSync(join(service.dataDir, "workflows", "foo.yaml"), "utf8")).toBe(written);
    }
  });

  it("mends a definition with problems by its id, in a file of another name", async () => {
    const broken = "id: bar\nnodes: 1\n";
    service.deploy("support.yaml", broken);
    await expect.poll(async () => (await read({}, "bar")).status).toBe(200);
    expect(await (await read({}, "bar")).text()).toBe(broken);
    const answer = await save(`id: bar\n${text}`, { "if-match": await tag("bar") }, "bar");
    expect(answer).toMatchObject({ status: 200, body: { dslPath: "support.yaml", created: false } });
  });

  it("needs a grant to edit this workflow, and a grant that starts runs is refused, also the other way round", async () => {
    const headers = { "if-match": await tag() };
    const starting = await service.grant({ workflowId: "greet" });
    for (const given of [undefined, "", "edit_x.y", starting, await grant("other")]) {
      const answer = await service.call(
        "PUT",
        path,
        { text: changed },
        { headers: { ...headers, ...(given !== undefined && { "x-execution-grant": given }) } },
      );
      expect(answer).toMatchObject({ status: 403, body: { code: "execution_grant_invalid" } });
    }
    const started = await service.call("POST", "/api/workflow/run", {
      executionGrantId: await grant(),
      ...{ idempotencyKey: "1", workflowId: "greet" },
    });
    expect(started).toMatchObject({ status: 403, body: { code: "execution_grant_invalid" } });
    expect((await service.call("PUT", path, { text: changed }, { token: "wrong", headers })).status).toBe(401);
    expect(await (await read()).text()).toBe(text);
  });

  it("is refused with 403 where the store of the definitions takes no writes", async () => {
    await service.close();
    const driver = { getItem: () => text, hasItem: () => true, getKeys: () => ["greet.yaml"] };
    service = await start({ documents: unstorageDocuments({ id: "workflows", driver }) });
    expect(await save(changed, { "if-match": await tag() })).toMatchObject({
      status: 403,
      body: { code: "definitions_not_editable" },
    });
    expect((await post("check", { text })).body).toMatchObject({ editable: false, problems: [] });
    expect((await service.call("GET", "/api/workflows")).body.editable).toBe(false);
  });

  it("is refused with 403 where definitions are not editable, and the retired calls stay 410", async () => {
    await service.close();
    isEditable = false;
    service = await start();
    expect(await save(changed, { "if-match": await tag() })).toMatchObject({
      status: 403,
      body: { code: "definitions_not_editable" },
    });
    expect((await service.call("POST", "/api/workflows", {})).status).toBe(410);
    expect((await service.call("PUT", "/api/workflow/greet", {})).status).toBe(410);
    expect((await post("check", { text })).body).toMatchObject({ editable: false, problems: [] });
    for (const each of ["/api/workflows", path]) expect((await service.call("GET", each)).body.editable).toBe(false);
    expect(await (await read()).text()).toBe(text);
  });
});

describe("POST /api/workflow/:id/definition/check", () => {
  it("answers the graph of a text without saving it, and warnings", async () => {
    const other = text.replace("parameters.name", "parameters.nam");
    const { status, body } = await post("check", { text: other });
    expect(status).toBe(200);
    for (const each of ["/api/workflows", path]) expect((await service.call("GET", each)).body.editable).toBe(true);
    expect(body).toMatchObject({ editable: true, definition: { id: "greet", nodes: [{ id: "greet", type: "transform" }] } });
    expect(body.problems).toMatchObject([{ severity: "warning", line: 4, message: expect.stringContaining("nam") }]);
    expect(await (await read()).text()).toBe(text);
  });

  it("answers problems with line, column and path, also of texts that are not YAML and for new workflows", async () => {
    const calls = "nodes:\n  a: { type: workflow, with: { workflow: gret } }\n";
    expect((await post("check", { text: calls }, {}, "fresh")).body).toMatchObject({
      problems: [{ severity: "error", line: 2, path: "$.nodes.a.with.workflow", message: expect.stringContaining('"greet"') }],
    });
    const { body } = await post("check", { text: "nodes: [\n" });
    expect(body.definition).toBeUndefined();
    expect(body.problems).toMatchObject([{ severity: "error", line: expect.any(Number), column: expect.any(Number) }]);
  });

  it("answers a problem for a text over 1 MiB, 413 for a much longer body, and 503 where too many texts wait", async () => {
    const long = await post("check", { text: `# ${"x".repeat(1024 * 1024)}\n${text}` });
    expect(long.body.problems).toMatchObject([{ message: expect.stringContaining("1048576") }]);
    expect((await post("check", { text: "x".repeat(3 * 1024 * 1024) })).status).toBe(413);
    // Long enough to be parsed in a thread, one after another.
    const slow = `${text}# ${"x".repeat(20_000)}\n`;
    const editor = service.app.port(workflowRuntime).editor;
    const all = await Promise.allSettled(
      Array.from({ length: 30 }, () => editor.check("greet", slow, new AbortController().signal)),
    );
    expect(all.filter(({ status }) => status === "rejected")).toHaveLength(12);
    expect((await post("check", { text })).status).toBe(200);
  });
});

describe("texts that wait to be checked", () => {
  it("leave their places to others when their callers leave", async () => {
    const slow = `${text}# ${"x".repeat(20_000)}\n`;
    const { editor } = service.app.port(workflowRuntime);
    const staying = new AbortController().signal;
    const begun = [1, 2].map(() => editor.check("greet", slow, staying));
    const leaving = new AbortController();
    const left = Promise.allSettled(Array.from({ length: 16 }, () => editor.check("greet", slow, leaving.signal)));
    leaving.abort(new Error("The caller has left"));
    const after = editor.check("greet", slow, staying);
    expect((await left).map(({ status }) => status)).toEqual(Array.from({ length: 16 }, () => "rejected"));
    for (const { definition } of await Promise.all([...begun, after])) expect(definition?.id).toBe("greet");
  });
});

describe("POST /api/workflow/:id/definition/test", () => {
  const calling = `nodes:
  ask: { type: http, with: { url: "https://nowhere.invalid/" } }
  wait: { type: wait, needs: [ask], with: { for: 10h } }
outputs: { status: "\${{ nodes.ask.output.status }}" }
`;
  const cases = (status: number) => `
cases:
  - name: it answers
    nodes: { ask: { output: { status: 200 } } }
    expect: { status: completed, outputs: { status: ${status} } }
`;
  const tried = async (written: string, body: string) =>
    post("test", { text: written, cases: body }, { "x-execution-grant": await grant() });

  it("executes cases with their answers, without network and waiting, and tells each difference and how the run ended", async () => {
    expect((await tried(calling, cases(200))).body).toMatchObject({
      cases: [{ name: "it answers", isOk: true, differences: [], found: { status: "completed", nodes: { ask: "completed" } } }],
    });
    expect((await tried(calling, cases(404))).body).toMatchObject({
      cases: [{ isOk: false, differences: ["outputs.status: expected 404, got 200"], found: { outputs: { status: 200 } } }],
    });
    // Nothing is stored.
    expect((await service.call("GET", "/api/workflow/greet/runs")).body.runs).toEqual([]);
  });

  it("answers 422 with what is wrong with the cases or with the text", async () => {
    const wrong = [
      await tried(calling, "cases: []"),
      await tried(calling, cases(1).replace("ask:", "aks:")),
      await tried("nodes: 1", cases(1)),
    ];
    for (const answer of wrong) {
      expect(answer).toMatchObject({ status: 422, body: { code: "cases_invalid" } });
      expect(answer.body.details.problems.length).toBeGreaterThan(0);
    }
  });

  it("answers 422 for a definition over 1 MiB and for cases over 128 KiB, and 413 for a much longer body", async () => {
    const filling = (length: number) => `# ${"x".repeat(length)}\n`;
    const long = [
      await tried(filling(1024 * 1024) + calling, cases(200)),
      await tried(calling, filling(128 * 1024) + cases(200)),
    ];
    expect(long.map(({ status, body }) => [status, body.details.problems])).toEqual([
      [422, ["A definition has at most 1048576 bytes"]],
      [422, ["The cases have at most 131072 bytes"]],
    ]);
    expect((await tried(calling, filling(3 * 1024 * 1024))).status).toBe(413);
    // Long enough to be parsed in a thread.
    expect((await tried(filling(100_000) + calling, cases(200))).body.cases).toMatchObject([{ isOk: true }]);
  });

  it("leaves out outputs over 64 KiB, and shortens differences", async () => {
    const long =
      'nodes: {}\noutputs: { long: "${{ parameters.long }}" }\nparameters: { type: object, properties: { long: { type: string } } }\n'.replace(
        "nodes: {}",
        "nodes: { a: { type: transform, with: { value: 1 } } }",
      );
    const given = `
cases:
  - name: long
    parameters: { long: "${"x".repeat(70_000)}" }
    expect: { status: completed, outputs: { long: short } }
`;
    const [found] = (await tried(long, given)).body.cases;
    expect(found).toMatchObject({ isOk: false, found: { status: "completed", outputsOmitted: true } });
    expect(found.found.outputs).toBeUndefined();
    expect(found.differences[0].length).toBeLessThan(3000);
  });

  it("writes nothing to standard error about nodes that fail unexpectedly", async () => {
    await service.close();
    const refusing = v.check(({ word }: { readonly word: string }) => {
      if (word === "refused") throw new RangeError("A fault of the node");
      return true;
    });
    const input = v.pipe(v.strictObject({ word: v.string() }), refusing);
    const odd = defineWorkflowNode({
      name: "workflow-nodes/odd",
      needs: {},
      rules: () => ({ type: "odd", input, repeatable: true }),
      open: () => ({ run: async () => null }),
    });
    service = await start({ adapters: [definitionTestsInMemory(), odd()] });
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    try {
      const { body } = await tried(
        'parameters: { type: object }\nnodes: { a: { type: odd, with: { word: "${{ parameters.word }}" } } }\n',
        "cases: [{ name: fails, parameters: { word: refused }, nodes: { a: { output: 1 } }, expect: { status: failed } }]",
      );
      expect(body.cases).toMatchObject([{ found: { status: "failed", error: { code: "node_failed" } } }]);
      expect(printed).not.toHaveBeenCalled();
    } finally {
      printed.mockRestore();
    }
  });

  it("needs a grant to edit", async () => {
    const given = { text: calling, cases: cases(200) };
    expect((await post("test", given)).status).toBe(403);
    expect((await post("test", given, { "x-execution-grant": await service.grant({ workflowId: "greet" }) })).status).toBe(403);
  });

  it("executes the cases of one call at a time", async () => {
    const answers = await Promise.all(Array.from({ length: 3 }, () => tried(calling, cases(200))));
    expect(answers.every(({ status }) => status === 200 || status === 503)).toBe(true);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    expect((await tried(calling, cases(200))).status).toBe(200);
  });
});

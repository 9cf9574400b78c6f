import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { defineAdapter, defineWorkflowNode, pendingUploads, ports, Secret } from "@portico/core";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import * as v from "valibot";
import { TOKENS } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import {
  SERVICE_TOKEN,
  startWorkflowService,
  type WorkflowService,
  type WorkflowServiceOptions,
} from "../../harness/workflow-app.ts";

const MEBIBYTE = 1024 * 1024;
const large = randomBytes(5 * MEBIBYTE);
const small = Buffer.from("Tea at five, ümläuts too\n");
const hex = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let server: Server;
let url: string;
/** How often each path was asked. */
let asked: Record<string, number>;
/** What `/text` answers. */
let text: string;
/** How many answers without an end were cancelled. */
let closed: number;
let received: { readonly headers: IncomingMessage["headers"]; readonly bytes: Buffer }[];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url!.split("?")[0]!;
    const count = (asked[path] = (asked[path] ?? 0) + 1);
    if (request.method === "POST") {
      if (path === "/moved") return response.writeHead(307, { location: "/echo" }).end();
      if (path === "/later" && count === 1) return response.writeHead(503).end();
      received.push({ headers: request.headers, bytes: Buffer.concat(chunks) });
      return response.end("taken");
    }
    if (path === "/cut")
      return response.writeHead(200, { "content-length": "100" }).write("half", () => request.socket.destroy());
    if (path === "/none") return response.writeHead(204).end();
    if (path === "/empty") return response.writeHead(200).end();
    if (path === "/text") {
      const asked = new URL(request.url!, url).searchParams;
      response.writeHead(200, { "content-type": asked.get("type") ?? "text/plain" });
      return response.end(text.repeat(Math.ceil(Number(asked.get("times") ?? 1) / text.length)));
    }
    if (path === "/endless") {
      response.on("close", () => closed++);
      return Readable.from(endless())
        .on("error", () => {})
        .pipe(response);
    }
    if (path === "/large.bin") return response.writeHead(200, { "content-type": "application/zip" }).end(large);
    if (path === "/streamed") {
      response.writeHead(200, { "content-type": "text/plain", "content-disposition": 'attachment; filename="a/b.txt"' });
      response.write(large.subarray(0, MEBIBYTE));
      return response.end(large.subarray(MEBIBYTE));
    }
    return response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(small);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  asked = {};
  closed = 0;
  received = [];
});

async function* endless() {
  for (;;) yield small;
}

const get = (path: string, more: object = {}) => ({ type: "http", with: { url: `${url}${path}`, ...more } });
const post = (path: string, more: object) => ({ type: "http", with: { url: `${url}${path}`, method: "POST", ...more } });
const saved = () => get("/note.txt", { response: "file" });
const child = (needs: readonly string[], file: unknown = null) => ({
  type: "workflow",
  needs,
  with: { workflow: "child", parameters: { file } },
});

function start(definitions: Record<string, object>, options: WorkflowServiceOptions = {}): Promise<WorkflowService> {
  return startWorkflowService({
    ...options,
    definitions: Object.fromEntries(
      Object.entries(definitions).map(([id, nodes]) => [`${id}.json`, "nodes" in nodes ? nodes : { nodes }]),
    ),
    adapters: [httpNode({ allow: ["127.0.0.1"] }), ...(options.adapters ?? [])],
  });
}

async function run(service: WorkflowService, workflowId = "w", parameters?: object): Promise<any> {
  return service.ended(workflowId, await service.trigger(workflowId, parameters));
}

function download(
  service: WorkflowService,
  { runId, workflowId = "w" }: any,
  file: string,
  headers: Record<string, string> = {},
) {
  return fetch(`${service.url}/api/workflow/${workflowId}/runs/${runId}/files/${file}`, {
    headers: { "x-workflow-service-token": SERVICE_TOKEN, ...headers },
  });
}

const blobsOf = async (service: WorkflowService) => {
  const keys = await Array.fromAsync(service.app.port(ports.blobs).keys("workflow-files/"));
  return keys.map((key) => key.slice("workflow-files/".length)).toSorted();
};
const storedIn = async (service: WorkflowService, name: string) =>
  (await service.app.port(ports.records).collection({ name }).query({ limit: 1000 })).items.length;

describe("files of a run", () => {
  it("`response: file` saves the body of an answer: a value with its name, type, size and digest, and the run lists it", async () => {
    await using service = await start({
      w: { get: saved(), named: get("/x", { response: "file", filename: "../t\u202exe.txt" }) },
    });
    const detail = await run(service);
    const { get: node, named } = detail.nodeResults;
    expect(node.outputs).toMatchObject({
      status: 200,
      body: null,
      file: { name: "note.txt", mediaType: "text/plain", size: small.length, sha256: hex(small) },
    });
    expect(named.outputs.file.name).toBe("..txe.txt");
    expect(detail.files.map(({ name }: { name: string }) => name).toSorted()).toEqual(["..txe.txt", "note.txt"]);
    const answer = await download(service, detail, node.outputs.file.file);
    expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(small)]).toEqual([200, true]);
  });

  it("`response: file` saves an empty file of an answer without a body: HEAD, 204, and a body of no bytes", async () => {
    await using service = await start({
      w: {
        nodes: {
          head: get("/note.txt", { response: "file", method: "HEAD" }),
          none: get("/none", { response: "file" }),
          empty: get("/empty", { response: "file" }),
        },
        outputs: Object.fromEntries(["head", "none", "empty"].map((node) => [node, `\${{ nodes.${node}.output.file }}`])),
      },
    });
    const detail = await run(service);
    expect(detail.status).toBe("completed");
    for (const file of Object.values<any>(detail.finalOutputs)) {
      expect(file).toMatchObject({ size: 0, sha256: hex(Buffer.alloc(0)) });
      const answer = await download(service, detail, file.file);
      expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([200, 0]);
    }
  });

  it("an answer over 4 MiB becomes a file by itself, with and without a length", async () => {
    await using service = await start({ w: { known: get("/large.bin"), streamed: get("/streamed"), short: get("/short") } });
    const { nodeResults } = await run(service);
    expect(nodeResults.known.outputs).toMatchObject({
      body: null,
      file: { name: "large.bin", mediaType: "application/zip", size: large.length, sha256: hex(large) },
    });
    expect(nodeResults.streamed.outputs.file).toMatchObject({ name: "ab.txt", sha256: hex(large) });
    expect(nodeResults.short.outputs).toMatchObject({ body: small.toString() });
    expect(nodeResults.short.outputs).not.toHaveProperty("file");
  });

  it("is sent as a body and as parts, streamed with its length, again after a redirect and on a retry", async () => {
    const file = "${{ nodes.get.output.file }}";
    await using service = await start({
      w: {
        get: get("/large.bin"),
        body: { ...post("/echo", { file }), needs: ["get"] },
        moved: { ...post("/moved", { file, headers: { "content-type": "x/y" } }), needs: ["body"] },
        later: { ...post("/later", { file }), needs: ["moved"], retry: { attempts: 2, delay: "1ms" } },
        parts: {
          ...post("/echo", {
            multipart: [
              { name: "a", value: 1 },
              { name: "f", file },
              { name: "g", file, filename: "g.txt", type: "text/x" },
            ],
          }),
          needs: ["later"],
        },
      },
    });
    const { status, error } = await run(service);
    expect([status, error]).toEqual(["completed", undefined]);
    for (const { headers, bytes } of received.slice(0, 3)) {
      expect(hex(bytes)).toBe(hex(large));
      expect(headers).toMatchObject({ "content-length": String(large.length) });
      expect(headers).not.toHaveProperty("transfer-encoding");
    }
    expect(received.slice(0, 3).map(({ headers }) => headers["content-type"])).toEqual([
      "application/zip",
      "x/y",
      "application/zip",
    ]);
    const { headers, bytes } = received[3]!;
    const form = await new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": headers["content-type"]! },
    }).formData();
    expect(form.get("a")).toBe("1");
    const files = [form.get("f") as File, form.get("g") as File];
    expect(files.map(({ name, type }) => [name, type])).toEqual([
      ["large.bin", "application/zip"],
      ["g.txt", "text/x"],
    ]);
    for (const part of files) expect(hex(new Uint8Array(await part.arrayBuffer()))).toBe(hex(large));
  });

  it("a file of another run, an invented one and any other value are `file_not_found`", async () => {
    await using service = await start({ w: { get: saved() }, use: { send: post("/echo", { file: "${{ parameters.file }}" }) } });
    const { nodeResults } = await run(service);
    const { file } = nodeResults.get.outputs;
    for (const value of [file, file.file, "wfile_00000000000000000000", "../secret", 7, { file: [file.file] }]) {
      const { error } = await run(service, "use", { file: value });
      expect([error.code, error.nodeId]).toEqual(["file_not_found", "send"]);
    }
    expect(received).toEqual([]);
  });

  it("a file has at most `maxBytes`, and all files of a run have at most `maxRunBytes`; nothing stays of a file that has more", async () => {
    const node = (size: number) => get("/note.txt", { response: "file", filename: `${size}` });
    await using service = await start(
      { w: { large: get("/large.bin", { response: "file" }) }, endless: { large: get("/endless", { response: "file" }) } },
      { runtime: { files: { maxBytes: 2 * MEBIBYTE } } },
    );
    expect((await run(service)).error).toMatchObject({ code: "file_too_large", message: expect.stringContaining("2 MiB") });
    expect((await run(service, "endless")).error).toMatchObject({ code: "file_too_large" });
    await expect.poll(() => closed).toBe(1);
    expect(await blobsOf(service)).toEqual([]);
    await using tight = await start(
      {
        w: { a: node(1), b: { ...node(2), needs: ["a"] }, c: { ...node(3), needs: ["b"] } },
        beside: {
          each: { type: "map", with: { items: [1, 2, 3, 4, 5], nodes: { one: node(1) }, result: "nodes.one.output.status" } },
        },
      },
      { runtime: { files: { maxRunBytes: small.length * 2 + 5 } } },
    );
    expect((await run(tight)).error).toMatchObject({ code: "run_files_too_large", nodeId: "c" });
    expect((await run(tight, "beside")).error).toMatchObject({ code: "run_files_too_large" });
    expect((await blobsOf(tight)).length).toBeLessThanOrEqual(4);
    const pending = tight.app.port(ports.records).collection(pendingUploads);
    expect((await pending.query({})).items).toEqual([]);
  });

  it("files that a run gets from sub-workflows count, too: it has at most `maxRunBytes`, and gets no file of a result that has more", async () => {
    await using service = await start(
      {
        w: {
          nodes: {
            // The file of the parameters is in the outputs, too: the run has it already.
            a: get("/a.txt", { response: "file" }),
            b: child(["a"], "${{ nodes.a.output.file }}"),
            c: { ...child(["b"]), onError: "continue" },
          },
          outputs: { code: "${{ nodes.c.error.code }}" },
        },
        beside: { each: { type: "map", with: { items: "lists.range(8)", nodes: { c: child([]) }, result: "1" } } },
        child: {
          nodes: { one: get("/one.txt", { response: "file" }), two: get("/two.txt", { response: "file" }) },
          outputs: { all: ["${{ parameters.file }}", "${{ nodes.one.output.file }}", "${{ nodes.two.output.file }}"] },
        },
      },
      { runtime: { files: { maxRunBytes: small.length * 4 } } },
    );
    const detail = await run(service);
    expect([detail.status, detail.finalOutputs]).toEqual(["completed", { code: "run_files_too_large" }]);
    expect(detail.files.map(({ name }: { name: string }) => name).toSorted()).toEqual(["a.txt", "one.txt", "two.txt"]);
    const beside = await run(service, "beside");
    expect(beside.error).toMatchObject({ code: "run_files_too_large" });
    expect(beside.files?.length ?? 0).toBeLessThanOrEqual(4);
  });

  it("a run has at most 1,000 files, also those that it gets from sub-workflows; nothing stays open of what it refuses", async () => {
    const makesFile = defineWorkflowNode({
      name: "workflow-nodes/makes-file",
      needs: {},
      rules: () => ({ type: "makes-file", input: v.strictObject({}), repeatable: true }),
      open: () => ({
        run: async ({ files }: ports.NodeWork<object>) => ({ file: await files!.save(Readable.from([]), { name: "e" }) }),
      }),
    });
    const opened: Readable[] = [];
    const attachments = defineAdapter({
      name: "user-files/opened",
      port: ports.userFiles,
      needs: {},
      open: (): ports.UserFiles => ({
        id: "opened",
        media: async () => undefined,
        attachment: async () => ({
          ...{ name: "note.txt", mimeType: "text/plain", size: small.length },
          async open() {
            opened.push(Readable.from([small]));
            return opened.at(-1)!;
          },
        }),
      }),
    });
    const nodes = { one: { type: "makes-file" } };
    const makeFiles = (count: number) => ({
      all: { type: "map", with: { items: `lists.range(${count})`, nodes, result: "nodes.one.output" } },
    });
    const after = (needs: string, node: object) => ({ ...node, needs: [needs], if: "always", onError: "continue" });
    await using service = await start(
      {
        w: {
          nodes: {
            ...makeFiles(998),
            b: child(["all"]),
            c: after("b", child([])),
            d: after("c", { type: "attachment", with: { attachment: "any" } }),
            e: after("d", get("/endless", { response: "file" })),
          },
          outputs: Object.fromEntries(["c", "d", "e"].map((node) => [node, `\${{ nodes.${node}.error.code }}`])),
        },
        child: { nodes: makeFiles(2), outputs: { file: "${{ nodes.all.output.map(each, each.file) }}" } },
      },
      { adapters: [makesFile(), attachments()] },
    );
    const executionGrantId = await service.grant({ workflowId: "w", userId: "ada" });
    const started = await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "w" });
    const detail = await service.ended("w", started.body.runId);
    expect([detail.status, detail.finalOutputs]).toEqual([
      "completed",
      { c: "too_many_files", d: "too_many_files", e: "too_many_files" },
    ]);
    expect(detail.files).toHaveLength(1000);
    expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
    await expect.poll(() => closed).toBe(1);
  });

  it("of a failed attempt is removed, and the next attempt saves its own", async () => {
    await using service = await start({
      w: {
        cut: { ...get("/cut", { response: "file" }), onError: "continue" },
        get: { ...saved(), needs: ["cut"], if: "always" },
      },
    });
    const detail = await run(service);
    expect(detail.nodeResults.cut.error.code).toBe("http_unreachable");
    expect(detail.files).toHaveLength(1);
    expect(await blobsOf(service)).toEqual([detail.nodeResults.get.outputs.file.file]);
  });

  it("of a failed attempt is removed also if it is stored while the attempt ends, and its place is free again", async () => {
    const [stored, ended, removed] = [createGate(), createGate(), createGate()];
    const failsEarly = defineWorkflowNode({
      name: "workflow-nodes/fails-early",
      needs: {},
      rules: () => ({ type: "fails-early", input: v.strictObject({}), repeatable: true }),
      open: () => ({
        async run({ files }: ports.NodeWork<object>) {
          void files!.save(Readable.from([small]), { name: "late.txt" }).catch(() => {});
          await stored.opened;
          throw new ports.NodeFailed("early", "It does not wait for its file", { retryable: false });
        },
      }),
    });
    await using service = await start(
      {
        w: {
          early: { type: "fails-early", onError: "continue" },
          ok: { type: "human_gate", needs: ["early"], with: { title: "Go on?" } },
          get: { ...saved(), needs: ["ok"] },
        },
      },
      { adapters: [failsEarly()], runtime: { files: { maxRunBytes: small.length } } },
    );
    const runFiles = service.app.port(workflowRuntime).files!;
    const { save, unlink } = runFiles;
    runFiles.save = async (...given) => {
      const file = await save(...given);
      stored.open();
      await ended.opened;
      return file;
    };
    runFiles.unlink = async (...given) => {
      await unlink(...given);
      removed.open();
    };
    const runId = await service.trigger("w");
    expect((await service.until("w", runId, ({ status }) => status === "waiting_human")).files).toHaveLength(1);
    ended.open();
    // Its place is free when the record, the bytes and the note of their removal are gone.
    await removed.opened;
    expect((await service.until("w", runId, () => true)).files).toBeUndefined();
    expect(await blobsOf(service)).toEqual([]);
    const executionGrantId = await service.grant({ workflowId: "w" });
    await service.call(
      "POST",
      `/api/workflow/w/runs/${runId}/gate`,
      { decision: "approve" },
      {
        headers: { "x-execution-grant": executionGrantId },
      },
    );
    expect(await service.ended("w", runId)).toMatchObject({ status: "completed", files: [{ name: "note.txt" }] });
  });

  it("of an attempt that a crash interrupted is removed when the attempt is repeated", async () => {
    const saves = (gate: Promise<void>) =>
      defineWorkflowNode({
        name: "workflow-nodes/saves",
        needs: {},
        rules: () => ({ type: "saves", input: v.strictObject({}), repeatable: true }),
        open: () => ({
          async run({ files, signal }: ports.NodeWork<object>) {
            const file = await files!.save(Readable.from([small]), { name: "note.txt" });
            await Promise.race([gate, once(signal, "abort")]);
            signal.throwIfAborted();
            return file;
          },
        }),
      })();
    const first = await start({ w: { save: { type: "saves" } } }, { adapters: [saves(new Promise(() => {}))] });
    const runId = await first.trigger("w");
    await expect.poll(async () => (await first.detail("w", runId)).files?.length).toBe(1);
    await using service = await start({}, { dataDir: first.dataDir, adapters: [saves(Promise.resolve())] });
    const detail = await service.ended("w", runId);
    expect(detail.files.map(({ file }: { file: string }) => file)).toEqual([detail.nodeResults.save.outputs.file]);
    expect(await blobsOf(service)).toHaveLength(1);
    await first.close().catch(() => {});
  });

  it("a node whose output is sensitive has no files: they are not encrypted", async () => {
    await using service = await start({
      w: { get: { ...saved(), sensitive: true } },
      auto: { get: { ...get("/large.bin"), sensitive: true } },
    });
    expect((await run(service)).error.code).toBe("files_unavailable");
    expect((await run(service, "auto")).error.code).toBe("http_too_large");
    expect(await blobsOf(service)).toEqual([]);
  });

  it("a sub-workflow gets the files that its parameters name, and gives those that its outputs name", async () => {
    await using service = await start({
      w: {
        nodes: {
          get: saved(),
          other: get("/other.txt", { response: "file" }),
          child: {
            type: "workflow",
            needs: ["get", "other"],
            with: {
              workflow: "child",
              parameters: { one: "${{ nodes.get.output.file }}", name: "${{ nodes.other.output.file.file }}" },
            },
          },
          send: { ...post("/echo", { file: "${{ nodes.child.output.made }}" }), needs: ["child"] },
        },
      },
      child: {
        nodes: {
          send: post("/echo", { file: "${{ parameters.one }}" }),
          made: { ...get("/made.txt", { response: "file" }), needs: ["send"] },
          // The parameter is a text: no file was given.
          not: { ...post("/echo", { file: "${{ parameters.name }}" }), needs: ["made"], onError: "continue" },
        },
        outputs: { made: "${{ nodes.made.output.file }}", code: "${{ nodes.not.error.code }}" },
      },
    });
    const detail = await run(service);
    expect([detail.status, detail.nodeResults.child.outputs.code]).toEqual(["completed", "file_not_found"]);
    expect(received).toHaveLength(2);
    expect(detail.files.map(({ name }: { name: string }) => name).toSorted()).toEqual(["made.txt", "note.txt", "other.txt"]);
  });

  it("a run that is started again has the files that its parameters name", async () => {
    await using service = await start({
      w: {
        nodes: {
          get: saved(),
          child: {
            type: "workflow",
            needs: ["get"],
            with: { workflow: "child", parameters: { file: "${{ nodes.get.output.file }}" } },
          },
        },
      },
      child: { nodes: { send: post("/echo", { file: "${{ parameters.file }}" }) } },
    });
    await run(service);
    const [{ runId }] = (await service.call("GET", "/api/workflow/child/runs")).body.runs;
    const headers = { "x-execution-grant": await service.grant({ workflowId: "child" }) };
    const again = await service.call("POST", `/api/workflow/child/runs/${runId}/rerun`, { idempotencyKey: "k" }, { headers });
    expect((await service.ended("child", again.body.runId)).status).toBe("completed");
    expect(received).toHaveLength(2);
  });

  it("a run that is started again has them from its acceptance on: the other run may be removed before it begins", async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const clock = createManualClock();
    const options = { clock, dataDir: folder.path, runtime: { keepRuns: "1h" } };
    const child = {
      type: "workflow",
      needs: ["get"],
      with: { workflow: "child", parameters: { file: "${{ nodes.get.output.file }}" } },
    };
    const definitions = {
      w: { nodes: { get: saved(), child } },
      child: { nodes: { send: post("/echo", { file: "${{ parameters.file }}" }) } },
    };
    const first = await start(definitions, options);
    const { runId: parentId } = await run(first);
    const [{ runId }] = (await first.call("GET", "/api/workflow/child/runs")).body.runs;
    for (const { port } of first.apps) await port(ports.engine).drain(0);
    const headers = { "x-execution-grant": await first.grant({ workflowId: "child" }) };
    const again = await first.call("POST", `/api/workflow/child/runs/${runId}/rerun`, { idempotencyKey: "k" }, { headers });
    expect(again.status).toBe(200);
    await clock.advance(7_200_000);
    const { signal } = new AbortController();
    for (let sweep = 0; sweep < 3; sweep++) await first.app.port(workflowRuntime).sweep(signal);
    for (const [workflowId, removed] of [
      ["w", parentId],
      ["child", runId],
    ])
      expect((await first.call("GET", `/api/workflow/${workflowId}/runs/${removed}`)).status).toBe(404);
    await first.close();
    await using service = await start(definitions, options);
    expect((await service.ended("child", again.body.runId)).status).toBe("completed");
    expect(received.map(({ bytes }) => bytes)).toEqual([small, small]);
  });

  it("a resumed run has the files of the run that it resumes, also when that one is removed", async () => {
    const clock = createManualClock();
    const definition = {
      get: saved(),
      send: { ...post("/later", { file: "${{ nodes.get.output.file }}", expect: [200] }), needs: ["get"] },
    };
    await using service = await start({ w: definition }, { clock, runtime: { keepRuns: "1h" } });
    const failed = await run(service);
    expect(failed.error.code).toBe("http_status");
    await clock.advance(1_800_000);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    const { body } = await service.call(
      "POST",
      `/api/workflow/w/runs/${failed.runId}/resume`,
      { idempotencyKey: "k" },
      { headers },
    );
    const resumed = await service.ended("w", body.runId);
    expect([resumed.status, asked["/note.txt"], received.length]).toEqual(["completed", 1, 1]);
    const { sweep } = service.app.port(workflowRuntime);
    const { signal } = new AbortController();
    await clock.advance(2_400_000);
    await sweep(signal);
    await sweep(signal);
    const { file } = resumed.nodeResults.get.outputs.file;
    expect((await download(service, failed, file)).status).toBe(404);
    expect((await download(service, resumed, file)).status).toBe(200);
    await clock.jump(3_600_000);
    await sweep(signal);
    await sweep(signal);
    expect((await download(service, resumed, file)).status).toBe(404);
    expect([
      await blobsOf(service),
      await storedIn(service, "workflow-files"),
      await storedIn(service, "workflow-file-links"),
    ]).toEqual([[], 0, 0]);
  });
});

describe("secrets in files", () => {
  // One overlaps with itself, one has characters that are several bytes, one is longer than a piece of a stream.
  const secrets = { A: "abab", B: 'tökén "5"/?>', C: small.toString("hex") + large.toString("hex", 0, 40_000) };
  const forms = [secrets.A, secrets.B].flatMap((secret) => [
    secret,
    JSON.stringify(secret),
    Buffer.from(`?${secret}`).toString("base64"),
    Buffer.from(secret).toString("hex"),
    encodeURIComponent(secret),
  ]);
  const filler = ["a", "ba", " ", "\n", "ü", "=", "abab", "x".repeat(1000), "y".repeat(30_000)];
  const words = fc.array(
    fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(...forms, secrets.C) },
      { weight: 6, arbitrary: fc.constantFrom(...filler) },
    ),
    {
      minLength: 150,
      maxLength: 200,
    },
  );
  const runtime = {
    secrets: Object.fromEntries(Object.entries(secrets).map(([name, text]) => [name, new Secret(text)])),
  };
  const textOf = async (service: WorkflowService, detail: any, node: string) =>
    (await download(service, detail, detail.nodeResults[node].outputs.file.file)).text();

  it("are masked in texts as in outputs, wherever the pieces of the stream end", async () => {
    await using service = await start({ w: { value: get("/text"), file: get("/text", { response: "file" }) } }, { runtime });
    for (const sample of fc.sample(words, { numRuns: 5, seed: 5 })) {
      text = sample.join("");
      const detail = await run(service);
      const shown = detail.nodeResults.value.outputs.body;
      expect(shown).toContain("***");
      expect((await textOf(service, detail, "file")) === shown).toBe(true);
      const { size, sha256 } = detail.nodeResults.file.outputs.file;
      expect([size, sha256]).toEqual([Buffer.byteLength(shown), hex(Buffer.from(shown))]);
    }
  });

  it("are masked in JSON, XML and answers over 4 MiB, and in names; bytes of other types stay as they are", async () => {
    const file = { response: "file" };
    const key = "${{ secrets.A }}";
    await using service = await start(
      {
        w: {
          json: get("/text?type=application/problem%2Bjson", file),
          xml: get("/text?type=application/xml;charset=utf-8", file),
          large: get("/text?times=5000000"),
          named: get("/text", { ...file, filename: `${key}.txt` }),
          other: get("/text?type=application/zip", file),
        },
      },
      { runtime },
    );
    text = `"${secrets.B}" `;
    const detail = await run(service);
    for (const node of ["json", "xml", "named"]) expect(await textOf(service, detail, node)).toBe('"***" ');
    const large = await textOf(service, detail, "large");
    expect([large.length > 1_000_000, large.replaceAll('"***" ', "")]).toEqual([true, ""]);
    expect(detail.files.map(({ name }: { name: string }) => name).toSorted()).toEqual([
      "***.txt",
      "text",
      "text",
      "text",
      "text",
    ]);
    expect(await textOf(service, detail, "other")).toBe(text);
  });
});

describe("GET /api/workflow/:id/runs/:runId/files/:file", () => {
  it("is saved by browsers and never shown, has a digest as its ETag, and answers ranges, conditions and HEAD", async () => {
    await using service = await start({ w: { get: get("/large.bin") } });
    const detail = await run(service);
    const { file } = detail.nodeResults.get.outputs.file;
    const whole = await download(service, detail, file);
    expect(hex(new Uint8Array(await whole.arrayBuffer()))).toBe(hex(large));
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": "attachment; filename=large.bin",
      "content-length": String(large.length),
      "content-security-policy": "sandbox",
      "x-content-type-options": "nosniff",
      "accept-ranges": "bytes",
      etag: `"${hex(large)}"`,
    });
    const part = await download(service, detail, file, { range: "bytes=1000000-1000009" });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 1000000-1000009/${large.length}`]);
    expect(Buffer.from(await part.arrayBuffer())).toEqual(large.subarray(1_000_000, 1_000_010));
    const beyond = await download(service, detail, file, { range: `bytes=${large.length}-` });
    expect([beyond.status, (await beyond.json()).code]).toEqual([416, "range_not_satisfiable"]);
    expect((await download(service, detail, file, { "if-none-match": `"${hex(large)}"` })).status).toBe(304);
  });

  it("404 for an unknown file, for a file of another run, for missing bytes, and for a run that the caller may not read", async () => {
    const runtime = { bindings: [{ id: "mine", workflowId: "w", readers: ["nobody"] }] };
    await using service = await start({ w: { get: saved() } }, { runtime });
    const [one, other] = [await run(service), await run(service)];
    const { file } = one.nodeResults.get.outputs.file;
    const code = async (answer: Response) => [answer.status, (await answer.json()).code];
    for (const unknown of ["wfile_00000000000000000000", "x", "..%2f..%2fcredentials.json"])
      expect(await code(await download(service, one, unknown))).toEqual([404, "file_not_found"]);
    expect(await code(await download(service, other, file))).toEqual([404, "file_not_found"]);
    expect(await code(await download(service, { ...one, workflowId: "v" }, file))).toEqual([404, "run_not_found"]);
    const executionGrantId = await service.grant({ workflowId: "w", bindingId: "mine" });
    const started = await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "w" });
    await expect.poll(async () => (await blobsOf(service)).length).toBe(3);
    const hidden = (await blobsOf(service)).find((id) => id !== file && id !== other.nodeResults.get.outputs.file.file)!;
    expect(await code(await download(service, { runId: started.body.runId }, hidden))).toEqual([404, "run_not_found"]);
    await service.app.port(ports.blobs).remove(`workflow-files/${file}`);
    expect(await code(await download(service, one, file))).toEqual([404, "file_not_found"]);
    expect((await fetch(`${service.url}/api/workflow/w/runs/${one.runId}/files/${file}`)).status).toBe(401);
  });
});

describe("`attachment` nodes (4.5)", () => {
  const definition = () => ({
    nodes: {
      take: { type: "attachment", with: { attachment: "${{ parameters.attachment }}" } },
      send: { ...post("/echo", { file: "${{ nodes.take.output.file }}" }), needs: ["take"] },
    },
  });

  it("fail for a reason of their own in a service that reads no attachments", async () => {
    await using service = await start({ w: definition() }, {});
    const executionGrantId = await service.grant({ workflowId: "w", userId: "owner" });
    const body = { executionGrantId, idempotencyKey: "k", workflowId: "w", parameters: { attachment: "any" } };
    const { error } = await service.ended("w", (await service.call("POST", "/api/workflow/run", body)).body.runId);
    expect(error).toMatchObject({ code: "attachments_unavailable", message: "This service reads no attachments" });
  });

  it("give a run an attachment only if its grant names the user who uploaded it", async () => {
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    await using service = await start(
      { w: definition() },
      {
        dataDir: folder.path,
        agents: { plugins: [attachmentsMedia({})], adapters: [fileBlobs({ dir: join(folder.path, "files") })] },
      },
    );
    const form = new FormData();
    form.append("file", new Blob([small], { type: "text/plain" }), "note.txt");
    const uploaded = await fetch(`${service.agents!.url}/api/attachments`, {
      method: "POST",
      headers: { "x-agent-service-token": TOKENS.owner },
      body: form,
    });
    const { fileReference: attachment } = (await uploaded.json()) as { fileReference: string };
    const byGrant = async (userId: string | undefined) => {
      const executionGrantId = await service.grant({ workflowId: "w", ...(userId !== undefined && { userId }) });
      const body = { executionGrantId, idempotencyKey: "k", workflowId: "w", parameters: { attachment } };
      return service.ended("w", (await service.call("POST", "/api/workflow/run", body)).body.runId);
    };
    expect((await byGrant("other")).error.code).toBe("attachment_not_found");
    expect((await byGrant(undefined)).error.code).toBe("attachment_user_required");
    expect((await run(service, "w", { attachment })).error.code).toBe("attachment_user_required");
    expect(received).toEqual([]);
    const detail = await byGrant("owner");
    expect([detail.status, detail.files[0]]).toEqual([
      "completed",
      expect.objectContaining({ name: "note.txt", sha256: hex(small) }),
    ]);
    expect(received[0]!.bytes).toEqual(small);
  });
});

it("an evaluated value cannot inject a header or a part's type, also if it looks like a template", async () => {
  await using service = await start({
    header: { send: post("/echo", { headers: { "x-a": "${{ parameters.value }}" } }) },
    type: { send: post("/echo", { multipart: [{ name: "a", value: "b", type: "${{ parameters.value }}" }] }) },
  });
  for (const id of ["header", "type"]) {
    const { error } = await run(service, id, { value: "a\r\nx-injected: ${{ 1 }}" });
    expect(error.code).toBe("http_request_invalid");
  }
  expect(received).toEqual([]);
});

// What the failure of a node tells later nodes, and readers of the history.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { httpNode } from "@portico/workflow-nodes/http";
import { Secret } from "@portico/core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const SECRET = "tracker-secret-0123456789";
let server: Server;
let url: string;
let answer: RequestListener;
let times: number[] = [];
let service: WorkflowService | undefined;
beforeAll(async () => {
  server = createServer((request, response) => {
    times.push(performance.now());
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
afterEach(async () => {
  times = [];
  await service?.close();
});

const send = (status: number, body: string | Buffer, headers: Record<string, string> = {}): RequestListener => {
  return (_request, response) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
};
const open = async (nodes: object, outputs: object = {}) => {
  service = await startWorkflowService({
    definitions: { "wf.json": { nodes, outputs } },
    adapters: [httpNode({ allow: ["127.0.0.1"] })],
    runtime: { secrets: { TRACKER: new Secret(SECRET) } },
  });
};
const play = async (nodes: object, outputs?: object) => {
  await open(nodes, outputs);
  return service!.ended("wf", await service!.trigger("wf"));
};
const call = (more: object = {}) => ({ type: "http", with: { url }, onError: "continue", ...more });
const later = { type: "transform", needs: ["a"], with: { value: "x" } };

describe("a failed node that lets the run continue", () => {
  it("has an error that expressions read: code, message, status and body", async () => {
    answer = send(422, JSON.stringify({ field: "mail", why: ["taken"] }));
    const { status, finalOutputs, nodeResults } = await play(
      { a: call() },
      { failed: "${{ has(nodes.a.error) }}", error: "${{ nodes.a.error }}", why: "${{ nodes.a.error.body.why[0] }}" },
    );
    const error = {
      ...{ code: "http_status", message: `${url} answered with status 422` },
      ...{ status: 422, body: { field: "mail", why: ["taken"] } },
    };
    expect([status, finalOutputs]).toEqual(["completed", { failed: true, error, why: "taken" }]);
    expect(nodeResults.a).toMatchObject({ status: "failed", error });
  });

  it("has no error if it completed", async () => {
    answer = send(200, "{}");
    const { finalOutputs } = await play({ a: call() }, { failed: "${{ has(nodes.a.error) }}" });
    expect(finalOutputs).toEqual({ failed: false });
  });

  it("decides a branch by its error", async () => {
    answer = send(409, "{}");
    const { nodeResults } = await play({
      a: call(),
      b: {
        type: "branch",
        needs: ["a"],
        with: { cases: { taken: "nodes.a.status == 'failed' && nodes.a.error.status == 409" }, else: "other" },
      },
      c: { ...later, needs: ["b.taken"] },
      d: { ...later, needs: ["b.other"] },
    });
    expect([nodeResults.c.status, nodeResults.d.status]).toEqual(["completed", "skipped"]);
  });

  it.each<[string, RequestListener, unknown]>([
    ["a text", send(500, "down", { "content-type": "text/plain" }), "down"],
    ["JSON that is broken", send(500, "{"), "{"],
    ["bytes", send(500, Buffer.from([1, 2, 255]), { "content-type": "image/png" }), undefined],
    ["no body", send(500, ""), undefined],
    [
      "a body that breaks off",
      (_request, response) => void response.writeHead(500, { "content-length": "9" }).write("x", () => response.destroy()),
      undefined,
    ],
  ])("keeps the body of its answer if that is JSON or a text of at most 16 KiB: %s", async (_what, listener, body) => {
    answer = listener;
    const { nodeResults } = await play({ a: call() });
    expect(nodeResults.a.error).toEqual({
      ...{ code: "http_status", message: `${url} answered with status 500`, status: 500 },
      ...(body !== undefined && { body }),
    });
  });

  const long = JSON.stringify({ long: "x".repeat(17_000) });
  const rocket = `${"z".repeat(16_382)}\u{1f680}`;
  it.each<[string, RequestListener, string]>([
    ["JSON", send(500, long), long],
    ["a text", send(500, "y".repeat(100_000), { "content-type": "text/plain" }), "y".repeat(100_000)],
    ["a text that is longer as JSON", send(500, '"'.repeat(10_000), { "content-type": "text/plain" }), '"'.repeat(10_000)],
    [
      "a text whose first piece ends within a character",
      (_request, response) =>
        void response.writeHead(500, { "content-type": "text/plain" }).write(Buffer.from(rocket).subarray(0, -1)),
      rocket,
    ],
  ])("keeps the beginning of the text of a longer body, and says so: %s", async (_what, listener, text) => {
    answer = listener;
    const { nodeResults, finalOutputs } = await play({ a: call() }, { isTruncated: "${{ nodes.a.error.bodyTruncated }}" });
    const { error } = nodeResults.a;
    expect(error).toMatchObject({ code: "http_status", status: 500, bodyTruncated: true });
    expect(text.startsWith(error.body)).toBe(true);
    const bytes = Buffer.byteLength(JSON.stringify(error.body));
    expect(bytes > 16_000 && bytes <= 16_384).toBe(true);
    expect(finalOutputs).toEqual({ isTruncated: true });
  });

  it("shows no part of a secret at the end of the beginning of a longer body, and none within it", async () => {
    // The rest of the body never comes, so the piece that is kept ends within the secret.
    answer = (_request, response) =>
      void response
        .writeHead(500, { "content-type": "text/plain" })
        .write(`Bearer ${SECRET} ${"x".repeat(16_386 - 20 - SECRET.length)}${SECRET.slice(0, 12)}`);
    const { nodeResults } = await play({ a: call() });
    const { body, bodyTruncated } = nodeResults.a.error;
    expect([body.slice(0, 12), bodyTruncated]).toEqual(["Bearer *** x", true]);
    expect(body).not.toContain(SECRET.slice(0, 4));
    expect(body.length).toBeGreaterThan(16_000);
  });

  it.each([true, ["body"]])("with the sensitive output %j has the status for branches, and not the body", async (sensitive) => {
    answer = send(409, JSON.stringify({ token: "new-token" }));
    const { status, finalOutputs, nodeResults } = await play(
      {
        a: call({ sensitive }),
        b: { type: "branch", needs: ["a"], with: { cases: { taken: "nodes.a.error.status == 409", other: true } } },
        c: { type: "transform", needs: ["b.taken"], with: { value: "${{ nodes.a.error }}" } },
      },
      { c: "${{ nodes.c.output }}" },
    );
    const error = { code: "http_status", message: `${url} answered with status 409`, status: 409 };
    expect([status, finalOutputs, nodeResults.a.error]).toEqual(["completed", { c: error }, error]);
  });

  it("shows no secret of the answer, and no body at all if its output is sensitive", async () => {
    answer = send(400, JSON.stringify({ sent: `Bearer ${SECRET}`, [SECRET]: 1 }));
    const { nodeResults } = await play({
      a: call({ with: { url, headers: { authorization: "Bearer ${{ secrets.TRACKER }}" } } }),
      b: call({ sensitive: true }),
    });
    expect(JSON.stringify(nodeResults)).not.toContain(SECRET);
    expect(nodeResults.a.error.body).toEqual({ sent: "Bearer ***", "***": 1 });
    expect(nodeResults.b.error).not.toHaveProperty("body");
  });

  it("tells subscribers its code and message, as specified", async () => {
    const subscribed = createGate();
    answer = async (request, response) => {
      await subscribed.opened;
      send(500, "{}")(request, response);
    };
    await open({ a: call({ onError: "fail" }) });
    const runId = await service!.trigger("wf");
    const stream = await service!.events(runId);
    subscribed.open();
    const events = await stream.rest();
    const error = { code: "http_status", message: `${url} answered with status 500` };
    expect(events.find(({ event }) => event === "workflow:node_error")?.data).toEqual({ runId, nodeId: "a", error });
    const { runs } = (await service!.call("GET", "/api/workflow/wf/runs")).body;
    expect(runs[0].error).toEqual({ ...error, nodeId: "a" });
  });
});

describe("a failed node inside of map and loop", () => {
  it.each([
    [
      "map",
      {
        items: "[1, 2, 3]",
        concurrency: 1,
        nodes: { f: { type: "transform", with: { value: "${{ 1 / (item - 2) }}" } } },
        result: "1",
      },
      "m[1].f",
    ],
    [
      "loop",
      { maxIterations: 3, nodes: { f: { type: "transform", with: { value: "${{ index == 1 ? 1 / 0 : 1 }}" } } }, result: "1" },
      "m[1].f",
    ],
  ])("is named by the error of its %s and of the run", async (type, given, nodeId) => {
    const { status, error, nodeResults } = await play({ m: { type, with: given } });
    expect([status, error.nodeId, nodeResults.m.error.nodeId]).toEqual(["failed", nodeId, nodeId]);
    expect(nodeResults[nodeId].error).not.toHaveProperty("nodeId");
  });
});

describe("a retry", () => {
  it.each(["1", () => new Date(Date.now() + 2000).toUTCString()])("waits as long as Retry-After says: %s", async (value) => {
    answer = (request, response) => {
      answer = send(200, "{}");
      send(503, "{}", { "retry-after": typeof value === "string" ? value : value() })(request, response);
    };
    const { status, nodeResults } = await play({ a: { type: "http", with: { url }, retry: { attempts: 2, delay: "1ms" } } });
    expect([status, nodeResults.a.attempts]).toEqual(["completed", 2]);
    // Dates have whole seconds.
    expect(times[1]! - times[0]!).toBeGreaterThan(900);
  });

  it("waits at most as long as its node allows", async () => {
    answer = send(503, "{}", { "retry-after": "3600" });
    const retry = { attempts: 2, delay: "1ms", maxDelay: "5ms" };
    const { nodeResults } = await play({ a: { type: "http", with: { url }, retry, onError: "continue" } });
    expect(nodeResults.a.attempts).toBe(2);
  });
});

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { httpNode } from "@portico/workflow-nodes/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

let server: Server;
let url: string;
let statuses: number[] = [];
let calls = 0;
beforeAll(async () => {
  server = createServer((_request, response) => {
    calls++;
    const status = statuses.shift() ?? 200;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ why: `status ${status}` }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const retry = (condition: string) => ({ attempts: 4, delay: "1ms", if: condition });

/** The end of a run with one call, which is answered with these statuses, and the number of its attempts. */
async function called(condition: string, answers: readonly number[], more: object = {}) {
  [statuses, calls] = [[...answers], 0];
  const a = { type: "http", with: { url }, retry: retry(condition), ...more };
  await using service = await startWorkflowService({
    definitions: { "wf.json": { parameters: { type: "object" }, nodes: { a } } },
    adapters: [httpNode({ allow: ["127.0.0.1"] })],
  });
  const { status, error } = await service.ended("wf", await service.trigger("wf", { codes: [503] }));
  return { status, error, calls };
}

async function problemsOf(nodes: object): Promise<readonly string[]> {
  await using service = await startWorkflowService({ definitions: { "wf.json": { nodes } } });
  const { body } = await service.call("GET", "/api/workflows");
  return (body.broken[0]?.problems ?? []).map(({ message }: { message: string }) => message);
}

describe("retry.if", () => {
  it("retries the errors for which it is true, and no others", async () => {
    const condition = "error.status in [429, 503]";
    expect(await called(condition, [503, 429])).toMatchObject({ status: "completed", calls: 3 });
    expect(await called(condition, [503, 500])).toMatchObject({ status: "failed", error: { code: "http_status" }, calls: 2 });
  });

  it("reads the code, the message and the body of the error, and everything else that the node can name", async () => {
    expect(await called("error.code == 'http_status' && error.body.why == 'status 500'", [500])).toMatchObject({ calls: 2 });
    expect(await called("error.message.contains('503') && error.status in parameters.codes", [503, 500])).toMatchObject({
      calls: 2,
    });
  });

  it("finds no status in an error without one", async () => {
    const more = { type: "scripted", with: { fails: 1, say: 7 } };
    expect(await called("error.status == 503", [], more)).toMatchObject({ status: "failed", error: { code: "scripted" } });
    expect(await called("error.status == null && error.code == 'scripted'", [], more)).toMatchObject({ status: "completed" });
  });

  it("never retries more often than `attempts`, nor an error that no retry can help", async () => {
    expect(await called("true", [500, 500, 500, 500, 500])).toMatchObject({ status: "failed", calls: 4 });
    const more = { type: "scripted", with: { fails: 1, retryable: false } };
    expect(await called("true", [], more)).toMatchObject({ status: "failed", error: { message: "attempt 1 fails" } });
  });

  it("retries nothing if it cannot be evaluated, and the error says so", async () => {
    const { error, calls: made } = await called("error.body.missing > 1", [500]);
    expect(made).toBe(1);
    expect(error).toMatchObject({ code: "http_status", message: expect.stringContaining('there is no "missing"') });
  });

  it("is the only place that can name `error`, and knows its fields", async () => {
    const input = { say: "${{ error.code }}" };
    expect(await problemsOf({ a: { type: "scripted", with: input } })).toEqual(["`error` is known in `retry.if` only"]);
    expect(await problemsOf({ a: { type: "scripted", retry: retry("error.statuss == 1") } })).toEqual([
      'There is no field of `error` "statuss": did you mean "status"?',
    ]);
  });
});

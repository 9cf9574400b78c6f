import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { workflowMcp } from "@portico/mcp/workflow";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectMcp, REVISIONS, textOf } from "../../harness/mcp-client.ts";
import {
  startWorkflowService,
  SERVICE_TOKEN,
  type WorkflowService,
  type WorkflowServiceOptions,
} from "../../harness/workflow-app.ts";

const output = "${{ nodes.a.output }}";
const definitions = {
  "double.json": {
    mcp: true,
    name: "Double",
    description: "Doubles a number.",
    parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false },
    nodes: { a: { type: "transform", name: "Compute", with: { value: "${{ parameters.n * 2 }}" } } },
    outputs: { result: output },
  },
  "held.json": {
    mcp: true,
    nodes: {
      first: { type: "transform", name: "First", with: { value: 1 } },
      a: { type: "scripted", needs: ["first"], with: { say: "held", gate: "held" } },
    },
    outputs: { a: output },
  },
  "asks.json": { mcp: true, nodes: { ask: { type: "human_gate", with: { title: "Send it?", message: "To all" } } } },
  "asks-late.json": {
    nodes: {
      held: { type: "scripted", with: { say: 1, gate: "late" } },
      ask: { type: "human_gate", needs: ["held"], with: { title: "Send it?", message: "To all" } },
    },
  },
  "tries.json": {
    mcp: true,
    nodes: { down: { type: "workflow", with: { workflow: "asks-late" }, retry: { attempts: 2, delay: "10ms" } } },
  },
  "middle.json": { nodes: { down: { type: "workflow", with: { workflow: "asks" } } } },
  "asks-below.json": {
    mcp: true,
    nodes: {
      first: { type: "workflow", with: { workflow: "hidden" } },
      after: { type: "workflow", needs: ["first"], with: { workflow: "middle" } },
    },
  },
  "fails.json": { mcp: true, nodes: { a: { type: "scripted", with: { say: 1, fails: 9, retryable: false } } } },
  "long.json": {
    mcp: true,
    nodes: { a: { type: "scripted", with: { say: "é".repeat(200_000) } } },
    outputs: { a: output },
  },
  "hidden.json": { nodes: { a: { type: "transform", with: { value: 1 } } } },
};

/** A service whose workflows are tools. */
function start(options: WorkflowServiceOptions = {}): Promise<WorkflowService> {
  return startWorkflowService({
    definitions,
    plugins: [workflowMcp({ version: "1.2.3", publicUrl: "https://flows.example/" })],
    ...options,
  });
}

const connect = ({ url }: { readonly url: string }, revision: (typeof REVISIONS)[number]) =>
  connectMcp(url, SERVICE_TOKEN, revision);

describe.each(REVISIONS)("workflows as tools, for a client of a revision of %s (an extension)", (revision) => {
  let service: WorkflowService;
  beforeAll(async () => void (service = await start()));
  afterAll(() => service.close());

  it("are those whose definition says `mcp: true`, with their parameters as the schema of arguments", async () => {
    const client = await connect(service, revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["asks", "asks-below", "double", "fails", "held", "long", "tries"]);
    expect(tools[2]).toEqual({
      ...{ name: "double", title: "Double", description: "Doubles a number." },
      inputSchema: definitions["double.json"].parameters,
    });
    expect(tools[0]!.inputSchema).toEqual({ type: "object" });
    await expect(client.callTool({ name: "hidden" })).rejects.toThrow('There is no tool "hidden"');
    await client.close();
  });

  it("answer with the outputs of the run as JSON", async () => {
    const client = await connect(service, revision);
    const result = await client.callTool({ name: "double", arguments: { n: 21 } });
    expect(result).toMatchObject({ content: [{ type: "text", text: '{"result":42}' }] });
    expect(result.isError).toBeUndefined();
    await client.close();
  });

  it("answer with an error that names the place, if the arguments do not match the schema", async () => {
    const client = await connect(service, revision);
    const result = await client.callTool({ name: "double", arguments: { n: "many" } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^The parameters do not match the workflow's schema\n\/n: /);
    await client.close();
  });

  it("answer with the error of a run that fails", async () => {
    const client = await connect(service, revision);
    const result = await client.callTool({ name: "fails" });
    expect([result.isError, textOf(result)]).toEqual([
      true,
      expect.stringMatching(/^Run wrun_\S+ is failed: .*https:\/\/flows\.example\//),
    ]);
    await client.close();
  });

  it("tell their progress by nodes, as notifications that only grow", async () => {
    await using service = await start();
    const client = await connect(service, revision);
    const told: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const called = client.callTool({ name: "held" }, { onprogress: (progress) => told.push(progress) });
    await expect.poll(() => told.length, { timeout: 10_000 }).toBe(3);
    service.nodes.gate("held").open();
    await called;
    expect(told).toEqual([
      { progress: 0.5, total: 2, message: "First: running" },
      { progress: 1, total: 2, message: "First: completed" },
      { progress: 1.5, total: 2, message: "a: running" },
      { progress: 2, total: 2, message: "a: completed" },
    ]);
    await client.close();
  });

  it("answer at a gate that the run waits for a person, with the run's address and without a link that decides", async () => {
    const client = await connect(service, revision);
    const result = await client.callTool({ name: "asks" });
    const runId = /wrun_\w+/.exec(textOf(result))![0];
    expect(textOf(result)).toBe(
      `Run ${runId} waits for a person at the gate "Send it?". It goes on when the person has decided. Read it at https://flows.example/api/workflow/asks/runs/${runId}`,
    );
    expect((await service.until("asks", runId, ({ status }) => status === "waiting_human")).humanGate.title).toBe("Send it?");
    await client.close();
  });

  it("answer at a gate that a run below it has opened, at any depth, with the address of that run", async () => {
    const client = await connect(service, revision);
    const text = textOf(await client.callTool({ name: "asks-below" }));
    const [runId, gateRunId] = text.match(/wrun_\w+/g)!;
    expect(text).toBe(
      `Run ${runId} waits for a person at the gate "Send it?", which run ${gateRunId} of the workflow asks has opened for it. It goes on when the person has decided. Read it at https://flows.example/api/workflow/asks/runs/${gateRunId}`,
    );
    expect((await service.until("asks", gateRunId!, ({ status }) => status === "waiting_human")).humanGate.title).toBe(
      "Send it?",
    );
    expect((await runOf(service, "asks-below")).runId).toBe(runId);
    await client.close();
  });

  it("answer at a gate that a later attempt of a `workflow` node has opened, with the address of its run", async () => {
    await using service = await start();
    const client = await connect(service, revision);
    const called = client.callTool({ name: "tries" });
    await expect.poll(() => service.nodes.played.length, { timeout: 10_000 }).toBe(1);
    const first = service.nodes.played[0]!.runId;
    const headers = { "x-execution-grant": await service.grant({ workflowId: "asks-late" }) };
    await service.call("POST", `/api/workflow/asks-late/runs/${first}/cancel`, undefined, { headers });
    await expect.poll(() => service.nodes.played.length, { timeout: 10_000 }).toBe(2);
    service.nodes.gate("late").open();
    const text = textOf(await called);
    const second = service.nodes.played[1]!.runId;
    expect(second).not.toBe(first);
    expect(text).toContain(`at the gate "Send it?", which run ${second} of the workflow asks-late has opened for it`);
    await client.close();
  });

  it("are cancelled when the client cancels the call", async () => {
    await using service = await start();
    const client = await connect(service, revision);
    const leaving = new AbortController();
    const called = client.callTool({ name: "held" }, { signal: leaving.signal });
    await expect.poll(() => service.nodes.played.length).toBe(1);
    leaving.abort();
    await expect(called).rejects.toThrow();
    await expect.poll(async () => (await runOf(service, "held")).status, { timeout: 10_000 }).toBe("cancelled");
    await client.close();
  });

  it("answer with the beginning of outputs that are longer than 256 KiB, and say so", async () => {
    const client = await connect(service, revision);
    const text = textOf(await client.callTool({ name: "long" }));
    expect(Buffer.byteLength(text)).toBeLessThan(257 * 1024);
    expect(text.endsWith("é\n\n[Cut: this text is longer than 256 KiB]")).toBe(true);
    await client.close();
  });

  it("answer that the run goes on when the service stops", async () => {
    await using service = await start();
    const client = await connect(service, revision);
    const called = client.callTool({ name: "held" });
    await expect.poll(() => service.nodes.played.length).toBe(1);
    for (const app of service.apps) app.surface("workflow").endEventStreams();
    expect(textOf(await called)).toMatch(/^Run wrun_\w+ goes on\. Read how it ends at https:\/\/flows\.example\//);
    service.nodes.gate("held").open();
    await client.close();
  });
});

async function runOf(service: WorkflowService, id: string): Promise<any> {
  const { body } = await service.call("GET", `/api/workflow/${id}/runs`);
  return body.runs[0];
}

it("a client of a revision of 2025 that loses its connection does not cancel its call", async () => {
  await using service = await start();
  const leaving = new AbortController();
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "held" } };
  const answered = fetch(new URL("/mcp", service.url), {
    method: "POST",
    headers: {
      ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
      authorization: `Bearer ${SERVICE_TOKEN}`,
    },
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  await expect.poll(() => service.nodes.played.length).toBe(1);
  leaving.abort();
  await expect(answered).rejects.toThrow();
  service.nodes.gate("held").open();
  await expect.poll(async () => (await runOf(service, "held")).status, { timeout: 10_000 }).toBe("completed");
});

it("a client of a revision of 2025 gets a session, which it can end; a call of another session keeps running when it cancels", async () => {
  await using service = await start();
  const [own, other] = [await connect(service, "2025"), await connect(service, "2025")];
  const leaving = new AbortController();
  const called = own.callTool({ name: "held" });
  await expect.poll(() => service.nodes.played.length).toBe(1);
  // Both calls have the same id in their sessions.
  const cancelled = other.callTool({ name: "held" }, { signal: leaving.signal });
  await expect.poll(() => service.nodes.played.length).toBe(2);
  leaving.abort();
  await expect(cancelled).rejects.toThrow();
  const statuses = async () => {
    const { body } = await service.call("GET", "/api/workflow/held/runs");
    return body.runs.map(({ status }: { status: string }) => status).sort();
  };
  await expect.poll(statuses).toEqual(["cancelled", "running"]);
  service.nodes.gate("held").open();
  expect(textOf(await called)).toBe('{"a":"held"}');
  const transport = own.transport as StreamableHTTPClientTransport;
  expect(transport.sessionId).toMatch(/^[0-9a-f-]{36}$/);
  await transport.terminateSession();
  expect(transport.sessionId).toBeUndefined();
  await own.close();
  await other.close();
});

it("the MCP server takes the service token as bearer or in its own header, and refuses other callers", async () => {
  await using service = await start();
  const statusOf = async (headers: Record<string, string>) => {
    const answer = await fetch(new URL("/mcp", service.url), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
    await answer.body?.cancel();
    return answer.status;
  };
  expect([
    await statusOf({}),
    await statusOf({ authorization: "Bearer wrong" }),
    await statusOf({ authorization: `Bearer ${SERVICE_TOKEN}` }),
    await statusOf({ "x-workflow-service-token": SERVICE_TOKEN }),
  ]).toEqual([401, 401, 200, 200]);
});

it("the MCP server answers what is no message of the protocol with the protocol's errors", async () => {
  await using service = await start();
  const send = async (body: string) => {
    const answer = await fetch(new URL("/mcp", service.url), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${SERVICE_TOKEN}`,
      },
      body,
    });
    return [answer.status, ((await answer.json()) as any).error.code];
  };
  expect(await send("{")).toEqual([400, -32_700]);
  expect(await send("null")).toEqual([400, expect.any(Number)]);
  expect(await send("[1]")).toEqual([400, expect.any(Number)]);
});

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "@portico/adapters/clock/system";
import { demo } from "@portico/adapters/models/demo";
import { functionTools } from "@portico/adapters/tools/functions";
import { codeNode } from "@portico/workflow-nodes/code";
import { httpNode } from "@portico/workflow-nodes/http";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { transformNode } from "@portico/workflow-nodes/transform";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { ports } from "@portico/core";
import { afterAll, beforeAll, describe } from "vitest";
import { workflowNodesConformance } from "./workflow-nodes.ts";

describe("with a service on this machine", () => {
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url?.startsWith("/hang")) return;
      if (request.url?.startsWith("/fail")) response.statusCode = 500;
      response.setHeader("content-type", "application/json").end('{"kind":"hidden-word"}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  workflowNodesConformance("http", () => ({
    adapter: httpNode({ allow: ["127.0.0.1"] }),
    others: [memoryTelemetry({})],
    works: { method: "POST", url: `${url}/good`, headers: { "x-kind": "bug" }, query: { page: 2 }, body: { a: [1] }, key: true },
    broken: [{}, { url: 5 }, { url, method: "CONNECT" }, { url, expect: [99] }, { url, headers: { a: {} } }],
    fails: { url: `${url}/fail?token=hidden-word`, headers: { authorization: "hidden-word" } },
    hangs: { url: `${url}/hang` },
  }));
});

workflowNodesConformance("transform, of a value", () => ({
  adapter: transformNode({}),
  others: [systemClock()],
  works: { value: { a: [1, "b", null] } },
  broken: [{}, { value: 1, jsonata: "a" }, { jsonata: 5 }, { jsonata: "" }],
}));

workflowNodesConformance("transform, by JSONata", () => ({
  adapter: transformNode({}),
  others: [systemClock()],
  works: { jsonata: "$sum(items.(price * n))", input: { items: [{ price: 2, n: 3 }] } },
  fails: { jsonata: "$number(a)", input: { a: "hidden-word" } },
  hangs: { jsonata: "$match(a, /^(a+)+$/)", input: { a: `${"a".repeat(40)}!` } },
}));

workflowNodesConformance("code", () => ({
  adapter: codeNode({}),
  others: [systemClock()],
  works: { language: "javascript", source: "return input.items.length", input: { items: [1, 2] } },
  broken: [{}, { language: "python", source: "1" }, { source: "" }],
  fails: { source: "return input.missing.name", input: { a: "hidden-word" } },
  hangs: { source: "for (;;);" },
}));

workflowNodesConformance("model, of a text", () => ({
  adapter: modelNode(),
  others: [demo({}), memoryTelemetry({}), systemClock()],
  works: { provider: "demo", model: "demo", system: "Be brief.", prompt: "Is this a bug?", maxTokens: 100, temperature: 0 },
  broken: [{ prompt: 5 }, { messages: [] }, { messages: [{ role: "tool", content: "" }] }, { prompt: "a", maxTokens: 0 }],
  fails: { model: "no-such-model", prompt: "hidden-word" },
}));

workflowNodesConformance("model, of an object", () => ({
  adapter: modelNode(),
  others: [demo({}), memoryTelemetry({}), systemClock()],
  works: {
    messages: [{ role: "user", content: "Is this a bug?" }],
    output: {
      type: "object",
      properties: { kind: { enum: ["bug", "question"] } },
      required: ["kind"],
      additionalProperties: false,
    },
  },
}));

const tool = (name: string, run: (args: unknown) => Promise<string>) => ({
  name,
  description: `Does ${name}`,
  inputSchema: { type: "object" },
  riskLevel: "low" as const,
  requiresConfirmation: false,
  run,
});

workflowNodesConformance("tool", () => ({
  adapter: toolNode(),
  others: [
    functionTools({
      tools: [
        tool("greet", async (args) => JSON.stringify({ said: `Hello ${(args as { name?: string }).name}` })),
        tool("break", async () => {
          throw new ports.ToolArgumentsInvalid("name: expected a string");
        }),
        tool("hang", () => new Promise(() => {})),
      ],
    }),
  ],
  works: { tool: "greet", arguments: { name: "Ada" } },
  broken: [{}, { tool: 5 }, { tool: "greet", arguments: "Ada" }],
  fails: { tool: "break", arguments: { name: "hidden-word" } },
  hangs: { tool: "hang" },
}));

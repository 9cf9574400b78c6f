import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

const run = promisify(execFile);

/** What a process without these tests' own modules prints, and the codes of its deprecation warnings. */
async function warningsOf(program: string): Promise<{ readonly printed: string; readonly codes: readonly string[] }> {
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: resolve(root, "test") });
  return { printed: stdout.trim(), codes: [...stderr.matchAll(/\[(\w+)\] DeprecationWarning: /g)].map(([, code]) => code!) };
}

/** By code of the warning: the old paths, and names that each of them has had. */
const PATHS: Readonly<Record<string, { readonly paths: readonly string[]; readonly names: readonly string[] }>> = {
  PORTICO_AGENT_WEBHOOK_PATHS: {
    paths: ["limits", "render-template", "webhook-configuration"].map((name) => `@portico/plugins/agent-webhook/${name}`),
    names: ["EVENT_NAME_LENGTH", "renderTemplate", "isEventName"],
  },
  PORTICO_CONVERSATIONS_RUNS_PATHS: {
    paths: ["canonical-content", "channel", "limits", "query-contract"].map(
      (name) => `@portico/plugins/conversations-runs/${name}`,
    ),
    names: ["canonicalContent", "RUNS_LIMIT"],
  },
  PORTICO_WORKFLOW_DEFINITION_PATHS: {
    paths: ["definition", "definition-json-schema", "load-definition", "node-reference"].map(
      (name) => `@portico/plugins/workflow-service/${name}`,
    ),
    names: ["loadDefinition", "idOfFile", "definitionJsonSchema", "nodeReference"],
  },
  PORTICO_WORKFLOW_RUN_STATE_PATH: {
    paths: ["@portico/plugins/workflow-service/run-state"],
    names: ["RUN_STATUSES", "isTerminal"],
  },
  PORTICO_WORKFLOW_LIMITS_PATH: { paths: ["@portico/plugins/workflow-service/limits"], names: ["GRANT_MS"] },
  PORTICO_WORKFLOW_PARSE_DURATION_PATH: {
    paths: ["@portico/plugins/workflow-service/parse-duration"],
    names: ["parseDuration"],
  },
  PORTICO_LISTENERS_CONTRACT_PATH: { paths: ["portico/listeners-contract"], names: ["listenersContract"] },
};

describe.concurrent("an old path that is imported", () => {
  it.each(Object.entries(PATHS))("offers what it has become, and warns once: %s", async (code, { paths, names }) => {
    const loaded = paths.map((path) => `await import(${JSON.stringify(path)})`).join(", ");
    const program = `const all = [${loaded}, ${loaded}]; console.log(all.every((each) => ${JSON.stringify(names)}.every((name) => each[name])))`;
    expect(await warningsOf(program)).toEqual({ printed: "true", codes: [code] });
  });
});

describe.concurrent("an old name that is used", () => {
  it.each([
    [
      "the port turnRuntime",
      `const { agentRuntimePort, turnRuntime } = await import("@portico/plugins/conversations-runs/agent-runtime");
       const { optional } = await import("@portico/core");
       console.log([1, 2].every(() => optional(turnRuntime).id === agentRuntimePort.id))`,
      "PORTICO_TURN_RUNTIME",
    ],
    [
      'otherOrigins: "as ever"',
      withAgents(
        '{ surfaces: { agent: { allowedOrigins: [], otherOrigins: "as ever" } } }',
        "{}",
        "console.log([await handshake(), await handshake()].every(({ status }) => status === 200))",
      ),
      "PORTICO_OTHER_ORIGINS_AS_EVER",
    ],
    [
      "the option capabilities of conversationsRuns",
      withAgents(
        "{}",
        "{ capabilities: { realtime: false, media: true } }",
        `const { capabilities } = await (await handshake()).json();
         console.log(capabilities.realtime === false && capabilities.media === true)`,
      ),
      "PORTICO_CAPABILITIES_OPTION",
    ],
  ])("means what it meant, and warns once: %s", async (_what, program, code) => {
    expect(await warningsOf(program)).toEqual({ printed: "true", codes: [code] });
  });
});

/** A program that asks an app with agents for its handshake, as a page of another origin does. */
function withAgents(preset: string, options: string, then: string): string {
  return `
    const { createApp, Secret } = await import("@portico/core");
    const { memoryStore } = await import("@portico/adapters/stores/memory");
    const { memoryAgents } = await import("@portico/adapters/agents/memory");
    const { echoAgentEngine } = await import("@portico/adapters/agent-engines/echo");
    const { tokenIdentity } = await import("@portico/adapters/identity/tokens");
    const { createLoopback, loopbackRealtime } = await import("@portico/adapters/realtime/loopback");
    const { conversationsRuns } = await import("@portico/plugins/conversations-runs");
    const tokens = [{ token: new Secret("token"), userId: "owner", role: "owner" }];
    const own = [memoryAgents({}), echoAgentEngine({}), loopbackRealtime({ loopback: createLoopback() }), tokenIdentity({ tokens })];
    const adapters = [...memoryStore(), ...own];
    const app = await createApp({ name: "old", adapters, plugins: [conversationsRuns(${options})], ...${preset} });
    const headers = { "x-agent-service-token": "token", origin: "http://other.example" };
    const handshake = () => app.surface("agent").fetch(new Request("http://a.example/api/handshake", { headers }));
    ${then};
    await app.close();`;
}

// A workflow service inside an application of one's own, with a kind of node of its own. Everything is in memory.
import { systemClock } from "@portico/adapters/clock/system";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryLog } from "@portico/adapters/log/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { transformNode } from "@portico/adapters/workflow-nodes/transform";
import { type App, createApp, defineAdapter, ports, Secret } from "@portico/core";
import { workflowService } from "@portico/plugins/workflow-service";
import { tokenAccess } from "@portico/plugins/workflow-service/access";
import { workflowServiceRuntime } from "@portico/plugins/workflow-service/runtime";
import { openWorkflowStarter } from "@portico/plugins/workflow-service/starter";
import * as v from "valibot";

const SERVICE_TOKEN = "a-token-for-this-story";

const greet = `
parameters: { type: object, required: [name], properties: { name: { type: string } } }
nodes:
  shout: { type: shout, with: { text: "Hello \${{ parameters.name }}" } }
outputs:
  greeting: "\${{ nodes.shout.output.text }}"
`;

/** Nodes of type `shout`: `{ text }` in, `{ text }` out. */
export const shoutNode = defineAdapter({
  name: "workflow-nodes/shout",
  port: ports.workflowNodes,
  needs: {},
  open: (): ports.WorkflowNode<{ readonly text: string }> => ({
    type: "shout",
    input: v.strictObject({ text: v.string() }),
    repeatable: true,
    async run({ input }) {
      if (input.text === "") throw new ports.NodeFailed("nothing_to_shout", "The text is empty", { retryable: false });
      return { text: `${input.text.toUpperCase()}!` };
    },
  }),
});

/** Surface `workflow`. A service that must survive its process takes stores on disk in place of those in memory. */
export function openWorkflows(): Promise<App> {
  return createApp({
    name: "workflows",
    adapters: [
      systemClock(),
      randomIds(),
      memoryTelemetry({}),
      memoryRecords(),
      memoryLog(),
      memoryEngine({}),
      memorySecrets(),
      hmacSigning({ key: new Secret("whoever has it can issue execution grants") }),
      tokenIdentity({ tokens: [{ token: new Secret("an-owner-of-this-story"), userId: "owner", role: "owner" }] }),
      memoryDocuments({ id: "workflows", texts: { "greet.yaml": greet } }),
      transformNode({}),
      shoutNode(),
      openWorkflowStarter(),
      workflowServiceRuntime({}),
      tokenAccess({ token: new Secret(SERVICE_TOKEN) }),
    ],
    plugins: [workflowService({})],
  });
}

/** A call with the service token; answers JSON, or the text of a stream. */
export async function call(app: App, path: string, body?: object): Promise<any> {
  const answer = await app.surface("workflow").fetch(
    new Request(`http://workflows.local${path}`, {
      method: body ? "POST" : "GET",
      headers: { "x-workflow-service-token": SERVICE_TOKEN, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
  return answer.headers.get("content-type")?.startsWith("text/event-stream") ? answer.text() : answer.json();
}

if (import.meta.main) {
  await using app = { opened: await openWorkflows(), [Symbol.asyncDispose]: () => app.opened.close() };
  const { runId } = await call(app.opened, "/api/workflow/webhook?id=greet", { name: "Ada" });
  await call(app.opened, `/api/workflow/events?runId=${runId}`);
  const { status, finalOutputs } = await call(app.opened, `/api/workflow/greet/runs/${runId}`);
  console.log(status, finalOutputs);
}
